"""The audit list on SQLite: a row for everything that somebody did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import AuditEntry, AuditFilter, AuditPage
from windlass.stores.contract.audit import KEPT_FOR, PRUNED_AT_ONCE, place_of, read_place
from windlass.stores.sqlite.records import as_duration_ms, as_ms, instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.sqlite.engine import Engine

APPEND = """
INSERT INTO windlass_audit (id, at, actor, action, object, origin, details) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
"""
PRUNE = "DELETE FROM windlass_audit WHERE id IN (SELECT id FROM windlass_audit WHERE at <= ? ORDER BY at, id LIMIT ?)"
# The index is named: left to itself SQLite may walk all that one actor ever did to find an action of today.
LIST = """
SELECT id, at, actor, action, object, origin, details FROM windlass_audit INDEXED BY windlass_audit_{index}
WHERE {where} ORDER BY at DESC, id DESC LIMIT :limit
"""
INDEXED = ("actor", "action", "object")


class SqliteAudit:
    """See `contract.Audit` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def append(self, entries: Sequence[AuditEntry], keep: timedelta = KEPT_FOR) -> None:
        """Add these, and remove what has been kept long enough."""
        if entries:
            await self._engine.write(lambda db, now: self._append(db, now, entries, now - as_duration_ms(keep)))

    async def list(self, filter_: AuditFilter, limit: int, after: str | None = None) -> AuditPage:
        """Entries that match, the newest first."""
        sql, values = _asked(filter_, after)
        rows = await self._engine.read(
            lambda db, _: db.execute(self._sql(sql), {**values, "limit": limit + 1}).fetchall()
        )
        entries = tuple(map(_entry, rows[:limit]))
        return AuditPage(entries, place_of(entries[-1]) if len(rows) > limit else None)

    def _append(self, db: sqlite3.Connection, now: int, entries: Sequence[AuditEntry], before: int) -> None:
        db.execute(self._sql(PRUNE), (before, PRUNED_AT_ONCE))
        rows = [(one.id, now, one.actor, one.action, one.object, one.origin, one.details_json) for one in entries]
        db.executemany(self._sql(APPEND), rows)


def _asked(filter_: AuditFilter, after: str | None) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {name: getattr(filter_, name) for name in INDEXED if getattr(filter_, name) is not None}
    where = [f"{name} = :{name}" for name in values]
    index = next(iter(values), "at")
    if filter_.since is not None:
        where.append("at >= :since")
        values["since"] = as_ms(filter_.since)
    if filter_.until is not None:
        where.append("at < :until")
        values["until"] = as_ms(filter_.until)
    if after is not None:
        at, values["last"] = read_place(after)
        where.append("(at, id) < (:at, :last)")
        values["at"] = as_ms(at)
    return LIST.format(index=index, where=" AND ".join(where) or "true"), values


def _entry(row: Sequence[Any]) -> AuditEntry:
    id_, at, actor, action, object_, origin, details = row
    return AuditEntry(
        id=id_, actor=actor, action=action, object=object_, origin=origin, details_json=details, at=instant(at)
    )
