"""Looking at jobs on PostgreSQL: keyset pages, capped counts, history and figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.spread import Spread
from windlass.core.status import Status
from windlass.stores.contract import (
    COUNT_CAP,
    MOST_COUNTED,
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
from windlass.stores.contract.paging import ANY_WAY, cut, nearest, page_of, walk_of
from windlass.stores.lines import entries_of
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import COLUMNS, STATUSES, job_of
from windlass.stores.postgres.searching import Searched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job

_THEIRS = "($2::text IS NULL OR user_id = $2::text)"
GET = f"""
SELECT {COLUMNS} FROM windlass_jobs AS j WHERE j.id = ANY ($1::text[]) AND {_THEIRS}
"""  # noqa: S608  # made of constants
LOOK = f"""
SELECT {COLUMNS}, j.history FROM windlass_jobs AS j WHERE j.id = $1::text AND {_THEIRS}
"""  # noqa: S608  # made of constants
HISTORY = f"SELECT history FROM windlass_jobs WHERE id = $1::text AND {_THEIRS}"  # noqa: S608  # the same
_LAST = "~"  # behind all ids
_RAN = "SELECT id, queue, type, status, finished_at, duration_ms, wait_ms FROM windlass_jobs"
# As a range of one value the user takes part in the order, which leaves the index of ids no way to give it.
RAN = f"""
SELECT * FROM (
    ({_RAN} WHERE status <> 'processing' AND user_id BETWEEN $1::text AND $1::text AND id < $2::text
     ORDER BY user_id DESC, id DESC LIMIT $3::int)
    UNION ALL ({_RAN} WHERE status = 'processing' AND user_id = $1::text AND id < $2::text)
) AS theirs ORDER BY id DESC LIMIT $3::int
"""  # noqa: S608  # made of constants
COUNTS = """
SELECT status, queue, count(*) FROM unnest($1::text[]) AS status CROSS JOIN LATERAL (
    SELECT queue FROM windlass_jobs AS j WHERE j.status = status.status AND j.status <> 'processing' LIMIT $2::int
) AS few GROUP BY 1, 2
UNION ALL
SELECT 'processing', queue, count(*) FROM (
    SELECT queue FROM windlass_jobs WHERE status = 'processing' LIMIT $2::int
) AS running GROUP BY 2
ORDER BY 1, 2
"""
_OF_LINES = f"""
SELECT {COLUMNS} FROM unnest($1::text[]) WITH ORDINALITY AS line (by, place) CROSS JOIN LATERAL (
    SELECT * FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = line.by%s
    ORDER BY queued_at, id LIMIT $2::int
) AS j ORDER BY line.place, j.queued_at, j.id
"""  # noqa: S608  # made of constants
FIRST_OF_LINES = _OF_LINES % ""
NEXT_OF_LINES = _OF_LINES % " AND (queued_at, id) > ($3::timestamptz, $4::text)"
_MINUTES = """
SELECT minute, queue, type, status, runs, waits, least_run, most_run, least_wait, most_wait, bucket, n, duration_ms,
    wait_ms
FROM windlass_minutes
"""
MINUTES = f"{_MINUTES} WHERE minute >= date_trunc('minute', statement_timestamp() - $1::interval)"
ENDED = f"{_MINUTES} WHERE minute >= $1::timestamptz AND minute < $2::timestamptz"
FIRST_MINUTE = "SELECT minute FROM windlass_minutes ORDER BY minute LIMIT 1"
# One statement: a row for each figure, or one without where nothing ended.
FIGURES = f"""
SELECT date_trunc('milliseconds', statement_timestamp()),
    (SELECT value FROM windlass_meta WHERE key = 'figures'), ended.*
FROM (SELECT) AS one LEFT JOIN ({MINUTES}) AS ended ON true
"""  # noqa: S608  # made of constants
KEEP = """
INSERT INTO windlass_meta (key, value) VALUES ('figures', $1::text)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
NOW = "SELECT date_trunc('milliseconds', statement_timestamp())"


class PostgresViews(Room):
    """See `contract.Views` for what each promises."""

    @guarded
    async def get(self, ids: Sequence[str], user: str | None = None) -> list[Job | None]:
        """The jobs of these ids, in order."""
        found = {row[0]: job_of(row) for row in await self.link.fetch(GET, list(ids), user)}
        return [found.get(job_id) for job_id in ids]

    @guarded
    async def blocked(self, lines: Sequence[str], n: int, after: Job | None = None) -> list[Job]:
        """The first of each line, or those behind a job."""
        if after is None:
            rows = await self.link.fetch(FIRST_OF_LINES, list(lines), n)
        else:
            rows = await self.link.fetch(NEXT_OF_LINES, list(lines), n, after.queued_at, after.id)
        return [job_of(row) for row in rows]

    @guarded
    async def find(self, filter_: Filter, limit: int, after: str | None = None, *, oldest_first: bool = False) -> Page:
        """In the order asked for, from the cursor on."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        walk = walk_of(after, oldest_first=oldest_first)
        search = Searched.of(filter_, walk)
        rows = await self.link.fetch(search.page(), *search.values, limit + 1)
        stop = await self._stop(search, [row[-1] for row in rows], limit)
        return page_of(cut([job_of(row[:-1]) for row in rows], walk, stop), limit, walk, stop)

    async def _stop(self, search: Searched, parts: Sequence[int], limit: int) -> str | None:
        """Where a part of the search that did not fill a page by itself gave up, if one did."""
        if all(parts.count(part) > limit for part in search.bounded):
            return None
        statement, values = search.stops()
        rows = await self.link.fetch(statement, *values)
        return nearest([stop for (stop,) in rows], search.walk)

    @guarded
    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        search = Searched.of(filter_, ANY_WAY)
        rows = await self.link.fetch(search.counts(), *search.values, cap + 1)
        n = sum(fit for fit, _ in rows)
        return Count(min(n, cap), n <= cap and all(looked <= cap for _, looked in rows))

    @guarded
    async def look(self, job_id: str, user: str | None = None) -> Looked | None:
        """The whole row."""
        rows = await self.link.fetch(LOOK, job_id, user)
        return Looked(job_of(rows[0]), entries_of(rows[0]["history"])) if rows else None

    @guarded
    async def history(self, job_id: str, user: str | None = None) -> list[Entry]:
        """The job's moves, oldest first."""
        rows = await self.link.fetch(HISTORY, job_id, user)
        return entries_of(rows[0][0]) if rows else []

    @guarded
    async def ran(self, user: str, limit: int, after: str | None = None) -> Sequence[Ran]:
        """Their newest, or those before a job."""
        rows = await self.link.fetch(RAN, user, after or _LAST, limit)
        return [Ran(id_, queue, type_, STATUSES[status], *times) for id_, queue, type_, status, *times in rows]

    @guarded
    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        return await self.link.transaction(lambda ask: self._stats(ask, since))

    @guarded
    async def figures(self, since: timedelta) -> Figures:
        """The minutes since, and what was kept."""
        rows = await self.link.fetch(FIGURES, since)
        (now, kept, *_), *_ = rows
        return Figures(now, together(_minute(row[2:]) for row in rows if row[2] is not None), kept)

    @guarded
    async def ended(self, first: datetime, until: datetime) -> Sequence[Minute]:
        """The minutes from the one until before the other."""
        return together(map(_minute, await self.link.fetch(ENDED, first, until)))

    @guarded
    async def first_minute(self) -> datetime | None:
        """The oldest minute."""
        rows = await self.link.fetch(FIRST_MINUTE)
        return rows[0][0] if rows else None

    @guarded
    async def recount(self, statuses: frozenset[Status], most: int = MOST_COUNTED) -> Sequence[StatusCount]:
        """By queue and status."""
        others = [status.value for status in sorted(statuses - {Status.PROCESSING})]
        running = Status.PROCESSING in statuses
        rows = await self.link.fetch(COUNTS, others, most + 1)
        return _counts([row for row in rows if running or row[0] != Status.PROCESSING.value], most)

    @guarded
    async def keep(self, text: str) -> None:
        """In place of what was kept before."""
        await self.link.fetch(KEEP, text)

    async def _stats(self, ask: Any, since: timedelta) -> Stats:
        others = [status.value for status in Status if status is not Status.PROCESSING]
        counts = _counts(await ask(COUNTS, others, COUNT_CAP + 1), COUNT_CAP)
        minutes = together(map(_minute, await ask(MINUTES, since)))
        [(now,)] = await ask(NOW)
        return Stats(now, tuple(counts), minutes)


def _counts(rows: Sequence[Sequence[Any]], most: int) -> list[StatusCount]:
    sums: dict[str, int] = {}
    for status, _, n in rows:
        sums[status] = sums.get(status, 0) + n
    return [StatusCount(queue, STATUSES[status], Count(n, sums[status] <= most)) for status, queue, n in rows]


def _minute(row: Sequence[Any]) -> Minute:
    minute, queue, type_, status, runs, waits, least_run, most_run, least_wait, most_wait, *before = row
    of = minute, queue, type_, STATUSES[status]
    if runs is None:
        return Minute.of_power(of, *before)
    _, n, took, waited = before
    run = Spread(n, took, least_run, most_run, _buckets(runs))
    return Minute(*of, run, Spread(n, waited, least_wait, most_wait, _buckets(waits)))


def _buckets(text: str) -> dict[int, int]:
    return {int(bucket): n for bucket, n in json.loads(text).items()}
