"""Shutdown: the first signal stops gracefully, the second hands everything back at once."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType


class Stoppable(Protocol):
    """What can be told to stop: kindly, or at once."""

    def stop(self, *, now: bool = False) -> None: ...


@contextmanager
def stopped_by_signals(worker: Stoppable) -> Generator[None, None, None]:
    """While inside, SIGTERM and SIGINT stop it; the second of either skips the grace period."""
    loop = asyncio.get_running_loop()
    seen = 0

    def stop() -> None:
        nonlocal seen
        seen += 1
        worker.stop(now=seen > 1)

    def caught(_signal: int, _frame: FrameType | None) -> None:
        # Not by loop.add_signal_handler: it hears of a signal through a byte in the loop's own pipe, and the byte is
        # lost when the pipe is full of wake-ups, as it is soon while a handler blocks the loop.
        loop.call_soon_threadsafe(stop)

    before = {one: signal.signal(one, caught) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
