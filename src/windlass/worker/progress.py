"""Progress: what handlers report is gathered and written in one call, a few times a second and with the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.stores.contract import Lease, Report
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from windlass.core.events import Hub
    from windlass.core.job import Progress
    from windlass.stores.contract import Store
    from windlass.worker.slots import Running

_EVERY = 0.2  # seconds: reports are gathered so long


class Reporting:
    """The newest report of each job stands until the next batch is written."""

    def __init__(self, store: Store, hub: Hub, in_loop: Callable[[Callable[[], None]], None]) -> None:
        self._store, self._in_loop = store, in_loop
        self._steady = Steady(hub, "report progress")
        self._reporters: dict[str, Running] = {}
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    def report(self, running: Running, progress: Progress) -> None:
        """Take a report. From the handler's own thread."""
        running.progress = progress
        if running.job.id not in self._reporters:
            self._reporters[running.job.id] = running
            self._in_loop(self._some.set)

    async def run(self) -> None:
        """Write reports until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            await self._write_some()
            await asyncio.sleep(_EVERY)

    async def _write_some(self) -> None:
        reporters, self._reporters = self._reporters, {}
        if reporters:
            await self._steady.attempt(lambda: self._write(one for one in reporters.values() if not one.ended))

    async def write_last(self, ended: Sequence[Running]) -> None:
        """Write what jobs that end have reported and was not written yet, before their ends are; it is not tried again.

        Costs a call only where there is such a report, and one for all that end together.
        """
        if any(running.progress is not running.reported for running in ended):
            with suppress(Exception):  # their ends matter more, and are about to find out what the store's trouble is
                await self._write(ended)

    async def _write(self, some: Iterable[Running]) -> None:
        async with self._writing:  # an older report that is under way must not come behind a newer one, or the end
            news = [
                (running, Report(Lease(running.job.id, running.job.lease_token), running.progress))
                for running in some
                if running.progress is not None and running.progress is not running.reported
            ]
            if news:
                await self._store.jobs.report([report for _, report in news])
                for running, report in news:
                    running.reported = report.progress
