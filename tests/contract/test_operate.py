from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.contract.places import Place
from tests.contract.steps import (
    AGAIN_LATER,
    CRASHED,
    DONE,
    HOUR,
    NEVER_AGAIN,
    SNOOZED,
    cancel,
    finish,
    get,
    gone,
    last_entry,
    near,
    operate,
    put,
    settle,
    start,
    status,
    take,
    told,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.errors import TransactionRefused
from windlass.core.history import Happened
from windlass.core.job import Job, Progress
from windlass.core.limit import Limit
from windlass.core.outcome import Cancelled, Outcome
from windlass.core.status import FINISHED, Status
from windlass.stores.contract import Action, Answer, Lease, Operated, Order, Report, Store, Verdict

Making = Callable[[Store], Awaitable[Job]]


async def queued(store: Store) -> Job:
    [id_] = await put(store)
    return await get(store, id_)


async def scheduled(store: Store) -> Job:
    [id_] = await put(store, draft(delay=HOUR))
    return await get(store, id_)


async def blocked(store: Store) -> Job:
    holder, waiting = draft("holder", limit=Limit("k")), draft(limit=Limit("k"))
    await put(store, holder)
    await take(store, want(types={"holder"}))
    await put(store, waiting)
    assert await store.jobs.claim(want()) == []
    return await get(store, waiting.id)


async def processing(store: Store) -> Job:
    return await start(store)


def ended(outcome: Outcome) -> Making:
    async def make(store: Store) -> Job:
        return await finish(store, outcome=outcome)

    return make


MADE: dict[Status, Making] = {
    Status.QUEUED: queued,
    Status.SCHEDULED: scheduled,
    Status.BLOCKED: blocked,
    Status.PROCESSING: processing,
    Status.RETRYING: ended(AGAIN_LATER),
    Status.SUCCEEDED: ended(DONE),
    Status.FAILED: ended(NEVER_AGAIN),
    Status.CANCELLED: ended(Cancelled("enough")),
}
"""How to make a job of each status."""


def each(*chosen: Status) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("found", chosen)


@each(Status.QUEUED, Status.SCHEDULED, Status.BLOCKED, Status.RETRYING)
async def test_a_waiting_job_is_cancelled_at_once(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    history = await told(store, job.id)
    assert await operate(store, job.id, Action.CANCEL, "not needed") == Answer(Operated.DONE, found)
    after = await get(store, job.id)
    assert (after.status, after.unique_key, after.blocked_by) == (Status.CANCELLED, None, None)
    assert near(after.finished_at, await store.now())
    assert await told(store, job.id) == [*history, Happened.CANCELLED]
    entry = await last_entry(store, job.id)
    assert (entry.status, entry.actor, entry.note) == (Status.CANCELLED, "ann", "not needed")
    assert await store.jobs.claim(want()) == []


async def test_a_processing_job_is_asked_to_stop(store: Store) -> None:
    job = await start(store)
    assert await operate(store, job.id, Action.CANCEL, "too slow") == Answer(Operated.REQUESTED, Status.PROCESSING)
    found = await get(store, job.id)
    assert near(found.cancel_requested_at, await store.now())
    assert found._replace(cancel_requested_at=None, updated_at=job.updated_at) == job
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.CANCEL_REQUESTED]
    entry = await last_entry(store, job.id)
    assert (entry.status, entry.actor, entry.note) == (Status.PROCESSING, "ann", "too slow")


async def test_a_processing_job_may_be_asked_to_stop_more_than_once(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    asked = await get(store, job.id)
    assert await operate(store, job.id, Action.CANCEL) == Answer(Operated.REQUESTED, Status.PROCESSING)
    assert (await get(store, job.id)).cancel_requested_at == asked.cancel_requested_at
    assert (await told(store, job.id))[2] is Happened.CANCEL_REQUESTED
    assert await settle(store, job, AGAIN_LATER) is Verdict.CANCELLED
    assert await status(store, job.id) is Status.CANCELLED


@each(*sorted(FINISHED))
async def test_a_finished_job_is_not_cancelled(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    history = await store.views.history(job.id)
    assert await operate(store, job.id, Action.CANCEL) == Answer(Operated.REFUSED, found)
    assert await get(store, job.id) == job
    assert await store.views.history(job.id) == history


@each(*sorted(FINISHED))
async def test_a_finished_job_is_retried_afresh(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    history = await told(store, job.id)
    assert await operate(store, job.id, Action.RETRY, "fixed") == Answer(Operated.DONE, found)
    after = await get(store, job.id)
    assert (after.status, after.attempts, after.crashes) == (Status.QUEUED, 0, 0)
    assert (after.result_json, after.error, after.finished_at, after.progress) == (None, None, None, None)
    assert (after.duration_ms, after.cancel_requested_at) == (None, None)
    assert near(after.queued_at, await store.now())
    assert (after.payload_json, after.created_at, after.lease_token) == (job.payload_json, job.created_at, 1)
    assert await told(store, job.id) == [*history, Happened.RETRIED]
    entry = await last_entry(store, job.id)
    assert (entry.status, entry.actor, entry.note) == (Status.QUEUED, "ann", "fixed")
    again = await take(store)
    assert (again.id, again.attempts, again.lease_token) == (job.id, 1, 2)


async def test_a_job_that_crashed_too_often_is_retried_with_no_crashes(store: Store) -> None:
    job = await start(store, draft(max_crashes=1))
    await settle(store, job, CRASHED)
    assert (await get(store, job.id)).crashes == 1
    assert (await operate(store, job.id, Action.RETRY)).verdict is Operated.DONE
    assert (await get(store, job.id)).crashes == 0
    assert (await told(store, job.id))[-2:] == [Happened.FAILED, Happened.RETRIED]


async def test_progress_of_the_last_run_is_not_shown_after_a_retry(store: Store) -> None:
    job = await start(store)
    await store.jobs.report([Report(Lease(job.id, 1), Progress(done=3))])
    await settle(store, job)
    await operate(store, job.id, Action.RETRY)
    assert (await get(store, job.id)).progress is None
    assert (await told(store, job.id))[-1] is Happened.RETRIED


async def test_a_job_cancelled_while_it_ran_and_retried_is_not_to_stop_any_more(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    await settle(store, job, SNOOZED)
    assert await status(store, job.id) is Status.CANCELLED
    await operate(store, job.id, Action.RETRY)
    job = await take(store)
    assert job.cancel_requested_at is None
    assert await store.jobs.cancels("w1") == frozenset()
    await settle(store, job, SNOOZED)
    assert await status(store, job.id) is Status.SCHEDULED
    assert (await told(store, job.id))[-3:] == [Happened.RETRIED, Happened.CLAIMED, Happened.SNOOZED]


@each(Status.SCHEDULED, Status.RETRYING)
async def test_a_job_that_waits_for_its_time_is_queued_now_with_its_attempts(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    history = await told(store, job.id)
    assert await operate(store, job.id, Action.RETRY) == Answer(Operated.DONE, found)
    after = await get(store, job.id)
    assert (after.status, after.attempts) == (Status.QUEUED, job.attempts)
    assert near(after.queued_at, await store.now())
    assert await told(store, job.id) == [*history, Happened.RETRIED]
    assert (await last_entry(store, job.id)).actor == "ann"
    assert (await take(store)).attempts == job.attempts + 1


@each(Status.QUEUED, Status.BLOCKED, Status.PROCESSING)
async def test_a_job_that_waits_for_a_worker_or_has_one_is_not_retried(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    history = await store.views.history(job.id)
    assert await operate(store, job.id, Action.RETRY) == Answer(Operated.REFUSED, found)
    assert await get(store, job.id) == job
    assert await store.views.history(job.id) == history


@each(*sorted(set(Status) - {Status.PROCESSING}))
async def test_a_job_that_does_not_run_is_deleted_with_its_history(store: Store, found: Status) -> None:
    job = await MADE[found](store)
    assert await operate(store, job.id, Action.DELETE) == Answer(Operated.DONE, found)
    assert await gone(store, job.id)
    assert await store.jobs.claim(want()) == []
    assert (await operate(store, job.id, Action.DELETE)).verdict is Operated.MISSING


async def test_a_processing_job_is_not_deleted(store: Store) -> None:
    job = await start(store)
    assert await operate(store, job.id, Action.DELETE) == Answer(Operated.REFUSED, Status.PROCESSING)
    assert await get(store, job.id) == job
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED]


@pytest.mark.parametrize("action", [Action.CANCEL, Action.RETRY, Action.DELETE])
async def test_an_unknown_job_is_missing(store: Store, action: Action) -> None:
    assert await operate(store, new_id(), action) == Answer(Operated.MISSING)


async def test_the_result_of_a_deleted_job_is_missing(store: Store) -> None:
    job = await finish(store)
    await operate(store, job.id, Action.DELETE)
    assert await settle(store, job) is Verdict.MISSING
    assert await gone(store, job.id)


@pytest.mark.parametrize("action", [Action.CANCEL, Action.RETRY, Action.DELETE])
async def test_an_order_for_other_statuses_than_the_jobs_own_is_refused(store: Store, action: Action) -> None:
    job = await MADE[Status.RETRYING](store)
    history = await store.views.history(job.id)
    for only in (frozenset(FINISHED), frozenset({Status.QUEUED, Status.PROCESSING}), frozenset[Status]()):
        order = Order(id=job.id, action=action, actor="ann", only=only)
        assert await store.jobs.operate([order]) == [Answer(Operated.REFUSED, Status.RETRYING)]
    assert await get(store, job.id) == job
    assert await store.views.history(job.id) == history
    order = Order(id=job.id, action=action, actor="ann", only=frozenset({Status.FAILED, Status.RETRYING}))
    assert await store.jobs.operate([order]) == [Answer(Operated.DONE, Status.RETRYING)]


async def some_of_each(store: Store) -> tuple[Job, Job, Job, list[Order]]:
    """A waiting, a failed and a cancelled job, and an order for each."""
    waiting, failed = await queued(store), await finish(store, draft("b"), outcome=NEVER_AGAIN)
    dropped = await finish(store, draft("c"), outcome=Cancelled("enough"))
    orders = [
        Order(id=waiting.id, action=Action.CANCEL, actor="ann", reason="no order"),
        Order(id=failed.id, action=Action.RETRY, actor="ann"),
        Order(id=dropped.id, action=Action.DELETE, actor="ann"),
    ]
    return waiting, failed, dropped, orders


DONE_IN_ORDER = [
    Answer(Operated.DONE, Status.QUEUED),
    Answer(Operated.DONE, Status.FAILED),
    Answer(Operated.DONE, Status.CANCELLED),
]


async def test_orders_in_a_transaction_are_seen_on_commit_and_not_before(store: Store, place: Place) -> None:
    waiting, failed, dropped, orders = await some_of_each(store)
    async with place.transaction() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused, match="after your commit"):
                await store.jobs.operate(orders, transaction.tx)
            return
        assert await store.jobs.operate(orders, transaction.tx) == DONE_IN_ORDER
        assert [await get(store, job.id) for job in (waiting, failed, dropped)] == [waiting, failed, dropped]
        again = [Order(id=waiting.id, action=Action.CANCEL, actor="ann"), orders[2]]
        verdicts = [answer.verdict for answer in await store.jobs.operate(again, transaction.tx)]
        assert verdicts == [Operated.REFUSED, Operated.MISSING], "the transaction sees what it has done"
        await transaction.commit()
    assert await status(store, waiting.id) is Status.CANCELLED
    entry = await last_entry(store, waiting.id)
    assert (entry.happened, entry.actor, entry.note) == (Happened.CANCELLED, "ann", "no order")
    assert await gone(store, dropped.id)
    assert (await get(store, failed.id)).attempts == 0
    assert (await told(store, failed.id))[-1] is Happened.RETRIED
    assert (await take(store, want(types={"b"}))).id == failed.id


async def test_orders_in_a_transaction_are_gone_on_rollback(store: Store, place: Place) -> None:
    if not store.capabilities.transactions:
        return
    waiting, failed, dropped, orders = await some_of_each(store)
    history = [await store.views.history(job.id) for job in (waiting, failed, dropped)]
    async with place.transaction() as transaction:
        assert await store.jobs.operate(orders, transaction.tx) == DONE_IN_ORDER
        await transaction.rollback()
    assert [await get(store, job.id) for job in (waiting, failed, dropped)] == [waiting, failed, dropped]
    assert [await store.views.history(job.id) for job in (waiting, failed, dropped)] == history


async def test_a_refused_order_does_not_abort_the_callers_transaction(store: Store, place: Place) -> None:
    if not store.capabilities.transactions:
        return
    old = await finish(store, draft("old", unique="k"))
    [holder] = await put(store, draft("new", unique="k"))
    running, waiting = await start(store), await scheduled(store)
    async with place.transaction() as transaction:
        answers = await store.jobs.operate(
            [
                Order(id=old.id, action=Action.CANCEL, actor="ann"),
                Order(id=old.id, action=Action.RETRY, actor="ann"),
                Order(id=running.id, action=Action.DELETE, actor="ann"),
                Order(id=running.id, action=Action.CANCEL, actor="ann"),
                Order(id=new_id(), action=Action.CANCEL, actor="ann"),
                Order(id=holder, action=Action.CANCEL, actor="ann", only=frozenset({Status.FAILED})),
                Order(id=holder, action=Action.CANCEL, actor="ann"),
                Order(id=old.id, action=Action.RETRY, actor="ann"),
                Order(id=waiting.id, action=Action.RETRY, actor="ann"),
            ],
            transaction.tx,
        )
        await transaction.commit()
    assert answers == [
        Answer(Operated.REFUSED, Status.SUCCEEDED),
        Answer(Operated.DUPLICATE, Status.SUCCEEDED, holder),
        Answer(Operated.REFUSED, Status.PROCESSING),
        Answer(Operated.REQUESTED, Status.PROCESSING),
        Answer(Operated.MISSING),
        Answer(Operated.REFUSED, Status.QUEUED),
        Answer(Operated.DONE, Status.QUEUED),
        Answer(Operated.DONE, Status.SUCCEEDED),
        Answer(Operated.DONE, Status.SCHEDULED),
    ]
    assert (await get(store, old.id)).unique_key == "k"
    assert await store.jobs.cancels("w1") == frozenset({running.id})
    assert await told(store, holder) == [Happened.ENQUEUED, Happened.CANCELLED]
    assert await status(store, waiting.id) is Status.QUEUED


async def test_a_synchronous_order_joins_the_transaction_on_the_calling_thread(store: Store, place: Place) -> None:
    waiting, failed, dropped, orders = await some_of_each(store)
    with place.transaction_now() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused):
                store.jobs.operate_now(orders, transaction.tx)
            return
        assert store.jobs.operate_now(orders, transaction.tx) == DONE_IN_ORDER
        assert await get(store, waiting.id) == waiting
        await transaction.commit()
    assert await status(store, waiting.id) is Status.CANCELLED
    assert await status(store, failed.id) is Status.QUEUED
    assert await gone(store, dropped.id)
    with place.transaction_now() as transaction:
        order = Order(id=waiting.id, action=Action.RETRY, actor="ann")
        assert store.jobs.operate_now([order], transaction.tx) == [Answer(Operated.DONE, Status.CANCELLED)]
        await transaction.rollback()
    assert await told(store, waiting.id) == [Happened.ENQUEUED, Happened.CANCELLED]


async def test_what_waited_for_a_job_goes_on_when_the_order_is_committed(store: Store, place: Place) -> None:
    if not store.capabilities.transactions:
        return
    first = draft("first", delay=HOUR, next_id=(after := draft("after", awaits="end")).id)
    await put(store, first, after)
    async with place.transaction() as transaction:
        order = Order(id=first.id, action=Action.CANCEL, actor="ann")
        assert await store.jobs.operate([order], transaction.tx) == [Answer(Operated.DONE, Status.SCHEDULED)]
        assert await status(store, after.id) is Status.BLOCKED
        await transaction.commit()
    await store.jobs.promote(100)
    assert await status(store, after.id) is Status.QUEUED
    assert (await told(store, after.id))[-1] is Happened.UNBLOCKED


@pytest.mark.parametrize("action", [Action.CANCEL, Action.RETRY, Action.DELETE])
async def test_many_orders_at_once_are_each_carried_out(store: Store, action: Action) -> None:
    jobs = [await MADE[found](store) for found in (Status.SCHEDULED, Status.RETRYING, Status.SCHEDULED)]
    keyed = [draft("keyed", unique=key, delay=HOUR) for key in "abc"]
    await put(store, *keyed)
    ids = [job.id for job in jobs] + [one.id for one in keyed]
    orders = [Order(id=one, action=action, actor="ann") for one in ids]
    assert {answer.verdict for answer in await store.jobs.operate(orders)} == {Operated.DONE}
    after = {Action.CANCEL: Status.CANCELLED, Action.RETRY: Status.QUEUED, Action.DELETE: None}[action]
    assert {None if job is None else job.status for job in await store.views.get(ids)} == {after}
    if action is not Action.DELETE:
        assert {(await last_entry(store, one)).actor for one in ids} == {"ann"}


async def test_of_many_retried_at_once_one_takes_the_key(store: Store) -> None:
    ids: list[str] = []
    for _ in range(3):
        ids += await put(store, draft("keyed", unique="k", delay=HOUR))
        await cancel(store, ids[-1])
    orders = [Order(id=one, action=Action.RETRY, actor="ann") for one in ids]
    answers = await store.jobs.operate(orders)
    assert [answer.verdict for answer in answers] == [Operated.DONE, Operated.DUPLICATE, Operated.DUPLICATE]
    assert {answer.holder for answer in answers} == {None, ids[0]}
    assert [(await get(store, one)).unique_key for one in ids] == ["k", None, None]


async def test_orders_are_answered_one_by_one_in_order(store: Store) -> None:
    waiting, over, running = await queued(store), await finish(store, draft("b")), await start(store, draft("c"))
    orders = [
        Order(id=over.id, action=Action.DELETE, actor="ann"),
        Order(id=running.id, action=Action.CANCEL, actor="bob"),
        Order(id=new_id(), action=Action.RETRY, actor="ann"),
        Order(id=waiting.id, action=Action.RETRY, actor="ann"),
        Order(id=waiting.id, action=Action.CANCEL, actor="ann"),
        Order(id=waiting.id, action=Action.RETRY, actor="bob"),
    ]
    assert await store.jobs.operate(orders) == [
        Answer(Operated.DONE, Status.SUCCEEDED),
        Answer(Operated.REQUESTED, Status.PROCESSING),
        Answer(Operated.MISSING),
        Answer(Operated.REFUSED, Status.QUEUED),
        Answer(Operated.DONE, Status.QUEUED),
        Answer(Operated.DONE, Status.CANCELLED),
    ]
    assert await told(store, waiting.id) == [Happened.ENQUEUED, Happened.CANCELLED, Happened.RETRIED]
    assert (await last_entry(store, waiting.id)).actor == "bob"
    assert await store.jobs.operate([]) == []


async def test_a_cancelled_result_wins_or_loses_by_who_came_first(store: Store) -> None:
    job = await start(store)
    await settle(store, job)
    assert await operate(store, job.id, Action.CANCEL) == Answer(Operated.REFUSED, Status.SUCCEEDED)
    assert await status(store, job.id) is Status.SUCCEEDED
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
