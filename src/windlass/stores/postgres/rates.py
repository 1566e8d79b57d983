"""Rates: how much of a window is spent, what a claim books there, and when there is room again.

A transaction that reads the bookings of a rate in order to let a job start holds the lock of its line.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.blocked import Kind
from windlass.core.rate import LONGEST, booked_at
from windlass.stores.postgres.records import CLOCK, EPOCH, IS_BLOCKED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.stores.postgres.connection import Ask

_MILLISECOND = timedelta(milliseconds=1)

# Bookings are compared as (key, at), which only the primary key can look up: while the table is small, the index by
# time alone looks as good, and the plan is kept.
# Those in line are counted only as far as there is room for them; the order is that of the index to walk.
SPENT = f"""
WITH {CLOCK}
SELECT asked.key, asked.n, asked.ms, spent.n, (
    SELECT count(*) FROM (
        SELECT FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by = '{Kind.RATE.prefix}' || asked.key
        ORDER BY queued_at, id LIMIT greatest(asked.n - spent.n, 0)
    ) AS few
)
FROM clock AS c, unnest($1::text[], $2::int[], $3::bigint[]) AS asked (key, n, ms), LATERAL (
    SELECT coalesce(sum(r.n), 0)::bigint AS n FROM windlass_rates AS r
    WHERE r.key = asked.key AND (r.key, r.at) > (asked.key, c.now - asked.ms * interval '1 millisecond')
) AS spent
"""  # noqa: S608  # made of constants
BOOK = """
WITH told AS MATERIALIZED (
    SELECT key, at, before, n FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::int[])
        AS told (key, at, before, n)
), old AS (
    DELETE FROM windlass_rates WHERE ctid = ANY (ARRAY(
        SELECT past.ctid FROM told CROSS JOIN LATERAL (
            SELECT r.ctid FROM windlass_rates AS r
            WHERE r.key = told.key AND (r.key, r.at) <= (told.key, told.before) OFFSET 0
        ) AS past
    ))
)
INSERT INTO windlass_rates AS r (key, at, n) SELECT key, at, n FROM told
ON CONFLICT (key, at) DO UPDATE SET n = r.n + excluded.n
"""


class Rates:
    """The rates that one claim meets, counting what it has let through and put aside itself."""

    def __init__(self) -> None:
        self._spent: dict[tuple[str, int, int], int] = {}
        self._in_line: dict[tuple[str, int, int], int] = {}
        self._started: dict[str, int] = defaultdict(int)

    async def learn(self, ask: Ask, rates: Collection[tuple[str, int, int]]) -> None:
        """Look at these, each a key, a number and a window; the locks of their lines are held."""
        asked = sorted(set(rates) - self._spent.keys())
        if asked:
            for key, n, ms, spent, in_line in await ask(SPENT, *map(list, zip(*asked, strict=True))):
                self._spent[key, n, ms], self._in_line[key, n, ms] = spent, in_line

    def met(self, rate: tuple[str, int, int]) -> tuple[int, int]:
        """How many starts count now, and how many are blocked by this rate: no more than matter."""
        return self._spent[rate] + self._started[rate[0]], self._in_line[rate]

    def start(self, key: str) -> None:
        """One more was let through."""
        self._started[key] += 1

    def put_aside(self, key: str) -> None:
        """One more was put into the line."""
        for rate in self._in_line:
            self._in_line[rate] += rate[0] == key


async def book(ask: Ask, jobs: Iterable[Job]) -> None:
    """Write down those of these that have a rate, and forget what counts no more."""
    started: dict[tuple[str, datetime], tuple[datetime, int]] = {}
    for job in jobs:
        if job.rate_key is not None and job.rate_ms is not None and job.started_at is not None:
            at = EPOCH + booked_at((job.started_at - EPOCH) // _MILLISECOND, job.rate_ms) * _MILLISECOND
            before = job.started_at - job.rate_ms * _MILLISECOND
            known, n = started.get((job.rate_key, at), (before, 0))
            started[job.rate_key, at] = (min(known, before), n + 1)
    if started:
        told: list[tuple[Any, ...]] = [(key, at, *rest) for (key, at), rest in sorted(started.items())]
        await ask(BOOK, *map(list, zip(*told, strict=True)))


ROOM = f"""(
    SELECT first.rate_n - (
        SELECT coalesce(sum(r.n), 0)::bigint FROM windlass_rates AS r
        WHERE r.key = substr(by, {len(Kind.RATE.prefix) + 1}) AND (r.key, r.at) > (
            substr(by, {len(Kind.RATE.prefix) + 1}),
            (SELECT now FROM clock) - first.rate_ms * interval '1 millisecond'
        )
    ) - (SELECT count(*) FROM windlass_jobs WHERE status = 'queued' AND blocked_by = by)
    FROM (
        SELECT rate_n, rate_ms FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by = by
        ORDER BY queued_at, id LIMIT 1
    ) AS first
)"""  # noqa: S608  # made of constants
"""How many more of the line `by` may be called: as many as may start now, but for those that were called before."""

# Under the locks of these lines: when the next start leaves the window. Where none is in it, those that were called
# have all the room, and give it back a window after they start.
REOPEN = f"""
WITH {CLOCK}, lines AS MATERIALIZED (
    SELECT key, (
        SELECT rate_ms * interval '1 millisecond' FROM windlass_jobs
        WHERE {IS_BLOCKED} AND blocked_by = '{Kind.RATE.prefix}' || key ORDER BY queued_at, id LIMIT 1
    ) AS per FROM unnest($1::text[]) AS key
), gone AS (
    DELETE FROM windlass_rate_lines AS r USING lines WHERE r.key = lines.key AND lines.per IS NULL
)
INSERT INTO windlass_rate_lines (key, opens_at)
SELECT lines.key, coalesce(
    (
        SELECT min(r.at + interval '0') FROM windlass_rates AS r  -- a plain min would be looked up by time alone
        WHERE r.key = lines.key AND (r.key, r.at) > (lines.key, c.now - lines.per)
    ), c.now
) + lines.per FROM lines, clock AS c WHERE lines.per IS NOT NULL ORDER BY 1
ON CONFLICT (key) DO UPDATE SET opens_at = excluded.opens_at
"""  # noqa: S608  # made of constants
OPENED = f"""
SELECT '{Kind.RATE.prefix}' || key FROM windlass_rate_lines
WHERE opens_at <= date_trunc('milliseconds', statement_timestamp()) ORDER BY opens_at LIMIT $1::int
"""  # noqa: S608  # made of constants
NEXT_ROOM = "SELECT min(opens_at), date_trunc('milliseconds', statement_timestamp()) FROM windlass_rate_lines"


async def opened(ask: Ask, n: int) -> list[str]:
    """At most `n` lines of rates that have more room by now."""
    return [line for (line,) in await ask(OPENED, n)]


async def next_room(ask: Ask) -> timedelta | None:
    """How long until the first of the rates that jobs wait for has more room."""
    [(at, now)] = await ask(NEXT_ROOM)
    return None if at is None else max(at - now, timedelta(0))


# What a claim is about to clear away is left to it, so that nobody waits for the other crosswise.
FORGET = f"""
DELETE FROM windlass_rates WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass_rates WHERE at <= statement_timestamp() - interval '{LONGEST.days} days'
    FOR UPDATE SKIP LOCKED
))
"""  # noqa: S608  # made of constants
