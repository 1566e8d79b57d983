"""Routes: start an import of a file that is there or is sent, see how it goes, download what was wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import Field

from windlass import Job, JobNotFound, SettingsError, Status
from windlass.apps.imports import sheet
from windlass.apps.imports.cells import DateOrder
from windlass.apps.imports.files import SPREADSHEETS, XLSX, check_filename
from windlass.apps.imports.imports import PREFIX, Imports
from windlass.apps.imports.looking import Look, look
from windlass.apps.imports.order import Order, Summary
from windlass.apps.limited.refused import FileRefused
from windlass.apps.uploads.kept import NotThere, Sent, digest
from windlass.apps.uploads.receiving import AROUND, FILE_REFUSED, name_of, receive, sent_by
from windlass.web import (
    INVALID,
    NOT_FOUND,
    App,
    Asked,
    Caller,
    Enqueuer,
    Instant,
    Reader,
    Refused,
    Repeatable,
    Routes,
    Shape,
    Upload,
    Uploading,
)

if TYPE_CHECKING:
    from windlass import Handle

BASE = "/api/v1/imports"


class StartImport(Asked):
    """An import of a file that is there: in the folder, by its name, or sent before, by its upload."""

    filename: Annotated[str, Field(min_length=1, max_length=200, examples=["Accounts-Payable.xlsx"])] | None = None
    upload: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    type: Annotated[str, Field(max_length=41)] | None = None
    """by default what the manifest says of the file"""
    sheet_name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    mapping: Annotated[dict[str, str], Field(max_length=500)] = Field(default_factory=dict[str, str])
    """field by header, where names and aliases do not say it; an empty header leaves a field out"""
    dates: Annotated[DateOrder, Field(strict=False)] = DateOrder.UNSAID
    """how 3/4/2026 is meant"""
    dry_run: bool = False
    atomic: bool = False
    force: bool = False


class StartedShape(Shape):
    """An import that was enqueued."""

    job_id: str
    type: str
    filename: str
    status: Status
    status_url: str


class ImportShape(Shape):
    """One import."""

    id: str
    type: str
    filename: str
    status: Status
    user_id: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    done: float | None
    of: float | None
    note: str | None
    dry_run: bool
    atomic: bool
    result: Summary | None
    error: str | None


class ImportsShape(Shape):
    """A page of imports, the newest first."""

    items: list[ImportShape]
    next_cursor: str | None


class TypeShape(Shape):
    """A type of import."""

    type: str
    table: str
    key: list[str]
    fields: list[dict[str, Any]]


class UploadShape(Shape):
    """A file that was sent and looked into."""

    upload: str
    size: int
    look: Look


def routes(imports: Imports) -> Routes:
    """All of them."""
    router = APIRouter(route_class=Repeatable, tags=["imports"])
    files = APIRouter(route_class=Uploading, tags=["imports"])
    _start(router, imports)
    _send(files, imports)
    _see(router, imports)
    router.include_router(files)
    upload = Upload(largest=imports.settings.largest + AROUND)
    told = "Spreadsheets whose rows are checked and upserted; every bad cell is named."
    uploads = {f"{BASE}/xlsx/upload": upload, f"{BASE}/files": upload}
    return Routes(router=router, uploads=uploads, tags={"imports": told})


def _start(router: APIRouter, imports: Imports) -> None:
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


def _send(router: APIRouter, imports: Imports) -> None:
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
            found = await _looked(imports, sent, sheet_name)
        except BaseException:
            imports.uploads.remove(sent.token)
            raise
        return UploadShape(upload=sent.token, size=sent.size, look=found)


def _see(router: APIRouter, imports: Imports) -> None:
    @router.get(BASE, summary="List imports")
    async def list_imports(
        app: App,
        caller: Reader,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(max_length=500)] = None,
    ) -> ImportsShape:
        """Imports, the newest first."""
        page = await caller.jobs(app).find(tags=["import"], type=PREFIX + "*", limit=limit, after=cursor)
        return ImportsShape(items=[import_shape(job) for job in page.jobs], next_cursor=page.next)

    @router.get(f"{BASE}/types", summary="List the types of imports")
    async def list_import_types(_: Reader) -> list[TypeShape]:
        """What can be imported: fields, which of them are needed, and the key."""
        return [type_shape(imports, name) for name in imports.handlers]

    @router.get(f"{BASE}/files/{{upload}}", summary="Look into a file that was sent")
    async def get_import_file(
        upload: str,
        caller: Enqueuer,
        sheet_name: Annotated[str | None, Query(alias="sheetName", max_length=100)] = None,
    ) -> UploadShape:
        """The same as when it was sent; with another sheet, if one is named."""
        sent = sent_by(imports.uploads, upload, caller)
        return UploadShape(upload=upload, size=sent.size, look=await _looked(imports, sent, sheet_name))

    @router.get(f"{BASE}/{{job_id}}", summary="Get an import")
    async def get_import(job_id: str, app: App, caller: Reader) -> ImportShape:
        """How an import goes, or what became of it."""
        return import_shape(await job_of(app, caller, job_id))

    @router.get(f"{BASE}/{{job_id}}/errors", summary="Download all errors", response_class=StreamingResponse)
    async def download_import_errors(
        job_id: str,
        app: App,
        caller: Reader,
        format: Annotated[str, Query(pattern="^(csv|jsonl)$")] = "csv",  # its name in the query
    ) -> StreamingResponse:
        """Every bad cell, as CSV or as JSON, a line each."""
        job = await job_of(app, caller, job_id)
        lines: AsyncIterator[bytes] = (
            sheet.csv_lines(imports.target, job.origin or job.id)
            if format == "csv"
            else sheet.json_lines(imports.target, job.origin or job.id)
        )
        media = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
        return StreamingResponse(lines, media_type=media, headers=_attached(f"errors-{job.id[:8]}.{format}"))

    @router.get(f"{BASE}/{{job_id}}/corrections", summary="Download the refused rows", response_class=Response)
    async def download_import_corrections(job_id: str, app: App, caller: Reader) -> Response:
        """The refused rows as a workbook with the reasons beside them: correct it and send it again by itself."""
        job = await job_of(app, caller, job_id)
        header = import_shape(job).result
        made = await sheet.workbook(imports.target, job.origin or job.id, header.header if header else [])
        return Response(made, media_type=XLSX, headers=_attached(f"corrections-{job.id[:8]}.xlsx"))


async def job_of(app: App, caller: Caller, job_id: str) -> Job:
    """A job that is an import, and the caller's to see."""
    job = await caller.jobs(app).get(job_id)
    if not job.type.startswith(PREFIX):
        raise JobNotFound(job_id)
    return job


def import_shape(job: Job) -> ImportShape:
    """An import over the wire."""
    order = Order.model_validate(json.loads(job.payload_json)["order"])
    result = Summary.model_validate_json(job.result_json) if job.result_json else None
    progress = job.progress
    return ImportShape(
        id=job.id,
        type=job.type.removeprefix(PREFIX),
        filename=order.filename,
        status=job.status,
        user_id=job.user_id,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        done=progress.done if progress else None,
        of=progress.of if progress else None,
        note=progress.note if progress else None,
        dry_run=order.dry_run,
        atomic=order.atomic,
        result=result,
        error=job.error.message if job.error else None,
    )


def type_shape(imports: Imports, name: str) -> TypeShape:
    """A type over the wire."""
    handler = imports.handlers[name]
    fields = [
        {
            "name": field.label,
            "kind": field.kind.value,
            "required": field.required,
            "aliases": list(handler.aliases.get(field.name, ())),
        }
        for field in handler.fields
    ]
    return TypeShape(type=name, table=handler.table, key=list(handler.key_labels), fields=fields)


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


async def _looked(imports: Imports, sent: Sent, sheet_name: str | None) -> Look:
    try:
        with imports.uploads.open(sent.token) as file:
            return await look(imports, file, sent.filename, sheet_name)
    except FileRefused as error:
        raise Refused(FILE_REFUSED, f"the file cannot be imported: {error}") from None


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
