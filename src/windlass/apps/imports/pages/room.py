"""Imports: drop a file, see how it would be read, import it, and look at what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass import Status
from windlass.apps.imports.imports import PREFIX, Imports
from windlass.apps.imports.looking import look
from windlass.apps.imports.routes.seeing import job_of
from windlass.apps.imports.routes.shapes import ImportShape, import_shape
from windlass.apps.limited.refused import FileRefused
from windlass.apps.uploads.kept import NotThere, Sent
from windlass.web import NOT_FOUND, Page, Rail, Refused, Room, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass import Job

_A_PAGE = 50
_REFUSED = 100
"""rows that were refused and are shown; all of them can be downloaded"""
_ENDED = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
_ICON = "M4 3h12v14H4zM4 8h12M4 12.5h12M9 8v9"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One import in the list."""

    job: Job
    told: ImportShape

    @property
    def share(self) -> float | None:
        """How much of it is done, of one that runs."""
        done, of = self.told.done, self.told.of
        return None if done is None or not of else min(done / of, 1.0)


def room(imports: Imports) -> Room:
    """The room of one application's imports."""
    listed = Page(
        path="/imports",
        title="Imports",
        template="list.html",
        show=partial(_list, imports),
        rail=Rail(word="Imports", icon=_ICON, order=100, key="i"),
    )
    file = Page(
        path="/imports/files/{upload}",
        title="A file to import",
        template="file.html",
        show=partial(_file, imports),
        under="/imports",
    )
    one = Page(
        path="/imports/{id}", title="An import", template="one.html", show=partial(_one, imports), under="/imports"
    )
    return Room(name="imports", folder=Path(__file__).parent, pages=(listed, file, one))


async def _list(imports: Imports, visit: Visit) -> Mapping[str, Any]:
    page = await visit.jobs.find(tags=["import"], type=PREFIX + "*", limit=_A_PAGE, after=visit.asked("after") or None)
    rows = [Row(job=job, told=import_shape(job)) for job in page.jobs]
    return {
        "rows": rows,
        "next": page.next,
        "types": list(imports.handlers),
        "largest": imports.settings.largest,
        "may_import": visit.may("enqueue"),
        "waits": any(row.job.status not in _ENDED for row in rows),
    }


async def _file(imports: Imports, visit: Visit) -> Mapping[str, Any]:
    sent = _sent(imports, visit)
    sheet = visit.asked("sheet") or None
    usual: dict[str, Any] = {"title": sent.filename, "sent": sent, "sheet": sheet, "may_import": visit.may("enqueue")}
    try:
        with imports.uploads.open(sent.token) as opened:
            found = await look(imports, opened, sent.filename, sheet)
    except FileRefused as error:
        return {**usual, "look": None, "refusal": str(error), "guess": None, "handler": None}
    type_ = visit.asked("type", found.guesses[0].type)
    guess = next((one for one in found.guesses if one.type == type_), found.guesses[0])
    handler = imports.handlers[guess.type]
    may_atomic = imports.target.atomic
    return {**usual, "look": found, "refusal": None, "guess": guess, "handler": handler, "may_atomic": may_atomic}


def _sent(imports: Imports, visit: Visit) -> Sent:
    try:
        sent = imports.uploads.about(visit.part("upload"))
    except NotThere as error:
        raise Refused(NOT_FOUND, str(error)) from None
    if not visit.sees_all and sent.owner != visit.caller.owner:
        raise Refused(NOT_FOUND, "the file that was sent is not there any more: send it again")
    return sent


async def _one(imports: Imports, visit: Visit) -> Mapping[str, Any]:
    job = await job_of(visit.app, visit.caller, visit.part("id"))
    told = import_shape(job)
    refused = (
        await imports.target.refused(job.origin or job.id, 0, _REFUSED)
        if told.result is not None and told.result.failed
        else []
    )
    upload = next((tag.removeprefix("upload:") for tag in job.tags if tag.startswith("upload:")), None)
    return {
        "title": told.filename,
        "job": job,
        "told": told,
        "row": Row(job=job, told=told),
        "refused": refused,
        "header": told.result.header if told.result is not None else [],
        "fields": _fields(imports, told.type),
        "wrong": [{error["column"] for error in row["errors"]} for row in refused],
        "upload": upload if upload is not None and _is_there(imports, upload) else None,
        "may_import": visit.may("enqueue"),
        "ended": job.status in _ENDED,
        "stream": f"queue/{job.id}/events",
    }


def _fields(imports: Imports, type_: str) -> list[str]:
    handler = imports.handlers.get(type_)
    return [] if handler is None else [field.label for field in handler.fields]


def _is_there(imports: Imports, upload: str) -> bool:
    try:
        imports.uploads.about(upload)
    except NotThere:
        return False
    return True
