"""Lanes: which of them the listeners of one store follow together, and word of it to the one who listens for them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.stores.contract import LANES

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.stores.contract import Notice

ALL = frozenset(range(LANES))


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
        """Somebody subscribes."""
        self._set(wake, None)

    def leave(self, wake: Callable[[Notice], None]) -> None:
        """Somebody leaves."""
        before = self.followed
        self._of.pop(wake, None)
        self._tell_if_other_than(before)

    def heed(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """A subscriber follows these from now on."""
        if wake in self._of:
            self._set(wake, lanes)

    def watched(self) -> asyncio.Event:
        """An event of the running loop that is set whenever others are followed than before."""
        moved = asyncio.Event()
        self._watching = asyncio.get_running_loop(), moved
        return moved

    def _set(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        before = self.followed
        self._of[wake] = lanes
        self._tell_if_other_than(before)

    def _tell_if_other_than(self, before: frozenset[int]) -> None:
        if self._watching is not None and self.followed != before:
            loop, moved = self._watching
            with suppress(RuntimeError):  # that loop has closed, and nobody listens there any more
                loop.call_soon_threadsafe(moved.set)
