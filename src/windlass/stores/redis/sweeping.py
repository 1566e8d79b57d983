"""Sweep: promote what is due, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from windlass.core.outcome import Lost
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Promoted, Pruned, Rescued, Retention
from windlass.stores.redis.expiring import Expired, expire
from windlass.stores.redis.records import STATUSES, Shared, as_duration_ms, duration, job_of
from windlass.stores.redis.settling import settle

if TYPE_CHECKING:
    from datetime import timedelta

    from windlass.stores.redis.connection import Link, Value

_AT_ONCE = 500  # jobs in one script: others wait for as long as it runs


async def promote(link: Link, n: int) -> Promoted:
    """Queue what is due, and cancel what has expired."""
    moved = unblocked = 0
    queues: Counter[str] = Counter()
    while True:
        part = min(n - moved, _AT_ONCE)
        some, freed, due, over, *each = await link.run("promote", [part])
        queues.update({queue.decode(): count for queue, count in zip(each[::2], each[1::2], strict=True)})
        moved, unblocked = moved + some, unblocked + freed
        if some < part or moved >= n:
            break
    expired = await expire(link, n) if over else Expired((), 0, due)
    next_due = None if expired.due < 0 else duration(expired.due)
    return Promoted(queues.total(), unblocked + expired.freed, next_due, queues, expired.ids)


async def age(link: Link, after: timedelta, to: int, n: int) -> int:
    """Raise what has waited long."""
    raised = 0
    while True:
        part = min(n - raised, _AT_ONCE)
        more: int = await link.run("age", [as_duration_ms(after), to, part])
        raised += more
        if more < part or raised >= n:
            return raised


async def rescue(link: Link, n: int) -> list[Rescued]:
    """Hand back what was lost, as the law decides; the script tests again that it is."""
    rescued: list[Rescued] = []
    while len(rescued) < n:
        part = min(n - len(rescued), _AT_ONCE)
        answer = await link.run("lost", [part])
        kinds: dict[bytes, Shared] = {}
        jobs = [job_of(id_.decode(), record, kinds) for id_, record in zip(answer[::3], answer[1::3], strict=True)]
        if not jobs:
            break
        confirmed = [bool(known) for known in answer[2::3]]
        lost = [decide(job, Lost(confirmed=known)) for job, known in zip(jobs, confirmed, strict=True)]
        letters = await settle(link, "rescue", lost)
        moved = [Rescued(job, STATUSES[to]) for job, to in zip(jobs, letters, strict=True) if to != "-"]
        rescued += moved
        if len(jobs) < part or not moved:
            break
    return rescued


async def prune(link: Link, retention: Retention, n: int) -> Pruned:
    """Delete finished jobs past their time, and figures and workers that have expired."""
    kept = _kept(retention)
    for queue, own in retention.queues.items():
        kept += [queue, *_kept(own)]
    removed = 0
    while True:
        part = min(n - removed, _AT_ONCE)
        gone, more = await link.run("prune", [part, *kept])
        removed += gone
        if gone < part or removed >= n:
            return Pruned(removed, more=bool(more))


def _kept(retention: Retention) -> list[Value]:
    times = [as_duration_ms(retention.of(one)) for one in (Status.CANCELLED, Status.FAILED, Status.SUCCEEDED)]
    return [*times, -1 if retention.most is None else retention.most]
