"""Watching: one look serves all who watch the same; each of them only remembers how far it was told."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.web.live.words import Word


class Feed(Protocol):
    """One client's place in what is watched: no more than what it was told last, however slow the client is."""

    @property
    def over(self) -> bool:
        """Whether there will be nothing more to tell."""
        ...

    def words(self) -> Sequence[Word]:
        """What has changed since the last call; states that came and went in between are not told."""
        ...


class Watch(ABC):
    """What is watched, as it was when it was last looked at."""

    def __init__(self) -> None:
        self.seen = False
        """whether it was looked at"""
        self.over = False
        """whether it is gone"""
        self._watching: list[asyncio.Event] = []
        self._first = asyncio.Lock()

    @property
    def watched(self) -> bool:
        """Whether anybody watches it."""
        return bool(self._watching)

    def join(self, woken: asyncio.Event) -> None:
        """Somebody watches, who is woken by this event."""
        self._watching.append(woken)

    def leave(self, woken: asyncio.Event) -> None:
        """The same does not any more."""
        self._watching.remove(woken)

    def tell(self) -> None:
        """Wake all who watch."""
        for woken in self._watching:
            woken.set()

    async def see(self) -> None:
        """Look for the first time, once for all who come at the same moment; raises what is wrong with the question."""
        async with self._first:
            if not self.seen:
                await self.look()
                self.seen = True

    @abstractmethod
    async def look(self) -> None:
        """Ask the store, and tell if something has changed."""

    @abstractmethod
    def feed(self, after: str | None) -> Feed:
        """A place in it, after what the client says it was told last."""
