from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import (
    AGAIN_LATER,
    HOUR,
    everything,
    finish,
    get,
    in_utc,
    last_entry,
    near,
    put,
    settle,
    start,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.errors import TransactionRefused
from windlass.core.history import Entry, Happened
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.unique import OnConflict, Unique
from windlass.stores.contract import Created, Duplicate, Filter, Full, Store


async def test_an_inserted_job_is_queued_with_all_it_was_given(store: Store) -> None:
    parent, origin = new_id(), new_id()
    context: dict[str, Any] = {
        "correlation_id": "c-1",
        "user_id": "u-1",
        "entity_name": "order",
        "entity_id": "42",
        "tags": ("a", "b"),
        "metadata_json": '{"from":"test"}',
        "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "parent_id": parent,
        "replay_of": origin,
    }
    one = draft(
        "mail.send",
        '{"n":1,"to":"ann"}',
        queue="mail",
        priority=7,
        max_attempts=9,
        max_crashes=4,
        timeout=timedelta(seconds=90),
        unique=Unique(queued="q", running="r"),
        limit=Limit("to:{to}", 3),
        idempotency_window=HOUR,
        **context,
    )
    assert await store.jobs.insert([one]) == [Created(one.id)]
    job = await get(store, one.id)
    assert (job.id, job.type, job.queue, job.payload) == (one.id, "mail.send", "mail", {"n": 1, "to": "ann"})
    assert (job.status, job.priority, job.timeout) == (Status.QUEUED, 7, timedelta(seconds=90))
    assert (job.attempts, job.max_attempts, job.crashes, job.max_crashes) == (0, 9, 0, 4)
    assert (job.unique_key, job.unique_queued, job.unique_running) == ("q", "q", "r")
    assert (job.limit_key, job.limit, job.idempotency_key) == ("to:ann", 3, one.idempotency_key)
    assert {name: getattr(job, name) for name in context} == context
    assert (job.lease_token, job.worker_id, job.lease_expires_at, job.started_at) == (0, None, None, None)
    assert (job.result_json, job.error, job.progress, job.finished_at, job.blocked_by) == (None, None, None, None, None)
    assert job.run_at == job.queued_at == job.created_at == job.updated_at
    [entry] = await store.views.history(one.id)
    assert entry == Entry(
        number=1,
        at=job.created_at,
        happened=Happened.ENQUEUED,
        status=Status.QUEUED,
        actor=entry.actor,
        note=entry.note,
    )


async def test_a_job_inserted_with_nothing_special_has_the_defaults(store: Store) -> None:
    one = draft(timeout=None)
    await put(store, one)
    job = await get(store, one.id)
    assert (job.queue, job.priority, job.max_attempts, job.max_crashes) == ("default", 100, 5, 3)
    assert (job.timeout, job.unique_key, job.limit_key, job.limit, job.idempotency_key) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert (job.tags, job.metadata, job.schedule, job.tick, job.parent_id) == ((), {}, None, None, None)
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_times_are_stamped_by_the_stores_clock_in_utc(store: Store) -> None:
    before = await store.now()
    [id_] = await put(store)
    after = await store.now()
    job, entry = await get(store, id_), await last_entry(store, id_)
    assert before <= job.created_at <= after
    assert in_utc(before)
    assert in_utc(job.created_at)
    assert in_utc(job.run_at)
    assert in_utc(entry.at)


async def test_a_job_with_a_delay_is_scheduled_from_the_stores_clock(store: Store) -> None:
    [id_] = await put(store, draft(delay=HOUR))
    job = await get(store, id_)
    assert (job.status, job.run_at, job.queued_at) == (Status.SCHEDULED, job.created_at + HOUR, None)
    entry = await last_entry(store, id_)
    assert (entry.happened, entry.status) == (Happened.ENQUEUED, Status.SCHEDULED)


async def test_a_job_for_a_later_instant_is_scheduled_for_exactly_that_instant(store: Store) -> None:
    later = (await store.now()).replace(microsecond=123_000) + 400 * timedelta(days=1)
    [id_] = await put(store, draft(run_at=later))
    job = await get(store, id_)
    assert (job.status, job.run_at) == (Status.SCHEDULED, later)
    assert await told(store, id_) == [Happened.ENQUEUED]


@pytest.mark.parametrize("delay", [timedelta(0), None])
async def test_a_job_without_a_delay_or_for_a_past_instant_is_queued(store: Store, delay: timedelta | None) -> None:
    past = (await store.now()) - HOUR
    one = draft(delay=delay) if delay is not None else draft(run_at=past)
    await put(store, one)
    job = await get(store, one.id)
    assert job.status is Status.QUEUED
    assert job.run_at <= job.created_at
    assert near(job.queued_at, job.created_at)
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_the_same_id_again_is_the_same_job(store: Store, other: Store) -> None:
    one = draft(payload='{"first":true}')
    await put(store, one)
    kept = await get(store, one.id)
    assert await other.jobs.insert([draft(id=one.id, payload='{"first":false}')]) == [Created(one.id)]
    assert await get(store, one.id) == kept
    assert await told(store, one.id) == [Happened.ENQUEUED]
    assert await store.views.count(Filter()) == await other.views.count(Filter())
    assert (await store.views.count(Filter())).n == 1


async def test_the_same_id_again_is_the_same_job_after_it_has_run(store: Store) -> None:
    job = await start(store, draft(unique="k", idempotency_window=HOUR))
    await settle(store, job)
    ended = await get(store, job.id)
    assert await store.jobs.insert([draft(id=job.id)]) == [Created(job.id)]
    assert await get(store, job.id) == ended
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


@pytest.mark.parametrize("on_conflict", ["existing", "replace"])
async def test_the_same_id_again_is_the_same_job_after_its_key_has_gone_to_another(
    store: Store, on_conflict: OnConflict
) -> None:
    one = draft(payload='{"n":1}', unique="k", on_conflict=on_conflict)
    await finish(store, one)
    holder = draft(payload='{"n":2}', unique="k", delay=HOUR)
    await put(store, holder)
    assert await store.jobs.insert([one]) == [Created(one.id)]
    assert (await get(store, holder.id)).payload == {"n": 2}
    assert await told(store, holder.id) == [Happened.ENQUEUED]
    assert await told(store, one.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_a_job_does_not_conflict_with_itself(store: Store) -> None:
    one = draft(unique="k", idempotency_window=HOUR)
    assert await store.jobs.insert([one]) == [Created(one.id)]
    assert await store.jobs.insert([one, one]) == [Created(one.id), Created(one.id)]
    assert [job.id for job in await everything(store)] == [one.id]
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_the_same_id_twice_in_one_insert_is_one_job(store: Store) -> None:
    one = draft()
    assert await store.jobs.insert([one, one]) == [Created(one.id), Created(one.id)]
    assert [job.id for job in await everything(store)] == [one.id]
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_each_draft_gets_its_own_verdict_in_order(store: Store) -> None:
    await store.queues.limit_depth("small", 1)
    a, b, c, d, e = draft(), draft(unique="k"), draft(unique="k"), draft(queue="small"), draft(queue="small")
    assert await store.jobs.insert([a, b, c, d, e]) == [
        Created(a.id),
        Created(b.id),
        Duplicate(b.id, "k"),
        Created(d.id),
        Full("small", 1),
    ]
    assert await store.views.get([c.id, e.id]) == [None, None]
    assert await store.views.history(c.id) == []
    for id_ in (a.id, b.id, d.id):
        assert await told(store, id_) == [Happened.ENQUEUED]


async def test_inserting_nothing_does_nothing(store: Store) -> None:
    assert await store.jobs.insert([]) == []
    assert await everything(store) == []


async def test_a_thousand_drafts_go_in_at_once(store: Store) -> None:
    drafts = [draft(payload=f'{{"n":{n}}}') for n in range(1_000)]
    ids = await put(store, *drafts)
    jobs = await everything(store)
    assert [job.id for job in reversed(jobs)] == ids
    assert [job.payload["n"] for job in reversed(jobs)] == list(range(1_000))
    assert await told(store, ids[-1]) == [Happened.ENQUEUED]


async def test_a_full_queue_refuses_and_writes_nothing(store: Store) -> None:
    await store.queues.limit_depth("small", 2)
    drafts = [draft(queue="small") for _ in range(4)]
    first, second, third, fourth = drafts
    assert await store.jobs.insert(drafts[:3]) == [Created(first.id), Created(second.id), Full("small", 2)]
    assert await store.jobs.insert([fourth, draft(queue="large")]) != [Full("small", 2)] * 2
    assert {job.id for job in await everything(store, Filter(queue="small"))} == {first.id, second.id}
    assert await store.views.history(third.id) == []
    await store.queues.limit_depth("small", None)
    assert await store.jobs.insert([third]) == [Created(third.id)]
    assert await told(store, third.id) == [Happened.ENQUEUED]


async def test_every_waiting_job_fills_its_queue_and_running_ones_do_not(store: Store) -> None:
    retrying = await start(store, draft(queue="small"))
    await settle(store, retrying, AGAIN_LATER)
    running, blocked = draft(queue="small", limit=Limit("k")), draft(queue="small", limit=Limit("k"))
    await put(store, running, blocked)
    await take(store)
    await put(store, draft(queue="small", delay=HOUR), draft(queue="small"), draft(queue="large"))
    assert await statuses(store, [retrying.id, running.id, blocked.id]) == [
        Status.RETRYING,
        Status.PROCESSING,
        Status.BLOCKED,
    ]
    await store.queues.limit_depth("small", 4)
    assert await store.jobs.insert([draft(queue="small")]) == [Full("small", 4)]
    await store.queues.limit_depth("small", 5)
    fits = draft(queue="small")
    assert await store.jobs.insert([fits, draft(queue="small")]) == [Created(fits.id), Full("small", 5)]
    assert await told(store, fits.id) == [Happened.ENQUEUED]


async def test_a_full_queue_names_its_largest_depth_even_if_more_wait(store: Store) -> None:
    await put(store, *[draft(queue="small", delay=delay) for delay in (None, None, HOUR, HOUR)])
    await store.queues.limit_depth("small", 3)
    assert await store.jobs.insert([draft(queue="small")]) == [Full("small", 3)]
    await store.queues.limit_depth("small", 0)
    assert await store.jobs.insert([draft(queue="small")]) == [Full("small", 0)]


async def test_claiming_makes_room_in_a_full_queue(store: Store) -> None:
    await store.queues.limit_depth("small", 1)
    job = await start(store, draft(queue="small"))
    one = draft(queue="small")
    assert await store.jobs.insert([one, draft(queue="small")]) == [Created(one.id), Full("small", 1)]
    assert await told(store, one.id) == [Happened.ENQUEUED]
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_what_is_already_there_is_said_also_of_a_full_queue(store: Store) -> None:
    one = draft(queue="small", unique="k")
    await put(store, one)
    await store.queues.limit_depth("small", 1)
    again = draft(queue="small", unique="k")
    assert await store.jobs.insert([again]) == [Duplicate(one.id, "k")]
    assert await store.jobs.insert([one]) == [Created(one.id)]
    assert await told(store, one.id) == [Happened.ENQUEUED]
    assert await store.views.get([again.id]) == [None]


async def test_what_is_already_there_takes_no_room(store: Store) -> None:
    [there] = await put(store, draft(queue="small"))
    await store.queues.limit_depth("small", 2)
    one = draft(queue="small")
    assert await store.jobs.insert([draft(id=there, queue="small"), one]) == [Created(there), Created(one.id)]
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_a_job_put_back_into_a_full_queue_is_not_refused(store: Store) -> None:
    await store.queues.limit_depth("small", 1)
    job = await start(store, draft(queue="small"))
    await put(store, draft(queue="small"))
    await settle(store, job, AGAIN_LATER)
    assert (await get(store, job.id)).status is Status.RETRYING
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.RETRYING]


async def test_an_insert_in_a_transaction_is_seen_on_commit_and_not_before(store: Store, place: Place) -> None:
    one = draft(unique="k")
    async with place.transaction() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused):
                await store.jobs.insert([one], transaction.tx)
            return
        assert await store.jobs.insert([one], transaction.tx) == [Created(one.id)]
        assert await store.views.get([one.id]) == [None]
        assert await store.jobs.insert([one], transaction.tx) == [Created(one.id)]
        await transaction.commit()
    assert (await get(store, one.id)).status is Status.QUEUED
    assert await told(store, one.id) == [Happened.ENQUEUED]
    assert (await take(store)).id == one.id


async def test_an_insert_in_a_transaction_is_gone_on_rollback_with_its_keys(store: Store, place: Place) -> None:
    if not store.capabilities.transactions:
        return
    one = draft(unique="k", idempotency_window=HOUR)
    async with place.transaction() as transaction:
        await store.jobs.insert([one], transaction.tx)
        await transaction.rollback()
    assert await store.views.get([one.id]) == [None]
    assert await store.views.history(one.id) == []
    again = draft(unique="k", idempotency_window=HOUR)
    assert await store.jobs.insert([again]) == [Created(again.id)]
    assert await told(store, again.id) == [Happened.ENQUEUED]


async def test_a_duplicate_does_not_abort_the_callers_transaction(store: Store, place: Place) -> None:
    if not store.capabilities.transactions:
        return
    held = draft(unique="k")
    await put(store, held)
    before, after = draft(), draft()
    async with place.transaction() as transaction:
        await store.jobs.insert([before], transaction.tx)
        assert await store.jobs.insert([draft(unique="k")], transaction.tx) == [Duplicate(held.id, "k")]
        await store.jobs.insert([after], transaction.tx)
        await transaction.commit()
    for id_ in (before.id, held.id, after.id):
        assert await told(store, id_) == [Happened.ENQUEUED]
    assert len(await everything(store)) == 3


async def test_a_synchronous_insert_joins_the_transaction_on_the_calling_thread(store: Store, place: Place) -> None:
    kept, dropped = draft(unique="k"), draft()
    with place.transaction_now() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused):
                store.jobs.insert_now([kept], transaction.tx)
            return
        assert store.jobs.insert_now([kept, kept], transaction.tx) == [Created(kept.id), Created(kept.id)]
        assert await store.views.get([kept.id]) == [None]
        await transaction.commit()
    with place.transaction_now() as transaction:
        assert store.jobs.insert_now([dropped], transaction.tx) == [Created(dropped.id)]
        assert store.jobs.insert_now([draft(unique="k")], transaction.tx) == [Duplicate(kept.id, "k")]
        await transaction.rollback()
    assert [job.id for job in await everything(store)] == [kept.id]
    assert await told(store, kept.id) == [Happened.ENQUEUED]


async def test_what_is_not_a_transaction_is_refused(store: Store) -> None:
    one = draft()
    with pytest.raises(TransactionRefused):
        await store.jobs.insert([one], object())
    with pytest.raises(TransactionRefused):
        store.jobs.insert_now([one], object())
    assert await store.views.get([one.id]) == [None]
    assert await store.jobs.claim(want()) == []
