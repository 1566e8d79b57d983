"""Progress: what was reported last is there when the job has ended, also where it was reported just before."""

from __future__ import annotations

import asyncio

from tests.contract.places import Place
from tests.support.counting import Calls
from windlass import Ctx, Progress, Retry, Status, Windlass


async def test_the_last_report_is_written_with_the_end(app: Windlass) -> None:
    @app.job
    async def count(ctx: Ctx, most: int) -> None:
        for done in range(1, most + 1):
            ctx.progress(done, of=most, note=f"{done} of {most}")
            await asyncio.sleep(0)

    handles = [await count.enqueue(most) for most in (1, 2, 50)]
    async with app.worker():
        jobs = [await handle.wait(15) for handle in handles]
    assert [job.progress for job in jobs] == [
        Progress(done=most, of=most, note=f"{most} of {most}") for most in (1, 2, 50)
    ]


async def test_how_far_a_job_came_that_failed_is_told(app: Windlass) -> None:
    @app.job(retry=Retry(1))
    async def fail(ctx: Ctx) -> None:
        ctx.progress(7, of=9)
        raise ValueError

    handle = await fail.enqueue()
    async with app.worker():
        job = await handle.wait(15)
    assert (job.status, job.progress) == (Status.FAILED, Progress(done=7, of=9, note=None))


async def test_the_last_reports_of_jobs_that_end_together_are_written_together(place: Place) -> None:
    calls = Calls()
    app = Windlass(store=calls.on(place.store()))

    @app.job
    async def tell(ctx: Ctx, n: int) -> None:
        ctx.progress(n, of=n)

    async with app:
        handles = await app.enqueue_many([tell.bind(n) for n in range(1, 41)])
        async with app.worker(concurrency=40):
            jobs = [await handle.wait(15) for handle in handles]
    app.close()
    assert [job.progress and job.progress.done for job in jobs] == list(range(1, 41))
    assert 1 <= calls.by_name["jobs.report"] <= 20


async def test_jobs_that_report_nothing_cost_no_call(place: Place) -> None:
    calls = Calls()
    app = Windlass(store=calls.on(place.store()))

    @app.job
    async def work() -> None: ...

    async with app:
        handles = await app.enqueue_many([work.bind() for _ in range(40)])
        async with app.worker(concurrency=40):
            await asyncio.gather(*(handle.wait(15) for handle in handles))
    app.close()
    assert calls.by_name["jobs.report"] == 0
