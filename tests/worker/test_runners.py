from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps import Heard, ms, until_status, working
from tests.support.until import until
from tests.worker import handlers
from tests.worker.handlers import in_mode
from windlass import Ctx, Happened, Job, JobFailed, Progress, Retry, Status, Windlass
from windlass.core.events import WorkerStopped
from windlass.core.outcome import Outcome, Released, Succeeded
from windlass.stores.contract import Want
from windlass.worker.completing import Completion
from windlass.worker.execution import execute
from windlass.worker.runners.process import ProcessRunner
from windlass.worker.runners.thread import ThreadRunner, Threads
from windlass.worker.slots import Running

MODES = ("coroutine", "thread", "process")
pytestmark = pytest.mark.timeout(40)  # to start a process takes a second on a busy machine


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_what_a_handler_returns_is_the_jobs_result(app: Windlass, mode: str) -> None:
    double = in_mode(app, handlers.double, mode)
    async with working(app):
        handle = await double.enqueue(21)
        assert await handle.result(timeout=15) == 42
    job = await handle.job()
    assert (job.status, job.attempts, job.error) == (Status.SUCCEEDED, 1, None)
    assert [entry.happened for entry in await handle.history()] == ["enqueued", "claimed", "succeeded"]


async def test_each_kind_of_handler_runs_where_it_should(app: Windlass) -> None:
    places: dict[str, Any] = {}
    for mode in MODES:
        other = handlers.jobs.job(name=f"where-{mode}-{id(app)}", process=True)(handlers.where.declaration.call)
        function = other.declaration.call if mode != "coroutine" else handlers.as_coroutine(other.declaration.call)
        job = app.job(name=f"where_{mode}", process=mode == "process")(function)
        async with working(app):
            places[mode] = await (await job.enqueue()).result(timeout=15)
    assert places["coroutine"] == [os.getpid(), threading.current_thread().name]
    assert places["thread"][0] == os.getpid()
    assert places["thread"][1].startswith("windlass-thread")
    assert places["process"][0] != os.getpid()


async def test_a_process_is_used_for_one_job_after_another(app: Windlass) -> None:
    where = in_mode(app, handlers.where, "process")
    async with working(app):
        first = await (await where.enqueue()).result(timeout=15)
        second = await (await where.enqueue()).result(timeout=15)
    assert first[0] == second[0]


async def test_a_process_that_died_between_two_jobs_is_replaced_and_nobody_blamed(app: Windlass) -> None:
    where = in_mode(app, handlers.where, "process")
    async with working(app):
        [pid, _] = await (await where.enqueue()).result(timeout=15)
        os.kill(pid, 9)
        await until(lambda: not Path(f"/proc/{pid}/cmdline").exists() or _zombie(pid), "the process to be gone")
        handle = await where.enqueue()
        assert (await handle.result(timeout=15))[0] != pid
    assert (await handle.job()).crashes == 0


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


async def test_an_exception_is_kept_as_text_and_tried_again_until_attempts_are_spent(app: Windlass, mode: str) -> None:
    fail = in_mode(app, handlers.fail, mode)
    async with working(app):
        handle = await fail.enqueue("boom")
        with pytest.raises(JobFailed, match="boom"):
            await handle.result(timeout=15)
    job = await handle.job()
    assert (job.status, job.attempts, job.max_attempts, job.crashes) == (Status.FAILED, 3, 3, 0)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("RuntimeError", "boom")
    assert "raise RuntimeError(message)" in (job.error.traceback or "")
    told = [entry.happened for entry in await handle.history()]
    assert told.count(Happened.RETRYING) == 2


async def test_an_error_that_the_policy_excludes_is_not_tried_again(app: Windlass, mode: str) -> None:
    never_again = in_mode(app, handlers.never_again, mode)
    async with working(app):
        handle = await never_again.enqueue()
        job = await handle.wait(timeout=15)
    assert (job.status, job.attempts) == (Status.FAILED, 1)


async def test_only_errors_the_policy_names_are_tried_again(app: Windlass) -> None:
    @app.job(retry=Retry(2, base=0.01, on=(OSError,)))
    async def pick(what: str) -> None:
        raise OSError if what == "os" else RuntimeError

    async with working(app):
        named, other = await pick.enqueue("os"), await pick.enqueue("runtime")
        assert (await named.wait(10)).attempts == 2
        assert (await other.wait(10)).attempts == 1


async def test_max_attempts_of_one_enqueue_wins_over_the_policy(app: Windlass) -> None:
    fail = in_mode(app, handlers.fail, "coroutine")
    async with working(app):
        handle = await fail.using(max_attempts=2).enqueue("boom")
        assert (await handle.wait(10)).attempts == 2


async def test_signals_steer_the_job(app: Windlass, mode: str) -> None:
    signals = in_mode(app, handlers.signals, mode)
    async with working(app):
        snoozed, rejected, cancelled, later, retried = [
            await signals.enqueue(what) for what in ("snooze", "reject", "cancel", "after", "retry")
        ]
        assert await snoozed.result(15) == "done in attempt 1"
        assert await retried.result(15) == "done in attempt 2"
        job = await rejected.wait(15)
        assert (job.status, job.attempts) == (Status.FAILED, 1)
        assert job.error is not None
        assert (job.error.type, job.error.message) == ("Reject", "no good")
        job = await cancelled.wait(15)
        assert (job.status, (await cancelled.history())[-1].note) == (Status.CANCELLED, "not needed")
        job = await until_status(later, Status.RETRYING)
        assert 3590 < (job.run_at - job.updated_at).total_seconds() <= 3600
    [entry] = [entry for entry in await snoozed.history() if entry.happened is Happened.SNOOZED]
    assert entry.note == "not yet"


async def test_progress_lands_in_the_store_while_the_job_runs(app: Windlass, mode: str, tmp_path: Path) -> None:
    if mode == "coroutine":

        @app.job
        async def report(ctx: Ctx, marker: str) -> None:
            ctx.progress(3, of=7, note="half way")
            await until(Path(marker).exists, "the marker")

    else:
        report = in_mode(app, handlers.report, mode)
    async with working(app):
        handle = await report.enqueue(str(tmp_path / "enough"))

        async def told() -> Progress | None:
            return (await handle.job()).progress

        assert await until(told, "progress", within=15) == Progress(done=3, of=7, note="half way")
        (tmp_path / "enough").touch()
        await handle.wait(15)


async def test_progress_that_is_no_number_is_the_handlers_own_error(app: Windlass, mode: str) -> None:
    report_badly, double = in_mode(app, handlers.report_badly, mode), in_mode(app, handlers.double, mode)
    async with working(app):
        for what in ("object", "nan", "text"):
            job = await (await report_badly.enqueue(what)).wait(15)
            assert job.status is Status.FAILED
            assert "ctx.progress(value)" in str(job.error and job.error.traceback)
        assert await (await double.enqueue(1)).result(15) == 2, "the worker lives on"


async def test_whatever_a_handler_raises_its_job_fails_and_the_worker_lives(app: Windlass, mode: str) -> None:
    throw, double = in_mode(app, handlers.throw, mode), in_mode(app, handlers.double, mode)
    async with working(app):
        thrown = {what: await throw.enqueue(what) for what in handlers.RAISED}
        ended = {what: await handle.wait(30) for what, handle in thrown.items()}
        assert await (await double.enqueue(1)).result(15) == 2
    for what, job in ended.items():
        assert (what, job.status, job.attempts, job.crashes) == (what, Status.FAILED, 1, 0)
        assert job.error is not None
        assert len(job.error.message) <= 5_000
        assert "\x00" not in job.error.message
    assert "cannot be read" in _message(ended["hostile str"])
    assert "cannot be read" in _message(ended["hostile both"])


async def test_results_that_cannot_be_stored_fail_the_job_at_once(app: Windlass, mode: str) -> None:
    give, lie, double = (in_mode(app, one, mode) for one in (handlers.give, handlers.lie, handlers.double))
    async with working(app):
        given = {what: await give.enqueue(what) for what in handlers.RETURNED}
        given["a lie"] = await lie.enqueue()
        ended = {what: await handle.wait(30) for what, handle in given.items()}
        assert await (await double.enqueue(1)).result(15) == 2
    for what, job in ended.items():
        assert (what, job.status, job.attempts, job.result_json) == (what, Status.FAILED, 1, None)
        assert job.error is not None
        assert (what, job.error.type.endswith("PayloadInvalid")) == (what, True)
    assert "50,000,0" in _message(ended["huge"])
    assert "finite" in _message(ended["nan"])


def _message(job: Any) -> str:
    return str(job.error.message)


async def test_a_payload_that_no_longer_fits_is_put_aside_without_a_run(app: Windlass, mode: str) -> None:
    handle = await app.enqueue("double", {"amount": 1})  # as by a process with an older handler of this name
    in_mode(app, handlers.double, mode)
    async with working(app):
        job = await until_status(handle, Status.BLOCKED, within=15)
    assert (job.blocked_by, job.attempts, job.crashes) == ("payload:double", 0, 0)
    assert "value" in _message(job)


async def test_crashes_of_its_process_are_counted_and_neighbours_are_not_blamed(app: Windlass) -> None:
    die, double = in_mode(app, handlers.die, "process"), in_mode(app, handlers.double, "process")
    async with working(app, concurrency=6):
        killed = await die.using(max_crashes=2).enqueue("kill")
        exited = await die.using(max_crashes=1).enqueue("exit")
        innocent = [await double.enqueue(n) for n in range(6)]
        assert [await one.result(30) for one in innocent] == [0, 2, 4, 6, 8, 10]
        ends = [await killed.wait(30), await exited.wait(30)]
    assert [(job.status, job.crashes, job.attempts) for job in ends] == [(Status.FAILED, 2, 0), (Status.FAILED, 1, 0)]
    assert "SIGKILL" in _message(ends[0])
    assert "exit code 0" in _message(ends[1])
    assert {(await one.job()).crashes for one in innocent} == {0}


async def test_many_threads_at_once_are_as_many_as_there_are_slots(app: Windlass) -> None:
    together = threading.Barrier(5)

    @app.job
    def meet() -> int:
        together.wait(10)
        return threading.get_ident()

    async with working(app, concurrency=5):
        handles = await app.enqueue_many(meet.bind() for _ in range(5))
        assert len({await one.result(10) for one in handles}) == 5


async def test_the_current_context_reaches_code_that_was_not_handed_one(app: Windlass) -> None:
    @app.job
    async def outer() -> str:
        return await asyncio.to_thread(lambda: Ctx.current().id)

    @app.job
    def inner() -> str:
        return Ctx.current().id

    async with working(app):
        for job in (outer, inner):
            handle = await job.enqueue()
            assert await handle.result(10) == handle.id


async def test_a_listener_that_raises_does_not_hurt(app: Windlass) -> None:
    def broken(event: object) -> None:
        raise RuntimeError("listener")

    heard = Heard(app)
    app.listen(broken)
    double = in_mode(app, handlers.double, "coroutine")
    async with working(app):
        assert await (await double.enqueue(1)).result(10) == 2
    assert heard.all(WorkerStopped)[0].done == 1


async def test_short_and_long_timeouts_are_both_kept(app: Windlass) -> None:
    @app.job(retry=1)
    async def sleep() -> None:
        await asyncio.Event().wait()

    async with working(app):
        short, long = await sleep.using(timeout=ms(50)).enqueue(), await sleep.using(timeout=1.05).enqueue()
        for handle in (short, long):
            job = await handle.wait(10)
            assert (job.status, job.error and job.error.type) == (Status.FAILED, "JobTimeout")
            assert job.timeout is not None
            assert job.duration_ms is not None
            assert job.timeout.total_seconds() * 1000 - 5 <= job.duration_ms < 2000


@pytest.mark.parametrize("why", ["lease", "stop"])
async def test_a_thread_that_is_slow_to_start_does_not_begin_a_job_that_was_given_up(app: Windlass, why: str) -> None:
    called: list[str] = []

    @app.job()
    def note() -> None:
        called.append("note")

    await note.enqueue()
    [job] = await app.store.jobs.claim(Want(worker_id="w", n=1, lease=ms(5000), types=frozenset({"note"})))
    held = threading.Event()
    slow = Threads()
    running = Running(job, note.declaration, time.monotonic() + 0.05)
    submit = slow.submit

    def nothing(_: Running, __: Progress) -> None: ...

    def late(work: Callable[[], None]) -> None:
        def wait_first() -> None:
            held.wait(10)
            work()

        submit(wait_first)

    slow.submit = late  # type: ignore[method-assign]  # the machine, not the code, makes a thread wait
    going = asyncio.create_task(execute(running, ThreadRunner(slow), nothing, Completion(app.store, running)))
    if why == "lease":
        await until(lambda: time.monotonic() > running.valid_until, "the lease to be over")
    else:
        running.valid_until += 100
        await until(lambda: running.stopper is not None, "the thread to be asked for")
        running.stop("fence")
    held.set()
    assert isinstance(await going, Released)
    slow.close()
    await until(lambda: not [one for one in threading.enumerate() if one.name.startswith("windlass-thread")], "the end")
    assert called == []


async def test_a_process_that_is_slow_to_start_does_not_begin_a_job_whose_lease_is_over(app: Windlass) -> None:
    where = in_mode(app, handlers.where, "process")
    for _ in range(2):
        await where.enqueue()
    late, next_ = await app.store.jobs.claim(Want(worker_id="w", n=2, lease=ms(5000), types=frozenset({where.name})))
    begun: list[str] = []
    runner = ProcessRunner(lambda running: begun.append(running.job.id))

    async def outcome(job: Job, lease: float) -> Outcome:
        running = Running(job, where.declaration, time.monotonic() + lease)
        return await execute(running, runner, lambda _, __: None, Completion(app.store, running))

    # Over before any process can have started: as for one whose worker was frozen meanwhile.
    assert isinstance(await outcome(late, 0.001), Released)
    assert begun == []
    assert isinstance(await outcome(next_, 100), Succeeded), "the process is there for the next one"
    assert begun == [next_.id]
    await runner.close()
