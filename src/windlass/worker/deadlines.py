"""Deadlines: jobs that run past their timeout are stopped.

One look over what runs, ten times a second, instead of a timer per job: at thousands of jobs a second the loop's heap
of timers would cost more than the jobs. Timeouts under a second have a timer of their own, to be exact.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.worker.slots import Running, Slots

_EVERY = 0.1
_SHORT = 1.0


class Deadlines:
    """Watches what holds a slot; sleeps while nothing does."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._some = asyncio.Event()

    def begin(self, running: Running) -> None:
        """Watch a job whose own time begins now."""
        if running.job.timeout is None:
            return
        left = running.job.timeout.total_seconds()
        running.deadline = time.monotonic() + left
        if left < _SHORT:
            asyncio.get_running_loop().call_later(left, running.stop, "timeout")
        elif not self._some.is_set():
            self._some.set()

    async def run(self) -> None:
        """Stop what is overdue, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_EVERY)
            now = time.monotonic()
            for running in list(self._slots.running.values()):
                if running.deadline is not None and now >= running.deadline:
                    running.stop("timeout")
            if not self._slots.running:
                self._some.clear()
