"""Proving: before a job begins that may fail by one more crash, the store knows that its worker has it in hand.

A lease that ends unconfirmed counts no crash, so that jobs nobody ever began are not failed. A job that kills its
worker at once must still be counted: hence its lease is confirmed first, with all others that wait, in one call.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from windlass.stores.contract import Lease
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.events import Hub
    from windlass.stores.contract import Store
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Running


class Proving:
    """Confirms leases for jobs that wait for that."""

    def __init__(self, store: Store, config: WorkerConfig, hub: Hub) -> None:
        self._store, self._config = store, config
        self._steady = Steady(hub, "confirm leases")
        self._waiting: dict[Running, asyncio.Future[bool]] = {}
        self._some = asyncio.Event()

    async def confirm(self, running: Running) -> bool:
        """Whether the job is still this worker's, and confirmed to be; waits for the store's word."""
        word: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[running] = word
        self._some.set()
        return await word

    async def run(self) -> None:
        """Confirm until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            waiting = self._waiting
            before = time.monotonic()
            leases = [Lease(running.job.id, running.job.lease_token) for running in waiting]
            extended = await self._steady.attempt(
                lambda leases=leases: self._store.jobs.extend(self._config.worker_id, leases, self._config.lease)  # type: ignore[misc]  # bound per turn
            )
            for running, lease in zip(list(waiting), leases, strict=False):
                if extended is not None and lease.id not in extended.held:
                    if lease.id not in extended.lost:
                        running.extend(before + self._config.lease.total_seconds())
                    self._tell(running, held=lease.id not in extended.lost)
                elif self._late(running):
                    self._tell(running, held=False)
            if self._waiting:
                self._some.set()

    def _late(self, running: Running) -> bool:
        over = time.monotonic() > running.valid_until - self._config.fence.total_seconds()
        return over or running.reason is not None

    def _tell(self, running: Running, *, held: bool) -> None:
        word = self._waiting.pop(running)
        if not word.done():  # the waiting task may have been stopped meanwhile
            word.set_result(held)
