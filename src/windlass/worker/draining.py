"""Draining: a worker that is to stop when nothing is left to do finds out when that is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError

if TYPE_CHECKING:
    from windlass.worker.chores.promoting import Promoting
    from windlass.worker.claiming import Claiming
    from windlass.worker.settling import Settling
    from windlass.worker.slots import Slots

_EVERY = 0.02  # seconds


class Draining:
    """Looks at one worker and its store until both have nothing to do."""

    def __init__(self, promoting: Promoting, claiming: Claiming, slots: Slots, settling: Settling) -> None:
        self._promoting, self._claiming, self._slots, self._settling = promoting, claiming, slots, settling

    async def until_empty(self, stopped: asyncio.Event) -> None:
        """Return when nothing runs and nothing is due, or when stopped."""
        while not stopped.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY):
                    await stopped.wait()
            if self._idle() and await self._nothing_due():
                return

    def _idle(self) -> bool:
        return self._claiming.empty and not self._slots.taken and not self._settling.pending

    async def _nothing_due(self) -> bool:
        try:
            promoted = await self._promoting.promote(1)
        except StoreError:
            return False  # the chores tell of it and wait; a store that is away has not said that nothing is due
        return not promoted.promoted and not promoted.unblocked and self._idle()
