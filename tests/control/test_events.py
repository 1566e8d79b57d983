"""Events on every store, recounted against what the store has: told once for what is so, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import NEVER_AGAIN, everything, finish, gone, put, settle
from tests.support.apps import Heard, ms, working
from tests.support.drafts import INSTANT, draft, want
from tests.support.until import until
from windlass import DuplicateJob, Happened, MoveRefused, QueueFull, Status, TransactionRefused, Windlass
from windlass.core.events import JobDeduplicated, JobEnqueued, JobEnqueuedInTransaction, JobOperated, JobRescued
from windlass.stores.contract import Lease

pytestmark = pytest.mark.timeout(60)


async def stored(app: Windlass) -> list[str]:
    return sorted(job.id for job in await everything(app.store))


async def test_each_job_that_is_in_the_store_was_told_of_once(app: Windlass) -> None:
    heard = Heard(app)

    @app.job
    async def step(n: int = 0) -> int:
        return n

    await step.enqueue(1)
    await app.enqueue("elsewhere")
    first = await step.using(unique="k").enqueue(2)
    again = await step.using(unique="k").enqueue(3)
    with pytest.raises(DuplicateJob):
        await step.using(unique="k", on_conflict="raise").enqueue(4)
    await app.enqueue_many(step.bind(n) for n in range(5))
    await app.group([step.bind(1), step.bind(2)]).then(step.bind(3)).enqueue()
    await app.queues.limit_depth("small", 1)
    # The full queue refuses two of these; what comes after them is in the store all the same.
    small = step.using(queue="small")
    with pytest.raises(QueueFull):
        await app.enqueue_many([small.bind(1), small.bind(2), step.bind(3), small.bind(4), step.bind(5)])
    with pytest.raises(QueueFull):
        await step.bind(1).then(small.bind(2)).enqueue()
    assert sorted(event.id for event in heard.all(JobEnqueued)) == await stored(app)
    assert heard.all(JobDeduplicated) == [JobDeduplicated(first.id, "step", "default", "k")]
    assert first.id == again.id
    assert heard.all(JobEnqueuedInTransaction) == []


@pytest.mark.parametrize("commits", [True, False])
async def test_a_job_in_a_transaction_is_not_told_of_as_if_it_were_there(
    app: Windlass, place: Place, commits: bool
) -> None:
    heard = Heard(app)

    @app.job
    async def step(n: int) -> int:
        return n

    async with place.transaction() as transaction:
        if not app.store.capabilities.transactions:
            with app.within(transaction.tx), pytest.raises(TransactionRefused):
                await step.enqueue(1)
            assert heard.all(JobEnqueued) == []
            assert heard.all(JobEnqueuedInTransaction) == []
            assert await stored(app) == []
            return
        with app.within(transaction.tx):
            await step.enqueue(1)
            await app.enqueue_many([step.bind(2), step.bind(3)])
            await step.bind(4).then(step.bind(5)).enqueue()
        told = sorted(event.id for event in heard.all(JobEnqueuedInTransaction))
        assert len(told) == 5
        await (transaction.commit() if commits else transaction.rollback())
    assert await stored(app) == (told if commits else [])
    assert heard.all(JobEnqueued) == []


async def test_each_order_is_told_of_as_history_has_it(app: Windlass) -> None:
    heard = Heard(app)
    waiting, running, dead_one, done = draft(), draft("run"), draft("bad"), await finish(app.store)
    await put(app.store, waiting, running, dead_one)
    await app.store.jobs.claim(want(types={"run"}))
    [claimed] = await app.store.jobs.claim(want(types={"bad"}))
    await settle(app.store, claimed, NEVER_AGAIN)

    assert await app.jobs.cancel(waiting.id, actor="ann", reason="wrong")
    assert not await app.jobs.cancel(running.id, actor="bob")
    with pytest.raises(MoveRefused):
        await app.jobs.cancel(done.id, actor="bob")
    await app.jobs.retry(waiting.id, actor="cy", reason="right after all")
    await app.jobs.retry(dead_one.id, actor="dee")
    again = await app.jobs.replay(done.id, actor="eve")
    assert not (await app.jobs.replay(done.id, actor="fay")).created
    handle = await app.enqueue("noop")
    await handle.cancel("not needed")

    orders = heard.all(JobOperated)
    assert orders == [
        JobOperated(waiting.id, "cancel", "ann", "wrong"),
        JobOperated(running.id, "cancel", "bob", requested=True),
        JobOperated(waiting.id, "retry", "cy", "right after all"),
        JobOperated(dead_one.id, "retry", "dee"),
        JobOperated(done.id, "replay", "eve", replay_id=again.id),
        JobOperated(handle.id, "cancel", "client", "not needed"),
    ]
    assert (await again.job()).replay_of == done.id
    assert sorted(_as_written(order) for order in orders if order.action != "replay") == await _written(app)

    await app.jobs.delete(waiting.id, actor="gil", reason="a test")
    assert heard.all(JobOperated)[-1] == JobOperated(waiting.id, "delete", "gil", "a test")
    assert await gone(app.store, waiting.id)


def _as_written(order: JobOperated) -> tuple[str, str, str]:
    happened = {"cancel": Happened.CANCELLED, "retry": Happened.RETRIED}[order.action]
    return order.id, Happened.CANCEL_REQUESTED if order.requested else happened, order.actor


async def _written(app: Windlass) -> list[tuple[str, str, str]]:
    kinds = {Happened.CANCELLED, Happened.CANCEL_REQUESTED, Happened.RETRIED}
    lines: list[tuple[str, str, str]] = []
    for job in await everything(app.store):
        history = await app.store.views.history(job.id)
        lines += [(job.id, entry.happened, entry.actor or "") for entry in history if entry.happened in kinds]
    return sorted(lines)


async def test_replays_of_many_are_told_of_one_by_one(app: Windlass) -> None:
    heard = Heard(app)
    for _ in range(3):
        await finish(app.store, outcome=NEVER_AGAIN)
    told = await app.dead_letters.replay_all(type="noop", actor="ann")
    assert told.replayed == 3
    await app.dead_letters.replay_all(type="noop", actor="ann")
    orders = heard.all(JobOperated)
    assert sorted(str(order.replay_id) for order in orders) == sorted(told.ids)
    for order in orders:
        assert (order.action, order.actor) == ("replay", "ann")
        assert (await app.jobs.get(str(order.replay_id))).replay_of == order.id


async def test_each_rescued_job_is_told_of(app: Windlass) -> None:
    heard = Heard(app)
    drafts = [draft(max_crashes=n % 2 + 1) for n in range(4)]
    await put(app.store, *drafts)
    claimed = await app.store.jobs.claim(want(worker="dead-1"))
    assert len(claimed) == 4
    # Extended once, so that they count as begun: else a lost lease is no crash, and none of them fails.
    await app.store.jobs.extend("dead-1", [Lease(job.id, job.lease_token) for job in claimed], INSTANT)
    async with working(app, rescue=ms(50)):  # a worker without handlers: it takes nothing, and does its chores
        await until(lambda: len(heard.all(JobRescued)) == 4, "all to be rescued")
    lost: list[Any] = []
    for job in await everything(app.store):
        last = (await app.store.views.history(job.id))[-1]
        assert last.happened in (Happened.LOST, Happened.FAILED)
        lost.append((job.id, "dead-1", job.status))
    assert sorted((event.job.id, event.job.worker_id, event.to) for event in heard.all(JobRescued)) == sorted(lost)
    assert sorted(to for _, _, to in lost) == [Status.FAILED, Status.FAILED, Status.QUEUED, Status.QUEUED]
