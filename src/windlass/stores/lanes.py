"""Lanes: which of them the subscribers of one store follow together, and how its listener learns of that."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from windlass.stores.contract import ENDS, LANES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from windlass.stores.contract import Notice

_AGAIN = 0.2  # seconds after which one that did not end is asked once more
ALL = frozenset({*range(LANES), ENDS})


class Lanes:
    """What the subscribers of one store said of the lanes they follow. One who said nothing follows all."""

    def __init__(self) -> None:
        self._of: dict[Callable[[Notice], None], frozenset[int] | None] = {}
        self._watching: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def followed(self) -> frozenset[int]:
        """All that somebody follows."""
        lanes = list(self._of.values())
        return frozenset[int]().union(*[ALL if each is None else each for each in lanes]) if lanes else ALL

    def enter(self, wake: Callable[[Notice], None]) -> None:
        """Add a subscriber."""
        self._set(wake, None)

    def leave(self, wake: Callable[[Notice], None]) -> None:
        """Remove a subscriber."""
        before = self.followed
        self._of.pop(wake, None)
        self._tell_if_other_than(before)

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """A subscriber follows these from now on."""
        if wake in self._of:
            self._set(wake, lanes)

    def watched(self) -> asyncio.Event:
        """An event of the running loop that is set whenever others are followed than before."""
        moved = asyncio.Event()
        self._watching = asyncio.get_running_loop(), moved
        return moved

    @asynccontextmanager
    async def kept(
        self, change: Callable[[list[int], list[int]], Awaitable[None]], faults: tuple[type[Exception], ...]
    ) -> AsyncGenerator[None, None]:
        """Give `change` the lanes to follow and those to leave, at first and whenever they change, while inside.

        A connection that fails there also fails its reader, which is told of it: such faults are not reported here.
        """
        keeper = asyncio.create_task(self._keep(change, faults), name="windlass-lanes")
        try:
            yield
        finally:
            while not keeper.done():  # a driver may swallow a cancellation that meets an answer on its way
                keeper.cancel()
                await asyncio.wait([keeper], timeout=_AGAIN)

    async def _keep(
        self, change: Callable[[list[int], list[int]], Awaitable[None]], faults: tuple[type[Exception], ...]
    ) -> None:
        moved, before = self.watched(), frozenset[int]()
        moved.set()
        while True:
            await moved.wait()
            moved.clear()
            lanes = self.followed
            with suppress(*faults):
                await change(sorted(lanes - before), sorted(before - lanes))
                before = lanes

    def _set(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        before = self.followed
        self._of[wake] = lanes
        self._tell_if_other_than(before)

    def _tell_if_other_than(self, before: frozenset[int]) -> None:
        if self._watching is not None and self.followed != before:
            loop, moved = self._watching
            with suppress(RuntimeError):  # that loop has closed, and nobody listens there any more
                loop.call_soon_threadsafe(moved.set)
