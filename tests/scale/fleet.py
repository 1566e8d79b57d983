"""Workers on one place, each with a store of its own, and what they ask of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

from tests.contract.places import Place
from tests.support.apps import nothing_left
from tests.support.counting import Calls
from tests.support.until import until
from windlass import Windlass

FASTER = 5
"""how much shorter all intervals of a fleet are than they are by default"""
IDLE = 0.5
"""the calls that one idle worker may make in a second, by default intervals"""
CLAIMS, PROMOTES = 3, 1
"""the calls that one job may cost, however many workers there are"""


class Fleet:
    """Workers that each have a store of their own, as in a process of their own, and one who enqueues."""

    def __init__(self, place: Place, faster: float = FASTER, *, polls: bool = True) -> None:
        self.calls = Calls()
        self.begun = 0
        self._place = place
        self._intervals: dict[str, Any] = {
            "lease": timedelta(seconds=30) / faster,
            "heartbeat": timedelta(seconds=10) / faster,
            # Without polls all that is asked was asked because somebody told of something: on a slow machine what is
            # polled for meanwhile would else count as the cost of jobs.
            "poll": timedelta(seconds=5) / faster if polls else timedelta(hours=1),
            "rescue": timedelta(seconds=5) / faster,
        }

    @asynccontextmanager
    async def working(self, n: int) -> AsyncGenerator[Windlass, None]:
        """So many workers that know each other, and the application of one who enqueues."""
        async with nothing_left(), AsyncExitStack() as stack:
            for _ in range(n):
                await stack.enter_async_context(self._app(self.calls).worker(**self._intervals))
            client = await stack.enter_async_context(self._app(Calls()))
            met = self.calls.by_name["workers.beat"] + 2 * n
            await until(lambda: self.calls.by_name["workers.beat"] >= met, "all workers to know each other", within=60)
            yield client

    def _app(self, calls: Calls) -> Windlass:
        app = Windlass(store=calls.on(self._place.store()))

        @app.job(name="noop")
        async def noop() -> None:
            self.begun += 1

        return app

    async def idle(self, seconds: float) -> tuple[Counter[str], float]:
        """The calls of so many seconds in which nothing is enqueued, and how many seconds these became."""
        before, began = self.calls.now(), time.monotonic()
        await until(lambda: time.monotonic() > began + seconds, "time to pass", within=seconds + 5)
        return self.calls.since(before), time.monotonic() - began

    async def one_by_one(self, client: Windlass, jobs: int) -> Counter[str]:
        """The calls that so many jobs cost, each enqueued when the one before has begun."""
        before, begun = self.calls.now(), self.begun
        for number in range(begun, begun + jobs):
            await client.enqueue("noop")
            await until(lambda number=number: self.begun > number, "the job to begin")  # type: ignore[misc]  # bound
        return self.calls.since(before)
