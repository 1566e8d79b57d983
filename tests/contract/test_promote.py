from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.contract.steps import (
    AGAIN_LATER,
    AGAIN_SOON,
    HOUR,
    finish,
    get,
    last_entry,
    near,
    passed,
    put,
    statuses,
    take,
    told,
)
from tests.support.drafts import INSTANT, draft, want
from windlass.core.history import Happened
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.unique import Unique
from windlass.stores.contract import Promoted, Store

DUE = [Happened.ENQUEUED, Happened.PROMOTED]


async def due(store: Store, n: int) -> list[str]:
    """Scheduled jobs whose time has come."""
    ids = await put(store, *[draft(delay=INSTANT) for _ in range(n)])
    await passed(store, max([(await get(store, id_)).run_at for id_ in ids]))
    assert await statuses(store, ids) == [Status.SCHEDULED] * n
    return ids


async def test_a_scheduled_job_is_queued_when_its_time_has_come(store: Store) -> None:
    [id_] = await due(store, 1)
    scheduled = await get(store, id_)
    assert await store.jobs.promote(10) == Promoted(promoted=1, unblocked=0, next_due=None, queues={"default": 1})
    job = await get(store, id_)
    assert (job.status, job.run_at, job.attempts) == (Status.QUEUED, scheduled.run_at, 0)
    assert near(job.queued_at, await store.now())
    assert await told(store, id_) == DUE
    assert (await last_entry(store, id_)).status is Status.QUEUED
    assert (await take(store)).id == id_


async def test_a_retrying_job_is_queued_when_its_time_has_come(store: Store) -> None:
    job = await finish(store, outcome=AGAIN_SOON)
    await passed(store, job.run_at)
    assert (await store.jobs.promote(10)).promoted == 1
    again = await take(store)
    assert (again.id, again.attempts) == (job.id, 2)
    assert (await told(store, job.id))[2:] == [Happened.RETRYING, Happened.PROMOTED, Happened.CLAIMED]


async def test_what_is_not_due_stays_and_its_time_is_told(store: Store) -> None:
    sooner, later = await put(store, draft(delay=HOUR), draft(delay=2 * HOUR))
    found = await store.jobs.promote(10)
    assert (found.promoted, found.unblocked) == (0, 0)
    assert found.next_due is not None
    assert timedelta(minutes=59) < found.next_due <= HOUR
    assert await statuses(store, [sooner, later]) == [Status.SCHEDULED] * 2
    assert await told(store, sooner) == [Happened.ENQUEUED]


async def test_a_retry_that_is_not_due_stays_and_its_time_is_told(store: Store) -> None:
    job = await finish(store, outcome=AGAIN_LATER)
    found = await store.jobs.promote(10)
    assert found.promoted == 0
    assert found.next_due is not None
    assert timedelta(minutes=59) < found.next_due <= HOUR
    assert await get(store, job.id) == job
    assert (await told(store, job.id))[-1] is Happened.RETRYING


async def test_with_nothing_to_come_no_time_is_told(store: Store) -> None:
    await put(store)
    assert await store.jobs.promote(10) == Promoted(promoted=0, unblocked=0, next_due=None)


async def test_at_most_n_are_queued_and_the_rest_is_due_now(store: Store) -> None:
    ids = await due(store, 5)
    found = await store.jobs.promote(3)
    assert found.promoted == 3
    assert found.next_due is not None
    assert found.next_due <= timedelta(0)
    assert sorted(await statuses(store, ids)) == [Status.QUEUED] * 3 + [Status.SCHEDULED] * 2
    assert (await store.jobs.promote(3)).promoted == 2
    assert [await told(store, id_) for id_ in ids] == [DUE] * 5


async def test_promoted_jobs_are_claimed_by_priority_then_by_when_they_were_due(store: Store) -> None:
    first, second = await put(store, draft(delay=3 * INSTANT), draft(delay=INSTANT))
    [urgent] = await put(store, draft(delay=5 * INSTANT, priority=1))
    await passed(store, (await get(store, urgent)).run_at)
    assert (await store.jobs.promote(10)).promoted == 3
    assert [job.id for job in await store.jobs.claim(want())] == [urgent, second, first]
    assert await told(store, urgent) == [*DUE, Happened.CLAIMED]


async def test_promoted_twice_at_once_a_job_is_queued_once(store: Store, other: Store) -> None:
    ids = await due(store, 20)
    found = await asyncio.gather(*[one.jobs.promote(20) for one in (store, other) * 2])
    assert sum(one.promoted for one in found) == 20
    assert [await told(store, id_) for id_ in ids] == [DUE] * 20


async def test_the_one_free_way_is_found_among_many_that_are_not(store: Store) -> None:
    for n in range(6):
        holder, blocked = draft(limit=Limit(f"a{n}")), draft(limit=Limit(f"a{n}"))
        await put(store, holder, blocked)
        assert (await take(store)).id == holder.id
    # The waiting holder of the key gives it up by starting, which is no end that would free the other in its step.
    waiting, holder = draft(unique=Unique(running="z")), draft(unique=Unique(queued="z"), priority=200)
    await put(store, waiting, holder)
    assert (await take(store, want(n=1))).id == holder.id
    assert (await get(store, waiting.id)).status is Status.BLOCKED
    assert (await store.jobs.promote(3)).unblocked == 1
    assert (await take(store)).id == waiting.id
    assert (await told(store, waiting.id))[-2:] == [Happened.UNBLOCKED, Happened.CLAIMED]


async def test_a_paused_queues_jobs_come_due_too(store: Store) -> None:
    await store.queues.pause(["default"])
    [id_] = await due(store, 1)
    assert (await store.jobs.promote(10)).promoted == 1
    assert await store.jobs.claim(want()) == []
    await store.queues.resume(["default"])
    assert (await take(store)).id == id_
    assert await told(store, id_) == [*DUE, Happened.CLAIMED]
