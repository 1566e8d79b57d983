"""The audit trail: who did what to what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from windlass.web.asking import Admin, App
from windlass.web.given import Key, Moment, Sought
from windlass.web.shapes import Instant, Shape

if TYPE_CHECKING:
    from windlass.stores.contract import AuditEntry

router = APIRouter(tags=["audit"])
Name = Key | None


class Entries(Sought):
    """Which entries, and which page of them."""

    actor: Name = None
    action: Name = None
    object: Name = None
    since: Moment | None = None
    until: Moment | None = None
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
