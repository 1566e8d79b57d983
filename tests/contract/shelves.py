"""Places that tests take over from each other: their tables are made once and then emptied, which is far quicker."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from windlass.stores.contract import Store

RESTING = 3
"""A place is not used again before as many others were: what a killed process still had under way ends meanwhile."""


class Reusable(Protocol):
    """What a place on a server must be able to do to be used again."""

    def store(self) -> Store: ...

    def remember(self) -> None:
        """Note what opening a store has made here."""
        ...

    def emptied(self) -> bool:
        """Remove what a test has left; false if more than rows was changed, so that the place is of no more use."""
        ...

    def drop(self) -> None: ...


P = TypeVar("P", bound=Reusable)


class Shelf(Generic[P]):
    """The places of one kind, and those of them that wait to be used again."""

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self._resting: deque[P] = deque()

    @asynccontextmanager
    async def place(self, *, new: bool) -> AsyncGenerator[P, None]:
        """A place in which nothing is, but a store was opened before; `new`: in which nothing ever was."""
        if new:
            place = self._make()
            yield place
            place.drop()
        else:
            place = self._rested() or await prepared(self._make())
            yield place
            self._resting.append(place)

    def _rested(self) -> P | None:
        while len(self._resting) > RESTING:
            place = self._resting.popleft()
            if place.emptied():
                return place
            place.drop()
        return None


async def prepared(place: P) -> P:
    """The same place with tables in it."""
    store = place.store()
    await store.open()
    await store.close()
    place.remember()
    return place
