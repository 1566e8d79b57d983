"""Windlass's own jobs where no worker may be: a process that serves runs them itself while there are any.

The worker for them is there from the first one until the last has ended, so nothing is left running in a process that
nobody tells to stop.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.errors import WindlassError
from windlass.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.client.client import Client
    from windlass.client.operations import OperationsRoom
    from windlass.worker.config import WorkerConfig

LOG = logging.getLogger("windlass")
LOOK = 5.0
"""seconds between two looks whether any is left, while nothing tells of changes"""
_LEAST = 0.2
_AGAIN = 5.0  # seconds after an error of the store


class Own:
    """Runs windlass's own jobs in this process while there are any."""

    def __init__(
        self, client: Client, operations: OperationsRoom, apart: Callable[[], Client], config: WorkerConfig
    ) -> None:
        self._client, self._operations, self._apart, self._config = client, operations, apart, config
        self._running: asyncio.Task[None] | None = None
        self._needed = False

    def need(self) -> None:
        """There may be some: see to it that they run."""
        self._needed = True
        running = self._running
        if running is None or running.done() or running.get_loop() is not asyncio.get_running_loop():
            self._running = asyncio.create_task(self._run(), name="windlass-own")

    async def close(self) -> None:
        """Run no more; what is under way is handed back at its next safe point, for others to go on with."""
        running, self._running = self._running, None
        if running is not None and not running.done() and running.get_loop() is asyncio.get_running_loop():
            running.cancel()
            await asyncio.wait([running])

    async def _run(self) -> None:
        while self._needed:
            self._needed = False
            try:
                if await self._operations.under_way():
                    async with Worker(self._apart(), self._config):
                        await self._ended()
            except WindlassError as error:
                LOG.warning("windlass's own jobs cannot be run here now, again in %g s: %s", _AGAIN, error)
                self._needed = True
                await asyncio.sleep(_AGAIN)

    async def _ended(self) -> None:
        """Return when none is left."""
        async with self._client.changes() as changed:
            while True:
                changed.clear()
                if not await self._operations.under_way():
                    return
                await asyncio.sleep(_LEAST)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await changed.wait()
