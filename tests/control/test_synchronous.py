"""Code without an event loop, on every store: all that can be enqueued, and everything else by `run_sync`."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.apps import working
from windlass import JobFailed, Windlass

pytestmark = pytest.mark.timeout(60)


async def test_a_thread_enqueues_waits_and_looks_while_the_loop_of_the_application_works(app: Windlass) -> None:
    @app.job
    async def double(n: int) -> int:
        return 2 * n

    @app.job
    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.job(retry=1)
    async def bad() -> None:
        raise ValueError("no good")

    def script() -> list[object]:
        many = app.enqueue_many_sync(double.bind(n) for n in range(1_001))
        flow = app.group([double.bind(n) for n in (1, 2)]).then(total).then(double).enqueue_sync()
        failing = bad.enqueue_sync()
        with pytest.raises(JobFailed):
            app.run_sync(failing.result(20))
        return [
            app.run_sync(double.bind(3).enqueue_sync().result(20)),
            [app.run_sync(one.result(20)) for one in app.group([double.bind(n) for n in (4, 5)]).enqueue_sync()],
            app.run_sync(flow.result(20)),
            sum(app.run_sync(one.result(20)) for one in many),
            app.run_sync(app.jobs.find(status="failed")).jobs[0].id == failing.id,
            app.run_sync(app.jobs.cancel(bad.using(delay=60).enqueue_sync().id)),
        ]

    async with working(app):
        assert await asyncio.to_thread(script) == [6, [8, 10], 12, 1_001_000, True, True]
