"""Rescuing: jobs whose worker died come back when their lease has expired."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING

from windlass.core.events import Hub, JobRescued
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from windlass.stores.contract import Rescued, Store

AT_ONCE = 100


class Rescuing:
    """The loop that looks for expired leases, unless the living could not extend theirs a moment ago."""

    def __init__(
        self,
        store: Store,
        hub: Hub,
        interval: float,
        rescued: Callable[[], None],
        fair: Callable[[], bool],
        within: float = 10.0,
        note: Callable[[Sequence[Rescued]], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._hub, self._interval, self._rescued = store, hub, interval, rescued
        self._fair, self._within, self._note = fair, within, note
        self._steady = Steady(hub, "rescue")

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Rescue until cancelled."""
        while True:
            await on_duty()
            if self._fair():
                await self.once()
            await asyncio.sleep(self._interval * random.uniform(0.7, 1.0))

    async def once(self) -> None:
        """Rescue everything that has expired by now."""
        while True:
            rescued = await self._steady.attempt(self._rescue)
            if rescued:
                self._rescued()
                for lost in rescued:
                    self._hub.tell(JobRescued(lost.job, lost.to))
                if self._note is not None:
                    await self._steady.attempt(partial(self._note, rescued))
            if rescued is None or len(rescued) < AT_ONCE:
                return

    async def _rescue(self) -> Sequence[Rescued]:
        # A rescue asked for before the store went away must not be carried out when the store is back, before workers
        # that live have extended their leases.
        async with asyncio.timeout(self._within):
            return await self._store.jobs.rescue(AT_ONCE)
