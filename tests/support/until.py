"""Waiting for something to become true: the only waiting that tests do."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

# Short at first, because most waits end at once; longer later, to leave the processor to the work waited for.
FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.05


def longer(pause: float) -> float:
    return min(pause * 1.5, LONGEST_PAUSE)


def gave_up(what: str, within: float, last: object) -> AssertionError:
    return AssertionError(f"waited {within:g} s for: {what}; last value: {last!r}")


@overload
async def until(predicate: Callable[[], Awaitable[T]], what: str, within: float = 10.0) -> T: ...
@overload
async def until(predicate: Callable[[], T], what: str, within: float = 10.0) -> T: ...
async def until(predicate: Callable[[], T | Awaitable[T]], what: str, within: float = 10.0) -> T:
    """Returns the predicate's first truthy value; raises AssertionError naming `what` when there is none in time.

    The predicate may be a plain or an async function. What it raises is not caught.
    """
    last: T | None = None
    pause = FIRST_PAUSE
    limit = asyncio.timeout(within)
    try:
        async with limit:
            while True:
                found = predicate()
                last = await found if inspect.isawaitable(found) else found
                if last:
                    return last
                await asyncio.sleep(pause)
                pause = longer(pause)
    except TimeoutError:
        if not limit.expired():  # the predicate's own
            raise
        raise gave_up(what, within, last) from None


def until_sync(predicate: Callable[[], T], what: str, within: float = 10.0) -> T:
    """The same for code without an event loop."""
    pause = FIRST_PAUSE
    deadline = time.monotonic() + within
    while True:
        last = predicate()
        if last:
            return last
        if time.monotonic() >= deadline:
            raise gave_up(what, within, last)
        time.sleep(pause)
        pause = longer(pause)
