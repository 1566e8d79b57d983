from __future__ import annotations

from typing import Any

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    DONE,
    HOUR,
    NEVER_AGAIN,
    RELEASED,
    SNOOZED,
    cancel,
    everything,
    expired,
    get,
    last_entry,
    operate,
    put,
    running,
    settle,
    start,
    status,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, want
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.limit import Limit
from windlass.core.outcome import Cancelled, Outcome
from windlass.core.status import Status
from windlass.stores.contract import Action, Filter, Operated, Store

FREED = [Happened.ENQUEUED, Happened.BLOCKED, Happened.UNBLOCKED]


def limited(n: int = 1, key: str = "k", **options: Any) -> Draft:
    return draft(limit=Limit(key, n), **options)


async def processing(store: Store) -> list[str]:
    return [job.id for job in reversed(await everything(store, Filter(status=Status.PROCESSING)))]


async def one_runs_others_wait(store: Store, n: int = 2) -> tuple[str, list[str]]:
    """Jobs of one key of which one may run: the holder, and those blocked behind it."""
    ids = await put(store, *[limited() for _ in range(n + 1)])
    assert (await take(store)).id == ids[0]
    assert await statuses(store, ids) == [Status.PROCESSING] + [Status.BLOCKED] * n
    return ids[0], ids[1:]


async def test_no_more_than_its_limit_of_a_key_are_claimed_at_once(store: Store) -> None:
    ids = await put(store, *[limited(2) for _ in range(5)])
    assert [job.id for job in await store.jobs.claim(want())] == ids[:2]
    assert await store.jobs.claim(want(worker="w2")) == []
    assert await processing(store) == ids[:2]
    waiting = await get(store, ids[2])
    assert (waiting.status, waiting.blocked_by, waiting.attempts) == (Status.BLOCKED, "limit:k", 0)
    assert (waiting.lease_token, waiting.worker_id, waiting.lease_expires_at) == (0, None, None)
    assert await told(store, ids[2]) == [Happened.ENQUEUED, Happened.BLOCKED]
    assert (await last_entry(store, ids[2])).status is Status.BLOCKED


async def test_a_limit_counts_what_earlier_claims_took(store: Store, other: Store) -> None:
    first, second = await put(store, limited(2), limited(2))
    assert [job.id for job in await store.jobs.claim(want(1))] == [first]
    assert [job.id for job in await other.jobs.claim(want(1, worker="w2"))] == [second]
    await put(store, limited(2))
    assert await other.jobs.claim(want(1, worker="w2")) == []
    assert await processing(store) == [first, second]


async def test_keys_have_their_own_slots_and_jobs_without_one_have_no_limit(store: Store) -> None:
    await put(store, limited(key="a"), limited(key="a"), limited(key="b"), draft(), draft())
    claimed = await store.jobs.claim(want())
    assert [job.limit_key for job in claimed] == ["a", "b", None, None]


async def test_a_limit_is_shared_across_queues_and_types(store: Store) -> None:
    a, b = draft("x", queue="a", limit=Limit("k")), draft("y", queue="b", limit=Limit("k"))
    ids = await put(store, a, b)
    [first] = await store.jobs.claim(want(types={"x", "y"}))
    [second] = set(ids) - {first.id}
    assert await status(store, second) is Status.BLOCKED
    assert await told(store, second) == [Happened.ENQUEUED, Happened.BLOCKED]


@pytest.mark.parametrize(
    "outcome",
    [DONE, NEVER_AGAIN, AGAIN_LATER, SNOOZED, Cancelled("x")],
    ids=["succeeded", "failed", "retrying", "snoozed", "cancelled"],
)
async def test_an_attempts_end_frees_its_slot_for_the_oldest_that_waits(store: Store, outcome: Outcome) -> None:
    ids = await put(store, limited(), limited(), limited())
    holder = await take(store)
    await settle(store, holder, outcome)
    second, third = await get(store, ids[1]), await get(store, ids[2])
    assert (second.status, second.blocked_by) == (Status.QUEUED, None)
    assert third.status is Status.BLOCKED
    assert await told(store, ids[1]) == FREED
    assert (await take(store)).id == ids[1]
    assert await status(store, ids[2]) is Status.BLOCKED


async def test_a_released_job_and_the_next_share_one_slot(store: Store) -> None:
    holder, waiting = await one_runs_others_wait(store)
    await settle(store, await get(store, holder), RELEASED)
    claimed = await store.jobs.claim(want())
    assert len(claimed) == 1
    assert len(await processing(store)) == 1
    assert (await told(store, holder))[2] is Happened.RELEASED
    assert await status(store, waiting[1]) is Status.BLOCKED


async def test_those_that_wait_for_a_slot_run_in_order(store: Store) -> None:
    ids = await put(store, *[limited() for _ in range(6)])
    ran: list[str] = []
    while claimed := await store.jobs.claim(want()):
        [job] = claimed
        ran.append(job.id)
        await settle(store, job)
    assert ran == ids
    assert await told(store, ids[5]) == [*FREED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_as_many_go_on_as_slots_were_freed(store: Store) -> None:
    ids = await put(store, *[limited(2) for _ in range(6)])
    first, second = await store.jobs.claim(want())
    await settle(store, first)
    await settle(store, second)
    assert (await statuses(store, ids))[2:4] == [Status.QUEUED] * 2
    assert [job.id for job in await store.jobs.claim(want())] == ids[2:4]
    assert await told(store, ids[3]) == [*FREED, Happened.CLAIMED]


async def test_a_rescue_frees_the_slot_of_the_lost(store: Store) -> None:
    lost = await expired(store, limited(max_crashes=1))
    [next_] = await put(store, limited())
    assert await store.jobs.claim(want()) == []
    assert await status(store, next_) is Status.BLOCKED
    assert [found.id for found in await store.jobs.rescue(10)] == [lost.id]
    assert await status(store, next_) is Status.QUEUED
    assert await told(store, next_) == FREED
    assert (await take(store)).id == next_


async def test_a_late_worker_does_not_free_a_slot_it_no_longer_holds(store: Store) -> None:
    late = await expired(store, limited())
    await store.jobs.rescue(10)
    holder = await take(store)
    [next_] = await put(store, limited())
    assert await store.jobs.claim(want()) == []
    await settle(store, late)
    assert await status(store, next_) is Status.BLOCKED
    assert await store.jobs.claim(want()) == []
    assert await processing(store) == [holder.id]
    assert await told(store, next_) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_settling_twice_frees_one_slot(store: Store) -> None:
    ids = await put(store, *[limited() for _ in range(4)])
    holder = await take(store)
    await settle(store, holder)
    [second] = await store.jobs.claim(want())
    await settle(store, holder)
    assert await store.jobs.claim(want()) == []
    assert await processing(store) == [second.id] == [ids[1]]
    assert await told(store, ids[2]) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_a_cancelled_holder_frees_its_slot_when_it_has_stopped(store: Store) -> None:
    holder, waiting = await one_runs_others_wait(store)
    await cancel(store, holder)
    assert await status(store, waiting[0]) is Status.BLOCKED
    await settle(store, await get(store, holder), Cancelled("asked"))
    assert await statuses(store, waiting) == [Status.QUEUED, Status.BLOCKED]
    assert await told(store, waiting[0]) == FREED


@pytest.mark.parametrize("action", [Action.CANCEL, Action.DELETE])
async def test_the_turn_of_one_that_is_cancelled_or_deleted_passes_on(store: Store, action: Action) -> None:
    holder, waiting = await one_runs_others_wait(store)
    await settle(store, await get(store, holder))
    assert await statuses(store, waiting) == [Status.QUEUED, Status.BLOCKED]
    assert (await operate(store, waiting[0], action)).verdict is Operated.DONE
    assert await status(store, waiting[1]) is Status.QUEUED
    assert await told(store, waiting[1]) == FREED
    assert (await take(store)).id == waiting[1]


@pytest.mark.parametrize("action", [Action.CANCEL, Action.DELETE])
async def test_a_blocked_job_that_is_cancelled_or_deleted_loses_its_place(store: Store, action: Action) -> None:
    holder, waiting = await one_runs_others_wait(store, 3)
    assert (await operate(store, waiting[0], action)).verdict is Operated.DONE
    await settle(store, await get(store, holder))
    assert await statuses(store, waiting[1:]) == [Status.QUEUED, Status.BLOCKED]
    assert (await take(store)).id == waiting[1]
    assert await told(store, waiting[1]) == [*FREED, Happened.CLAIMED]


async def test_one_whose_turn_came_but_cannot_be_claimed_does_not_hold_up_the_rest(store: Store) -> None:
    a, b, c = limited(), limited(queue="held"), limited()
    await put(store, a)
    holder = await take(store)
    await put(store, b, c)
    assert await store.jobs.claim(want()) == []
    assert await statuses(store, [b.id, c.id]) == [Status.BLOCKED] * 2
    await store.queues.pause(["held"])
    await settle(store, holder)
    await store.jobs.promote(10)
    assert (await take(store)).id == c.id
    assert len(await processing(store)) == 1
    assert await told(store, c.id) == [*FREED, Happened.CLAIMED]


async def test_promote_frees_blocked_jobs_whose_way_has_become_free(store: Store) -> None:
    ids = await put(store, *[limited(2) for _ in range(6)])
    claimed = await store.jobs.claim(want())
    for job in claimed:
        await settle(store, job)
    for id_ in ids[2:4]:
        await operate(store, id_, Action.DELETE)
    await store.jobs.promote(10)
    assert [job.id for job in await store.jobs.claim(want())] == ids[4:]
    assert await told(store, ids[5]) == [*FREED, Happened.CLAIMED]


async def test_promote_leaves_blocked_what_must_wait(store: Store) -> None:
    _, waiting = await one_runs_others_wait(store)
    found = await store.jobs.promote(10)
    assert (found.promoted, found.unblocked, found.next_due) == (0, 0, None)
    assert await statuses(store, waiting) == [Status.BLOCKED] * 2
    assert await told(store, waiting[0]) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_a_job_with_a_limit_and_a_running_key_waits_for_both(store: Store) -> None:
    slot = await start(store, limited())
    key = await start(store, draft(unique=running("u")))
    both = draft(limit=Limit("k"), unique=running("u"))
    await put(store, both)
    assert await store.jobs.claim(want()) == []
    assert await status(store, both.id) is Status.BLOCKED
    await settle(store, slot)
    assert await store.jobs.claim(want()) == []
    assert await status(store, both.id) is Status.BLOCKED
    await settle(store, key)
    assert await status(store, both.id) is Status.QUEUED
    job = await take(store)
    assert (job.id, job.unique_key, job.blocked_by) == (both.id, "u", None)
    assert {entry.happened for entry in await store.views.history(both.id)} == {*FREED, Happened.CLAIMED}


async def test_a_scheduled_job_takes_no_slot(store: Store) -> None:
    await put(store, draft(limit=Limit("k"), delay=HOUR))
    [id_] = await put(store, limited())
    assert (await take(store)).id == id_
    assert await told(store, id_) == [Happened.ENQUEUED, Happened.CLAIMED]
