"""Waiting for something to become true."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

EVERY = 0.03


async def until(predicate: Callable[[], bool | Awaitable[bool]], within: float, every: float = EVERY) -> bool:
    """Whether it came true in time; the predicate may be a plain or an async function."""
    deadline = time.monotonic() + within
    while True:
        found = predicate()
        if await found if inspect.isawaitable(found) else found:
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(every)
