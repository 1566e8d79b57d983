"""Batches: several jobs in one call, each with a lease, an end and a history of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.steps import lose
from tests.support.apps import Heard, status_of, until_status, working
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass import (
    Batched,
    Cancel,
    Ctx,
    Handle,
    HandlerError,
    Happened,
    Job,
    PayloadInvalid,
    Reject,
    Retry,
    SettingsError,
    Snooze,
    Status,
    Windlass,
    events,
)
from windlass.app.declaring import BatchDecorator
from windlass.worker.batching import APART


@dataclass
class Row:
    id: int
    name: str = ""


async def drain(app: Windlass, **options: Any) -> None:
    async with working(app, drain=True, **options) as worker:
        await worker.wait()


class Sizes:
    """A batch handler that remembers what it was called with."""

    def __init__(self, app: Windlass, batch: int = 10, **options: Any) -> None:
        self.calls: list[list[int]] = []
        self.now = self.most = 0

        declare: BatchDecorator = app.job(name="index", batch=batch, **options)

        @declare
        async def index(jobs: list[Batched[Row, int]]) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            self.calls.append([job.data.id for job in jobs])
            await asyncio.sleep(0.005)  # the batch's work
            for job in jobs:
                job.done(job.data.id * 2)
            self.now -= 1

        self.index = index

    async def enqueue(self, n: int) -> list[Handle[int]]:
        return [await self.index.enqueue(Row(number)) for number in range(n)]


async def history(handle: Handle[Any]) -> list[Happened]:
    return [entry.happened for entry in await handle.history()]


async def test_what_waits_is_done_in_calls_of_so_many(app: Windlass, heard: Heard) -> None:
    sizes = Sizes(app)
    handles = await app.enqueue_many(sizes.index.bind(Row(n)) for n in range(25))
    await drain(app, concurrency=1)
    assert [len(call) for call in sizes.calls] == [10, 10, 5]
    assert [row for call in sizes.calls for row in call] == list(range(25)), "in the order of their queue"
    assert [await handle.result() for handle in handles] == [2 * n for n in range(25)]
    assert [await history(handle) for handle in handles] == [
        [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    ] * 25
    assert len(heard.all(events.JobStarted)) == len(heard.all(events.JobEnded)) == 25


async def test_a_batch_takes_one_slot(app: Windlass) -> None:
    sizes = Sizes(app, batch=5)
    await app.enqueue_many(sizes.index.using(queue="q").bind(Row(n)) for n in range(40))
    await drain(app, queues={"q": 2, "other": 9})
    assert sizes.most == 2
    assert sum(len(call) for call in sizes.calls) == 40


async def test_batches_and_single_jobs_share_a_worker(app: Windlass) -> None:
    sizes, ran = Sizes(app, batch=5), set[int]()

    @app.job
    async def single(n: int) -> None:
        ran.add(n)

    await app.enqueue_many(single.bind(n) for n in range(30))
    await app.enqueue_many(sizes.index.bind(Row(n)) for n in range(30))
    await drain(app, concurrency=3)
    assert ran == set(range(30))
    assert sorted(row for call in sizes.calls for row in call) == list(range(30))


async def test_a_job_that_comes_while_the_worker_idles_is_done_at_once(app: Windlass) -> None:
    sizes = Sizes(app)
    async with working(app, poll=30):
        assert await (await sizes.index.enqueue(Row(4))).result(timeout=10) == 8
        assert await (await sizes.index.enqueue(Row(5))).result(timeout=10) == 10


async def test_each_job_has_its_own_end(app: Windlass) -> None:
    @app.job(batch=10, retry=Retry(3, base=60))
    async def index(jobs: list[Batched[str, str]]) -> None:
        ends: dict[str, BaseException] = {
            "again": ValueError("again"),
            "later": Snooze(60, "not yet"),
            "never": Reject("never"),
            "no": Cancel("no"),
            "asked": Retry(after=30),
        }
        for job in jobs:
            job.done("done")
            if job.data in ends:
                job.fail(ends[job.data])

    words = ("again", "later", "fine", "never", "no", "asked")
    handles = await app.enqueue_many(index.bind(word) for word in words)
    await drain(app)
    jobs = dict(zip(words, [await handle.job() for handle in handles], strict=True))
    assert {word: job.status for word, job in jobs.items()} == {
        "again": Status.RETRYING,
        "later": Status.SCHEDULED,
        "fine": Status.SUCCEEDED,
        "never": Status.FAILED,
        "no": Status.CANCELLED,
        "asked": Status.RETRYING,
    }
    assert jobs["fine"].result == "done"
    assert jobs["again"].error is not None
    assert (jobs["again"].error.type, jobs["again"].attempts) == ("ValueError", 1)
    assert jobs["later"].attempts == 0, "a snooze spends no attempt"


@pytest.mark.parametrize("threaded", [False, True])
async def test_what_the_call_raises_ends_the_jobs_that_it_had_said_nothing_of(app: Windlass, threaded: bool) -> None:
    def work(jobs: list[Batched[int, str]]) -> None:
        jobs[0].done("before")
        jobs[1].fail(Reject("this one"))
        raise ValueError("all others")

    def in_thread(jobs: list[Batched[int, str]]) -> None:
        work(jobs)

    async def in_loop(jobs: list[Batched[int, str]]) -> None:
        work(jobs)

    declare = app.job(name="work", batch=4, retry=1)
    job = declare(in_thread) if threaded else declare(in_loop)
    handles = await app.enqueue_many(job.bind(n) for n in range(4))
    await drain(app)
    jobs = [await handle.job() for handle in handles]
    assert [one.status for one in jobs] == [Status.SUCCEEDED, Status.FAILED, Status.FAILED, Status.FAILED]
    assert jobs[0].result == "before"
    assert [one.error.message for one in jobs[1:] if one.error] == ["this one", "all others", "all others"]


async def test_a_def_handler_does_its_batch_in_a_thread(app: Windlass) -> None:
    threads: list[str] = []

    @app.job(batch=10)
    def index(jobs: list[Batched[int, None]]) -> None:
        threads.append(threading.current_thread().name)

    handles = await app.enqueue_many(index.bind(n) for n in range(10))
    await drain(app)
    assert [await status_of(handle) for handle in handles] == [Status.SUCCEEDED] * 10
    assert [name.rpartition("-")[0] for name in threads] == ["windlass-thread"]


async def test_a_result_that_does_not_fit_fails_its_job_alone(app: Windlass) -> None:
    @app.job(batch=10)
    async def index(jobs: list[Batched[int, int]]) -> None:
        for job in jobs:
            if job.data != 1:
                job.done(job.data)

    handles = await app.enqueue_many(index.bind(n) for n in range(3))
    await drain(app)
    assert [await status_of(handle) for handle in handles] == [Status.SUCCEEDED, Status.FAILED, Status.SUCCEEDED]


async def test_a_payload_that_cannot_be_read_is_put_aside_and_the_others_are_done(app: Windlass) -> None:
    sizes = Sizes(app)
    fine = await app.enqueue("index", {"id": 1})
    odd = draft("index", '"no row"')
    await app.store.jobs.insert([odd])
    await drain(app)
    assert await status_of(fine) is Status.SUCCEEDED
    assert (await app.jobs.get(odd.id)).status is Status.BLOCKED
    assert sizes.calls == [[1]]


async def test_the_shortest_timeout_is_that_of_the_batch(app: Windlass) -> None:
    @app.job(batch=10, retry=1)
    async def index(jobs: list[Batched[int, str]]) -> None:
        jobs[0].done("in time")
        await asyncio.Event().wait()

    handles = [await index.enqueue(0), await index.using(timeout=0.2).enqueue(1), await index.enqueue(2)]
    await drain(app)
    jobs = [await handle.job() for handle in handles]
    assert [job.status for job in jobs] == [Status.SUCCEEDED, Status.FAILED, Status.FAILED]
    errors = [(job.error.type, job.error.message) for job in jobs if job.error is not None]
    assert errors == [("JobTimeout", "its batch of 3 jobs ran longer than 0.2 s")] * 2


async def test_a_request_to_cancel_is_seen_by_its_own_job(app: Windlass) -> None:
    seen: dict[int, bool] = {}

    @app.job(batch=10)
    async def index(jobs: list[Batched[int, None]]) -> None:
        await until(lambda: any(job.cancelled for job in jobs), "the request to come")
        for job in jobs:
            seen[job.data] = job.cancelled
            if job.cancelled:
                job.fail(Cancel("left out"))

    handles = list(await app.enqueue_many(index.bind(n) for n in range(3)))
    async with working(app):
        await until_status(handles[1], Status.PROCESSING)
        await app.jobs.cancel(handles[1])
        for handle in handles:
            await handle.wait(10)
    assert seen == {0: False, 1: True, 2: False}
    assert [await status_of(handle) for handle in handles] == [Status.SUCCEEDED, Status.CANCELLED, Status.SUCCEEDED]


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_worker_that_stops_hands_a_batch_back_unspent(app: Windlass, threaded: bool) -> None:
    begun, go = threading.Event(), threading.Event()

    def in_thread(jobs: list[Batched[int, None]]) -> None:
        begun.set()
        while not jobs[0].cancelled:
            go.wait(0.01)
        raise ValueError("stopped")

    async def in_loop(jobs: list[Batched[int, None]]) -> None:
        begun.set()
        await asyncio.Event().wait()

    declare = app.job(name="work", batch=5)
    job = declare(in_thread) if threaded else declare(in_loop)
    handles = list(await app.enqueue_many(job.bind(n) for n in range(5)))
    async with working(app, grace=0.05):
        await until(begun.is_set, "the batch to begin")
    jobs = [await handle.job() for handle in handles]
    assert [(one.status, one.attempts, one.crashes) for one in jobs] == [(Status.QUEUED, 0, 0)] * 5
    assert {(await history(handle))[-1] for handle in handles} == {Happened.RELEASED}
    await until(lambda: not any("windlass-thread" in one.name for one in threading.enumerate()), "threads to end")


async def test_leases_of_all_are_kept(app: Windlass) -> None:
    @app.job(batch=5)
    async def index(jobs: list[Batched[int, None]]) -> None:
        held = [await app.jobs.get(job.id) for job in jobs]

        async def renewed() -> bool:
            now = [await app.jobs.get(job.id) for job in jobs]
            return all(_lease(new) > _lease(old) for new, old in zip(now, held, strict=True))

        await until(renewed, "each lease to be extended")

    handles = list(await app.enqueue_many(index.bind(n) for n in range(5)))
    await drain(app, lease=2, heartbeat=0.1)
    assert [await history(handle) for handle in handles] == [
        [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    ] * 5


def _lease(job: Job) -> float:
    assert job.lease_expires_at is not None
    return job.lease_expires_at.timestamp()


async def test_jobs_whose_worker_died_run_apart_and_the_others_together(app: Windlass) -> None:
    sizes = Sizes(app)
    old = await sizes.enqueue(3)
    claimed = await app.store.jobs.claim(want(3, types={"index"}))
    await lose(app.store, claimed)
    assert len(await app.store.jobs.rescue(10)) == 3
    await app.enqueue_many(sizes.index.bind(Row(n)) for n in range(10, 30))
    await drain(app, concurrency=2)
    assert sorted(call for call in sizes.calls if set(call) & {0, 1, 2}) == [[0], [1], [2]]
    assert sorted(row for call in sizes.calls for row in call) == [0, 1, 2, *range(10, 30)]
    assert max(len(call) for call in sizes.calls) > 1
    jobs = [await handle.job() for handle in old]
    assert [(one.status, one.crashes, one.attempts) for one in jobs] == [(Status.SUCCEEDED, 1, 1)] * 3
    notes = [entry.note for handle in old for entry in await handle.history()]
    assert APART in notes


async def test_a_worker_that_may_do_so_many_jobs_claims_no_more_for_batches(app: Windlass) -> None:
    sizes = Sizes(app)
    await app.enqueue_many(sizes.index.bind(Row(n)) for n in range(30))
    worker = app.worker(max_jobs=15, poll=0.05)
    await worker.run()
    assert worker.recycled
    assert sum(len(call) for call in sizes.calls) == 15


async def test_what_is_laid_around_runs_is_entered_for_each_job(app: Windlass) -> None:
    entered: list[str] = []
    left: list[str] = []

    @app.around_run
    async def layer(ctx: Ctx) -> AsyncIterator[None]:
        entered.append(ctx.id)
        yield
        left.append(ctx.id)

    sizes = Sizes(app)
    handles = await sizes.enqueue(3)
    await drain(app)
    assert sorted(entered) == sorted(left) == sorted(handle.id for handle in handles)


async def test_progress_is_each_jobs_own(app: Windlass) -> None:
    go = asyncio.Event()

    @app.job(batch=3)
    async def index(jobs: list[Batched[int, None]]) -> None:
        for job in jobs:
            job.progress(job.data, of=3)
        await go.wait()

    handles = list(await app.enqueue_many(index.bind(n) for n in range(3)))

    async def reported() -> bool:
        jobs = [await handle.job() for handle in handles]
        return [one.progress.done for one in jobs if one.progress is not None] == [0, 1, 2]

    async with working(app):
        await until(reported, "the reports")
        go.set()
        for handle in handles:
            await handle.wait(10)


async def test_a_batch_takes_the_result_of_the_job_before_it(app: Windlass) -> None:
    sizes = Sizes(app)

    @app.job
    async def load(n: int) -> Row:
        return Row(n)

    flow = await load.bind(7).then(sizes.index).enqueue()
    await drain(app)
    assert sizes.calls == [[7]]
    assert await flow.result() == 14


async def test_called_directly_it_does_a_batch_of_one(app: Windlass) -> None:
    sizes = Sizes(app)
    assert await sizes.index.call(Row(4)) == 8

    @app.job(batch=5)
    def bad(jobs: list[Batched[int, None]]) -> None:
        jobs[0].fail(ValueError("bad"))

    with pytest.raises(ValueError, match="bad"):
        bad.call(1)


async def test_arguments_are_checked_when_they_are_enqueued(app: Windlass) -> None:
    sizes = Sizes(app, unique="row:{id}")
    with pytest.raises(PayloadInvalid):
        await sizes.index.enqueue("no row")  # type: ignore[arg-type]  # the refusal is tested
    first, second = await sizes.index.enqueue(Row(1)), await sizes.index.enqueue(Row(1))
    assert (second.id, second.created) == (first.id, False)


async def test_the_catalogue_shows_the_size_of_the_batch(app: Windlass) -> None:
    Sizes(app, batch=25)
    await drain(app)
    [told] = await app.types.list()
    assert told.declared.options["batch"] == 25


@pytest.mark.parametrize("batch", [0, -1, 1.5, True, "many", 10_001])
def test_a_batch_that_is_no_number_of_jobs_is_refused(app: Windlass, batch: Any) -> None:
    with pytest.raises(HandlerError, match=r"the batch of .* expected a number of jobs from 1 to 10,000"):
        Sizes(app, batch=batch)


def test_other_forms_are_refused_with_the_one_that_is_meant(app: Windlass) -> None:
    async def rows(rows: list[Row]) -> None: ...
    async def two(jobs: list[Batched[Row, None]], more: int) -> None: ...
    async def none() -> None: ...
    async def returns(jobs: list[Batched[Row, None]]) -> list[int]:
        return []

    for function in (rows, two, none, returns):
        decorate: Any = app.job(batch=5)
        with pytest.raises(HandlerError, match=r"write def .*\(jobs: list\[Batched\[Row, None\]\]\) -> None"):
            decorate(function)
    in_process: Any = app.job(batch=5, process=True)  # type: ignore[call-overload]  # the refusal is tested
    with pytest.raises(HandlerError, match="cannot take batches in a process of its own"):
        in_process(two)


async def test_a_failure_that_is_no_exception_is_refused(app: Windlass) -> None:
    @app.job(batch=5)
    async def index(jobs: list[Batched[int, None]]) -> None:
        jobs[0].fail("text")  # type: ignore[arg-type]  # the refusal is tested

    with pytest.raises(SettingsError, match="fail was given 'text': expected an exception"):
        await index.call(1)
