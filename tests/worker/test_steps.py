"""Durable steps in the loop, in a thread and in a process: handlers that are killed, stopped and suspended."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps import Heard, until_status, working
from tests.support.until import until
from tests.worker import steps
from windlass import (
    ChildFailed,
    Ctx,
    Handle,
    Happened,
    JobFunction,
    LeaseLost,
    Limit,
    Retry,
    Status,
    Suspend,
    TransactionRefused,
    Unique,
    Windlass,
    WindlassError,
    events,
)
from windlass.stores.contract import Keep, Lease

pytestmark = pytest.mark.timeout(60)
MODES = ("coroutine", "thread", "process")
QUICK = Retry(3, base=0.01, factor=1.0, jitter=False)


def in_mode(app: Windlass, name: str, mode: str) -> JobFunction[Any, Any]:
    """A handler of `tests.worker.steps` for another application, run another way."""
    written: Any = getattr(steps, name + ("_later" if mode == "coroutine" else ""), None) or getattr(steps, name)
    if mode != "coroutine":
        written = getattr(steps, f"{name}_now", written)
    declaration = written.declaration
    made: JobFunction[Any, Any] = app.job(name=name, process=mode == "process", retry=declaration.policy)(
        declaration.call
    )
    return made


def with_children(app: Windlass) -> None:
    app.job(name="square")(steps.square.declaration.call)


@pytest.mark.parametrize("mode", MODES)
async def test_a_job_that_fails_is_signalled_and_gathers_does_every_step_once(
    app: Windlass, tmp_path: Path, mode: str
) -> None:
    with_children(app)
    job, file = in_mode(app, "onboard", mode), tmp_path / "lines"
    handle = await job.enqueue(str(file))
    async with working(app):
        waiting = await until_status(handle, Status.BLOCKED)
        assert (waiting.blocked_by, waiting.attempts) == ("signal:approved", 1)
        assert await app.jobs.signal(handle, "approved", {"by": "eve"}) is True
        assert await handle.result(30) == ["FIRST", "SECOND", 10, {"by": "eve"}, [1, 4, 9]]
    assert file.read_text().split() == ["first", "second"]
    done = await handle.job()
    assert done.attempts == 2, "one failed; what was suspended is not counted"
    happened = [entry.happened for entry in await handle.history()]
    assert happened.count(Happened.SUSPENDED) == 2
    children = await app.jobs.find(type="square")
    assert {(child.parent_id, child.next_id, child.correlation_id) for child in children.jobs} == {
        (handle.id, handle.id, handle.id)
    }


async def test_an_asynchronous_handler_in_a_process_remembers_too(app: Windlass, tmp_path: Path) -> None:
    job, file = in_mode(app, "onboard_in_process", "process"), tmp_path / "lines"
    handle = await job.enqueue(str(file))
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await app.jobs.signal(handle, "approved", True)
        assert await handle.result(30) == ["FIRST", "SECOND", True]
    assert file.read_text().split() == ["first", "second"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_worker_that_stops_gets_the_job_back_at_its_next_safe_point(
    app: Windlass, tmp_path: Path, mode: str
) -> None:
    job, file = in_mode(app, "go_on_until_told", mode), tmp_path / "going"
    handle = await job.enqueue(str(file))
    began = asyncio.get_running_loop().time()
    async with working(app, grace=timedelta(seconds=50)):
        await until(file.exists, "the handler to have saved once", 20)
    assert asyncio.get_running_loop().time() - began < 40, "it waited out its grace period"
    job_now = await handle.job()
    assert (job_now.status, job_now.attempts) == (Status.QUEUED, 0)
    assert (await handle.history())[-1].happened is Happened.RELEASED
    async with working(app):
        assert await handle.result(30) == "went on from somewhere"


@pytest.mark.parametrize("mode", ["thread", "process"])
async def test_a_job_that_is_asked_to_cancel_ends_at_its_next_safe_point(
    app: Windlass, tmp_path: Path, mode: str
) -> None:
    job, file = in_mode(app, "go_on_until_told", mode), tmp_path / "going"
    handle = await job.enqueue(str(file))
    async with working(app):
        await until(file.exists, "the handler to have saved once", 20)
        assert await handle.cancel() is False
        cancelled = await until_status(handle, Status.CANCELLED)
    assert cancelled.kept["saved"] > 0


@pytest.mark.parametrize(("mode", "ended"), [("coroutine", "raised ValueError"), ("thread", "returned")])
async def test_a_handler_that_swallows_its_suspension_fails_at_once(app: Windlass, mode: str, ended: str) -> None:
    handle = await in_mode(app, "swallow", mode).enqueue()
    async with working(app):
        failed = await until_status(handle, Status.FAILED)
    assert failed.error is not None
    assert failed.attempts == 1
    assert f"was suspended as waiting and {ended} instead" in failed.error.message


async def test_a_handler_in_a_process_that_swallows_its_suspension_fails_at_once(app: Windlass) -> None:
    handle = await in_mode(app, "swallow", "process").enqueue()
    async with working(app):
        failed = await until_status(handle, Status.FAILED, within=30)
    assert failed.error is not None
    assert "was suspended as waiting and returned instead" in failed.error.message


@pytest.mark.parametrize("mode", ["thread", "process"])
async def test_what_is_too_much_is_refused_and_not_tried_again(app: Windlass, mode: str) -> None:
    handle = await in_mode(app, "too_much", mode).enqueue(300_000)
    async with working(app):
        failed = await until_status(handle, Status.FAILED, within=30)
    assert failed.error is not None
    assert failed.attempts == 1
    assert "step:big of job" in failed.error.message


async def test_a_suspension_out_of_a_task_group_is_one(app: Windlass) -> None:
    @app.job
    async def both(ctx: Ctx) -> list[Any]:
        async with asyncio.TaskGroup() as tasks:
            first, second = tasks.create_task(ctx.wait("first")), tasks.create_task(ctx.wait("second"))
        return [first.result(), second.result()]

    handle = await both.enqueue()
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        assert await app.jobs.signal(handle, "second", 2) is False, "it waits for the first"
        assert await app.jobs.signal(handle, "first", 1) is True
        assert await handle.result(10) == [1, 2]


async def test_a_handler_that_is_stopped_while_it_tidies_up_is_handed_back(app: Windlass) -> None:
    tidying, hangs = asyncio.Event(), True

    @app.job
    async def work(ctx: Ctx) -> Any:
        try:
            return await ctx.wait("approved")
        finally:
            tidying.set()
            if hangs:
                await asyncio.Event().wait()

    handle = await work.enqueue()
    async with working(app, grace=timedelta(milliseconds=50)):
        await tidying.wait()
    assert (await handle.job()).status is Status.QUEUED
    hangs = False
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await app.jobs.signal(handle, "approved", 1)
        assert await handle.result(10) == 1


async def test_a_layer_sees_a_suspension_pass_and_does_not_commit(app: Windlass) -> None:
    seen: list[str] = []

    @app.around_run
    async def session(_: Ctx) -> AsyncIterator[None]:
        try:
            yield
        except Exception:
            seen.append("failed")
            raise
        except Suspend:
            seen.append("suspended")
            raise
        seen.append("committed")

    @app.job
    async def work(ctx: Ctx) -> Any:
        return await ctx.wait("approved")

    @app.job
    def work_now(ctx: Ctx) -> Any:
        return ctx.wait_now("approved")

    process = in_mode(app, "onboard_in_process", "process")
    async with working(app):
        for job in (work, work_now, process):
            seen.clear()
            handle = await (process.enqueue("/dev/null") if job is process else job.enqueue())
            await until_status(handle, Status.BLOCKED, within=30)
            await app.jobs.signal(handle, "approved")
            await handle.result(30)
            assert seen == ["suspended", "committed"]


async def test_what_suspends_is_told_as_that_and_not_as_a_failure(app: Windlass, heard: Heard) -> None:
    @app.job
    async def work(ctx: Ctx) -> Any:
        return await ctx.wait("approved", 30)

    handle = await work.enqueue()
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await app.jobs.signal(handle, "approved", 1, actor="eve")
        await handle.result(10)
    told = [(one.transition.happened, one.finished) for one in heard.all(events.JobEnded)]
    assert told == [(Happened.SUSPENDED, False), (Happened.SUCCEEDED, True)]
    assert heard.all(events.JobSignalled) == [events.JobSignalled(handle.id, "approved", "eve", freed=True)]


async def test_time_that_is_up_gives_none(app: Windlass) -> None:
    @app.job
    async def work(ctx: Ctx) -> Any:
        return [await ctx.wait("approved", timedelta(milliseconds=100))]

    async with working(app):
        assert await (await work.enqueue()).result(20) == [None]


async def test_a_job_that_waits_holds_its_unique_key_and_frees_slot_and_limit(app: Windlass) -> None:
    order: list[str] = []

    @app.job(limit=Limit("one", 1))
    async def work(ctx: Ctx, name: str) -> None:
        order.append(name)
        if name == "first":
            await ctx.wait("approved")

    first = await work.using(unique="k").enqueue("first")
    async with working(app, concurrency=1):
        await until_status(first, Status.BLOCKED)
        assert (await work.using(unique="k").enqueue("again")).id == first.id
        await (await work.enqueue("second")).result(10)
        await app.jobs.signal(first, "approved")
        await first.result(10)
    assert order == ["first", "second", "first"]


async def test_a_job_that_waits_holds_its_running_key(app: Windlass) -> None:
    @app.job
    async def work(ctx: Ctx) -> None:
        await ctx.wait("approved")

    keyed = work.using(unique=Unique(running="r"))
    first, second = await keyed.enqueue(), await keyed.enqueue()
    async with working(app):
        waits = await until_status(first, Status.BLOCKED)
        assert (waits.blocked_by, waits.unique_key) == ("signal:approved", "r")
        assert (await until_status(second, Status.BLOCKED)).blocked_by == "unique:r"
        await app.jobs.signal(first, "approved")
        await first.result(10)
        await until(lambda: _waits_for_its_signal(second), "the second to have its turn")


async def _waits_for_its_signal(handle: Handle[Any]) -> bool:
    return (await handle.job()).blocked_by == "signal:approved"


async def test_steps_of_jobs_that_run_at_the_same_moment_share_one_write(app: Windlass) -> None:
    together = asyncio.Barrier(20)

    async def meet() -> int:
        await together.wait()
        return 1

    @app.job
    async def work(ctx: Ctx) -> int:
        return await ctx.step("meet", meet)

    batches: list[int] = []
    real = app.store.jobs.keep

    async def counted(keeps: Any) -> Any:
        batches.append(len(keeps))
        return await real(keeps)

    app.store.jobs.keep = counted  # type: ignore[method-assign]  # the store stands at the worker's edge
    handles = await app.enqueue_many(work.bind() for _ in range(20))
    async with working(app, concurrency=20):
        for handle in handles:
            await handle.result(20)
    assert sum(batches) == 20
    assert len(batches) <= 3, "the first, and those that came meanwhile"


async def test_a_handler_whose_lease_is_lost_cannot_keep_anything(app: Windlass) -> None:
    go, raised = threading.Event(), list[BaseException]()

    @app.job
    def work(ctx: Ctx) -> None:
        go.wait(20)
        try:
            ctx.save_now("of the lost lease")
        except LeaseLost as error:
            raised.append(error)
            raise

    handle = await work.enqueue()
    async with working(app, rescue=timedelta(hours=1)):
        held = await until_status(handle, Status.PROCESSING)
        with closing(sqlite3.connect(app.store.address.removeprefix("sqlite:///").partition("?")[0])) as db, db:
            db.execute("UPDATE windlass_jobs SET lease_token = 99 WHERE id = ?", (handle.id,))
        go.set()
        await until(lambda: raised, "the save to be refused")
        assert "no longer held by lease 1" in str(raised[0])
        assert (await app.store.jobs.keep([Keep(Lease(handle.id, held.lease_token), "saved", "1")])) == ["stale"]


async def test_a_form_that_blocks_is_refused_in_the_loop(app: Windlass) -> None:
    @app.job(retry=1)
    async def work(ctx: Ctx) -> None:
        ctx.save_now(1)

    handle = await work.enqueue()
    async with working(app):
        failed = await until_status(handle, Status.FAILED)
    assert failed.error is not None
    assert "would block this event loop" in failed.error.message


async def test_a_thread_with_a_loop_of_its_own_remembers(app: Windlass) -> None:
    @app.job
    def work(ctx: Ctx) -> Any:
        async def inside() -> Any:
            await ctx.save(1)
            return await ctx.step("two", steps.did_later, "/dev/null", "two")

        return [asyncio.run(inside()), ctx.saved]

    async with working(app):
        assert await (await work.enqueue()).result(20) == ["TWO", 1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE rows (n INTEGER)")
    return path


@pytest.mark.parametrize("now", [False, True])
async def test_effect_and_cursor_commit_together(path: Path, app: Windlass, now: bool) -> None:
    def once(db: sqlite3.Connection, n: int) -> None:
        db.execute("INSERT INTO rows VALUES (?)", (n,))

    @app.job(name="work", retry=QUICK)
    async def later(ctx: Ctx) -> None:
        for n in range((ctx.saved or 0) + 1, 4):
            with closing(sqlite3.connect(path)) as db, db:
                once(db, n)
                await ctx.save(n, tx=db)
                if n == ctx.attempt + 1:
                    raise RuntimeError("before the commit")

    @app.job(name="work_now", retry=QUICK)
    def at_once(ctx: Ctx) -> None:
        for n in range((ctx.saved or 0) + 1, 4):
            with closing(sqlite3.connect(path)) as db, db:
                once(db, n)
                ctx.save_now(n, tx=db)
                if n == ctx.attempt + 1:
                    raise RuntimeError("before the commit")

    async with working(app):
        await (await (at_once if now else later).enqueue()).result(20)
    with closing(sqlite3.connect(path)) as db:
        assert [n for (n,) in db.execute("SELECT n FROM rows")] == [1, 2, 3]


async def test_a_process_cannot_save_in_a_transaction(app: Windlass) -> None:
    handle = await in_mode(app, "in_transaction", "process").enqueue()
    async with working(app):
        failed = await until_status(handle, Status.FAILED, within=30)
    assert failed.error is not None
    assert failed.error.type.endswith(TransactionRefused.__name__)


async def test_a_child_that_fails_fails_its_parent_once_or_stands_in_its_place(app: Windlass) -> None:
    @app.job(retry=1)
    async def child(n: int) -> int:
        if n == 1:
            raise ValueError("no luck")
        return n

    @app.job(retry=QUICK)
    async def parent(ctx: Ctx) -> list[int]:
        return await ctx.gather("all", [child.bind(n) for n in range(3)])

    @app.job(retry=QUICK)
    async def forgiving(ctx: Ctx) -> list[Any]:
        results = await ctx.gather("all", [child.bind(n) for n in range(3)], errors="return")
        return [str(one.job.status) if isinstance(one, ChildFailed) else one for one in results]

    async with working(app):
        assert await (await forgiving.enqueue()).result(20) == [0, "failed", 2]
        failed = await until_status(await parent.enqueue(), Status.FAILED)
    assert failed.error is not None
    assert failed.attempts == 1
    assert "of what was gathered as all, job" in failed.error.message
    assert "ValueError: no luck" in failed.error.message


async def test_a_step_of_a_flow_does_not_take_what_it_gathered_itself(app: Windlass) -> None:
    @app.job
    async def child(n: int) -> int:
        return n

    @app.job
    async def last(ctx: Ctx, numbers: list[int]) -> list[int]:
        return numbers + await ctx.gather("more", [child.bind(n) for n in (7, 8)])

    handle = await app.group([child.bind(1), child.bind(2)]).then(last).enqueue()
    async with working(app):
        assert await handle.result(20) == [1, 2, 7, 8]


async def test_a_handler_called_directly_runs_its_steps_and_cannot_wait(app: Windlass, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    with pytest.raises(RuntimeError, match="once"):
        await steps.onboard.call(str(file))
    assert file.read_text() == "first\n"
    with pytest.raises(WindlassError, match="no worker here to wait for a signal"):
        await steps.onboard_in_process.call(str(file))
