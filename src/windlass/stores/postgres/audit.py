"""The audit list on PostgreSQL: a row for everything that somebody did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import AuditEntry, AuditFilter, AuditPage
from windlass.stores.contract.audit import KEPT_FOR, PRUNED_AT_ONCE, place_of, read_place
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import CLOCK, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

# One round trip: what is removed and what is added are never the same rows.
APPEND = f"""
WITH {CLOCK}, old AS (
    SELECT id FROM windlass_audit AS e, clock WHERE at <= now - $7::interval ORDER BY at, id LIMIT $8::int
    FOR UPDATE OF e SKIP LOCKED
), removed AS (
    DELETE FROM windlass_audit WHERE id IN (SELECT id FROM old)
)
INSERT INTO windlass_audit (id, at, actor, action, object, origin, details)
SELECT told.id, now, told.actor, told.action, told.object, told.origin, told.details
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS told (id, actor, action, object, origin, details), clock
ORDER BY told.id COLLATE "C"
ON CONFLICT (id) DO NOTHING
"""  # noqa: S608  # constants
LIST = """
SELECT id, at, actor, action, object, origin, details FROM windlass_audit
WHERE {where} ORDER BY at DESC, id DESC LIMIT $1::int
"""
INDEXED = ("actor", "action", "object")


class PostgresAudit(Room):
    """See `contract.Audit` for what each promises."""

    @guarded
    async def append(self, entries: Sequence[AuditEntry], keep: timedelta = KEPT_FOR) -> None:
        """Add these, and remove what has been kept long enough."""
        if entries:
            names = ("id", "actor", "action", "object", "origin", "details_json")
            columns = [[getattr(one, name) for one in entries] for name in names]
            await self.link.fetch(APPEND, *columns, whole(keep), PRUNED_AT_ONCE)

    @guarded
    async def list(self, filter_: AuditFilter, limit: int, after: str | None = None) -> AuditPage:
        """Entries that match, the newest first."""
        where, values = _asked(filter_, after)
        rows = await self.link.fetch(LIST.format(where=where), limit + 1, *values)
        entries = tuple(map(_entry, rows[:limit]))
        return AuditPage(entries, place_of(entries[-1]) if len(rows) > limit else None)


def _asked(filter_: AuditFilter, after: str | None) -> tuple[str, list[Any]]:
    values: list[Any] = []

    def value(given: Any, kind: str) -> str:
        values.append(given)
        return f"${len(values) + 1}::{kind}"

    where = [
        f"{name} = {value(getattr(filter_, name), 'text')}" for name in INDEXED if getattr(filter_, name) is not None
    ]
    if filter_.since is not None:
        where.append(f"at >= {value(filter_.since, 'timestamptz')}")
    if filter_.until is not None:
        where.append(f"at < {value(filter_.until, 'timestamptz')}")
    if after is not None:
        at, last = read_place(after)
        where.append(f"(at, id) < ({value(at, 'timestamptz')}, {value(last, 'text')})")
    return " AND ".join(where) or "true", values


def _entry(row: Sequence[Any]) -> AuditEntry:
    id_, at, actor, action, object_, origin, details = row
    return AuditEntry(id=id_, actor=actor, action=action, object=object_, origin=origin, details_json=details, at=at)
