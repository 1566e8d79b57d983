"""Shutdown: the first signal stops gracefully, the second hands everything back at once."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from windlass.worker.worker import Worker


@contextmanager
def stopped_by_signals(worker: Worker) -> Generator[None, None, None]:
    """While inside, SIGTERM and SIGINT stop the worker; the second of either skips the grace period."""
    loop = asyncio.get_running_loop()
    seen = 0

    def stop() -> None:
        nonlocal seen
        seen += 1
        worker.stop(now=seen > 1)

    signals = (signal.SIGTERM, signal.SIGINT)
    for one in signals:
        loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
