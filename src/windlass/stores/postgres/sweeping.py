"""Sweep: promote what is due, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued, Retention
from windlass.stores.postgres import rates
from windlass.stores.postgres.records import AT, CLOCK, COLUMNS, append, as_ms, job_of, line_end, marked, whole
from windlass.stores.postgres.settling import end_and_unblock, written
from windlass.stores.postgres.unblocking import sweep

if TYPE_CHECKING:
    from windlass.stores.postgres.connection import Ask, Link
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
    return Promoted(len(queues), len(unblocked), soonest), queues + unblocked


# The priorities of each queue where anything waits are found one after the other by the index of what waits, and in
# each that is later the longest there.
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
        SELECT j.id FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = l.queue AND j.priority = l.priority
            AND j.run_at <= (SELECT now FROM clock) - $1::interval
        ORDER BY j.run_at, j.id LIMIT $3::int FOR UPDATE SKIP LOCKED
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


# All that runs is looked at: there are never many, and an index on the expiry would be written by every heartbeat.
LOST = f"""
WITH {CLOCK}
SELECT coalesce(j.confirmed = j.lease_token, false), {COLUMNS} FROM windlass_jobs AS j, clock AS c
WHERE j.status = 'processing' AND j.lease_expires_at <= c.now
ORDER BY j.lease_expires_at LIMIT $1::int FOR UPDATE OF j SKIP LOCKED
"""  # noqa: S608  # made of constants
ANY_LOST = """
SELECT 1 FROM windlass_jobs WHERE status = 'processing' AND lease_expires_at <= statement_timestamp() LIMIT 1
"""


async def rescue(link: Link, n: int) -> tuple[list[Rescued], list[str]]:
    """Hand back what was lost; also names the queue of each job that was queued.

    Who reads the expiry holds the row until the change is made.
    """
    if not await link.fetch(ANY_LOST):
        return [], []
    return await link.transaction(lambda ask: _rescue(link, ask, n))


async def _rescue(link: Link, ask: Ask, n: int) -> tuple[list[Rescued], list[str]]:
    rows = await ask(LOST, n)
    if not rows:
        return [], []
    leases = [(job_of(row[1:]), Lost(confirmed=row[0])) for row in rows]
    decided = [(job, decide(job, lost)) for job, lost in leases]
    told = [(job, one if job.cancel_requested_at is None else honour_cancel(one)) for job, one in decided]
    statement, values, _ = written([one for _, one in told], forced=True)
    _, freed = await end_and_unblock(link, ask, statement, values)
    queued = [job.queue for job, one in told if one.to is Status.QUEUED]
    return [Rescued(job.id, job.worker_id, one.to) for job, one in told], queued + freed


# Nobody who has not ended may find that one of those it awaited is gone.
_AWAITED = "(SELECT w.finished_at IS NULL FROM windlass_jobs AS w WHERE w.id = j.next_id) IS TRUE"
# Steps from one queue and ending to the next by the index of what has finished, and in each takes the longest there.
PRUNE = f"""
WITH RECURSIVE {CLOCK}, endings (queue, status) AS (
    (SELECT queue, status FROM windlass_jobs WHERE finished_at IS NOT NULL ORDER BY queue, status, finished_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.status FROM endings AS e CROSS JOIN LATERAL (
        SELECT j.queue, j.status FROM windlass_jobs AS j
        WHERE j.finished_at IS NOT NULL AND (j.queue, j.status) > (e.queue, e.status)
        ORDER BY j.queue, j.status, j.finished_at LIMIT 1
    ) AS next
), old AS MATERIALIZED (
    SELECT few.id FROM endings AS e CROSS JOIN LATERAL (
        SELECT j.id FROM windlass_jobs AS j
        WHERE j.queue = e.queue AND j.status = e.status AND j.finished_at <= (SELECT now FROM clock)
            - coalesce($2::text::jsonb #>> ARRAY[e.queue, e.status], $1::text::jsonb ->> e.status)::bigint
            * interval '1 millisecond' AND NOT {_AWAITED}
        ORDER BY j.queue, j.status, j.finished_at LIMIT $3::int FOR UPDATE OF j SKIP LOCKED
    ) AS few LIMIT $3::int
)
DELETE FROM windlass_jobs WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING 1
"""  # noqa: S608  # made of constants
# The newest so many of an ending stay: these are counted, so the work grows with them. The status as a range of one
# value, and in the order: so that the index of statuses is the only one that gives it.
PRUNE_BEYOND = f"""
DELETE FROM windlass_jobs WHERE id = ANY (ARRAY(
    SELECT id FROM windlass_jobs AS j
    WHERE NOT {_AWAITED} AND status BETWEEN $1::text AND $1::text AND status <> 'processing'
        AND CASE WHEN $4::text IS NULL THEN queue <> ALL ($3::text[]) ELSE queue = $4::text END
        AND id <= (
            SELECT id FROM windlass_jobs
            WHERE status BETWEEN $1::text AND $1::text AND status <> 'processing'
                AND CASE WHEN $4::text IS NULL THEN queue <> ALL ($3::text[]) ELSE queue = $4::text END
            ORDER BY status DESC, id DESC LIMIT 1 OFFSET $2::bigint
        )
    ORDER BY status, id LIMIT $5::int FOR UPDATE SKIP LOCKED
)) RETURNING 1
"""  # noqa: S608  # made of constants
FORGET = """
WITH old_keys AS (DELETE FROM windlass_idempotency WHERE expires_at <= statement_timestamp()),
    old_minutes AS (DELETE FROM windlass_minutes WHERE minute < statement_timestamp() - interval '30 days'),
    old_workers AS (DELETE FROM windlass_workers WHERE beat_at < statement_timestamp() - interval '1 day')
DELETE FROM windlass_locks WHERE expires_at < statement_timestamp() - interval '1 day'
"""


async def prune(link: Link, retention: Retention, n: int) -> int:
    """Delete finished jobs past their time, and keys, figures, workers and locks that have expired."""
    own = {queue: _times(kept) for queue, kept in retention.queues.items()}
    removed = len(await link.fetch(PRUNE, json.dumps(_times(retention)), json.dumps(own), n))
    for queue, kept in ((None, retention), *retention.queues.items()):
        for status in sorted(FINISHED):
            if removed < n and kept.most is not None:
                values = (status.value, kept.most, sorted(own), queue, n - removed)
                removed += len(await link.fetch(PRUNE_BEYOND, *values))
    await link.fetch(FORGET)
    await link.fetch(rates.FORGET)
    return removed


def _times(retention: Retention) -> dict[str, int]:
    return {status.value: as_ms(retention.of(status)) for status in FINISHED}
