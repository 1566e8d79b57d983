"""Looking at jobs on SQLite: keyset pages, capped counts, history and figures, all on the reader's snapshot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.status import Status
from windlass.stores.contract import COUNT_CAP, Count, Filter, Minute, Page, Stats, StatusCount
from windlass.stores.sqlite.records import COLUMNS, as_duration_ms, as_ms, entries_of, instant, job_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.sqlite.engine import Engine

_FIELDS = (
    "status",
    "type",
    "queue",
    "user_id",
    "entity_name",
    "entity_id",
    "correlation_id",
    "schedule",
    "parent_id",
    "next_id",
)


class SqliteViews:
    """See `contract.Views` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def get(self, ids: Sequence[str]) -> list[Job | None]:
        """The jobs of these ids, in order."""
        statement = self._sql(f"SELECT {COLUMNS} FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?))")  # noqa: S608  # COLUMNS is a constant
        rows = await self._engine.read(lambda db, _: db.execute(statement, (json.dumps(list(ids)),)).fetchall())
        found = {row[0]: job_of(row) for row in rows}
        return [found.get(job_id) for job_id in ids]

    async def blocked(self, lines: Sequence[str], n: int, after: Job | None = None) -> list[Job]:
        """The first of each line, or those behind a job."""
        statement = self._sql(FIRST_OF_LINE if after is None else NEXT_OF_LINE)
        behind = () if after is None else (None if after.queued_at is None else as_ms(after.queued_at), after.id)
        rows = await self._engine.read(
            lambda db, _: [row for line in lines for row in db.execute(statement, (line, *behind, n)).fetchall()]
        )
        return [job_of(row) for row in rows]

    async def find(self, filter_: Filter, limit: int, after: str | None = None) -> Page:
        """Newest first, after the cursor."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        where, values = _where(filter_, after)
        # The plus lets the few processing jobs be found by their leases and sorted, instead of walking all ids.
        order = "+id" if filter_.status is Status.PROCESSING else "id"
        statement = self._sql(f"SELECT {COLUMNS} FROM windlass_jobs WHERE {where} ORDER BY {order} DESC LIMIT ?")  # noqa: S608  # built from _FIELDS only
        rows = await self._engine.read(lambda db, _: db.execute(statement, (*values, limit + 1)).fetchall())
        jobs = tuple(job_of(row) for row in rows[:limit])
        return Page(jobs, jobs[-1].id if len(rows) > limit else None)

    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        where, values = _where(filter_, None)
        statement = self._sql(f"SELECT count(*) FROM (SELECT 1 FROM windlass_jobs WHERE {where} LIMIT ?)")  # noqa: S608  # built from _FIELDS only
        rows = await self._engine.read(lambda db, _: db.execute(statement, (*values, cap + 1)).fetchall())
        return _capped(rows[0][0], cap)

    async def history(self, job_id: str) -> list[Entry]:
        """The job's moves, oldest first."""
        statement = self._sql("SELECT history FROM windlass_jobs WHERE id = ?")
        row = await self._engine.read(lambda db, _: db.execute(statement, (job_id,)).fetchone())
        return entries_of(row[0]) if row else []

    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        return await self._engine.read(lambda db, now: self._stats(db, now, now - as_duration_ms(since)))

    def _stats(self, db: sqlite3.Connection, now: int, since: int) -> Stats:
        counts = [one for status in Status for one in self._counts(db, status)]
        minutes = [
            Minute(instant(minute), queue, type_, Status(status), *figures)
            for minute, queue, type_, status, *figures in db.execute(self._sql(MINUTES), (since // 60_000 * 60_000,))
        ]
        return Stats(instant(now), tuple(counts), tuple(minutes))

    def _counts(self, db: sqlite3.Connection, status: Status) -> list[StatusCount]:
        if status is Status.PROCESSING:
            rows: list[tuple[str, int]] = db.execute(self._sql(PROCESSING_BY_QUEUE), (COUNT_CAP + 1,)).fetchall()
        else:
            rows = db.execute(self._sql(BY_QUEUE), (status.value, COUNT_CAP + 1)).fetchall()
        exact = sum(n for _, n in rows) <= COUNT_CAP
        return [StatusCount(queue, status, Count(n, exact)) for queue, n in rows]


FIRST_OF_LINE = f"""
SELECT {COLUMNS} FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = ? ORDER BY queued_at, id LIMIT ?
"""  # noqa: S608  # COLUMNS is a constant
NEXT_OF_LINE = f"""
SELECT {COLUMNS} FROM windlass_jobs
WHERE status = 'blocked' AND blocked_by = ? AND (queued_at, id) > (?, ?) ORDER BY queued_at, id LIMIT ?
"""  # noqa: S608  # COLUMNS is a constant
MINUTES = """
SELECT minute, queue, type, status, bucket, n, duration_ms, wait_ms FROM windlass_minutes
WHERE minute >= ? ORDER BY minute
"""
BY_QUEUE = """
SELECT queue, count(*) FROM (SELECT queue FROM windlass_jobs WHERE status = ? AND status <> 'processing' LIMIT ?)
GROUP BY queue ORDER BY queue
"""
PROCESSING_BY_QUEUE = """
SELECT queue, count(*) FROM (SELECT queue FROM windlass_jobs WHERE status = 'processing' LIMIT ?)
GROUP BY queue ORDER BY queue
"""


def _where(filter_: Filter, after: str | None) -> tuple[str, list[Any]]:
    given = [(name, getattr(filter_, name)) for name in _FIELDS if getattr(filter_, name) is not None]
    # A type or a queue has all jobs it ever had, and few of them stand in any status but succeeded: with the plus,
    # they are found by their status.
    wide = () if filter_.status in (None, Status.SUCCEEDED) else ("type", "queue")
    parts = [f"{'+' if name in wide else ''}{name} = ?" for name, _ in given]
    values: list[Any] = [value.value if isinstance(value, Status) else value for _, value in given]
    if filter_.status is Status.PROCESSING:
        parts.append("status = 'processing'")  # said as the index of leases says it, so that it serves
    elif filter_.status is not None:
        parts.append("status <> 'processing'")  # said as the index of statuses says it
    if after is not None:
        parts.append("id < ?")
        values.append(after)
    return " AND ".join(parts) or "1", values


def _capped(n: int, cap: int) -> Count:
    return Count(min(n, cap), n <= cap)
