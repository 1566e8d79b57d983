"""Many who look at one store, in a process of their own: `python -m tests.faults.viewers NUMBER SEED FILE`.

Each asks for one view every second or two, as a page of a dashboard would: the figures, the queues, a page of jobs and
the pages after it, one job with its history. All share one application, as the pages of one dashboard do, and accept
what was true within the last second.

It says `ready`, looks until its input closes, and leaves what it saw in the file.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.past import PAST, USERS
from windlass import Job, JobNotFound, Status, Windlass, WindlassError
from windlass.chaos.place import Place
from windlass.client.searching import Search

EVERY = (1.0, 2.0)
PATIENCE = 5.0
"""seconds that the last views may take after the end"""
SCANS = "read_everything"
"""the mistake: counts that are made by reading every job"""
View = Callable[[], Coroutine[Any, Any, None]]


class Viewer:
    """One page of a dashboard that is left open."""

    def __init__(self, app: Windlass, chance: random.Random, control: str) -> None:
        self._app, self._chance, self._control = app, chance, control
        self._search: Search = {}
        self._after: str | None = None
        self._known: Job | None = None
        self.took: list[tuple[str, float]] = []
        self.errors: list[str] = []

    async def look(self, over: asyncio.Event) -> None:
        """Ask for one view after another until it is over."""
        views: dict[str, View] = {
            "stats": self._stats,
            "queues": self._queues,
            "page": self._page,
            "job": self._job,
        }
        await self._pause(over, 0.0)  # they did not all come at once
        while not over.is_set():
            await self._ask(*self._chance.choice(list(views.items())))
            await self._pause(over, EVERY[0])

    async def _pause(self, over: asyncio.Event, least: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._chance.uniform(least, EVERY[1])):
                await over.wait()

    async def _ask(self, name: str, view: View) -> None:
        begun = time.perf_counter()
        try:
            await view()
        except WindlassError as error:
            self.errors.append(f"{type(error).__name__}: {error}"[:300])
        finally:
            self.took.append((name, time.perf_counter() - begun))  # at least so long, of one that is waited for no more

    async def _page(self) -> None:
        if self._after is None:
            searches: list[Search] = [
                {},
                {"status": self._chance.choice([Status.SUCCEEDED, Status.PROCESSING, Status.QUEUED])},
                {"queue": PAST},
                {"type": PAST, "status": self._chance.choice([Status.SUCCEEDED, Status.FAILED, Status.QUEUED])},
                {"user": self._user()},
            ]
            self._search = self._chance.choice(searches)
        page = await self._app.jobs.find(limit=50, after=self._after, max_age=1, **self._search)
        self._after = page.next if self._chance.random() < 0.8 else None
        self._known = self._chance.choice(page.jobs) if page.jobs else self._known

    async def _queues(self) -> None:
        await self._app.queues.list(max_age=1)

    async def _stats(self) -> None:
        if self._control == SCANS:
            assert [job.id async for job in self._app.jobs.each()]
            return
        seen = await self._app.stats.read()
        seen.figures()

    async def _job(self) -> None:
        if self._known is None:
            await self._page()
        else:
            with suppress(JobNotFound):  # nobody keeps a job from being pruned for those who look at it
                await self._app.jobs.look(self._known.id, max_age=1)

    def _user(self) -> str:
        return f"u{self._chance.randrange(USERS)}"


async def main(n: int, seed: int, file: Path) -> None:
    """Look until the input closes."""
    place = Place.told()
    over = asyncio.Event()
    async with Windlass(place.url, namespace=place.namespace) as app:
        viewers = [Viewer(app, random.Random(f"{seed} {number}"), place.control) for number in range(n)]
        await app.stats.read()  # connected
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        begun, used = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            looking = [tasks.create_task(viewer.look(over)) for viewer in viewers]
            await asyncio.to_thread(sys.stdin.read)
            over.set()
            _, late = await asyncio.wait(looking, timeout=PATIENCE)
            for one in late:
                one.cancel()
        cores = (time.process_time() - used) / (time.monotonic() - begun)
    app.close()
    found = {
        "cores": cores,
        "took": [one for viewer in viewers for one in viewer.took],
        "errors": [one for viewer in viewers for one in viewer.errors],
    }
    file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
