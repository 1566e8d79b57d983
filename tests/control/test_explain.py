"""`app.jobs.explain` on every store: a reason for every place a job can be in, and no other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    DONE,
    NEVER_AGAIN,
    RELEASED,
    SNOOZED,
    finish,
    passed,
    put,
    running,
    settle,
    start,
)
from tests.support.drafts import INSTANT, draft, new_id, want
from windlass import Explanation, Holder, JobNotFound, Limit, Rate, Status, Why, Windlass
from windlass.client.explaining import explained
from windlass.core.outcome import Succeeded
from windlass.stores.contract import Action, Order, WorkerInfo

pytestmark = pytest.mark.timeout(60)


async def beat(app: Windlass, *types: str, **more: Any) -> None:
    told: dict[str, Any] = {"id": "w1", "queues": (), "slots": 2, "running": 0, **more}
    await app.store.workers.beat(WorkerInfo(host="h", pid=1, version="1", types=types or ("noop",), **told))


async def why(app: Windlass, job_id: str, expected: Why, *parts: str) -> Explanation:
    found = await app.jobs.explain(job_id)
    assert found.why is expected, found.text
    assert (found.job_id, found.status) == (job_id, (await app.jobs.get(job_id)).status)
    assert found.text.endswith(".")
    assert "\n" not in found.text
    assert [part for part in parts if part not in found.text] == [], found.text
    return found


async def test_waiting_jobs_say_who_should_take_them(app: Windlass) -> None:
    [job_id] = await put(app.store, draft(queue="mail"))
    await why(app, job_id, Why.NO_WORKER, "No worker is alive")
    await beat(app, "other")
    await why(app, job_id, Why.NO_HANDLER, "The one live worker has no handler for the type 'noop'")
    await beat(app, "third", id="w2")
    await why(app, job_id, Why.NO_HANDLER, "None of the 2 live workers has a handler for the type 'noop'")
    await beat(app, queues=("default",))
    await why(app, job_id, Why.NO_CONSUMER, "consumes the queue 'mail'", "-q mail")
    await beat(app, stopping=True)
    await why(app, job_id, Why.NO_HANDLER, "The one live worker")
    await beat(app, queues=("mail",), running=2)
    found = await why(app, job_id, Why.BUSY, "All 2 slots", "are busy, and 0 jobs of 'mail' are ahead of it")
    assert (found.ahead, found.exact) == (0, True)
    await beat(app)
    await why(app, job_id, Why.IN_LINE, "2 of 2 slots were free lately")
    await app.queues.pause("mail")
    found = await why(app, job_id, Why.PAUSED, "has been paused since", "UTC", "windlass queues resume mail")
    [queue] = await app.queues.list()
    assert found.since == queue.paused_at


async def test_a_job_in_line_knows_how_many_are_ahead_of_it(app: Windlass) -> None:
    ids = await put(app.store, draft(), draft(), draft(priority=10), draft(priority=200), draft(queue="other"))
    await beat(app, slots=1, running=1)
    assert [(await app.jobs.explain(one)).ahead for one in ids] == [1, 2, 0, 3, 0]
    await why(app, ids[0], Why.BUSY, "The one slot of the workers that could run it is busy, and 1 job of 'default' is")


async def test_a_long_line_is_counted_as_far_as_is_looked_and_says_so(app: Windlass) -> None:
    for _ in range(6):
        await app.store.jobs.insert([draft() for _ in range(900)])
    [last] = await put(app.store)
    await beat(app)
    found = await why(app, last, Why.IN_LINE, "at least 4,999 jobs of 'default' are ahead of it")
    assert (found.ahead, found.exact) == (4_999, False)


async def test_jobs_of_another_time_say_when(app: Windlass) -> None:
    [later, due] = await put(app.store, draft(delay=timedelta(minutes=90, seconds=30)), draft(delay=INSTANT))
    found = await why(app, later, Why.SCHEDULED, "It is scheduled for", "in 1 h 30 m")
    assert found.until == (await app.jobs.get(later)).run_at
    await passed(app.store, (await app.jobs.get(due)).run_at)
    await why(app, due, Why.NO_WORKER, "It has been due since", "no worker is alive to queue it")
    await beat(app)
    await why(app, due, Why.DUE, "about to be queued")
    await app.queues.pause("default")
    await why(app, later, Why.SCHEDULED, "but its queue 'default' is paused")


async def test_a_retrying_job_says_what_failed_and_when_it_is_tried_again(app: Windlass) -> None:
    job = await finish(app.store, draft(max_attempts=3), AGAIN_LATER)
    found = await why(app, job.id, Why.RETRYING, "Attempt 1 of 3 failed with ValueError: boom; it is tried again in")
    assert found.until == job.run_at


async def test_running_jobs_say_where(app: Windlass) -> None:
    job = await start(app.store)
    found = await why(app, job.id, Why.RUNNING, "It is running on w1 since", "attempt 1 of 5")
    assert (found.worker, found.since) == ("w1", job.started_at)
    await app.jobs.cancel(job.id)
    found = await why(app, job.id, Why.CANCELLING, "It is running on w1", "was asked to stop at", "has not stopped yet")
    assert found.since == (await app.jobs.get(job.id)).cancel_requested_at


async def test_a_lease_that_expired_waits_for_a_rescue(app: Windlass) -> None:
    job = await start(app.store, wanted=want(lease=INSTANT))
    await passed(app.store, job.lease_expires_at)
    await why(app, job.id, Why.LEASE_EXPIRED, "no worker is alive to rescue it: start one")
    await beat(app, id="w2")
    found = await why(
        app, job.id, Why.LEASE_EXPIRED, "Its worker w1 let its lease expire", "the next rescue hands it back"
    )
    assert (found.worker, found.since) == ("w1", job.lease_expires_at)


async def test_ended_jobs_say_how(app: Windlass) -> None:
    done = await finish(app.store)
    failed = await finish(app.store, outcome=NEVER_AGAIN)
    [cancelled] = await put(app.store)
    await app.jobs.cancel(cancelled)
    await why(app, done.id, Why.FINISHED, "It is finished: it succeeded at", "after 1 of 5 attempts")
    found = await why(app, failed.id, Why.FINISHED, "it failed at", "(ValueError: boom)", f"windlass retry {failed.id}")
    assert found.since == failed.finished_at
    await why(app, cancelled, Why.FINISHED, "it was cancelled at", "after 0 of 5 attempts")


async def test_jobs_that_expire_say_when_and_that_they_did(app: Windlass) -> None:
    minute = timedelta(seconds=90)
    [waits, later] = await put(app.store, draft(expires=minute), draft(expires=minute, delay=timedelta(seconds=80)))
    await why(app, waits, Why.NO_WORKER, "No worker is alive", "It expires in 1 m ", "unless a worker has taken it")
    await why(app, later, Why.SCHEDULED, "It is scheduled for", "It expires in 1 m ")
    began = await start(app.store, draft("begun", expires=minute))
    assert "expire" not in (await why(app, began.id, Why.RUNNING)).text
    [late] = await put(app.store, draft(expires=INSTANT))
    await passed(app.store, (await app.jobs.get(late)).expires_at)
    await why(app, late, Why.EXPIRED, "It expired at", "the next look by one cancels it")
    await app.store.jobs.promote(10)
    found = await why(app, late, Why.EXPIRED, "It expired, 1 ms after it was enqueued", f"windlass retry {late}")
    assert found.status is Status.CANCELLED
    await app.jobs.cancel(waits)
    await why(app, waits, Why.FINISHED, "it was cancelled at")


async def test_a_full_limit_names_its_holders_and_their_workers(app: Windlass) -> None:
    def one(limit: int) -> Any:
        return draft()._replace(limit_key="acme", limit=limit)

    ids = await put(app.store, one(1), one(1))
    [held] = await app.store.jobs.claim(want(n=1))
    assert await app.store.jobs.claim(want(n=1)) == []
    blocked = ids[1]
    found = await why(app, blocked, Why.LIMIT, f"At most 1 of 'acme' may run at once, and running are {held.id} on w1.")
    assert (found.holders, found.holder, found.exact) == ((Holder(held.id, "w1"),), held.id, True)
    await settle(app.store, held)
    await why(app, blocked, Why.NO_WORKER)

    more = await put(app.store, *[one(5) for _ in range(7)])
    taken = await app.store.jobs.claim(want(n=20, worker="w2"))
    left = next(job_id for job_id in [blocked, *more] if job_id not in {job.id for job in taken})
    found = await why(app, left, Why.LIMIT, "on w2, ", " and 2 more.")
    assert len(found.holders) == 3


async def test_a_limit_beyond_what_is_looked_through_is_told_as_such(app: Windlass) -> None:
    first, second = draft()._replace(limit_key="acme", limit=1), draft()._replace(limit_key="acme", limit=1)
    await put(app.store, first)
    await app.store.jobs.claim(want())
    for _ in range(11):
        await app.store.jobs.insert([draft() for _ in range(500)])
        while await app.store.jobs.claim(want(n=500)):
            ...
    await put(app.store, second)
    assert await app.store.jobs.claim(want(n=1)) == []
    found = await why(app, second.id, Why.LIMIT, "not among the newest 5,000 running jobs")
    assert (found.exact, found.holder) == (False, None)


async def test_a_running_key_names_its_holder_also_while_that_waits(app: Windlass) -> None:
    one, other = draft("one", unique=running("r")), draft(unique=running("r"))
    holder = await start(app.store, one)
    await put(app.store, other)
    assert await app.store.jobs.claim(want()) == []
    found = await why(
        app, other.id, Why.RUNNING_KEY, f"The running key 'r' is held by {holder.id} on w1; it starts when"
    )
    assert found.holders == (Holder(holder.id, "w1"),)
    await settle(app.store, holder, SNOOZED)
    job = await app.jobs.get(other.id)
    if job.status is Status.BLOCKED:
        await why(app, other.id, Why.RUNNING_KEY, f"held by {holder.id}, which is scheduled for")


@pytest.mark.parametrize("outcome", [DONE, RELEASED, Succeeded("null")])
async def test_what_is_free_again_is_not_in_the_way(app: Windlass, outcome: Any) -> None:
    holder = await start(app.store, draft("one", unique=running("r")))
    other = draft(unique=running("r"))
    await put(app.store, other)
    await app.store.jobs.claim(want())
    await settle(app.store, holder, outcome)
    found = await app.jobs.explain(other.id)
    assert found.why in ((Why.RUNNING_KEY,) if outcome is RELEASED else (Why.NO_WORKER, Why.BLOCKED)), found.text


async def test_a_spent_rate_is_told_with_its_number(app: Windlass) -> None:
    ids = await put(app.store, *[draft(rate=Rate(1, timedelta(minutes=2), "api:acme")) for _ in range(2)])
    await app.store.jobs.claim(want())
    await why(app, ids[1], Why.RATE, "At most 1 of 'api:acme' start within 2 m 0 s, and that many have started")


async def test_a_job_that_awaits_others_names_them(app: Windlass) -> None:
    last = draft(awaits="success")
    [_, *ids] = await put(app.store, last, *[draft("parent", next_id=last.id) for _ in range(3)])
    parents = await app.store.jobs.claim(want(types={"parent"}))
    first = f"job {ids[0]} (parent), which is running on w1"
    found = await why(app, last.id, Why.FLOW, "It waits for 3 jobs to end", first)
    assert [one.id for one in found.holders] == ids
    await settle(app.store, parents[0])
    await settle(app.store, parents[1])
    await settle(app.store, parents[2], AGAIN_LATER)
    await why(app, last.id, Why.FLOW, f"It waits for job {ids[2]} (parent), which is retrying")


async def test_what_blocks_a_job_and_has_no_meaning_is_told_as_it_is(app: Windlass) -> None:
    async def told(blocked_by: str | None) -> Explanation:
        [seen] = await app.store.views.get([waiting])
        assert seen is not None
        return await explained(app.store, seen._replace(status=Status.BLOCKED, blocked_by=blocked_by))

    [waiting] = await put(app.store, draft())
    assert (await told(f"flow:{waiting}")).text.startswith("The jobs that it waited for have ended")
    assert (await told("tide:high")).text == "It waits for tide:high: the next look by a worker queues it."
    assert (await told(None)).why is Why.BLOCKED


async def test_a_job_that_is_not_there_has_no_explanation(app: Windlass) -> None:
    with pytest.raises(JobNotFound):
        await app.jobs.explain(new_id())


async def test_limits_declared_with_a_handler_are_explained_end_to_end(app: Windlass) -> None:
    @app.job(limit=Limit("customer:{customer}", 1))
    async def export(customer: str) -> None: ...

    handles = await app.enqueue_many([export.bind("acme"), export.bind("acme")])
    await app.store.jobs.claim(want(types={"export"}))
    await app.store.jobs.operate([Order(id=handles[0].id, action=Action.CANCEL, actor="ann")])
    await why(app, handles[0].id, Why.CANCELLING)
    await why(app, handles[1].id, Why.LIMIT, "'customer:acme'", f"{handles[0].id} on w1")
