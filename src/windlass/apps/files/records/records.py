"""What every database does for files: read a file's state, and change it as one step, by a pure function."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from windlass import WindlassError
from windlass.apps.files.names import Name, Space
from windlass.apps.files.state import State

T = TypeVar("T")
_LONGEST_PAUSE = 0.05


class PathTaken(WindlassError):
    """Another file of the project has this place on disk."""

    def __init__(self) -> None:
        super().__init__("diskPath: another file of this project has that place on disk: give another path")


class Usage(NamedTuple):
    """What a project takes."""

    files: int
    bytes: int


class Project(NamedTuple):
    """A project in a list."""

    space: Space
    files: int
    bytes: int
    waiting: int


class Listed(NamedTuple):
    """A file in a list."""

    name: Name
    state: State


class Records(Protocol):
    """The states of all files, in one database."""

    async def prepare(self) -> None:
        """Make the tables that are missing."""
        ...

    async def read(self, name: Name) -> State | None:
        """What is committed of a file now: never what was before a commit that has been acknowledged."""
        ...

    async def change(self, name: Name, work: Callable[[State], tuple[State, T]]) -> T:
        """Change a file's state as one step; durable when this returns. What `work` raises changes nothing.

        `work` may be called more than once, each time with what is there then. Raises PathTaken.
        """
        ...

    async def usage(self, space: Space) -> Usage:
        """What a project takes, with every change that was acknowledged before."""
        ...

    async def files(self, space: Space, after: str, most: int) -> list[Listed]:
        """Files of a project by their names, those behind `after`."""
        ...

    async def projects(self, owner: str | None, after: Space | None, most: int) -> list[Project]:
        """Projects of an owner, or of all, in order."""
        ...

    def walk(self) -> AsyncIterator[Listed]:
        """All files."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...


class Held(NamedTuple):
    """A state with the number that it was read under."""

    revision: int
    state: State


NOTHING = Held(0, State())


class Swapping(ABC):
    """Changes by compare-and-set: for databases in which a function of ours cannot run inside a transaction."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[Name, asyncio.Lock] = WeakValueDictionary()
        """of this process: it does not contend with itself"""

    @abstractmethod
    async def held(self, name: Name) -> Held:
        """What is there; NOTHING where nothing is."""

    @abstractmethod
    async def swap(self, name: Name, revision: int, state: State) -> bool:
        """Put a state in the place of that with this number; whether it was still there. Raises PathTaken."""

    async def read(self, name: Name) -> State | None:
        """What is committed of a file now."""
        found = await self.held(name)
        return found.state if found.revision else None

    async def change(self, name: Name, work: Callable[[State], tuple[State, T]]) -> T:
        """Change a file's state as one step."""
        turn = self._turns.get(name)
        if turn is None:
            self._turns[name] = turn = asyncio.Lock()
        async with turn:
            pause = _LONGEST_PAUSE / 16
            while True:
                found = await self.held(name)
                state, told = work(found.state)
                if state == found.state and found.revision:
                    return told
                if await self.swap(name, found.revision, state):
                    return told
                await asyncio.sleep(random.uniform(0, pause))
                pause = min(pause * 2, _LONGEST_PAUSE)
