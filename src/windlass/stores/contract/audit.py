"""Audit: who did what, to what, when and from where. Entries are added, and removed only by their age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.keys import shown

KEPT_FOR = timedelta(days=365)
PRUNED_AT_ONCE = 1000
"""so many entries that have been kept long enough are removed with each append"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that somebody did. Its id is made by the client, so an append tried again is the same entry."""

    id: str
    actor: str
    action: str
    object: str
    """what it was done to, such as `queue:mail` or `job:0190…`"""
    origin: str | None = None
    """from where: an address, a host"""
    details_json: str | None = None
    at: datetime | None = None
    """stamped by the store"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries; every field given must match exactly, `since` inclusive and `until` not."""

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, and where the next page starts; None after the last."""

    entries: tuple[AuditEntry, ...]
    next: str | None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def place_of(entry: AuditEntry) -> str:
    """Where a page goes on that ended with this entry."""
    return f"{((entry.at or _EPOCH) - _EPOCH) // _MILLISECOND}.{entry.id}"


def read_place(text: str) -> tuple[datetime, str]:
    """The instant and id of the entry that a page ended with."""
    ms, _, id_ = text.partition(".")
    try:
        return _EPOCH + int(ms) * _MILLISECOND, check_id(id_)
    except (ValueError, OverflowError, SettingsError):
        raise SettingsError(f"{shown(text)} is no place in the audit list: give back what a page had as next") from None


class Audit(Protocol):
    """What was done by people and programs that may do things. Nothing here changes an entry."""

    async def append(self, entries: Sequence[AuditEntry], keep: timedelta = KEPT_FOR) -> None:
        """Add these in one step, stamped by the store; an id that is there already is left as it is.

        What is older than `keep` is removed, a bounded number at each call.
        """
        ...

    async def list(self, filter_: AuditFilter, limit: int, after: str | None = None) -> AuditPage:
        """Entries that match, the newest first; `after` is where the page before said the next one starts.

        One of actor, action and object is found by an index, in this order; what else is asked for is looked at entry
        by entry.
        """
        ...
