from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.support.apps import Heard, ms, status_of, until_status, working
from tests.support.until import until
from tests.worker import handlers
from tests.worker.handlers import in_mode
from windlass import Ctx, Happened, Status, Windlass
from windlass.core.events import WorkerStopped, WorkerStopping
from windlass.stores.contract import Promoted
from windlass.worker.shutdown import stopped_by_signals

pytestmark = pytest.mark.timeout(40)


class Gate:
    """A handler that has begun and ends when it is let."""

    def __init__(self, app: Windlass) -> None:
        self.begun, self.free = asyncio.Semaphore(0), asyncio.Event()

        @app.job
        async def gated() -> str:
            self.begun.release()
            await self.free.wait()
            return "done"

        self.job = gated


async def test_a_stopping_worker_claims_no_more_and_waits_for_what_runs(app: Windlass, heard: Heard) -> None:
    gate = Gate(app)
    async with working(app) as worker:
        running = await gate.job.enqueue()
        await gate.begun.acquire()
        worker.stop()
        await heard.one(WorkerStopping)
        later = await gate.job.enqueue()
        gate.free.set()
        await worker.wait()
    assert (await status_of(running), await status_of(later)) == (Status.SUCCEEDED, Status.QUEUED)
    [stopped] = heard.all(WorkerStopped)
    assert (stopped.done, stopped.released) == (1, 0)


async def test_what_outlives_the_grace_is_handed_back_unspent(app: Windlass, heard: Heard) -> None:
    gate = Gate(app)
    async with working(app, grace=ms(100)) as worker:
        handle = await gate.job.enqueue()
        await gate.begun.acquire()
        worker.stop()
        await worker.wait()
    job = await handle.job()
    assert (job.status, job.attempts, job.crashes, job.worker_id) == (Status.QUEUED, 0, 0, None)
    assert (await handle.history())[-1].happened is Happened.RELEASED
    assert heard.all(WorkerStopped)[0].released == 1


async def test_a_second_stop_hands_back_at_once(app: Windlass, tmp_path: Path) -> None:
    gate = Gate(app)
    obey, stubborn = in_mode(app, handlers.obey, "thread"), in_mode(app, handlers.stubborn, "process")
    async with working(app, grace=ms(60_000)) as worker:
        handles = [
            await gate.job.enqueue(),
            await obey.enqueue(str(tmp_path / "thread")),
            await stubborn.enqueue(str(tmp_path / "process")),
        ]
        await gate.begun.acquire()
        await until(lambda: all((tmp_path / name).exists() for name in ("thread", "process")), "all to begin", 20)
        pid = int((tmp_path / "process").read_text())
        worker.stop()
        began = time.monotonic()
        worker.stop(now=True)
        await worker.wait()
        assert time.monotonic() - began < 5
    for handle in handles:
        job = await handle.job()
        assert (job.type, job.status, job.attempts, job.crashes) == (job.type, Status.QUEUED, 0, 0)
    await until(lambda: not psutil.pid_exists(pid), "the process to be gone")


async def test_an_error_that_comes_of_being_stopped_spends_no_attempt(app: Windlass) -> None:
    begun = asyncio.Event()

    @app.job
    async def wrap() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the connection was closed under me") from None

    async with working(app, grace=ms(0)) as worker:
        handle = await wrap.enqueue()
        await begun.wait()
        worker.stop()
        await worker.wait()
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.QUEUED, 0)


async def test_a_handler_that_will_not_end_does_not_hold_up_the_stop(app: Windlass) -> None:
    begun, free = asyncio.Event(), asyncio.Event()

    @app.job
    async def deaf() -> None:
        begun.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with working(app, grace=ms(0)) as worker:
        handle = await deaf.enqueue()
        await begun.wait()
        worker.stop(now=True)
        await worker.wait()
    assert (await handle.job()).status is Status.QUEUED
    free.set()


async def test_jobs_claimed_while_the_stop_came_are_handed_back_unrun(app: Windlass, heard: Heard) -> None:
    ran: list[int] = []

    @app.job
    async def work(n: int) -> None:
        ran.append(n)
        await asyncio.sleep(0)

    handles = await app.enqueue_many(work.bind(n) for n in range(200))
    async with working(app, concurrency=200, grace=ms(0)) as worker:
        # The very first claim is under way, or has just come back with all of them.
        worker.stop(now=True)
        await worker.wait()
    states = [await handle.job() for handle in handles]
    assert {job.status for job in states} <= {Status.QUEUED, Status.SUCCEEDED}
    assert sorted(ran) == sorted(n for n, job in enumerate(states) if job.status is Status.SUCCEEDED)
    assert {job.attempts for job in states if job.status is Status.QUEUED} <= {0}
    assert heard.all(WorkerStopped)[0].done <= 200


async def test_leaving_by_an_error_hands_back_like_any_stop(app: Windlass) -> None:
    gate = Gate(app)
    handle = await gate.job.enqueue()
    with pytest.raises(RuntimeError, match="user"):
        async with working(app, grace=ms(10)):
            await gate.begun.acquire()
            raise RuntimeError("user")
    assert (await until_status(handle, Status.QUEUED)).attempts == 0


async def test_whoever_stops_waiting_for_the_stop_still_gets_everything_handed_back(app: Windlass) -> None:
    gate = Gate(app)

    async def serve() -> None:
        async with working(app, grace=ms(60_000)) as worker:
            worker.stop()

    handle = await gate.job.enqueue()
    serving = asyncio.create_task(serve(), name="windlass-serving")
    worker_running = asyncio.create_task(gate.begun.acquire())
    done, _ = await asyncio.wait([serving, worker_running], return_when=asyncio.FIRST_COMPLETED)
    if worker_running in done:  # it had begun before the stop came: now nobody waits any longer
        serving.cancel()
    await asyncio.wait([serving])
    worker_running.cancel()
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.QUEUED, 0)


async def test_a_worker_whose_start_is_cancelled_leaves_nothing_behind(app: Windlass) -> None:
    async def serve() -> None:
        async with working(app):
            await asyncio.Event().wait()

    for pause in (0, 0.001, 0.01, 0.05):
        serving = asyncio.create_task(serve())
        await asyncio.sleep(pause)  # the subject: a start that is cancelled at some point of it
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    assert [worker.id for worker in await app.store.workers.list()] == []


async def test_leases_are_kept_while_the_worker_drains(app: Windlass) -> None:
    gate = Gate(app)
    async with working(app, lease=ms(300), heartbeat=ms(100)) as worker, working(app) as other:
        handle = await gate.job.enqueue()
        await gate.begun.acquire()
        for one in (worker, other):
            one.stop()
        await asyncio.sleep(1.0)  # more than three leases
        gate.free.set()
        await asyncio.gather(worker.wait(), other.wait())
    told = [entry.happened for entry in await handle.history()]
    assert told == ["enqueued", "claimed", "succeeded"]


async def test_a_stuck_thread_does_not_hold_up_the_stop(app: Windlass) -> None:
    free = threading.Event()

    @app.job(timeout=ms(50), retry=1)
    def hang() -> None:
        free.wait(20)

    async with working(app) as worker:
        await (await hang.enqueue()).wait(10)
        began = time.monotonic()
        worker.stop()
        await worker.wait()
        assert time.monotonic() - began < 4
    free.set()


async def test_a_signal_is_heard_though_the_loop_stood_still_and_its_pipe_is_full(app: Windlass) -> None:
    loop = asyncio.get_running_loop()
    async with working(app) as worker:
        with stopped_by_signals(worker):
            # What threads do meanwhile when a handler blocks the loop: each call is one more byte in its pipe.
            for _ in range(5_000):
                loop.call_soon_threadsafe(bool)
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(10):
                await worker.wait()


async def test_a_thread_that_stops_when_told_is_handed_back_once_it_has(app: Windlass) -> None:
    begun = threading.Event()
    ended: list[float] = []

    @app.job
    def careful(ctx: Ctx) -> None:
        begun.set()
        try:
            while True:
                ctx.check()
                time.sleep(0.01)  # its work
        finally:
            time.sleep(0.2)  # puts its things in order first
            ended.append(time.time())

    async with working(app, grace=ms(50)) as worker:
        handle = await careful.enqueue()
        await until(begun.is_set, "the handler to begin")
        worker.stop()
        await worker.wait()
    job = await handle.job()
    assert (job.status, job.attempts, job.crashes) == (Status.QUEUED, 0, 0), "nobody cancelled it"
    assert (await handle.history())[-1].happened is Happened.RELEASED
    assert (await handle.history())[-1].at.timestamp() > ended[0] - 0.01, "others may not have it while it still runs"


async def test_a_driver_that_swallows_a_cancellation_does_not_keep_a_worker_from_stopping(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    swallowed: list[int] = []
    promote = app.store.jobs.promote

    async def deaf_once(n: int) -> Promoted:
        try:
            await asyncio.sleep(30)  # an answer that does not come
        except asyncio.CancelledError:
            if swallowed:
                raise
            swallowed.append(n)
        return await promote(n)

    monkeypatch.setattr(app.store.jobs, "promote", deaf_once)
    async with asyncio.timeout(10), working(app) as worker:
        worker.stop()
        await worker.wait()
    assert len(swallowed) == 1
