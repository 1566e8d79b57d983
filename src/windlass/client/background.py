"""What goes on after an answer was given: one call of each name at a time, ended when the client closes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Background:
    """Calls that somebody began and need not wait for."""

    def __init__(self) -> None:
        self._going: dict[str, asyncio.Task[Any]] = {}

    async def within(self, seconds: float, name: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """The result, if it is there so soon; else None, and the call goes on. If one of that name goes on already,
        its result is waited for.
        """
        task: asyncio.Task[T] | None = self._going.get(name)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._going[name] = asyncio.create_task(call())
            task.add_done_callback(lambda done: self._ended(name, done))
        await asyncio.wait([task], timeout=seconds)
        return task.result() if task.done() else None

    async def close(self) -> None:
        """End all of them."""
        loop = asyncio.get_running_loop()
        tasks = [task for task in self._going.values() if task.get_loop() is loop]
        self._going.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, name: str, done: asyncio.Task[Any]) -> None:
        if self._going.get(name) is done:
            del self._going[name]
        if not done.cancelled():
            done.exception()  # told to who waits; the next who needs it asks again
