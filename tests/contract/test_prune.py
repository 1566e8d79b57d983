from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.places import Place
from tests.contract.steps import (
    AGAIN_LATER,
    DONE,
    HOUR,
    NEVER_AGAIN,
    everything,
    finish,
    get,
    gone,
    operate,
    passed,
    put,
    settle,
    start,
    statuses,
    take,
    told,
)
from tests.support.drafts import INSTANT, draft, want
from windlass.core.history import Happened
from windlass.core.limit import Limit
from windlass.core.outcome import Cancelled, Outcome, Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Action, Created, Granted, Retention, Store

NOTHING_KEPT = Retention(succeeded=timedelta(0), failed=timedelta(0), cancelled=timedelta(0))
ONLY = {
    Status.SUCCEEDED: Retention(succeeded=timedelta(0)),
    Status.FAILED: Retention(failed=timedelta(0)),
    Status.CANCELLED: Retention(cancelled=timedelta(0)),
}
"""nothing kept of one status"""
ENDINGS: dict[Status, Outcome] = {
    Status.SUCCEEDED: DONE,
    Status.FAILED: NEVER_AGAIN,
    Status.CANCELLED: Cancelled("enough"),
}


async def one_of_each(store: Store, queue: str = "default") -> dict[Status, str]:
    """A finished job of each ending, all of them in the past."""
    ended = {status: await finish(store, draft(queue=queue), outcome) for status, outcome in ENDINGS.items()}
    await passed(store, ended[Status.CANCELLED].finished_at)
    return {status: job.id for status, job in ended.items()}


async def left(store: Store) -> set[str]:
    return {job.id for job in await everything(store)}


@pytest.mark.parametrize("status", list(ENDINGS))
async def test_each_ending_has_its_own_retention(store: Store, status: Status) -> None:
    ended = await one_of_each(store)
    assert await store.jobs.prune(ONLY[status], 100) == 1
    assert await gone(store, ended[status])
    assert await left(store) == set(ended.values()) - {ended[status]}
    assert all([await told(store, id_) for id_ in await left(store)])


async def test_what_is_within_its_retention_is_kept(store: Store) -> None:
    ended = await one_of_each(store)
    assert await store.jobs.prune(Retention(), 100) == 0
    assert await store.jobs.prune(Retention(succeeded=HOUR, failed=HOUR, cancelled=HOUR), 100) == 0
    assert await left(store) == set(ended.values())
    assert all([await told(store, id_) for id_ in ended.values()])


async def test_a_queue_may_have_its_own_retention(store: Store) -> None:
    usual, short, long = await one_of_each(store), await one_of_each(store, "short"), await one_of_each(store, "long")
    kept_longer = Retention(
        succeeded=HOUR, failed=timedelta(0), cancelled=HOUR, queues={"long": Retention(), "short": NOTHING_KEPT}
    )
    assert await store.jobs.prune(kept_longer, 100) == 4
    assert await left(store) == {usual[Status.SUCCEEDED], usual[Status.CANCELLED], *long.values()}
    assert [await gone(store, id_) for id_ in short.values()] == [True] * 3


async def test_a_live_job_is_never_pruned(store: Store) -> None:
    queued, scheduled = draft("other"), draft(delay=HOUR)
    await put(store, queued, scheduled)
    retrying = await start(store)
    await settle(store, retrying, AGAIN_LATER)
    running, blocked = draft(limit=Limit("k")), draft(limit=Limit("k"))
    await put(store, running, blocked)
    await take(store, want(lease=INSTANT))
    jobs = await store.views.get([one.id for one in (queued, scheduled, running, blocked)])
    ended = await finish(store, draft("ended"))
    await passed(store, ended.finished_at)
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 1
    assert await gone(store, ended.id)
    assert await store.views.get([one.id for one in (queued, scheduled, running, blocked)]) == jobs
    assert (await get(store, retrying.id)).status is Status.RETRYING
    assert await told(store, blocked.id) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_a_job_retried_by_an_operator_is_live_again(store: Store) -> None:
    ended = await finish(store)
    await passed(store, ended.finished_at)
    await operate(store, ended.id, Action.RETRY)
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 0
    assert (await told(store, ended.id))[-1] is Happened.RETRIED


async def test_at_most_n_are_deleted_at_once(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(10)])
    jobs = await store.jobs.claim(want())
    await store.jobs.apply([decide(job, Succeeded("1")) for job in jobs])
    await passed(store, (await get(store, ids[0])).finished_at)
    assert [await store.jobs.prune(NOTHING_KEPT, 4) for _ in range(4)] == [4, 4, 2, 0]
    assert await left(store) == set()
    assert all([await gone(store, id_) for id_ in ids])


async def test_the_bound_holds_over_all_statuses_and_queues(store: Store) -> None:
    await one_of_each(store, "a")
    await one_of_each(store, "b")
    retention = Retention(
        succeeded=timedelta(0), failed=timedelta(0), cancelled=timedelta(0), queues={"b": NOTHING_KEPT}
    )
    pruned = [await store.jobs.prune(retention, 4) for _ in range(2)]
    assert pruned == [4, 2]
    assert await left(store) == set()


async def test_other_peoples_data_is_left_alone(store: Store, place: Place) -> None:
    ended = await finish(store)
    await place.plant(ended.id)
    await passed(store, ended.finished_at)
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 1
    assert await gone(store, ended.id)
    assert await place.planted() == [ended.id]
    assert await store.schema.verify() == []


async def test_a_pruned_jobs_id_and_keys_are_free(store: Store) -> None:
    ended = await finish(store, draft(unique="k"))
    await passed(store, ended.finished_at)
    await store.jobs.prune(NOTHING_KEPT, 100)
    assert await store.jobs.insert([draft(id=ended.id, unique="k")]) == [Created(ended.id)]
    assert await told(store, ended.id) == [Happened.ENQUEUED]


async def test_a_child_outlives_its_parent(store: Store) -> None:
    parent = await finish(store)
    [child] = await put(store, draft(parent_id=parent.id, replay_of=parent.id))
    await passed(store, parent.finished_at)
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 1
    found = await get(store, child)
    assert (found.parent_id, found.replay_of) == (parent.id, parent.id)
    assert await told(store, child) == [Happened.ENQUEUED]


async def test_a_window_that_has_not_passed_survives_pruning(store: Store) -> None:
    one, old = draft(idempotency_window=HOUR), draft(payload='{"old":1}', idempotency_window=INSTANT)
    await put(store, one, old)
    await passed(store, (await get(store, old.id)).created_at + INSTANT)
    await store.jobs.prune(NOTHING_KEPT, 100)
    again = draft(idempotency_window=HOUR)
    assert await store.jobs.insert([again]) != [Created(again.id)]
    assert await statuses(store, [one.id, old.id]) == [Status.QUEUED] * 2
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_pruning_does_not_make_a_locks_tokens_fall(store: Store) -> None:
    granted = await store.locks.acquire("l", "ann", INSTANT)
    assert isinstance(granted, Granted)
    await passed(store, granted.until)
    await store.jobs.prune(NOTHING_KEPT, 100)
    again = await store.locks.acquire("l", "bob", HOUR)
    assert isinstance(again, Granted)
    assert again.token > granted.token


async def test_a_number_is_kept_at_most_of_each_ending(store: Store) -> None:
    ended = [await one_of_each(store) for _ in range(4)]
    assert await store.jobs.prune(Retention(most=2), 100) == 6
    assert await left(store) == {id_ for each in ended[2:] for id_ in each.values()}
    assert await store.jobs.prune(Retention(most=2), 100) == 0


async def test_the_number_is_pruned_a_few_at_a_time_oldest_first(store: Store) -> None:
    ids = [(await finish(store)).id for _ in range(5)]
    assert await store.jobs.prune(Retention(most=1), 3) == 3
    assert await left(store) == set(ids[3:])
    assert await store.jobs.prune(Retention(most=1), 3) == 1
    assert await left(store) == {ids[4]}


async def test_a_queue_may_have_its_own_number_and_live_jobs_do_not_count(store: Store) -> None:
    await put(store, draft(queue="live", delay=HOUR))
    usual = [(await finish(store)).id for _ in range(3)]
    own = [(await finish(store, draft(queue="own"))).id for _ in range(3)]
    await store.jobs.prune(Retention(most=1, queues={"own": Retention(most=2)}), 100)
    assert await left(store) >= {usual[2], *own[1:]}
    assert len(await left(store)) == 4
    await store.jobs.prune(Retention(most=0), 100)
    assert len(await left(store)) == 1


async def test_a_finished_job_that_a_live_one_awaits_is_kept_until_that_has_ended(store: Store) -> None:
    last = draft(awaits="success")
    first, second = draft(next_id=last.id), draft(next_id=last.id)
    await put(store, last, first, second)
    ended, runs = await store.jobs.claim(want())
    await settle(store, ended)
    await passed(store, (await get(store, ended.id)).finished_at)
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 0
    assert await told(store, ended.id) != []
    await settle(store, runs)
    joining = await take(store)
    assert joining.id == last.id
    assert await store.jobs.prune(NOTHING_KEPT, 100) == 0
    await settle(store, joining)
    await passed(store, (await get(store, last.id)).finished_at)
    while await store.jobs.prune(NOTHING_KEPT, 100):
        pass
    assert await left(store) == set()


async def test_those_that_are_kept_do_not_keep_others_from_being_pruned(store: Store) -> None:
    last = draft(awaits="success")
    members = [draft(next_id=last.id) for _ in range(20)]
    await put(store, last, *members)
    await store.jobs.apply([decide(job, DONE) for job in (await store.jobs.claim(want(19)))])
    plain = await finish(store, draft("plain"))
    await passed(store, plain.finished_at)
    removed = 0
    for _ in range(10):
        removed += await store.jobs.prune(NOTHING_KEPT, 5)
    assert removed == 1
    assert await gone(store, plain.id)
