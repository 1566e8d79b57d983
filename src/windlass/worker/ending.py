"""Ending calls that may not end by themselves: a driver may swallow a cancellation, or never answer after one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine

_AGAIN = 0.2  # seconds between two cancellations


async def end_all(tasks: Collection[asyncio.Task[Any]], within: float | None = None) -> bool:
    """Cancel them, again and again, until they have ended; whether they have, where there is a bound."""
    until = None if within is None else asyncio.get_running_loop().time() + within
    while pending := [task for task in tasks if not task.done()]:
        if until is not None and asyncio.get_running_loop().time() > until:
            return False
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_AGAIN)
    return True


async def done_within(seconds: float, call: Coroutine[Any, Any, Any]) -> bool:
    """Whether a call has ended by itself, however, in this time; if not, it is made to end as far as possible."""
    task = asyncio.ensure_future(call)
    _, pending = await asyncio.wait([task], timeout=seconds)
    if pending:
        await end_all(pending, seconds)
    elif not task.cancelled():
        task.exception()  # looked at, so that nobody is told of it
    return not pending
