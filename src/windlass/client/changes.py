"""Changes: one subscription for all waiters for jobs, kept a while for the next.

To open and close one can take longer than a job: a change stream or a connection that listens.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from windlass.stores.contract import Notice, Notices

KEPT = 10.0
"""seconds that it is kept after the last has left"""


class Changes:
    """What is told in one loop of the changes of one store."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._waiting: set[asyncio.Event] = set()
        self._moved = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @contextmanager
    def told(self) -> Generator[asyncio.Event, None, None]:
        """An event that is set whenever something may have changed in the store."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        self._moved.set()
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep(), name="windlass-changes")
        try:
            yield changed
        finally:
            self._waiting.remove(changed)
            self._moved.set()

    async def close(self) -> None:
        """End the subscription."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _keep(self) -> None:
        async with self._notices.subscribe(self._tell):
            while self._moved.is_set():
                self._moved.clear()
                await self._moves(None if self._waiting else KEPT)
            self._keeper = None  # the next to wait begins anew

    async def _moves(self, within: float | None) -> None:
        try:
            async with asyncio.timeout(within):
                await self._moved.wait()
        except TimeoutError:
            return

    def _tell(self, _: Notice) -> None:
        # Whatever it is about may be what somebody waits for: only the job itself tells.
        for changed in self._waiting:
            changed.set()
