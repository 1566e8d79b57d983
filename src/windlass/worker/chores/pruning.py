"""Pruning: finished jobs past their retention go, a few at a time, so that nothing stalls."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.core.events import Hub, JobsPruned
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.stores.contract import Retention, Store

AT_ONCE = 500
INTERVAL = 60.0
_BREATH = 0.05  # seconds between two batches: live work comes first


class Pruning:
    """The loop that deletes what has been kept long enough."""

    def __init__(self, store: Store, hub: Hub, retention: Retention) -> None:
        self._store, self._hub, self._retention = store, hub, retention
        self._steady = Steady(hub, "prune")

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Prune until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL * random.uniform(0.5, 1.0))
            await on_duty()
            await self.once()

    async def once(self) -> None:
        """Prune all that is due, batch by batch, until the store has looked everywhere."""
        while True:
            gone = await self._steady.attempt(lambda: self._store.jobs.prune(self._retention, AT_ONCE))
            if gone:
                self._hub.tell(JobsPruned(gone))
            if gone is None or not gone.more:
                return
            await asyncio.sleep(_BREATH)
