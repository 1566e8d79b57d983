"""Looking at jobs on SQLite: keyset pages, capped counts, history and figures, all on the reader's snapshot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.spread import unpacked
from windlass.core.status import Status
from windlass.stores.contract import (
    COUNT_CAP,
    MOST_COUNTED,
    MOST_LOOKED_AT,
    Count,
    Figures,
    Filter,
    Looked,
    Minute,
    Page,
    Ran,
    Stats,
    StatusCount,
    together,
)
from windlass.stores.contract.paging import ANY_WAY, Walk, cut, nearest, page_of, walk_of
from windlass.stores.lines import entries_of
from windlass.stores.sqlite.records import COLUMNS, STATUSES, as_duration_ms, as_ms, instant, job_of, maybe_instant
from windlass.stores.sqlite.searching import Part, parts_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.sqlite.engine import Engine

_THEIRS = "(?2 IS NULL OR user_id = ?2)"
GET = f"""
SELECT {COLUMNS} FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?1)) AND {_THEIRS}
"""  # noqa: S608  # made of constants
LOOK = f"SELECT {COLUMNS}, history FROM windlass_jobs WHERE id = ?1 AND {_THEIRS}"  # noqa: S608  # the same
HISTORY = f"SELECT history FROM windlass_jobs WHERE id = ?1 AND {_THEIRS}"  # noqa: S608  # the same


class SqliteViews:
    """See `contract.Views` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def get(self, ids: Sequence[str], user: str | None = None) -> list[Job | None]:
        """The jobs of these ids, in order."""
        statement = self._sql(GET)
        rows = await self._engine.read(lambda db, _: db.execute(statement, (json.dumps(list(ids)), user)).fetchall())
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

    async def find(self, filter_: Filter, limit: int, after: str | None = None, *, oldest_first: bool = False) -> Page:
        """In the order asked for, from the cursor on."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        walk = walk_of(after, oldest_first=oldest_first)
        parts = parts_of(filter_, walk)
        return await self._engine.read(lambda db, _: self._find(db, parts, walk, limit))

    def _find(self, db: sqlite3.Connection, parts: Sequence[Part], walk: Walk, limit: int) -> Page:
        ids: list[str] = []
        stops: list[str] = []
        for part in parts:
            taken, stopped = self._walked(db, part, limit + 1)
            ids += taken
            stops += stopped
        rows = db.execute(self._sql(GET), (json.dumps(ids), None)).fetchall()
        stop = nearest(stops, walk)
        return page_of(cut([job_of(row) for row in rows], walk, stop), limit, walk, stop)

    def _walked(self, db: sqlite3.Connection, part: Part, most: int) -> tuple[list[str], list[str]]:
        """The first ids of a part that match, and where the walk stopped if it did so before its end."""
        bound = MOST_LOOKED_AT if part.tests else most
        looked, ids, last = 0, list[str](), ""
        for last, fits in db.execute(self._sql(part.statement), (*part.values, bound)):
            looked += 1
            if fits:
                ids.append(last)
                if len(ids) == most:
                    return ids, []
        return ids, [last] * (looked == MOST_LOOKED_AT and bool(part.tests))

    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        parts = parts_of(filter_, ANY_WAY)
        return await self._engine.read(lambda db, _: self._count(db, parts, cap))

    def _count(self, db: sqlite3.Connection, parts: Sequence[Part], cap: int) -> Count:
        n, exact = 0, True
        for part in parts:
            fit, looked = db.execute(self._sql(part.counted), (*part.values, cap + 1)).fetchone()
            n, exact = n + fit, exact and looked <= cap
        return Count(min(n, cap), exact and n <= cap)

    async def look(self, job_id: str, user: str | None = None) -> Looked | None:
        """The whole row."""
        statement = self._sql(LOOK)
        row = await self._engine.read(lambda db, _: db.execute(statement, (job_id, user)).fetchone())
        return Looked(job_of(row), entries_of(row[-1])) if row else None

    async def history(self, job_id: str, user: str | None = None) -> list[Entry]:
        """The job's moves, oldest first."""
        statement = self._sql(HISTORY)
        row = await self._engine.read(lambda db, _: db.execute(statement, (job_id, user)).fetchone())
        return entries_of(row[0]) if row else []

    async def ran(self, user: str, limit: int, after: str | None = None) -> Sequence[Ran]:
        """Their newest, or those before a job."""
        statement = self._sql(RAN)
        rows = await self._engine.read(lambda db, _: db.execute(statement, (user, after or _LAST, limit)).fetchall())
        return [_ran(row) for row in rows]

    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        return await self._engine.read(lambda db, now: self._stats(db, now, now - as_duration_ms(since)))

    async def figures(self, since: timedelta) -> Figures:
        """The minutes since, and what was kept."""
        return await self._engine.read(lambda db, now: self._figures(db, now, now - as_duration_ms(since)))

    async def ended(self, first: datetime, until: datetime) -> Sequence[Minute]:
        """The minutes from the one until before the other."""
        return await self._engine.read(lambda db, _: self._ended(db, as_ms(first), as_ms(until)))

    async def first_minute(self) -> datetime | None:
        """The oldest minute."""
        [minute] = await self._engine.read(lambda db, _: db.execute(self._sql(FIRST_MINUTE)).fetchone())
        return None if minute is None else instant(minute)

    async def recount(self, statuses: frozenset[Status], most: int = MOST_COUNTED) -> Sequence[StatusCount]:
        """By queue and status."""
        return await self._engine.read_apart(
            lambda db, _: [one for status in sorted(statuses) for one in self._counts(db, status, most)]
        )

    async def keep(self, text: str) -> None:
        """In place of what was kept before."""
        await self._engine.write(lambda db, _: db.execute(self._sql(KEEP), (text,)).rowcount)

    def _stats(self, db: sqlite3.Connection, now: int, since: int) -> Stats:
        counts = [one for status in Status for one in self._counts(db, status, COUNT_CAP)]
        return Stats(instant(now), tuple(counts), self._minutes(db, since))

    def _figures(self, db: sqlite3.Connection, now: int, since: int) -> Figures:
        row = db.execute(self._sql(KEPT)).fetchone()
        return Figures(instant(now), self._minutes(db, since), row[0] if row else None)

    def _minutes(self, db: sqlite3.Connection, since: int) -> tuple[Minute, ...]:
        return self._ended(db, since // 60_000 * 60_000, _EVER)

    def _ended(self, db: sqlite3.Connection, first: int, until: int) -> tuple[Minute, ...]:
        return together(_minute(row) for row in db.execute(self._sql(MINUTES), (first, until)))

    def _counts(self, db: sqlite3.Connection, status: Status, most: int) -> list[StatusCount]:
        if status is Status.PROCESSING:
            rows: list[tuple[str, int]] = db.execute(self._sql(PROCESSING_BY_QUEUE), (most + 1,)).fetchall()
        else:
            rows = db.execute(self._sql(BY_QUEUE), (status.value, most + 1)).fetchall()
        exact = sum(n for _, n in rows) <= most
        return [StatusCount(queue, status, Count(n, exact)) for queue, n in rows]


def _ran(row: Sequence[Any]) -> Ran:
    id_, queue, type_, status, finished_at, duration_ms, wait_ms = row
    return Ran(id_, queue, type_, STATUSES[status], maybe_instant(finished_at), duration_ms, wait_ms)


def _minute(row: Sequence[Any]) -> Minute:
    minute, queue, type_, status, spreads, *before = row
    of = instant(minute), queue, type_, STATUSES[status]
    if spreads is None:
        return Minute.of_power(of, *before)
    run, wait = json.loads(spreads)
    return Minute(*of, unpacked(run), unpacked(wait))


_LAST = "~"  # behind all ids
RAN = """
SELECT id, queue, type, status, finished_at, duration_ms, wait_ms FROM windlass_jobs WHERE user_id = ? AND id < ?
ORDER BY id DESC LIMIT ?
"""
FIRST_OF_LINE = f"""
SELECT {COLUMNS} FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = ? ORDER BY queued_at, id LIMIT ?
"""  # noqa: S608  # COLUMNS is a constant
NEXT_OF_LINE = f"""
SELECT {COLUMNS} FROM windlass_jobs
WHERE status = 'blocked' AND blocked_by = ? AND (queued_at, id) > (?, ?) ORDER BY queued_at, id LIMIT ?
"""  # noqa: S608  # COLUMNS is a constant
# A column without a type that is enforced: SQLite keeps text there as it is.
KEEP = "INSERT OR REPLACE INTO windlass_meta (key, value) VALUES ('figures', ?)"
KEPT = "SELECT value FROM windlass_meta WHERE key = 'figures'"
MINUTES = """
SELECT minute, queue, type, status, spreads, bucket, n, duration_ms, wait_ms FROM windlass_minutes
WHERE minute >= ? AND minute < ?
"""
_EVER = 2**63 - 1
FIRST_MINUTE = "SELECT min(minute) FROM windlass_minutes"
BY_QUEUE = """
SELECT queue, count(*) FROM (SELECT queue FROM windlass_jobs WHERE status = ? AND status <> 'processing' LIMIT ?)
GROUP BY queue ORDER BY queue
"""
PROCESSING_BY_QUEUE = """
SELECT queue, count(*) FROM (SELECT queue FROM windlass_jobs WHERE status = 'processing' LIMIT ?)
GROUP BY queue ORDER BY queue
"""
