"""Progress: what handlers report is gathered and written in one call, a few times a second and with the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.stores.contract import Lease, Report
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
            reports = self._gathered()
            if reports:
                await self._steady.attempt(lambda reports=reports: self._store.jobs.report(reports))  # type: ignore[misc]  # bound per turn
            await asyncio.sleep(_EVERY)

    def _gathered(self) -> list[Report]:
        reporters, self._reporters = self._reporters, {}
        return _reports(running for running in reporters.values() if not running.ended)

    async def write_last(self, ended: Iterable[Running]) -> None:
        """Write what jobs that end have reported since the last batch, before their ends are; it is not tried again.

        Costs a call only where there is such a report, and one for all that end together.
        """
        reports = _reports(ended)
        if reports:
            with suppress(Exception):  # their ends matter more, and are about to find out what the store's trouble is
                await self._store.jobs.report(reports)


def _reports(some: Iterable[Running]) -> list[Report]:
    """What these have reported that was not taken along before."""
    found: list[Report] = []
    for running in some:
        progress = running.progress
        if progress is not None and progress is not running.reported:
            running.reported = progress
            found.append(Report(Lease(running.job.id, running.job.lease_token), progress))
    return found
