"""Looking at jobs on PostgreSQL: keyset pages, capped counts, history and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.status import Status
from windlass.stores.contract import COUNT_CAP, Count, Filter, Minute, Page, Stats, StatusCount
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import COLUMNS, STATUSES, entries_of, job_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job

_INDEXED = ("next_id", "parent_id", "correlation_id", "entity_id", "user_id", "schedule", "type", "queue", "status")
"""What a view is walked by, if it is asked for: the one of these that comes first, as it leaves the fewest jobs."""
_FIELDS = (*_INDEXED, "entity_name")
_WIDE, _PLENTY = ("type", "queue"), (Status.SUCCEEDED, Status.PROCESSING)
"""A type or a queue has all jobs it ever had, and few of them stand in any status but these. What runs is found by its
own indexes."""
# What runs is in other indexes than the rest, so each half of a view is asked for in the words of its own.
_RESTING, _RUNNING = "j.status <> 'processing'", "j.status = 'processing'"

GET = f"SELECT {COLUMNS} FROM windlass_jobs AS j WHERE j.id = ANY ($1::text[])"  # noqa: S608  # made of constants
HISTORY = "SELECT history FROM windlass_jobs WHERE id = $1::text"
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
MINUTES = """
SELECT minute, queue, type, status, bucket, sum(n)::bigint, sum(duration_ms)::bigint, sum(wait_ms)::bigint
FROM windlass_minutes WHERE minute >= date_trunc('minute', statement_timestamp() - $1::interval)
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1
"""
NOW = "SELECT date_trunc('milliseconds', statement_timestamp())"


class PostgresViews(Room):
    """See `contract.Views` for what each promises."""

    @guarded
    async def get(self, ids: Sequence[str]) -> list[Job | None]:
        """The jobs of these ids, in order."""
        found = {row[0]: job_of(row) for row in await self.link.fetch(GET, list(ids))}
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
    async def find(self, filter_: Filter, limit: int, after: str | None = None) -> Page:
        """Newest first, after the cursor."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        where, by, values = _where(filter_, after)
        most = f"${len(values) + 1}::bigint"
        halves = [
            f"(SELECT {COLUMNS} FROM windlass_jobs AS j WHERE {half} AND {where} ORDER BY {order} LIMIT {most})"  # noqa: S608  # built from _FIELDS only
            for half, order in _halves(filter_, by)
        ]
        statement = f"SELECT * FROM ({' UNION ALL '.join(halves)}) AS j ORDER BY id DESC LIMIT {most}"  # noqa: S608  # the same
        rows = await self.link.fetch(statement, *values, limit + 1)
        jobs = tuple(job_of(row) for row in rows[:limit])
        return Page(jobs, jobs[-1].id if len(rows) > limit else None)

    @guarded
    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        where, by, values = _where(filter_, None)
        most = f"${len(values) + 1}::bigint"
        halves = [
            f"(SELECT 1 FROM windlass_jobs AS j WHERE {half} AND {where} LIMIT {most})"  # noqa: S608  # built from _FIELDS only
            for half, _ in _halves(filter_, by)
        ]
        statement = f"SELECT count(*) FROM ({' UNION ALL '.join(halves)}) AS few"  # noqa: S608  # the same
        [(n,)] = await self.link.fetch(statement, *values, cap + 1)
        return Count(min(n, cap), n <= cap)

    @guarded
    async def history(self, job_id: str) -> list[Entry]:
        """The job's moves, oldest first."""
        rows = await self.link.fetch(HISTORY, job_id)
        return entries_of(rows[0][0]) if rows else []

    @guarded
    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        return await self.link.transaction(lambda ask: self._stats(ask, since))

    async def _stats(self, ask: Any, since: timedelta) -> Stats:
        others = [status.value for status in Status if status is not Status.PROCESSING]
        rows = await ask(COUNTS, others, COUNT_CAP + 1)
        sums: dict[str, int] = {}
        for status, _, n in rows:
            sums[status] = sums.get(status, 0) + n
        counts = tuple(
            StatusCount(queue, STATUSES[status], Count(n, sums[status] <= COUNT_CAP)) for status, queue, n in rows
        )
        minutes = tuple(
            Minute(minute, queue, type_, STATUSES[status], *figures)
            for minute, queue, type_, status, *figures in await ask(MINUTES, since)
        )
        [(now,)] = await ask(NOW)
        return Stats(now, counts, minutes)


def _halves(filter_: Filter, by: str | None) -> list[tuple[str, str]]:
    # Walked newest first by the one index that can; what runs is little, and is sorted.
    resting = "j.id DESC" if by is None else f"j.{by} DESC, j.id DESC"
    halves = {_RESTING: resting, _RUNNING: "j.id || '' DESC"}
    if filter_.status is not None:
        del halves[_RESTING if filter_.status is Status.PROCESSING else _RUNNING]
    return list(halves.items())


def _where(filter_: Filter, after: str | None) -> tuple[str, str | None, list[Any]]:
    given = {name: getattr(filter_, name) for name in _FIELDS if getattr(filter_, name) is not None}
    by = next((name for name in _INDEXED if name in given), None)
    if by in _WIDE and filter_.status not in (None, *_PLENTY):
        by = "status"
    parts: list[str] = []
    for n, name in enumerate(given, 1):
        # As a range of one value it takes part in the order, which leaves the index of ids no way to give it.
        parts.append(f"j.{name} BETWEEN ${n}::text AND ${n}::text" if name == by else f"j.{name} = ${n}::text")
    values: list[Any] = [value.value if isinstance(value, Status) else value for value in given.values()]
    if after is not None:
        values.append(after)
        parts.append(f"j.id < ${len(values)}::text")
    return " AND ".join(parts) or "true", by, values
