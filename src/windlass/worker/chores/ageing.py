"""Ageing: what has waited too long is raised, a few at a time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.core.events import Hub, JobsAged
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.ageing import Ageing
    from windlass.stores.contract import Store

AT_ONCE = 500
_MOST_OFTEN, _LEAST_OFTEN = 0.5, 60.0  # seconds between two looks


class AgeingChore:
    """The loop that looks ten times in the time that a job may wait."""

    def __init__(self, store: Store, hub: Hub, ageing: Ageing) -> None:
        self._store, self._hub, self._ageing = store, hub, ageing
        self._steady = Steady(hub, "age")
        self._interval = max(_MOST_OFTEN, min(_LEAST_OFTEN, ageing.after.total_seconds() / 10))

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._interval * random.uniform(0.7, 1.0))
            await on_duty()
            await self.once()

    async def once(self) -> None:
        """Raise all that has waited long enough by now."""
        rule = self._ageing
        while True:
            raised = await self._steady.attempt(lambda: self._store.jobs.age(rule.after, rule.level, AT_ONCE))
            if raised:
                self._hub.tell(JobsAged(raised))
            if raised is None or raised < AT_ONCE:
                return
