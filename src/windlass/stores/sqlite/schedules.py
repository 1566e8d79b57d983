"""Schedules on SQLite: the tick is moved on and its job inserted in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Created, Due, Fired, Firing, Schedule, Tick
from windlass.stores.schedule_rows import COLUMNS, asked_of, schedule_of
from windlass.stores.sqlite.inserting import insert
from windlass.stores.sqlite.news import DUE, News, queued
from windlass.stores.sqlite.records import as_ms, duration, instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from windlass.stores.sqlite.engine import Engine

# A changed rule starts from its own next tick; an unchanged one must not skip or repeat the tick it stands at.
PUT = """
INSERT INTO windlass_schedules (
    name, expression, zone, overlap, missed, missed_limit, type, payload, queue, options, next_tick, declared,
    updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    next_tick = CASE WHEN expression = excluded.expression AND zone = excluded.zone
        THEN next_tick ELSE excluded.next_tick END,
    expression = excluded.expression, zone = excluded.zone, overlap = excluded.overlap, missed = excluded.missed,
    missed_limit = excluded.missed_limit, type = excluded.type, payload = excluded.payload, queue = excluded.queue,
    options = excluded.options, declared = excluded.declared, updated_at = excluded.updated_at
"""
REMOVE = "DELETE FROM windlass_schedules WHERE name = ?"
FORGET_TICKS = "DELETE FROM windlass_ticks WHERE schedule = ?"
ALL = f"SELECT {COLUMNS} FROM windlass_schedules ORDER BY name"  # noqa: S608  # a constant
DUE_NOW = f"""
SELECT {COLUMNS} FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE paused_at IS NULL AND next_tick <= ? ORDER BY next_tick LIMIT ?
"""  # noqa: S608  # a constant
NEXT_TICK = """
SELECT min(next_tick) FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE paused_at IS NULL AND next_tick > ?
"""
PAUSE = "UPDATE windlass_schedules SET paused_at = CASE WHEN ? THEN coalesce(paused_at, ?) END WHERE name = ?"
ADVANCE = """
UPDATE windlass_schedules SET next_tick = ?, last_tick = ?, updated_at = ?
WHERE name = ? AND next_tick = ? AND paused_at IS NULL
"""
ANY_LIVE = """
SELECT 1 FROM windlass_jobs
WHERE schedule = ? AND status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying') LIMIT 1
"""
TICK_JOB = "SELECT id FROM windlass_jobs WHERE schedule = ? AND tick = ?"
RECORD = "INSERT OR REPLACE INTO windlass_ticks (schedule, tick, fired, job_id, ticks) VALUES (?, ?, ?, ?, ?)"
TRIM = """
DELETE FROM windlass_ticks WHERE schedule = ? AND tick <= (
    SELECT tick FROM windlass_ticks WHERE schedule = ? ORDER BY tick DESC LIMIT 1 OFFSET ?
)
"""
TICKS = "SELECT tick, fired, job_id, ticks FROM windlass_ticks WHERE schedule = ? ORDER BY tick DESC LIMIT ?"
TICKS_KEPT = 50


class SqliteSchedules:
    """See `contract.Schedules` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name."""
        await self._engine.write(
            lambda db, now: db.executemany(self._sql(PUT), [_row(one, now) for one in schedules]).rowcount,
            tell=lambda _rows, _now: DUE,
        )

    async def remove(self, names: Sequence[str]) -> int:
        """Forget these."""
        return await self._engine.write(
            lambda db, _: self._remove(db, names), tell=lambda removed, _: News(due=removed)
        )

    async def list(self) -> list[Schedule]:
        """Every schedule, by name."""
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(ALL)).fetchall())
        return [schedule_of(row, instant) for row in rows]

    async def due(self, n: int) -> Due:
        """What is to be fired now."""
        return await self._engine.read(lambda db, now: self._due(db, n, now))

    def _due(self, db: sqlite3.Connection, n: int, now: int) -> Due:
        rows = db.execute(self._sql(DUE_NOW), (now, n)).fetchall()
        following: int | None = db.execute(self._sql(NEXT_TICK), (now,)).fetchone()[0]
        next_in = None if following is None else duration(following - now)
        return Due(tuple(schedule_of(row, instant) for row in rows), instant(now), next_in)

    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        await self._engine.write(
            lambda db, now: db.executemany(self._sql(PAUSE), [(paused, now, name) for name in names]).rowcount,
            tell=lambda _rows, _now: DUE,
        )

    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Account for ticks, one answer each."""
        return await self._engine.write(
            lambda db, now: [self._fire(db, one, now) for one in firings],
            tell=lambda fired, _: queued(
                one.draft.options.queue
                for one, became in zip(firings, fired, strict=True)
                if one.draft is not None and became is Fired.FIRED
            ),
        )

    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks."""
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(TICKS), (name, TICKS_KEPT)).fetchall())
        return [Tick(instant(tick), Fired(fired), job_id, ticks) for tick, fired, job_id, ticks in rows]

    def _remove(self, db: sqlite3.Connection, names: Sequence[str]) -> int:
        db.executemany(self._sql(FORGET_TICKS), [(name,) for name in names])
        return db.executemany(self._sql(REMOVE), [(name,) for name in names]).rowcount

    def _fire(self, db: sqlite3.Connection, one: Firing, now: int) -> Fired:
        tick = as_ms(one.expected)
        if tick > now:
            return Fired.EARLY
        moved = db.execute(self._sql(ADVANCE), (as_ms(one.next_tick), tick, now, one.name, tick)).rowcount
        if not moved:
            return Fired.STALE
        fired, job_id = self._make(db, one, now)
        db.execute(self._sql(RECORD), (one.name, tick, fired.value, job_id, one.ticks))
        db.execute(self._sql(TRIM), (one.name, one.name, TICKS_KEPT))
        return fired

    def _make(self, db: sqlite3.Connection, one: Firing, now: int) -> tuple[Fired, str | None]:
        if one.draft is None:
            return Fired.MISSED, None
        if one.unless_live and db.execute(self._sql(ANY_LIVE), (one.name,)).fetchone():
            return Fired.SKIPPED, None
        known = db.execute(self._sql(TICK_JOB), (one.name, as_ms(one.expected))).fetchone()
        if known is not None:
            return Fired.SKIPPED, known[0]  # fired before the schedule was removed and put again
        [made] = insert(db, self._sql, [one.draft], now).verdicts
        return (Fired.FIRED, made.id) if isinstance(made, Created) else (Fired.SKIPPED, None)


def _row(one: Schedule, now: int) -> tuple[Any, ...]:
    return (*asked_of(one), as_ms(one.next_tick), one.declared, now)
