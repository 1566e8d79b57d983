"""Cancels: when a notice says that somebody asked, the worker looks which of its jobs are to stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.events import Hub
    from windlass.stores.contract import Store
    from windlass.worker.slots import Slots

_EVERY = 0.25  # seconds: at most so often a notice makes it look


class Cancels:
    """The loop that looks for cancel requests; extensions bring word of them, too, only later."""

    def __init__(self, store: Store, slots: Slots, hub: Hub, worker_id: str) -> None:
        self._store, self._slots, self._worker_id = store, slots, worker_id
        self._steady = Steady(hub, "look for cancel requests")
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.wake.wait()
            await asyncio.sleep(_EVERY)
            self.wake.clear()
            requested = await self._steady.attempt(lambda: self._store.jobs.cancels(self._worker_id))
            for job_id in requested or ():
                running = self._slots.running.get(job_id)
                if running is not None and not running.cancelled:
                    running.stop("cancel")
