"""Leases: kept while the loop is blocked, given up in time when the store is away, rescued when a worker is gone."""

from __future__ import annotations

import asyncio
import ctypes
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.contract.steps import lose
from tests.support.apps import Heard, app_at, ms, until_status, working
from tests.support.drafts import want
from tests.support.until import until
from tests.worker import handlers
from tests.worker.handlers import in_mode
from windlass import Ctx, Happened, Status, Windlass
from windlass.core.events import JobFenced, LoopBlocked, StoreRecovered, StoreTroubled
from windlass.core.outcome import Succeeded
from windlass.core.transition import decide
from windlass.stores.contract import Verdict

pytestmark = pytest.mark.timeout(40)


@contextmanager
def locked(path: Path) -> Generator[None, None, None]:
    """Another process's endless write transaction, as far as SQLite can tell."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def test_a_blocked_loop_loses_no_lease(app: Windlass, heard: Heard) -> None:
    runs: list[int] = []

    @app.job
    async def block(ctx: Ctx) -> str:
        runs.append(ctx.attempt)
        time.sleep(2.4)  # four leases
        return "done"

    # Another worker, with a loop of its own, would run it a second time if the lease were lost.
    other = app_at(Path(app.url.removeprefix("sqlite:///").partition("?")[0]))
    other.registry.add(block.declaration)
    rescuer = asyncio.create_task(asyncio.to_thread(asyncio.run, _work_beside(other)), name="windlass-beside")
    async with working(app, lease=ms(600), heartbeat=ms(200)):
        handle = await block.using(queue="blocked").enqueue()
        assert await handle.result(20) == "done"
        await rescuer
    assert runs == [1]
    assert [entry.happened for entry in await handle.history()] == ["enqueued", "claimed", "succeeded"]
    blocked = heard.all(LoopBlocked)
    assert blocked
    assert blocked[0].types == ("block",)
    assert blocked[0].seconds > 1


async def _work_beside(app: Windlass) -> None:
    async with working(app, queues=["elsewhere"], rescue=ms(50)):
        await asyncio.sleep(3.2)  # longer than the other blocks: it would rescue what it lost


async def test_a_worker_that_cannot_reach_its_store_fences_itself_before_its_lease_ends(tmp_path: Path) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF&timeout=0.2")
    heard = Heard(app)
    begun, stopped = asyncio.Event(), asyncio.Event()
    when: dict[str, float] = {}

    @app.job
    async def hold(ctx: Ctx) -> str:
        if ctx.token > 1:
            return "second run"
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            when["stopped"] = time.time()
            stopped.set()
        return "a result that comes too late"

    async with app:
        async with working(app, lease=ms(1500), heartbeat=ms(300), rescue=ms(100)):
            handle = await hold.enqueue()
            await begun.wait()
            with locked(tmp_path / "jobs.db"):
                await asyncio.wait_for(stopped.wait(), 10)
                expires = await _expiry(tmp_path / "jobs.db")
                assert when["stopped"] < expires, "told to stop before anyone else could have the job"
                assert (await heard.one(JobFenced)).job.id == handle.id
                await until(lambda: time.time() > expires, "the lease to expire")
            await handle.result(20)
            await heard.one(StoreRecovered)
        told = [entry.happened for entry in await handle.history()]
        crashes = (await handle.job()).crashes
    assert told.count(Happened.SUCCEEDED) == 1
    assert crashes == 0, "a worker that comes back is not dead"
    assert len(heard.all(JobFenced)) == 1
    assert heard.all(StoreTroubled)


async def _expiry(path: Path) -> float:
    with closing(sqlite3.connect(path)) as connection:
        [(expires,)] = connection.execute("SELECT lease_expires_at FROM windlass_jobs").fetchall()
    return float(expires) / 1000


async def test_a_result_waits_for_a_store_that_blinks(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    begun, go = asyncio.Event(), asyncio.Event()

    @app.job
    async def work() -> str:
        begun.set()
        await go.wait()
        return "done"

    async with app:
        async with working(app, lease=ms(5000), heartbeat=ms(1000)):
            handle = await work.enqueue()
            await begun.wait()
            with locked(tmp_path / "jobs.db"):
                go.set()
                await asyncio.sleep(0.5)  # the subject: a store that is away for a while
            assert await handle.result(10) == "done"
        assert (await handle.job()).attempts == 1


async def test_a_job_whose_claim_took_longer_than_its_lease_is_handed_back_unrun(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    heard = Heard(app)
    begun, go = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    @app.job
    async def first() -> None:
        begun.set()
        await go.wait()

    @app.job
    async def second(ctx: Ctx) -> None:
        runs.append(ctx.token)

    async with app:
        await first.enqueue()
        handle = await second.enqueue()
        async with working(app, concurrency=1, lease=ms(600), heartbeat=ms(200)):
            await begun.wait()
            with locked(tmp_path / "jobs.db"):
                go.set()  # the slot is free, and the claim for it waits for the lock
                await asyncio.sleep(1.5)  # the subject: longer than a lease
            await until_status(handle, Status.SUCCEEDED)
        told = [(entry.happened, entry.note) for entry in await handle.history()]
        attempts = (await handle.job()).attempts
    # On a busy machine the next claim may take as long, and is handed back as well.
    enqueued, *handed_back, claimed, succeeded = told
    assert (enqueued[0], claimed[0], succeeded[0]) == ("enqueued", "claimed", "succeeded")
    late = [("claimed", None), ("released", "the claim took longer than the lease")]
    assert handed_back == late * (len(handed_back) // 2) != []
    assert (runs, attempts) == ([len(handed_back) // 2 + 1], 1)
    assert handle.id not in {event.job.id for event in heard.all(JobFenced)}


async def test_a_job_whose_lease_ran_out_before_it_could_begin_is_handed_back_unrun(app: Windlass) -> None:
    begun: list[int] = []

    @app.job(priority="high")
    async def stall() -> None:
        # Holds the interpreter's own lock: not even the thread that keeps leases can go on, as in a frozen process.
        ctypes.PyDLL(None).usleep(ctypes.c_uint(900_000))

    @app.job
    async def behind(ctx: Ctx) -> None:
        begun.append(ctx.token)

    first, second = await stall.enqueue(), await behind.enqueue()
    async with working(app, lease=ms(600), heartbeat=ms(200), rescue=ms(60_000)):
        await second.result(20)
        await until_status(first, *Status)
    [token] = begun
    assert token > 1, "the claim that stood behind the stall was not begun"
    assert (await second.job()).attempts == 1


async def test_a_job_of_a_worker_that_died_is_rescued_and_its_late_result_refused(app: Windlass) -> None:
    @app.job
    async def work() -> str:
        return "done by another"

    handle = await work.enqueue()
    [lost] = await lose(app.store, await app.store.jobs.claim(want(types={"work"})))
    async with working(app):
        assert await handle.result(10) == "done by another"
    assert (await handle.job()).crashes == 1
    [verdict] = await app.store.jobs.apply([decide(lost, Succeeded('"too late"'))])
    job = await handle.job()
    assert (verdict, job.result, job.attempts) == (Verdict.STALE, "done by another", 1)
    assert job.crashes == 0, "it lives after all"
    told = [entry.happened for entry in await handle.history()]
    assert told == ["enqueued", "claimed", "lost", "claimed", "succeeded", "refused"]


async def test_a_job_that_kills_worker_after_worker_ends_in_failed(app: Windlass) -> None:
    @app.job(max_crashes=2)
    async def poison() -> None: ...

    handle = await poison.enqueue()
    for _ in range(2):
        await lose(app.store, await app.store.jobs.claim(want(types={"poison"})))
        async with working(app, exclude=["poison"]):
            await until_status(handle, Status.QUEUED, Status.FAILED)
    job = await handle.job()
    assert (job.status, job.crashes) == (Status.FAILED, 2)
    assert job.error is not None
    assert "presumed dead" in job.error.message


async def test_a_lease_taken_by_the_rescuer_stops_the_handler(app: Windlass, heard: Heard) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @app.job
    async def hold(ctx: Ctx) -> str:
        if ctx.token > 1:
            return "second"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with working(app, heartbeat=ms(900), lease=ms(2000)):
        handle = await hold.enqueue()
        await begun.wait()
        # As after a pause of the whole process: somebody found the lease expired.
        with closing(sqlite3.connect(app.url.removeprefix("sqlite:///").partition("?")[0])) as db, db:
            db.execute("UPDATE windlass_jobs SET lease_expires_at = 1")
        await app.store.jobs.rescue(10)
        await asyncio.wait_for(stopped.wait(), 10)
        assert (await heard.one(JobFenced)).job.id == handle.id
        assert await handle.result(10) == "second"


async def test_the_workers_row_is_there_while_it_works_and_gone_after(app: Windlass) -> None:
    @app.job
    async def work() -> None: ...

    async with working(app, queues={"a": 2, "b": 3}) as worker:

        async def rows() -> bool:
            return len(await app.store.workers.list()) > 0

        await until(rows, "the first beat")
        [row] = await app.store.workers.list()
        assert (row.id, row.slots, row.queues, row.types) == (worker.id, 5, ("a", "b"), ("work",))
    assert list(await app.store.workers.list()) == []


async def test_with_a_blocked_loop_what_runs_beside_it_is_still_given_up_in_time(tmp_path: Path) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF&timeout=0.2")
    begun = threading.Barrier(2)
    stopped: dict[str, float] = {}
    parent = in_mode(app, handlers.parent, "process")

    @app.job
    def beside(ctx: Ctx) -> None:
        begun.wait(20)
        while not ctx.cancelled:
            time.sleep(0.01)  # the job's work
        stopped["thread"] = time.monotonic()

    @app.job
    async def block() -> None:
        await asyncio.to_thread(begun.wait, 20)
        other = psutil.Process(int((tmp_path / "pids").read_text().split()[0]))
        with locked(tmp_path / "jobs.db"):
            locked_at = time.monotonic()
            while time.monotonic() < locked_at + 2.5:
                time.sleep(0.02)  # in the loop
                if "process" not in stopped and other.status() == psutil.STATUS_ZOMBIE:
                    stopped["process"] = time.monotonic()
        stopped["loop"] = time.monotonic()

    async with app:
        async with working(app, lease=ms(1500), heartbeat=ms(300), rescue=ms(60_000)) as worker:
            await parent.using(max_attempts=1).enqueue(str(tmp_path / "pids"))
            await until((tmp_path / "pids").exists, "the process to begin", within=20)
            handles = [await beside.enqueue(), await block.enqueue()]
            await until(lambda: "loop" in stopped, "the loop to go on", within=20)
            worker.stop(now=True)
        for handle in handles:
            assert (await handle.job()).crashes == 0
    assert stopped["thread"] < stopped["loop"] - 0.5
    assert stopped["process"] < stopped["loop"] - 0.5
