"""Sampling: once a minute it records what stands in queues and how many work, and adds up what is complete."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.client.gauges import gauges_text, look
from windlass.client.rolling import SAMPLED, Rolling
from windlass.client.stepping import MINUTE, begin_of
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.events import Hub
    from windlass.stores.contract import Store

_FIRST = 2.0, 5.0  # seconds after the worker has begun


class Sampling:
    """The loop that notes how it stands."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._rolling = Rolling(store)
        self._noting, self._adding = Steady(hub, "note how it stands"), Steady(hub, "add figures up")

    async def run(self, on_duty: Callable[[], Awaitable[None]]) -> None:
        """Note once in every minute until cancelled."""
        await asyncio.sleep(random.uniform(*_FIRST))
        while True:
            await on_duty()
            await self._noting.attempt(self.note)
            await self._adding.attempt(self._rolling.once)
            await asyncio.sleep(MINUTE.total_seconds() * random.uniform(0.9, 1.0))

    async def note(self) -> None:
        """Note how it stands, once in this minute: workers of other handlers have a duty of their own."""
        minute = begin_of(await self._store.now(), MINUTE)
        name = SAMPLED.series(MINUTE)
        if await self._store.series.last(name) != minute:
            await self._store.series.put(name, minute, gauges_text(await look(self._store)))
