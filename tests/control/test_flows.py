"""Flows on every store: steps that run one after the other, with results that are handed on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.apps import until_status, working
from tests.support.drafts import draft, want
from windlass import (
    DuplicateJob,
    FlowHandle,
    Handle,
    Handler,
    HandlerError,
    QueueFull,
    Reject,
    SettingsError,
    Status,
    Windlass,
)
from windlass.core.outcome import Succeeded
from windlass.core.transition import decide


class Yard:
    """Handlers to make flows of."""

    def __init__(self, app: Windlass) -> None:
        self.ran: list[str] = []

        @app.job
        async def double(n: int) -> int:
            self.ran.append(f"double {n}")
            return n * 2

        @app.job
        def total(numbers: list[int]) -> int:
            self.ran.append("total")
            return sum(numbers)

        @app.job
        async def tell(what: int, prefix: str = "it is") -> str:
            self.ran.append("tell")
            return f"{prefix} {what}"

        @app.job
        async def refuse() -> int:
            self.ran.append("refuse")
            raise Reject("no")

        @app.job
        async def nothing() -> None:
            self.ran.append("nothing")

        self.double, self.total, self.tell, self.refuse, self.nothing = double, total, tell, refuse, nothing


async def test_a_chain_hands_results_on(app: Windlass) -> None:
    yard = Yard(app)
    async with working(app):
        handle = await yard.double.bind(4).then(yard.double).then(yard.tell).enqueue()
        assert await handle.result(10) == "it is 16"
        assert yard.ran == ["double 4", "double 8", "tell"]
        jobs = [await one.job() for one in handle.jobs]
    assert [job.status for job in jobs] == [Status.SUCCEEDED] * 3
    assert [job.parent_id for job in jobs] == [None, jobs[0].id, jobs[1].id]
    assert {job.correlation_id for job in jobs} == {jobs[0].id}


async def test_a_group_hands_all_results_on_in_order(app: Windlass) -> None:
    yard = Yard(app)

    @app.job
    async def collect(numbers: list[int]) -> list[int]:
        return numbers

    async with working(app):
        listed = await app.group([yard.double.bind(n) for n in range(7)]).then(collect).enqueue()
        assert await listed.result(10) == [0, 2, 4, 6, 8, 10, 12]
        yard.ran.clear()
        handle = await app.group([yard.double.bind(n) for n in range(12)]).then(yard.total).then(yard.tell).enqueue()
        assert await handle.result(10) == "it is 132"
        assert sorted(yard.ran[:12]) == sorted(f"double {n}" for n in range(12))
        assert yard.ran[12:] == ["total", "tell"]
        whole = await app.jobs.of(correlation=handle.jobs[0].id)
    assert len(whole) == 14


@dataclass
class Report:
    numbers: list[int]


class Print(Handler[Report, str]):
    async def perform(self, data: Report) -> str:
        return f"{data.numbers}"


async def test_a_class_handler_takes_the_result_as_its_data(app: Windlass) -> None:
    printing = app.add(Print())

    @app.job
    async def count(to: int) -> Report:
        return Report(list(range(to)))

    async with working(app):
        handle = await count.bind(3).then(printing).enqueue()
        assert await handle.result(10) == "[0, 1, 2]"


async def test_a_failure_cancels_what_follows(app: Windlass) -> None:
    yard = Yard(app)
    async with working(app):
        handle = await app.group([yard.double.bind(1), yard.refuse.bind()]).then(yard.total).then(yard.tell).enqueue()
        assert (await handle.wait(10)).status is Status.CANCELLED
        note = (await handle.jobs[2].history())[-1].note
        await handle.jobs[0].wait(10)
    assert note == f"job {handle.jobs[1].id} failed"
    assert "total" not in yard.ran


async def test_what_runs_anyway_runs_after_a_failure(app: Windlass) -> None:
    yard = Yard(app)
    async with working(app):
        handle = await yard.refuse.bind().then(yard.tell.bind(7, "instead"), on_failure="run").enqueue()
        assert await handle.result(10) == "instead 7"


async def test_a_flow_is_cancelled_as_a_whole(app: Windlass) -> None:
    yard = Yard(app)
    handle = await yard.double.bind(1).then(yard.double).then(yard.tell).enqueue()
    assert await handle.cancel_all("changed my mind") == 3
    assert [(await one.job()).status for one in handle.jobs] == [Status.CANCELLED] * 3
    assert (await handle.history())[-1].note == "changed my mind"


async def test_steps_inherit_who_and_what_they_are_about(app: Windlass) -> None:
    yard = Yard(app)
    asked = yard.double.using(user="u1", entity=("order", 42), correlation="c1")
    own = yard.tell.using(user="u2")
    handle = await asked.bind(1).then(yard.double).then(own).enqueue()
    jobs = [await one.job() for one in handle.jobs]
    assert [job.user_id for job in jobs] == ["u1", "u1", "u2"]
    assert {(job.entity_name, job.entity_id, job.correlation_id) for job in jobs} == {("order", "42", "c1")}
    assert [job.id for job in await app.jobs.about("order", 42)] == [job.id for job in jobs]


async def test_a_flow_enqueued_twice_is_two_flows(app: Windlass) -> None:
    yard = Yard(app)
    flow = yard.double.bind(1).then(yard.tell)
    async with working(app):
        first, second = await flow.enqueue(), await flow.enqueue()
        assert (await first.result(10), await second.result(10)) == ("it is 2", "it is 2")
    assert first.id != second.id


async def test_a_flow_that_a_queue_has_no_room_for_does_not_run(app: Windlass) -> None:
    yard = Yard(app)
    await app.queues.limit_depth("default", 2)
    flow = yard.double.bind(1).then(yard.double).then(yard.tell)
    with pytest.raises(QueueFull):
        await flow.enqueue()
    with pytest.raises(QueueFull):
        await asyncio.to_thread(flow.enqueue_sync)
    assert (await app.jobs.count(status="queued")).n == 0
    assert (await app.jobs.count(status="cancelled")).n == 4


async def test_a_step_whose_result_is_gone_fails_and_says_so(app: Windlass) -> None:
    yard = Yard(app)
    handle = await yard.double.bind(1).then(yard.tell).enqueue()
    async with working(app, drain=True, exclude=["tell"]) as worker:
        await worker.wait()
    await app.jobs.delete(handle.jobs[0].id)
    async with working(app):
        job = await handle.wait(10)
    assert job.status is Status.FAILED
    assert job.error is not None
    assert "takes the result of the job before it" in job.error.message


async def half_done(app: Windlass, yard: Yard, n: int) -> FlowHandle[int]:
    """A group whose jobs have all succeeded, and whose next has not begun."""
    handle = await app.group([yard.double.bind(n) for n in range(n)]).then(yard.total).enqueue()
    async with working(app, drain=True, exclude=["total"]) as worker:
        await worker.wait()
    assert (await handle.job()).status is Status.QUEUED
    return handle


@pytest.mark.parametrize("gone", [1, 2, 3])
async def test_a_group_never_hands_on_less_than_all_its_results(app: Windlass, gone: int) -> None:
    yard = Yard(app)
    handle = await half_done(app, yard, 3)
    for one in handle.jobs[:gone]:
        await app.jobs.delete(one.id)
    async with working(app):
        job = await handle.wait(10)
    assert (job.status, "total" in yard.ran) == (Status.FAILED, False)
    assert job.error is not None
    assert f"total takes 3 results of the jobs before it, found {3 - gone}: what is missing was deleted" in (
        job.error.message
    )


async def test_one_of_a_group_that_was_begun_again_is_named(app: Windlass) -> None:
    yard = Yard(app)
    handle = await half_done(app, yard, 3)
    await app.jobs.retry(handle.jobs[1].id)
    async with working(app, exclude=["double"]):
        job = await handle.wait(10)
    assert job.error is not None
    assert f"found 2: job {handle.jobs[1].id} is queued" in job.error.message


async def test_a_job_that_was_enqueued_by_an_older_windlass_takes_what_there_is(app: Windlass) -> None:
    yard = Yard(app)
    joining = draft("total", awaits="success", takes="numbers[]")
    members = [draft("double", f'{{"n":{n}}}', next_id=joining.id) for n in range(3)]
    await app.store.jobs.insert([*members, joining])
    async with working(app):
        job = await until_status(Handle(app.client, joining.id, created=True, codec=None), Status.SUCCEEDED)
    assert job.result == 6
    assert yard.ran[-1] == "total"


@pytest.mark.timeout(120)
async def test_results_of_more_than_a_page_are_handed_on_in_order(app: Windlass) -> None:
    n = 1_203
    yard = Yard(app)

    @app.job
    async def collect(numbers: list[int]) -> bool:
        return numbers == list(range(n))

    handle = await app.group([yard.double.bind(0) for _ in range(n)]).then(collect).enqueue()
    waiting = [one.id for one in handle.jobs[:-1]]
    while claimed := await app.store.jobs.claim(want(500, types={"double"})):
        await app.store.jobs.apply([decide(job, Succeeded(str(waiting.index(job.id)))) for job in claimed])
    async with working(app):
        assert await handle.result(60)


async def test_a_result_that_a_flow_will_not_get_is_refused_when_it_is_enqueued(app: Windlass) -> None:
    yard = Yard(app)
    there = await yard.double.using(unique="k").enqueue(1)
    doubling = yard.double.using(unique="k")
    flows = (app.group([doubling.bind(1), yard.double.bind(2)]).then(yard.total), doubling.bind(1).then(yard.tell))
    for flow in flows:
        with pytest.raises(DuplicateJob) as refused:
            await flow.enqueue()
        assert refused.value.existing == there.id
    assert (await app.jobs.count(status="cancelled")).n == 3, "nothing of them runs"
    own = await app.group([doubling.bind(1), yard.double.bind(2)]).then(yard.tell.bind(5)).enqueue()
    assert [one.created for one in own.jobs] == [False, True, True], "one that takes nothing lacks nothing"


async def test_a_flow_does_not_replace_a_job_whose_result_it_would_lack(app: Windlass) -> None:
    yard = Yard(app)
    there = await yard.double.using(unique="k", delay=3600).enqueue(1)
    doubling = yard.double.using(unique="k", on_conflict="replace")
    for flow in (app.group([yard.double.bind(2), doubling.bind(3)]).then(yard.total), doubling.bind(3).then(yard.tell)):
        with pytest.raises(DuplicateJob, match="already holds the key 'k'") as refused:
            await flow.enqueue()
        assert refused.value.existing == there.id
        with pytest.raises(DuplicateJob):
            await asyncio.to_thread(flow.enqueue_sync)
    job = await there.job()
    assert (job.status, job.payload) == (Status.SCHEDULED, {"n": 1}), "what was there stays as it was"
    assert (await app.jobs.count(status="cancelled")).n == 6, "nothing of them runs"
    own = await app.group([doubling.bind(3), yard.double.bind(2)]).then(yard.tell.bind(5)).enqueue()
    assert [one.created for one in own.jobs] == [False, True, True], "one that takes nothing lacks nothing"
    assert (await there.job()).payload == {"n": 3}


async def test_a_step_that_takes_a_result_replaces_no_job_that_has_arguments(app: Windlass) -> None:
    yard = Yard(app)
    there = await yard.total.using(unique="k", delay=3600).enqueue([1, 2])
    joining = yard.total.using(unique="k", on_conflict="replace")
    with pytest.raises(DuplicateJob) as refused:
        await app.group([yard.double.bind(1), yard.double.bind(2)]).then(joining).enqueue()
    assert refused.value.existing == there.id
    assert (await there.job()).payload == {"numbers": [1, 2]}
    assert (await app.jobs.count(status="cancelled")).n == 2


async def test_a_flow_whose_key_is_free_replaces_nothing_and_runs(app: Windlass) -> None:
    yard = Yard(app)
    doubling = yard.double.using(unique="k", on_conflict="replace")
    async with working(app):
        handle = await app.group([doubling.bind(3), yard.double.bind(2)]).then(yard.total).enqueue()
        assert await handle.result(10) == 10


async def test_flows_that_cannot_be_are_refused(app: Windlass) -> None:
    yard = Yard(app)
    bound: Any = yard.double.bind(1)
    with pytest.raises(SettingsError, match="on_failure is 'stop': expected 'cancel' or 'run'"):
        bound.then(yard.tell, on_failure="stop")
    with pytest.raises(SettingsError, match="which a failure would not give"):
        bound.then(yard.tell, on_failure="run")
    with pytest.raises(SettingsError, match="has no time of its own"):
        bound.then(yard.tell.using(delay=5))
    with pytest.raises(SettingsError, match="has no time of its own"):
        bound.then(yard.tell.using(delay=5).bind(1))
    with pytest.raises(HandlerError, match=r"takes no argument: write nothing\.bind\(\)"):
        bound.then(yard.nothing)
    with pytest.raises(SettingsError, match="the group has 0 jobs: expected 1 to 10,000"):
        app.group([])
    with pytest.raises(SettingsError, match="the group has 10,001 jobs: expected 1 to 10,000"):
        app.group([bound] * 10_001)


async def test_a_group_alone_is_enqueued_in_one_step(app: Windlass) -> None:
    yard = Yard(app)
    handles = await app.group([yard.double.bind(n) for n in range(3)]).enqueue()
    async with working(app):
        assert [await one.result(10) for one in handles] == [0, 2, 4]
