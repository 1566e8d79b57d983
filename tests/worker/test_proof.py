"""Leases are confirmed: at once where one crash would fail the job, soon where it runs long, else not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.steps import lose
from tests.support.apps import app_at, working
from tests.support.counting import Calls
from tests.support.drafts import want
from tests.support.until import until
from windlass import Windlass
from windlass.worker.config import WorkerConfig
from windlass.worker.proving import Proving
from windlass.worker.slots import Running

pytestmark = pytest.mark.timeout(40)


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
async def counted(tmp_path: Path, calls: Calls) -> AsyncIterator[Windlass]:
    app = Windlass(store=calls.on(app_at(tmp_path / "jobs.db").store))
    async with app:
        yield app


def extensions(calls: Calls) -> int:
    return calls.by_name["jobs.extend"]


async def test_short_jobs_cost_no_extension(counted: Windlass, calls: Calls) -> None:
    @counted.job
    async def work() -> None: ...

    async with working(counted):
        handles = await counted.enqueue_many(work.bind() for _ in range(100))
        for handle in handles:
            await handle.result(10)
    assert extensions(calls) == 0


async def test_a_job_that_runs_a_while_is_confirmed_long_before_the_first_heartbeat(
    counted: Windlass, calls: Calls
) -> None:
    go = asyncio.Event()

    @counted.job
    async def work() -> None:
        await go.wait()

    async with working(counted, lease=60):
        await counted.enqueue_many(work.bind() for _ in range(5))
        await until(lambda: extensions(calls), "the leases to be confirmed", within=10)
        assert extensions(calls) == 1, "all in one call"
        go.set()


async def test_jobs_that_one_crash_would_fail_are_confirmed_before_they_begin(counted: Windlass, calls: Calls) -> None:
    seen: list[int] = []

    @counted.job(max_crashes=1)
    async def last_chance() -> None:
        seen.append(extensions(calls))

    handles = await counted.enqueue_many(last_chance.bind() for _ in range(5))
    async with working(counted):
        for handle in handles:
            await handle.result(10)
    assert seen == [1] * 5, "in one call for all"


async def test_a_job_that_was_lost_before_is_confirmed_before_it_begins(counted: Windlass, calls: Calls) -> None:
    seen: list[int] = []

    @counted.job
    async def work() -> None:
        seen.append(extensions(calls) - before)

    handle = await work.enqueue()
    await lose(counted.store, await counted.store.jobs.claim(want(types={"work"})))
    before = extensions(calls)
    async with working(counted):
        await handle.result(10)
    assert seen == [1]


async def test_a_job_that_another_has_by_now_is_not_confirmed(counted: Windlass) -> None:
    @counted.job(max_crashes=1)
    async def last_chance() -> None: ...

    await counted.enqueue_many(last_chance.bind() for _ in range(2))
    jobs = counted.store.jobs
    mine, lost = await jobs.claim(want(types={"last_chance"}))
    await lose(counted.store, [lost])
    await jobs.rescue(10)
    config = WorkerConfig(worker_id="w1")
    proving = Proving(counted.store, config, counted.hub)
    going = asyncio.create_task(proving.run())
    held = [Running(job, last_chance.declaration, time.monotonic() + 30) for job in (mine, lost)]
    before = time.monotonic()
    assert await asyncio.gather(*(proving.confirm(running) for running in held)) == [True, False]
    assert [running.confirmed for running in held] == [True, False]
    assert held[0].valid_until >= before + config.lease.total_seconds()
    going.cancel()
    await asyncio.wait([going])
