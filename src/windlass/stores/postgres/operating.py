"""Operate: what operators ask of jobs, recorded in the job's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.status import WAITING, Status
from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.postgres.locking import key_locks, lock
from windlass.stores.postgres.records import AT, CLOCK, STATUSES, append, line_end, marked
from windlass.stores.postgres.unblocking import unblock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.postgres.connection import Ask, Link

KEYS = "SELECT unique_queued FROM windlass_jobs WHERE id = ANY ($1::text[]) AND unique_queued IS NOT NULL"
NEXT = "SELECT next_id FROM windlass_jobs WHERE id = ANY ($1::text[])"
HELD = """
SELECT id, status, unique_queued, limit_key, unique_running, idempotency_key, rate_key, next_id, blocked_by, queue
FROM windlass_jobs WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
"""


async def operate(link: Link, orders: Sequence[Order]) -> tuple[list[Answer], list[str]]:
    """One answer per order, in order; and the queue of each job that was queued."""
    return await link.transaction(lambda ask: _operate(link, ask, orders))


async def _operate(link: Link, ask: Ask, orders: Sequence[Order]) -> tuple[list[Answer], list[str]]:
    ids = {order.id for order in orders}
    retried = sorted({order.id for order in orders if order.action is Action.RETRY})
    if retried:
        await lock(ask, key_locks(link, [key for (key,) in await ask(KEYS, retried)]))
    deletes = sorted({order.id for order in orders if order.action is Action.DELETE})
    if deletes:
        # A deleted job leaves no trace: the one that awaits it has to hear of it now, so nobody else may be at that.
        ids |= {next_id for (next_id,) in await ask(NEXT, deletes) if next_id is not None}
    found = {row[0]: _Found(*row) for row in await ask(HELD, sorted(ids))}
    # Whoever came by while the rows were held has passed over those that wait for others.
    waited = {job.blocked_by for job in found.values() if job.blocked_by and Kind.FLOW.blocks(job.blocked_by)}
    answers: list[Answer] = []
    queued: list[str] = []
    unfinished: dict[str, str] = {}
    for order in orders:
        job = found.get(order.id)
        if job is None:
            answers.append(Answer(Operated.MISSING))
            continue
        allowed = order.allows(job.status)
        answer = await _ACTIONS[order.action](ask, order, job) if allowed else Answer(Operated.REFUSED, job.status)
        if answer.verdict is Operated.DONE:
            # The one that went may have been next in line: those behind it must not wait for its end.
            waited.update(job.lines)
            if order.action is Action.RETRY:
                queued.append(job.queue)
            if order.action is Action.DELETE:
                del found[order.id]
                if job.next_id is not None and not job.status.finished:
                    unfinished.setdefault(job.next_id, job.id)
        answers.append(answer)
    freed = await unblock(link, ask, waited, unfinished)
    return answers, queued + freed


class _Found:
    """A job as it is while its row is held."""

    def __init__(
        self,
        id_: str,
        status: str,
        unique_queued: str | None,
        limit_key: str | None,
        unique_running: str | None,
        idempotency_key: str | None,
        rate_key: str | None,
        next_id: str | None,
        blocked_by: str | None,
        queue: str,
    ) -> None:
        self.id, self.status, self.blocked_by, self.queue = id_, STATUSES[status], blocked_by, queue
        self.unique_queued, self.idempotency_key, self.next_id = unique_queued, idempotency_key, next_id
        self.lines = lines(limit=limit_key, unique=unique_running, rate=rate_key, flow=next_id)
        """where others may stand behind it"""


CANCEL = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'cancelled', finished_at = {AT}, updated_at = {AT}, cancel_requested_at = {AT},
    unique_key = NULL, blocked_by = NULL, {append("$2::text")}
FROM clock AS c WHERE j.id = $1::text
"""  # noqa: S608  # made of constants
REQUEST = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET cancel_requested_at = coalesce(j.cancel_requested_at, {AT}), updated_at = {AT},
    {append("$2::text")}
FROM clock AS c WHERE j.id = $1::text
"""  # noqa: S608  # made of constants


async def _cancel(ask: Ask, order: Order, job: _Found) -> Answer:
    found = job.status
    if found in WAITING:
        line = line_end(Happened.CANCELLED, Status.CANCELLED, order.actor, note=order.reason)
        await ask(CANCEL, order.id, line)
        job.status, job.blocked_by = Status.CANCELLED, None
        return Answer(Operated.DONE, found)
    if found is Status.PROCESSING:
        line = line_end(Happened.CANCEL_REQUESTED, found, order.actor, note=order.reason)
        await ask(REQUEST, order.id, line)
        return Answer(Operated.REQUESTED, found)
    return Answer(Operated.REFUSED, found)


HOLDER = "SELECT id FROM windlass_jobs WHERE unique_key = $1::text AND id <> $2::text"
RESTART = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'queued', run_at = {AT}, queued_at = {AT}, updated_at = {AT}, attempts = 0,
    crashes = 0, charged = NULL, {marked()},
    result = NULL, error = NULL, progress = NULL, finished_at = NULL, started_at = NULL,
    duration_ms = NULL, wait_ms = NULL, worker_id = NULL, cancel_requested_at = NULL, unique_key = j.unique_queued,
    {append("$2::text")}
FROM clock AS c WHERE j.id = $1::text
"""  # noqa: S608  # made of constants
HURRY = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'queued', run_at = {AT}, queued_at = {AT}, updated_at = {AT}, blocked_by = NULL,
    {marked()}, {append("$2::text")}
FROM clock AS c WHERE j.id = $1::text
"""  # noqa: S608  # made of constants


async def _retry(ask: Ask, order: Order, job: _Found) -> Answer:
    found = job.status
    line = line_end(Happened.RETRIED, Status.QUEUED, order.actor, note=order.reason)
    if found in (Status.SCHEDULED, Status.RETRYING) or Kind.PAYLOAD.blocks(job.blocked_by):
        await ask(HURRY, order.id, line)
    elif not found.finished:
        return Answer(Operated.REFUSED, found)
    else:
        held = await ask(HOLDER, job.unique_queued, order.id) if job.unique_queued is not None else ()
        if held:
            return Answer(Operated.DUPLICATE, found, held[0][0])
        await ask(RESTART, order.id, line)
    job.status, job.blocked_by = Status.QUEUED, None
    return Answer(Operated.DONE, found)


DELETE = "DELETE FROM windlass_jobs WHERE id = $1::text"
FORGET_KEY = "DELETE FROM windlass_idempotency WHERE key = $1::text AND job_id = $2::text"


async def _delete(ask: Ask, order: Order, job: _Found) -> Answer:
    if job.status is Status.PROCESSING:
        return Answer(Operated.REFUSED, job.status)
    if job.idempotency_key is not None:
        await ask(FORGET_KEY, job.idempotency_key, order.id)
    await ask(DELETE, order.id)
    return Answer(Operated.DONE, job.status)


_ACTIONS = {Action.CANCEL: _cancel, Action.RETRY: _retry, Action.DELETE: _delete}
