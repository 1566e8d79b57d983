"""The audit list in Redis: a record for everything that somebody did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.contract import AuditEntry, AuditFilter, AuditPage
from windlass.stores.contract.audit import KEPT_FOR, PRUNED_AT_ONCE, read_place
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_duration_ms, as_ms, instant, packed, unpacked
from windlass.stores.redis.views import as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.redis.connection import Value

INDEXED = ("actor", "action", "object")


class RedisAudit(Room):
    """See `contract.Audit` for what each promises."""

    @guarded
    async def append(self, entries: Sequence[AuditEntry], keep: timedelta = KEPT_FOR) -> None:
        """Add these, and remove what has been kept long enough."""
        if entries:
            values: list[Value] = [as_duration_ms(keep), PRUNED_AT_ONCE]
            for one in entries:
                fields = [one.id, one.actor, one.action, one.object, one.origin or "", one.details_json or ""]
                packed(fields)  # a NUL in one of them would be taken for its end
                values += fields
            await self.link.run("note", values)

    @guarded
    async def list(self, filter_: AuditFilter, limit: int, after: str | None = None) -> AuditPage:
        """Entries that match, the newest first."""
        told, more = await self.link.run("audited", _asked(filter_, limit, after))
        entries = tuple(_entry(id_.decode(), record) for id_, record in as_pairs(told))
        return AuditPage(entries, more.decode() or None)


def _asked(filter_: AuditFilter, limit: int, after: str | None) -> list[Value]:
    given = {name: getattr(filter_, name) or "" for name in INDEXED}
    by = next((name for name, value in given.items() if value), None)
    largest = "+inf" if filter_.until is None else f"({as_ms(filter_.until)}"
    smallest = "-inf" if filter_.since is None else as_ms(filter_.since)
    last_at, last_id = "", ""
    if after is not None:
        at, last_id = read_place(after)
        last_at = str(as_ms(at))
        if filter_.until is None or at < filter_.until:
            largest = last_at
    listed = "audit" if by is None else f"audit:{by}:{given[by]}"
    return [listed, largest, smallest, last_at, last_id, limit, *given.values()]


def _entry(id_: str, record: bytes) -> AuditEntry:
    at, actor, action, object_, origin, details = unpacked(record)
    return AuditEntry(
        id=id_,
        actor=actor,
        action=action,
        object=object_,
        origin=origin or None,
        details_json=details or None,
        at=instant(at),
    )
