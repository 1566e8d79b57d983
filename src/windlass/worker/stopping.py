"""Stopping: what runs has the grace period to end; what is left is handed back, its attempt not counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.core.outcome import Released

if TYPE_CHECKING:
    from datetime import timedelta

    from windlass.worker.attempt import Attempts
    from windlass.worker.outliving import Outliving
    from windlass.worker.slots import Slots

_OBEY = 0.5  # seconds a cancelled handler has to end, after its grace period


class Stopping:
    """Whether a worker is to stop, how fast, and what it does about its jobs then."""

    def __init__(self, grace: timedelta) -> None:
        self._grace = grace
        self._hurry = asyncio.Event()
        self.requested = asyncio.Event()
        self.gave_up = asyncio.Event()
        """set when the grace period is over"""
        self.abandoned = 0
        """handlers that would not end; only the end of the process ends them"""

    def request(self, *, now: bool) -> None:
        """Stop gracefully; with `now` skip the grace period."""
        if now:
            self._hurry.set()
        self.requested.set()

    async def let_end(self, slots: Slots, outliving: Outliving) -> None:
        """Wait until nothing runs that could end, at most for the grace period."""

        async def all_done() -> None:
            while slots.taken - outliving.stuck > 0 and not self._hurry.is_set():
                slots.freed.clear()
                await slots.freed.wait()

        hurry = asyncio.ensure_future(self._hurry.wait())
        done = asyncio.ensure_future(all_done())
        try:
            await asyncio.wait([hurry, done], timeout=self._grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            done.cancel()

    async def hand_back(self, slots: Slots, attempts: Attempts) -> None:
        """Stop what still runs and send it back to its queue."""
        self.gave_up.set()
        for running in list(slots.running.values()):
            running.stop("shutdown")
        if attempts.tasks:
            await asyncio.wait(attempts.tasks, timeout=_OBEY)
        # What does not end when it is cancelled cannot be made to: its job is handed back all the same.
        for members in attempts.tasks.values():
            self.abandoned += 1
            for running in members:
                if not running.ended:
                    attempts.settle(running, Released("the worker is stopping; the handler did not stop when told to"))
