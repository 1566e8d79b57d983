"""Sweep: promote what is due, raise what waited long."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Promoted
from windlass.stores.postgres import rates
from windlass.stores.postgres.records import AT, CLOCK, append, line_end, marked, whole
from windlass.stores.postgres.unblocking import sweep

if TYPE_CHECKING:
    from windlass.stores.postgres.connection import Link
    from windlass.stores.postgres.unblocking import Rounds

# min() over each status by itself: the index on run_at serves both.
LOOK = f"""
WITH {CLOCK}
SELECT (SELECT min(run_at) FROM windlass_jobs WHERE status IN ('scheduled', 'retrying')),
    (SELECT now FROM clock), EXISTS (SELECT FROM windlass_jobs WHERE status = 'blocked')
"""  # noqa: S608  # made of constants
PROMOTE = f"""
WITH {CLOCK}, due AS MATERIALIZED (
    SELECT id FROM windlass_jobs WHERE status IN ('scheduled', 'retrying') AND run_at <= (SELECT now FROM clock)
    ORDER BY run_at LIMIT $1::int FOR UPDATE SKIP LOCKED
)
UPDATE windlass_jobs AS j SET status = 'queued', queued_at = {AT}, updated_at = {AT}, {marked()},
    {append("$2::text")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM due)) AND j.status IN ('scheduled', 'retrying') RETURNING j.queue
"""  # noqa: S608  # made of constants


async def promote(link: Link, n: int, rounds: Rounds) -> tuple[Promoted, list[str]]:
    """Queue what is due; also names the queue of each."""
    [(due, now, blocked)] = await link.fetch(LOOK)
    queues: list[str] = []
    unblocked: list[str] = []
    if due is not None and due <= now:
        rows = await link.fetch(PROMOTE, n, line_end(Happened.PROMOTED, Status.QUEUED))
        queues = [queue for (queue,) in rows]
    room = None
    if blocked:
        unblocked = await link.transaction(lambda ask: sweep(link, ask, n, rounds))
        room = await rates.next_room(link.fetch)
    if queues:
        [(due, now, _)] = await link.fetch(LOOK)
    dues = [room, None if due is None else max(due - now, timedelta(0))]
    soonest = min((due for due in dues if due is not None), default=None)
    return Promoted(len(queues), len(unblocked), soonest, Counter(queues)), queues + unblocked


# The priorities of each queue where anything waits are found one after the other by the index of what waits, and in
# each that is later the longest there. One that took its turn beside those who stood there has not stood there itself:
# so many of them are passed over.
_PASSED_OVER = 1000
_AGED = "$4::text || ',\"note\":\"priority ' || j.priority || ' to ' || $2::int || '\"}'"
AGE = f"""
WITH RECURSIVE {CLOCK}, levels (queue, priority) AS (
    (SELECT queue, priority FROM windlass_jobs WHERE status = 'queued' ORDER BY queue, priority LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority FROM levels AS l CROSS JOIN LATERAL (
        SELECT j.queue, j.priority FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND (j.queue, j.priority) > (l.queue, l.priority)
        ORDER BY j.queue, j.priority LIMIT 1
    ) AS next
), old AS MATERIALIZED (
    SELECT first.id FROM levels AS l CROSS JOIN LATERAL (
        SELECT j.id FROM windlass_jobs AS j WHERE j.status || '' = 'queued' AND j.id = ANY (ARRAY(
            SELECT stood.id FROM (
                SELECT s.id, s.created_at FROM windlass_jobs AS s
                WHERE s.status = 'queued' AND s.queue = l.queue AND s.priority = l.priority
                    AND s.run_at <= (SELECT now FROM clock) - $1::interval
                ORDER BY s.run_at, s.id LIMIT $3::int + {_PASSED_OVER}
            ) AS stood WHERE stood.created_at <= (SELECT now FROM clock) - $1::interval LIMIT $3::int
        )) FOR UPDATE SKIP LOCKED
    ) AS first WHERE l.priority > $2::int LIMIT $3::int
)
UPDATE windlass_jobs AS j SET priority = $2::int, updated_at = {AT},
    {append(_AGED)}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM old)) AND j.status || '' = 'queued' RETURNING 1
"""  # noqa: S608  # made of constants


async def age(link: Link, after: timedelta, to: int, n: int) -> int:
    """Raise what has stood so long, passing over what is being claimed."""
    line = line_end(Happened.AGED, Status.QUEUED)[:-1]
    return len(await link.fetch(AGE, whole(after), to, n, line))
