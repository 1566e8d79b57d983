"""The audit trail: who did what to what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse

from windlass.web.asking import Admin, App
from windlass.web.given import Key, Moment, Sought
from windlass.web.shapes import Instant, Shape

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from windlass.stores.contract import AuditEntry, AuditPage
    from windlass.web.answers import Answers

router = APIRouter(tags=["audit"])
Name = Key | None
_AT_ONCE = 500
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}


class Chosen(Sought):
    """Which entries."""

    actor: Name = None
    action: Name = None
    object: Name = None
    since: Moment | None = None
    until: Moment | None = None


class Entries(Chosen):
    """Which entries, and which page of them."""

    limit: Annotated[int, Query(ge=1, le=1000)] = 100
    cursor: str | None = None


class AuditEntryShape(Shape):
    """One thing that somebody did; `details` says what was before and after."""

    id: str
    at: Instant | None
    actor: str
    action: str
    object: str
    origin: str | None
    details: dict[str, Any] | None


class AuditPageShape(Shape):
    """A page of the trail, the newest first."""

    items: list[AuditEntryShape]
    next_cursor: str | None


@router.get("/audit", summary="The audit trail")
async def trail(wanted: Annotated[Entries, Query()], app: App, _: Admin) -> AuditPageShape:
    """Entries that match all that is given, newest first. A page may be short and still have a next one."""
    page = await app.audit.list(
        actor=wanted.actor,
        action=wanted.action,
        object_=wanted.object,
        since=wanted.since,
        until=wanted.until,
        limit=wanted.limit,
        after=wanted.cursor,
    )
    return AuditPageShape(items=[_shape(one) for one in page.entries], next_cursor=page.next)


@router.get("/audit/export", summary="The audit trail as a file", response_class=Response, responses=_STREAMED)
async def export(wanted: Annotated[Chosen, Query()], app: App, _: Admin) -> Response:
    """All entries that match, newest first, as JSON: a line for each."""
    first = await _page(app, wanted, None)
    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"', "Cache-Control": "no-store"}
    return StreamingResponse(_lines(app, wanted, first), media_type="application/x-ndjson", headers=headers)


async def _lines(app: Answers, wanted: Chosen, page: AuditPage) -> AsyncGenerator[str, None]:
    while True:
        for entry in page.entries:
            yield f"{_shape(entry).model_dump_json(by_alias=True)}\n"
        if page.next is None:
            return
        page = await _page(app, wanted, page.next)


async def _page(app: Answers, wanted: Chosen, after: str | None) -> AuditPage:
    return await app.audit.list(
        actor=wanted.actor,
        action=wanted.action,
        object_=wanted.object,
        since=wanted.since,
        until=wanted.until,
        limit=_AT_ONCE,
        after=after,
    )


def _shape(entry: AuditEntry) -> AuditEntryShape:
    return AuditEntryShape(
        id=entry.id,
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        object=entry.object,
        origin=entry.origin,
        details=None if entry.details_json is None else json.loads(entry.details_json),
    )
