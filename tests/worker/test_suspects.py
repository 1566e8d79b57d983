"""Jobs on their last chance take turns, so that only the one that kills workers meets its end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.contract.steps import passed
from tests.support.apps import status_of, until_status, working
from tests.support.drafts import INSTANT, want
from tests.support.until import until
from windlass import Handle, Status, Windlass


async def crash(app: Windlass, handles: list[Handle[None]], times: int) -> None:
    """Let workers die under these jobs."""
    jobs = app.store.jobs
    for _ in range(times):
        claimed = await jobs.claim(want(len(handles), types={"work"}, lease=INSTANT))
        assert {job.id for job in claimed} == {handle.id for handle in handles}
        await passed(app.store, claimed[0].lease_expires_at)
        assert len(await jobs.rescue(100)) == len(handles)


class Crowd:
    def __init__(self, app: Windlass) -> None:
        self.now = self.most = 0
        self.go = asyncio.Event()

        @app.job(timeout=0.5)
        async def work() -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self.go.wait()
                await asyncio.sleep(0.005)
            finally:
                self.now -= 1

        self.work = work


async def test_jobs_on_their_last_chance_take_turns(app: Windlass) -> None:
    crowd = Crowd(app)
    handles = [await crowd.work.enqueue() for _ in range(6)]
    await crash(app, handles, 2)
    crowd.go.set()
    async with working(app):
        for handle in handles:
            assert (await handle.wait(10)).crashes == 2
    assert crowd.most == 1


async def test_others_run_beside_them_and_those_with_a_chance_left_too(app: Windlass) -> None:
    crowd = Crowd(app)
    once = [await crowd.work.enqueue() for _ in range(3)]
    await crash(app, once, 1)
    fresh = [await crowd.work.enqueue() for _ in range(3)]
    async with working(app):
        await until(lambda: crowd.now == 6, "all six to run")
        crowd.go.set()
        for handle in once + fresh:
            await handle.wait(10)


async def test_one_that_waits_for_its_turn_has_its_whole_timeout(app: Windlass) -> None:
    crowd = Crowd(app)
    handles = [await crowd.work.using(max_attempts=1).enqueue() for _ in range(3)]
    await crash(app, handles, 2)
    async with working(app):
        first = await until_status(handles[0], Status.FAILED)
        assert first.error is not None
        assert first.error.type == "JobTimeout"
        crowd.go.set()
        assert [(await handle.wait(10)).status for handle in handles[1:]] == [Status.SUCCEEDED] * 2


async def test_one_that_waits_for_its_turn_can_be_cancelled_and_handed_back(app: Windlass) -> None:
    crowd = Crowd(app)
    handles = [await crowd.work.using(timeout=60).enqueue() for _ in range(3)]
    await crash(app, handles, 2)
    async with working(app, grace=timedelta(milliseconds=50)):
        await until(lambda: crowd.now == 1, "the first to run")
        await handles[1].cancel()
        await until_status(handles[1], Status.CANCELLED)
    job = await handles[2].job()
    assert (await status_of(handles[0]), job.status, job.attempts, job.crashes) == (
        Status.QUEUED,
        Status.QUEUED,
        0,
        2,
    )
