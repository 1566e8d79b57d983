"""Outliving: a thread that goes on after its job was settled keeps its slot until it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from windlass.core.events import JobStuck

if TYPE_CHECKING:
    from windlass.core.events import Hub
    from windlass.worker.runners.thread import ThreadRunner
    from windlass.worker.slots import Running, Slots


class Outliving:
    """Counts the threads that cannot be stopped, and waits for each of them until the worker gives up."""

    def __init__(self, threads: ThreadRunner, slots: Slots, hub: Hub, gave_up: asyncio.Event) -> None:
        self._threads, self._slots, self._hub, self._gave_up = threads, slots, hub, gave_up
        self.stuck = 0

    async def outlive(self, running: Running) -> None:
        """Return when nothing of a settled job runs here any more."""
        if running.declaration.mode != "thread":
            return
        alive = self._threads.alive.pop(running.job.id, None)
        if alive is not None and not alive.done():
            await self._wait(running, alive)

    async def _wait(self, running: Running, alive: asyncio.Future[None]) -> None:
        self.stuck += 1
        self._slots.outlived[running.job.queue] += 1
        self._slots.freed.set()  # nobody who stops waits for this one any more
        self._hub.tell(JobStuck(running.job, self.stuck))
        gave_up = asyncio.ensure_future(self._gave_up.wait())
        either: list[asyncio.Future[Any]] = [alive, gave_up]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        gave_up.cancel()
        self.stuck -= 1
        self._slots.outlived[running.job.queue] -= 1
