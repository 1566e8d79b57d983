"""Routes that start an import: of a file that is there, or is sent."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile

from windlass import SettingsError, Status
from windlass.apps.imports.cells import DateOrder
from windlass.apps.imports.files import SPREADSHEETS, check_filename
from windlass.apps.imports.imports import PREFIX, Imports
from windlass.apps.imports.looking import Look, look
from windlass.apps.imports.order import Order, Summary
from windlass.apps.limited.refused import FileRefused
from windlass.apps.uploads.kept import NotThere, Sent, digest
from windlass.apps.uploads.receiving import FILE_REFUSED, name_of, receive, sent_by
from windlass.web import (
    INVALID,
    NOT_FOUND,
    Caller,
    Enqueuer,
    Refused,
)

if TYPE_CHECKING:
    from windlass import Handle

from windlass.apps.imports.routes.shapes import StartedShape, StartImport, UploadShape

BASE = "/api/v1/imports"


def start(router: APIRouter, imports: Imports) -> None:
    @router.post(f"{BASE}/xlsx", status_code=202, summary="Import a file that is there")
    async def start_import(
        body: StartImport,
        request: Request,
        response: Response,
        caller: Enqueuer,
        dry_run: Annotated[bool, Query(alias="dryRun")] = False,
    ) -> StartedShape:
        """Enqueue an import. The same bytes, read in the same way, again: 409 with the job that is there."""
        if (body.filename is None) == (body.upload is None):
            raise Refused(INVALID, "give either filename, of a file that is there, or upload, of one that was sent")
        name, sha256 = await _named(imports, body, caller)
        type_ = _type(imports, name, body.type)
        entry = imports.looked_up(name)
        order = Order(
            filename=name,
            sha256=sha256,
            upload=body.upload,
            sheet_name=body.sheet_name or (entry.sheet_name if entry else None),
            mapping={**(entry.mapping if entry else {}), **body.mapping},
            dates=body.dates,
            dry_run=body.dry_run or dry_run,
            atomic=body.atomic,
        )
        return await _started(imports, type_, order, caller, request, response, force=body.force)


def send(router: APIRouter, imports: Imports) -> None:
    @router.post(f"{BASE}/xlsx/upload", status_code=202, summary="Send a file and import it")
    async def upload_import(
        request: Request,
        response: Response,
        caller: Enqueuer,
        file: Annotated[UploadFile, File()],
        type: Annotated[str | None, Form(max_length=41)] = None,  # the field's name
        sheet_name: Annotated[str | None, Form(alias="sheetName", max_length=100)] = None,
        mapping: Annotated[str, Form(max_length=50_000)] = "{}",
        dates: Annotated[DateOrder, Form()] = DateOrder.UNSAID,
        dry_run: Annotated[bool, Form(alias="dryRun")] = False,
        atomic: Annotated[bool, Form()] = False,
        force: Annotated[bool, Form()] = False,
        dry: Annotated[bool, Query(alias="dryRun")] = False,
    ) -> StartedShape:
        """Send a spreadsheet and enqueue its import. It is kept under a name of the server's until it is imported."""
        name = name_of(file, SPREADSHEETS)
        type_ = _type(imports, name, type)
        entry = imports.looked_up(name)
        given = _mapping(mapping)
        sent = await receive(imports.uploads, file, owner=caller.owner, largest=imports.settings.largest)
        order = Order(
            filename=name,
            sha256=sent.sha256,
            upload=sent.token,
            sheet_name=sheet_name or (entry.sheet_name if entry else None),
            mapping={**(entry.mapping if entry else {}), **given},
            dates=dates,
            dry_run=dry_run or dry,
            atomic=atomic,
        )
        try:
            return await _started(imports, type_, order, caller, request, response, force=force)
        except BaseException:
            imports.uploads.remove(sent.token)
            raise

    @router.post(f"{BASE}/files", status_code=201, summary="Send a file and look into it")
    async def upload_file(
        caller: Enqueuer,
        file: Annotated[UploadFile, File()],
        sheet_name: Annotated[str | None, Form(alias="sheetName", max_length=100)] = None,
    ) -> UploadShape:
        """Send a spreadsheet to be tried first: its sheets, header and first rows, and the mapping for each type."""
        sent = await receive(imports.uploads, file, owner=caller.owner, largest=imports.settings.largest)
        try:
            found = await looked(imports, sent, sheet_name)
        except BaseException:
            imports.uploads.remove(sent.token)
            raise
        return UploadShape(upload=sent.token, size=sent.size, look=found)


def owner_of(caller: Caller) -> str | None:
    """Whose an import is; nobody's if a key of everybody starts it."""
    return None if caller.sees_all else caller.owner


async def _started(
    imports: Imports, type_: str, order: Order, caller: Caller, request: Request, response: Response, *, force: bool
) -> StartedShape:
    caller.check_job(PREFIX + type_, imports.settings.queue)
    handle: Handle[Summary] = await imports.start(type_, order, owner=owner_of(caller), force=force)
    base = str(request.scope.get("root_path", "")).rstrip("/")
    response.headers["Location"] = f"{base}/api/v1/queue/{handle.id}"
    return StartedShape(
        job_id=handle.id,
        type=type_,
        filename=order.filename,
        status=Status.QUEUED,
        status_url=f"{base}{BASE}/{handle.id}",
    )


async def _named(imports: Imports, body: StartImport, caller: Caller) -> tuple[str, str]:
    """What a file is called, and its digest."""
    if body.upload is not None:
        sent = sent_by(imports.uploads, body.upload, caller)
        return sent.filename, sent.sha256
    name = str(body.filename)
    try:
        with imports.folder.open(name) as file:
            return name, await asyncio.to_thread(digest, file)
    except NotThere as error:
        raise Refused(NOT_FOUND, str(error)) from None


def _type(imports: Imports, filename: str, given: str | None) -> str:
    check_filename(filename)
    if given is not None:
        return imports.handler(given).import_type
    entry = imports.looked_up(filename)
    if entry is None:
        known = ", ".join(sorted(imports.handlers))
        raise SettingsError(f"the manifest says nothing of {filename!r}: give the type, one of {known}")
    return entry.type


def _mapping(text: str) -> dict[str, str]:
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in cast("dict[str, Any]", given).values()):
        raise Refused(INVALID, "mapping: expected a JSON object of headers by field")
    return cast("dict[str, str]", given)


async def looked(imports: Imports, sent: Sent, sheet_name: str | None) -> Look:
    try:
        with imports.uploads.open(sent.token) as file:
            return await look(imports, file, sent.filename, sheet_name)
    except FileRefused as error:
        raise Refused(FILE_REFUSED, f"the file cannot be imported: {error}") from None
