"""Publishing: what this worker handles is written to the catalogue as it starts, and refreshed seldom."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from windlass.core.events import Hub
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store

EVERY = 3600.0
"""seconds between two times that a worker says it is still there with what it handles"""


class Publishing:
    """Tells others how to enqueue what this worker handles, all of it in one step."""

    def __init__(
        self, store: Store, hub: Hub, registry: Registry, types: Callable[[], Collection[str]], version: str | None
    ) -> None:
        self._store, self._registry, self._types, self._version = store, registry, types, version
        self._steady = Steady(hub, "publish what it handles")
        self._announced = False

    async def announce(self) -> None:
        """Say that a worker has started with these; what does not succeed now is tried again while it works."""
        await self._put()

    async def run(self) -> None:
        """Refresh what was published, until cancelled."""
        while True:
            if self._announced:
                await asyncio.sleep(EVERY * random.uniform(0.5, 1.0))
            await self._put()

    async def _put(self) -> None:
        handled = self._types()
        declared = [one.described(self._version) for one in self._registry if one.name in handled]
        announce = not self._announced

        async def put() -> bool:
            await self._store.types.put(declared, announce=announce)
            return True

        self._announced = bool(await self._steady.attempt(put)) or self._announced
