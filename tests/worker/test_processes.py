"""A job's own process: it knows until when it may run, ends with all that it started, and holds up nobody."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.apps import ms, until_status, working
from tests.support.until import until
from tests.worker import handlers, slow
from tests.worker.handlers import in_mode
from windlass import Job, Status, Windlass
from windlass.core.outcome import Outcome, Released, Succeeded
from windlass.stores.contract import Want
from windlass.worker.completing import Completion
from windlass.worker.execution import execute
from windlass.worker.runners import process
from windlass.worker.runners.process import ProcessRunner
from windlass.worker.slots import Running

pytestmark = pytest.mark.timeout(60)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def pids(marker: Path) -> list[int]:
    """The numbers of a handler's process and of what it started."""
    text = await until(lambda: marker.exists() and marker.read_text(), "the process to begin", within=30)
    return [int(word) for word in str(text).split()]


async def claimed(app: Windlass, job: Any, *arguments: Any) -> Job:
    await job.enqueue(*arguments)
    [taken] = await app.store.jobs.claim(Want(worker_id="w", n=1, lease=ms(60_000), types=frozenset({job.name})))
    return taken


async def outcome_of(app: Windlass, runner: ProcessRunner, running: Running) -> Outcome:
    return await execute(running, runner, lambda _, __: None, Completion(app.store, running))


async def test_a_process_ends_itself_and_what_it_started_when_it_hears_of_no_extension(
    app: Windlass, tmp_path: Path
) -> None:
    parent = in_mode(app, handlers.parent, "process")
    runner = ProcessRunner(lambda _: None)
    running = Running(await claimed(app, parent, str(tmp_path / "pids")), parent.declaration, time.monotonic() + 60)
    going = asyncio.create_task(outcome_of(app, runner, running))
    numbers = await pids(tmp_path / "pids")
    # What a worker that is stopped, or whose loop and threads stand still, can no longer do: extend, and kill.
    running.valid_until = time.monotonic() + 0.3
    assert running.renewed is not None
    running.renewed()
    outcome = await going
    assert isinstance(outcome, Released), "nobody is to blame"
    await until(lambda: all(gone(number) for number in numbers), "all of them to be gone")
    await runner.close()


async def test_a_process_that_hears_of_extensions_goes_on(app: Windlass, tmp_path: Path) -> None:
    report = in_mode(app, handlers.report, "process")
    runner = ProcessRunner(lambda _: None)
    job = await claimed(app, report, str(tmp_path / "enough"))
    running = Running(job, report.declaration, time.monotonic() + 60)
    going = asyncio.create_task(outcome_of(app, runner, running))
    await until(lambda: running.renewed is not None, "it to begin", within=30)
    for _ in range(6):
        running.extend(time.monotonic() + 0.6)
        await asyncio.sleep(0.2)  # the time in which it would end itself, and does not
    (tmp_path / "enough").touch()
    assert isinstance(await going, Succeeded)
    await asyncio.sleep(0.7)  # between two jobs no lease can be over
    next_ = Running(await claimed(app, report, str(tmp_path / "enough")), report.declaration, time.monotonic() + 60)
    assert isinstance(await outcome_of(app, runner, next_), Succeeded)
    await runner.close()


@pytest.mark.parametrize("why", ["timeout", "stop"])
async def test_what_a_process_started_ends_with_it(app: Windlass, tmp_path: Path, why: str) -> None:
    parent = in_mode(app, handlers.parent, "process")
    async with working(app, grace=ms(100)):
        handle = await parent.using(timeout=1 if why == "timeout" else 60, max_attempts=1).enqueue(
            str(tmp_path / "pids")
        )
        numbers = await pids(tmp_path / "pids")
        assert len(numbers) == 2
        if why == "timeout":
            await until_status(handle, Status.FAILED, within=20)
    await until(lambda: all(gone(number) for number in numbers), "all of them to be gone")


async def test_a_process_is_out_of_reach_of_the_terminal(app: Windlass) -> None:
    group = in_mode(app, handlers.group, "process")
    async with working(app):
        pid, its_group, session = await (await group.enqueue()).result(30)
    assert pid == its_group == session
    assert its_group != os.getpgrp()


async def test_a_child_that_does_not_read_holds_up_nobody(app: Windlass) -> None:
    """Its order is larger than the pipe holds."""
    tell = in_mode(app, slow.measure, "process")
    slowest = 0.0

    async def watch() -> None:
        nonlocal slowest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)  # the subject: how late the loop comes back
            slowest = max(slowest, time.monotonic() - before)

    @app.job
    async def beside() -> str:
        return "done"

    async with working(app):
        assert await (await tell.enqueue("x")).result(30) == 1
        [child] = [psutil.Process(one.pid) for one in multiprocessing.active_children()]
        child.suspend()
        at_last = threading.Timer(5, child.resume)  # for a loop that stands still
        at_last.start()
        watching = asyncio.create_task(watch())
        handle = await tell.enqueue("x" * 250_000)
        await until_status(handle, Status.PROCESSING)
        assert await (await beside.enqueue()).result(10) == "done"
        at_last.cancel()
        child.resume()
        assert await handle.result(40) == 250_000
        watching.cancel()
    assert slowest < 1.0


async def test_a_process_that_died_unheard_after_its_lease_was_over_is_nobodys_fault(
    app: Windlass, tmp_path: Path
) -> None:
    """It ends itself then, and says so only where its worker can hear it."""
    parent = in_mode(app, handlers.parent, "process")
    runner = ProcessRunner(lambda _: None, margin=0.5)
    running = Running(await claimed(app, parent, str(tmp_path / "pids")), parent.declaration, time.monotonic() + 60)
    going = asyncio.create_task(outcome_of(app, runner, running))
    [number, *_] = await pids(tmp_path / "pids")
    running.valid_until = time.monotonic() + 0.4
    os.kill(number, signal.SIGKILL)
    assert isinstance(await going, Released)
    await runner.close()


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_process_that_hangs_while_it_loads_its_code_is_ended(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, timeout: int | None
) -> None:
    monkeypatch.setattr(process, "START_WITHIN", 0.5)
    hang = in_mode(app, slow.measure, "process")
    async with working(app):
        handle = await hang.using(timeout=timeout, max_attempts=1).enqueue("x")
        job = await until_status(handle, Status.FAILED, within=20)
    assert job.error is not None
    assert job.error.type == "JobTimeout"
    assert job.error.message == "its process had not loaded tests.worker.slow after 0.5 s: it was ended"
