"""Sweep: promote what is due, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued, Retention
from windlass.stores.postgres.records import AT, CLOCK, COLUMNS, append, job_of, line_end, whole
from windlass.stores.postgres.settling import end_and_unblock, written
from windlass.stores.postgres.unblocking import sweep

if TYPE_CHECKING:
    from windlass.stores.postgres.connection import Ask, Link

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
UPDATE windlass_jobs AS j SET status = 'queued', queued_at = {AT}, updated_at = {AT}, {append("$2::text")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM due)) AND j.status IN ('scheduled', 'retrying') RETURNING j.queue
"""  # noqa: S608  # made of constants


async def promote(link: Link, n: int) -> tuple[Promoted, set[str]]:
    """Queue what is due; also says which queues have something new."""
    [(due, now, blocked)] = await link.fetch(LOOK)
    queues: set[str] = set()
    promoted = unblocked = 0
    if due is not None and due <= now:
        rows = await link.fetch(PROMOTE, n, line_end(Happened.PROMOTED, Status.QUEUED))
        promoted, queues = len(rows), {queue for (queue,) in rows}
    if blocked:
        unblocked = await link.transaction(lambda ask: sweep(link, ask, n))
    if promoted:
        [(due, now, _)] = await link.fetch(LOOK)
    return Promoted(promoted, unblocked, None if due is None else max(due - now, timedelta(0))), queues


# All that runs is looked at: there are never many, and an index on the expiry would be written by every heartbeat.
LOST = f"""
WITH {CLOCK}
SELECT {COLUMNS} FROM windlass_jobs AS j, clock AS c
WHERE j.status = 'processing' AND j.lease_expires_at <= c.now
ORDER BY j.lease_expires_at LIMIT $1::int FOR UPDATE OF j SKIP LOCKED
"""  # noqa: S608  # made of constants
ANY_LOST = """
SELECT 1 FROM windlass_jobs WHERE status = 'processing' AND lease_expires_at <= statement_timestamp() LIMIT 1
"""


async def rescue(link: Link, n: int) -> list[Rescued]:
    """Hand back what was lost. Who reads the expiry holds the row until the change is made."""
    if not await link.fetch(ANY_LOST):
        return []
    return await link.transaction(lambda ask: _rescue(link, ask, n))


async def _rescue(link: Link, ask: Ask, n: int) -> list[Rescued]:
    jobs = [job_of(row) for row in await ask(LOST, n)]
    if not jobs:
        return []
    decided = [(job, decide(job, Lost())) for job in jobs]
    told = [(job, one if job.cancel_requested_at is None else honour_cancel(one)) for job, one in decided]
    statement, values, _ = written([one for _, one in told], forced=True)
    await end_and_unblock(link, ask, statement, values)
    return [Rescued(job.id, job.worker_id, one.to) for job, one in told]


# The status as a range of one value, and in the order: so that the index of statuses is the only one that gives it.
PRUNE = """
DELETE FROM windlass_jobs WHERE id = ANY (ARRAY(
    SELECT id FROM windlass_jobs
    WHERE status BETWEEN $1::text AND $1::text AND status <> 'processing'
        AND finished_at <= statement_timestamp() - $2::interval
        AND CASE WHEN $4::text IS NULL THEN queue <> ALL ($3::text[]) ELSE queue = $4::text END
    ORDER BY status, id LIMIT $5::int FOR UPDATE SKIP LOCKED
)) RETURNING 1
"""
FORGET = """
WITH old_keys AS (DELETE FROM windlass_idempotency WHERE expires_at <= statement_timestamp()),
    old_minutes AS (DELETE FROM windlass_minutes WHERE minute < statement_timestamp() - interval '30 days'),
    old_workers AS (DELETE FROM windlass_workers WHERE beat_at < statement_timestamp() - interval '1 day')
DELETE FROM windlass_locks WHERE expires_at < statement_timestamp() - interval '1 day'
"""


async def prune(link: Link, retention: Retention, n: int) -> int:
    """Delete finished jobs past their time, and keys, figures, workers and locks that have expired."""
    own = sorted(retention.queues)
    removed = 0
    for status in sorted(FINISHED):
        kinds = [(None, retention), *retention.queues.items()]
        for queue, kept in kinds:
            if removed < n:
                values = (status.value, whole(kept.of(status)), own, queue, n - removed)
                removed += len(await link.fetch(PRUNE, *values))
    await link.fetch(FORGET)
    return removed
