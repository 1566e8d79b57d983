"""Exporting: all jobs that match as one file, read and sent page by page, for spreadsheets and for programs."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import Field
from pydantic.alias_generators import to_camel

from windlass.core.errors import SettingsError, StoreError
from windlass.web.asking import App, Reader
from windlass.web.filtering import JobId, WhichInQuery
from windlass.web.shapes import JobShape, job_shape

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from windlass.client.jobs import JobsRoom
    from windlass.core.job import Job

Pages: TypeAlias = "AsyncGenerator[Sequence[Job], None]"
router = APIRouter(tags=["jobs"])
MOST_NAMED = 100
MOST = 100_000
"""jobs in one file"""
_AT_ONCE = 500
_NARROW = f"narrow the search, such as by created>now-1d, or give limit={MOST} for the newest"
_COLUMNS = tuple(name for name in JobShape.model_fields if name not in {"id_", "error", "progress"})
_HEAD = (*_COLUMNS, "error_type", "error_message", "progress_done", "progress_of", "progress_note")
_BEGINS_A_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
)
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file",
        "content": {"text/csv": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "array"}}},
    }
}


class Exported(WhichInQuery):
    """Which jobs, and as what."""

    format: Literal["csv", "json"] = "csv"
    id: Annotated[list[JobId] | None, Field(max_length=MOST_NAMED)] = None
    """these instead of a filter; one that is not there, or not yours, is left out"""
    limit: Annotated[int | None, Field(ge=1, le=MOST)] = None
    """the newest so many; without it, more than 100,000 that match are refused"""


@router.get("/queue/export", summary="Jobs as a file", response_class=Response, responses=_STREAMED)
async def export(wanted: Annotated[Exported, Query()], app: App, caller: Reader) -> Response:
    """All jobs that match, newest first, at most 100,000, as CSV or as a JSON array.

    More are refused, unless `limit` asks for the newest so many. Cells that a spreadsheet would take for a formula
    begin with an apostrophe; values such as the payload are JSON.
    """
    room, search = caller.jobs(app), wanted.search()
    if wanted.id is not None and search:
        raise SettingsError("id names jobs, and a filter was given besides: give one of them")
    # The first page is read before anything is sent: what is wrong with the search is an answer of its own.
    if wanted.id is None and wanted.limit is None and (await room.count(most=MOST + 1, **search)).n > MOST:
        raise SettingsError(f"more than {MOST:,} jobs match, and a file has no more: {_NARROW}")
    pages = _pages(room, search, wanted.id, wanted.limit)
    all_pages = _after(await anext(pages), pages)
    texts = (_csv if wanted.format == "csv" else _json)(all_pages, inside=caller.sees_all)
    kind = "text/csv; charset=utf-8" if wanted.format == "csv" else "application/json"
    headers = {"Content-Disposition": f'attachment; filename="jobs.{wanted.format}"', "Cache-Control": "no-store"}
    return StreamingResponse(texts, media_type=kind, headers=headers)


async def _pages(room: JobsRoom, search: Any, ids: Sequence[str] | None, limit: int | None) -> Pages:
    if ids is not None:
        yield [job for job in await room.several(ids) if job is not None]
        return
    after: str | None = None
    left = MOST if limit is None else limit
    while left:
        page = await room.find(limit=min(_AT_ONCE, left), after=after, **search)
        yield page.jobs
        after, left = page.next, left - len(page.jobs)
        if after is None:
            return
    if limit is None:
        # What is tested job by job was not counted before: a file that breaks off is better than one that looks whole.
        raise StoreError(f"the file broke off after {MOST:,} jobs, and more match: {_NARROW}")


async def _after(first: Sequence[Job], others: Pages) -> Pages:
    yield first
    async for jobs in others:
        yield jobs


async def _csv(pages: Pages, *, inside: bool) -> AsyncGenerator[str, None]:
    yield _lines([[to_camel(name) for name in _HEAD]])
    async for jobs in pages:
        yield _lines(_cells(job, inside=inside) for job in jobs)


async def _json(pages: Pages, *, inside: bool) -> AsyncGenerator[str, None]:
    mark = "["
    async for jobs in pages:
        for job in jobs:
            told = job_shape(job, inside=inside).model_dump(mode="json", by_alias=True)
            yield f"{mark}\n{json.dumps(told, ensure_ascii=False)}"
            mark = ","
    yield "\n]\n" if mark == "," else "[]\n"


def _cells(job: Job, *, inside: bool) -> list[str]:
    told = job_shape(job, inside=inside).model_dump(mode="json")
    error, progress = job.error, job.progress
    more: list[object] = [None, None] if error is None else [error.type, error.message]
    more += [None, None, None] if progress is None else [progress.done, progress.of, progress.note]
    return [_cell(value) for value in [*(told[name] for name in _COLUMNS), *more]]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_BEGINS_A_FORMULA) else text


def _lines(rows: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue()
