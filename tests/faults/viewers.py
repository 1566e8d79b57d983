"""Many who look at one store, in a process of their own: `python -m tests.faults.viewers NUMBER SEED FILE`.

Each asks for one view every second or two, as a page of a dashboard would: a page of jobs and the pages after it, a
count, the figures of the last hour, the history of a job it has seen. All share one application, as the pages of one
dashboard do. It says `ready`, looks until its input closes, and leaves what it saw in the file.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from windlass import Job, Status, Windlass, WindlassError
from windlass.chaos.place import Place

EVERY = (1.0, 2.0)
USERS = 500
PAST = "past"
"""type and queue of the finished jobs that they page through"""
SCANS = "read_everything"
"""the mistake: figures that are counted by reading every job"""


class Viewer:
    """One page of a dashboard that is left open."""

    def __init__(self, app: Windlass, chance: random.Random, control: str) -> None:
        self._app, self._chance, self._control = app, chance, control
        self._search: dict[str, Any] = {}
        self._after: str | None = None
        self._known: Job | None = None
        self.took: list[tuple[str, float]] = []
        self.errors: list[str] = []

    async def look(self, over: asyncio.Event) -> None:
        """Ask for one view after another until it is over."""
        views: list[Callable[[], Awaitable[object]]] = [self._page, self._count, self._stats, self._history]
        while not over.is_set():
            view = self._chance.choice(views)
            begun = time.perf_counter()
            try:
                await view()
            except WindlassError as error:
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
            self.took.append((view.__name__.strip("_"), time.perf_counter() - begun))
            try:
                async with asyncio.timeout(self._chance.uniform(*EVERY)):
                    await over.wait()
            except TimeoutError:
                continue

    async def _page(self) -> None:
        if self._after is None:
            self._search = self._chance.choice(
                [
                    {},
                    {"status": self._chance.choice([Status.SUCCEEDED, Status.PROCESSING, Status.QUEUED])},
                    {"queue": PAST},
                    {"type": PAST, "status": Status.SUCCEEDED},
                    {"type": PAST, "status": Status.FAILED},
                    {"user": f"u{self._chance.randrange(USERS)}"},
                ]
            )
        page = await self._app.jobs.find(limit=50, after=self._after, **self._search)
        self._after = page.next if self._chance.random() < 0.8 else None
        self._known = self._chance.choice(page.jobs) if page.jobs else self._known

    async def _count(self) -> None:
        await self._app.jobs.count(status=self._chance.choice([Status.SUCCEEDED, Status.FAILED, Status.QUEUED]))

    async def _stats(self) -> None:
        if self._control == SCANS:
            found = [job.status async for job in self._app.jobs.each()]
            assert found
        else:
            await self._app.store.views.stats(timedelta(hours=1))

    async def _history(self) -> None:
        if self._known is None:
            await self._page()
        else:
            await self._app.jobs.history(self._known.id)


async def main(n: int, seed: int, file: Path) -> None:
    """Look until the input closes."""
    place = Place.told()
    over = asyncio.Event()
    async with Windlass(place.url, namespace=place.namespace) as app:
        viewers = [Viewer(app, random.Random(f"{seed} {number}"), place.control) for number in range(n)]
        await app.store.views.stats(timedelta(0))  # connected
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as tasks:
            for viewer in viewers:
                tasks.create_task(viewer.look(over))
            await asyncio.to_thread(sys.stdin.read)
            over.set()
    app.close()
    found = {
        "took": [one for viewer in viewers for one in viewer.took],
        "errors": [one for viewer in viewers for one in viewer.errors],
    }
    file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
