"""Jobs on their last chance take turns, so that only the one that kills workers meets its end."""

from __future__ import annotations

import asyncio

from tests.contract.steps import lose
from tests.support.apps import status_of, until_status, working
from tests.support.drafts import want
from tests.support.until import until
from windlass import Handle, Happened, Status, Windlass
from windlass.worker.suspects import NOTE


async def crash(app: Windlass, handles: list[Handle[None]], times: int) -> None:
    """Let workers die under these jobs."""
    jobs = app.store.jobs
    for _ in range(times):
        claimed = await jobs.claim(want(len(handles), types={"work"}))
        assert {job.id for job in claimed} == {handle.id for handle in handles}
        await lose(app.store, claimed)
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
                await asyncio.sleep(0.005)  # the job's work
            finally:
                self.now -= 1

        self.work = work


async def test_jobs_on_their_last_chance_take_turns(app: Windlass) -> None:
    crowd = Crowd(app)
    handles = [await crowd.work.enqueue() for _ in range(4)]
    await crash(app, handles, 2)
    crowd.go.set()
    async with working(app):
        for handle in handles:
            job = await handle.wait(15)
            assert (job.status, job.crashes, job.attempts) == (Status.SUCCEEDED, 2, 1)
    assert crowd.most == 1


async def test_those_put_off_are_in_the_store_before_the_one_begins(app: Windlass) -> None:
    """What kills its worker takes along only what that holds."""
    seen: list[list[Status]] = []

    @app.job
    async def work() -> None:
        seen.append([await status_of(handle) for handle in handles])

    handles = [await work.enqueue() for _ in range(5)]
    await crash(app, handles, 2)
    async with working(app):
        await until(lambda: seen, "the first to begin")
    assert sorted(seen[0]) == [Status.PROCESSING] + [Status.SCHEDULED] * 4
    [waiting] = [one for one in handles if await status_of(one) is Status.SCHEDULED][:1]
    entry = (await waiting.history())[-1]
    assert (entry.happened, entry.note) == (Happened.SNOOZED, NOTE)


async def test_others_run_beside_it_and_those_with_a_chance_left_too(app: Windlass) -> None:
    crowd = Crowd(app)
    once = [await crowd.work.enqueue() for _ in range(3)]
    await crash(app, once, 1)
    fresh = [await crowd.work.enqueue() for _ in range(3)]
    async with working(app):
        await until(lambda: crowd.now == 6, "all six to run")
        crowd.go.set()
        for handle in once + fresh:
            await handle.wait(10)


async def test_when_it_has_ended_the_next_runs_however_it_ended(app: Windlass) -> None:
    crowd = Crowd(app)
    handles = [await crowd.work.using(max_attempts=1).enqueue() for _ in range(2)]
    await crash(app, handles, 2)
    async with working(app):
        first = await until_status(handles[0], Status.FAILED)
        assert first.error is not None
        assert first.error.type == "JobTimeout"
        crowd.go.set()
        assert (await handles[1].wait(15)).status is Status.SUCCEEDED
