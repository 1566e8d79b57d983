"""The audit trail: who did what to what, when and from where, and what it was before and after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.web.dashboard.room import Needs, Page, Rail, Room
from windlass.web.dashboard.visit import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.stores.contract import AuditEntry
    from windlass.web.dashboard.visit import Visit

_A_PAGE = 50
_WORDS = ("actor", "action", "object", "since", "until")
_APART = ("before", "after", "requestId")
_LISTS = {"queue": "/queues/", "job": "/jobs/", "operation": "/jobs/"}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was something else before."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry as the page shows it."""

    entry: AuditEntry
    href: str | None
    """what it was done to, where that has a page"""
    changes: Sequence[Change]
    more: Mapping[str, str]
    request: str | None


async def show(visit: Visit) -> dict[str, Any]:
    """A page of the trail, of what matches."""
    given = {word: visit.asked(word).strip() for word in _WORDS}
    after = visit.asked("after") or None
    page = await visit.app.audit.list(
        actor=given["actor"] or None,
        action=given["action"] or None,
        object_=given["object"] or None,
        since=_instant("since", given["since"]),
        until=_instant("until", given["until"]),
        limit=_A_PAGE,
        after=after,
    )
    chosen = {word: value for word, value in given.items() if value}
    return {
        "lines": [_line(visit, entry) for entry in page.entries],
        "given": given,
        "chosen": chosen,
        "first": visit.here(after=None) if after else None,
        "next": None if page.next is None else visit.here(after=page.next),
        "file": visit.api("audit/export", **_file(chosen)),
        "complete": page.next is None and after is None,
    }


def _file(chosen: Mapping[str, str]) -> dict[str, str]:
    """The same in the words of the API: its instants have a zone."""
    instants = {word: _instant(word, chosen[word]) for word in ("since", "until") if word in chosen}
    return {**chosen, **{word: at.isoformat() for word, at in instants.items() if at is not None}}


def _line(visit: Visit, entry: AuditEntry) -> Line:
    details: dict[str, Any] = {} if entry.details_json is None else json.loads(entry.details_json)
    before, after = _members(details.get("before")), _members(details.get("after"))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    kind, _, name = entry.object.partition(":")
    place = _LISTS.get(kind)
    return Line(
        entry=entry,
        href=visit.url(f"{place}{quoted(name)}") if place and name else None,
        changes=[Change(name, before.get(name), after.get(name)) for name in names],
        more={name: _text(value) for name, value in details.items() if name not in _APART},
        request=None if details.get("requestId") is None else _text(details["requestId"]),
    )


def _members(value: object) -> dict[str, str | None]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        return {"": _text(value)}
    members = cast("dict[str, Any]", value).items()
    return {name: None if member is None else _text(member) for name, member in members}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _instant(of: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{of} is {shown(text)}: expected an instant such as 2026-03-01 or 2026-03-01T09:00Z"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


ROOM = Room(
    name="audit",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/audit",
            title="Audit",
            template="audit.html",
            show=show,
            needs=Needs.ADMIN,
            rail=Rail(word="Audit", icon="M5 3h7l3 3v11H5zM8 9h4M8 12h4", order=80, key="a"),
        ),
    ),
)
