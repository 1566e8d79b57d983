"""Timeouts and cancels of running jobs, in each kind of handler."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.support.apps import Heard, ms, status_of, until_status, working
from tests.support.until import until
from tests.worker import handlers
from tests.worker.handlers import in_mode
from windlass import Ctx, Happened, MoveRefused, Status, Windlass
from windlass.core.events import JobStuck

pytestmark = pytest.mark.timeout(40)


async def _pid(marker: Path) -> int:
    return int(await until(lambda: marker.exists() and marker.read_text(), "the process to begin", within=20))


async def test_a_coroutine_past_its_timeout_is_cancelled_and_tried_again(app: Windlass) -> None:
    seen: list[str] = []

    @app.job(timeout=ms(50), retry=2)
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async with working(app):
        handle = await wait.using(max_attempts=2).enqueue()
        job = await handle.wait(10)
    assert seen == ["cancelled", "cancelled"]
    assert (job.status, job.attempts, job.error and job.error.type) == (Status.FAILED, 2, "JobTimeout")


async def test_a_thread_past_its_timeout_keeps_its_slot_until_it_ends(app: Windlass, heard: Heard) -> None:
    free = threading.Event()

    @app.job(timeout=ms(100), retry=1)
    def hang() -> None:
        free.wait(20)

    @app.job
    async def other() -> str:
        return "ran"

    async with working(app, concurrency=1) as worker:
        handle = await hang.enqueue()
        job = await handle.wait(10)
        assert (job.status, job.error and job.error.type) == (Status.FAILED, "JobTimeout")
        stuck = await heard.one(JobStuck)
        assert (stuck.job.id, stuck.stuck, worker.stuck) == (handle.id, 1, 1)
        second = await other.enqueue()
        await asyncio.sleep(0.3)  # several polls: nothing but time can show that it is not claimed
        assert await status_of(second) is Status.QUEUED
        free.set()
        assert await second.result(10) == "ran"
        assert worker.stuck == 0


async def test_a_process_past_its_timeout_is_killed(app: Windlass, tmp_path: Path) -> None:
    stubborn, double = in_mode(app, handlers.stubborn, "process"), in_mode(app, handlers.double, "process")
    async with working(app):
        handle = await stubborn.using(timeout=2, max_attempts=1).enqueue(str(tmp_path / "pid"))
        pid = await _pid(tmp_path / "pid")
        job = await handle.wait(20)
        assert (job.status, job.error and job.error.type, job.crashes) == (Status.FAILED, "JobTimeout", 0)
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        assert await (await double.enqueue(1)).result(20) == 2


async def test_to_make_a_process_does_not_count_as_the_jobs_own_time(app: Windlass) -> None:
    double = in_mode(app, handlers.double, "process")
    async with working(app):
        # Three processes are made at once, which takes much longer than any of these jobs may.
        handles = await app.enqueue_many(double.using(timeout=0.2).bind(n) for n in range(3))
        assert [await one.result(30) for one in handles] == [0, 2, 4]
    assert {(await one.job()).attempts for one in handles} == {1}


async def test_a_running_coroutine_is_cancelled_on_request(app: Windlass) -> None:
    begun = asyncio.Event()
    seen: list[str] = []

    @app.job
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async with working(app):
        handle = await wait.enqueue()
        await begun.wait()
        assert await handle.cancel("enough") is False, "its worker was asked"
        job = await handle.wait(10)
        with pytest.raises(MoveRefused):
            await handle.cancel()
    assert (job.status, seen) == (Status.CANCELLED, ["cancelled"])
    told = [(entry.happened, entry.note) for entry in await handle.history()]
    assert (Happened.CANCEL_REQUESTED, "enough") in told


async def test_a_thread_sees_the_request_to_cancel(app: Windlass, tmp_path: Path) -> None:
    obey = in_mode(app, handlers.obey, "thread")
    async with working(app):
        handle = await obey.enqueue(str(tmp_path / "begun"))
        await _pid(tmp_path / "begun")
        await handle.cancel()
        assert (await handle.wait(10)).status is Status.CANCELLED


async def test_a_process_sees_the_request_to_cancel(app: Windlass, tmp_path: Path) -> None:
    obey, where = in_mode(app, handlers.obey, "process"), in_mode(app, handlers.where, "process")
    async with working(app):
        handle = await obey.enqueue(str(tmp_path / "begun"))
        pid = await _pid(tmp_path / "begun")
        await handle.cancel()
        assert (await handle.wait(10)).status is Status.CANCELLED
        # The process obeyed, so it is still there for the next job, which is not cancelled with it.
        assert (await (await where.enqueue()).result(20))[0] == pid


async def test_a_process_that_ignores_a_cancel_is_killed_after_its_grace(app: Windlass, tmp_path: Path) -> None:
    stubborn = in_mode(app, handlers.stubborn, "process")
    async with working(app):
        handle = await stubborn.enqueue(str(tmp_path / "pid"))
        pid = await _pid(tmp_path / "pid")
        began = time.monotonic()
        await handle.cancel()
        job = await handle.wait(20)
        assert time.monotonic() - began >= 5
    assert (job.status, job.crashes) == (Status.CANCELLED, 0)
    await until(lambda: not psutil.pid_exists(pid), "the process to be gone")


async def test_a_handler_that_ignores_a_cancel_still_has_its_timeout(app: Windlass) -> None:
    free = threading.Event()
    begun = threading.Event()

    @app.job(timeout=1.0)
    def deaf() -> None:
        begun.set()
        free.wait(20)

    async with working(app):
        handle = await deaf.enqueue()
        await until(begun.is_set, "it to begin")
        await handle.cancel()
        job = await handle.wait(10)
        free.set()
    assert job.status is Status.CANCELLED, "timed out, and not tried again because it was asked to cancel"
    assert (await handle.history())[-1].note != ""


async def test_a_cancelled_job_that_had_not_begun_never_runs(app: Windlass) -> None:
    ran: list[str] = []

    @app.job
    async def work() -> None:
        ran.append("ran")

    waiting, later = await work.enqueue(), await work.using(delay=0.01).enqueue()
    assert await waiting.cancel() is True
    assert await later.cancel() is True
    async with working(app, drain=True) as worker:
        await worker.wait()
    assert (ran, await status_of(waiting), await status_of(later)) == ([], Status.CANCELLED, Status.CANCELLED)


async def test_a_cancel_does_not_undo_what_a_handler_finished_anyway(app: Windlass) -> None:
    begun, free = asyncio.Event(), asyncio.Event()

    @app.job
    async def finish(ctx: Ctx) -> str:
        begun.set()
        try:
            await free.wait()
        except asyncio.CancelledError:
            return f"finished, cancelled={ctx.cancelled}"
        return "undisturbed"

    async with working(app):
        handle = await finish.enqueue()
        await begun.wait()
        await handle.cancel()
        assert await handle.result(10) == "finished, cancelled=True"
    assert (await until_status(handle, Status.SUCCEEDED)).cancel_requested_at is not None
