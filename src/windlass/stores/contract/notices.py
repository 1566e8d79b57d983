"""Notices: wake-ups, hints only; polling is the floor under them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class About(StrEnum):
    """What a notice is about, so that only processes with something to do react."""

    CLAIMABLE = "c"
    """jobs were queued"""
    DUE = "d"
    """something is to happen at a time: a job was scheduled or is retrying, a schedule was put or resumed"""
    CHANGED = "e"
    """a job ended, or changed otherwise"""
    CANCEL = "x"
    """a processing job was asked to stop: its worker should look which"""
    TYPES = "t"
    """a type has a newer version: clients that enqueue by name should read it again"""
    ANYTHING = "a"
    """something may have been missed: everyone should look at everything"""


LANES = 64
"""so many workers can each be told of single jobs without the others hearing of it"""
ENDS = LANES
"""one lane more, for what no worker has to do anything about: a job ended, or changed otherwise"""


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint. Its sender draws which of many idle workers follow it.

    One that tells of a single job travels in one of a few lanes, and the end of a job in another, so that a store can
    spare subscribers that would not follow it.
    """

    about: About
    queue: str | None = None
    """where jobs were queued; None is any queue, or several"""
    n: int = 1
    """how many were"""
    draw: int = 0
    """a random number, the same for every subscriber"""
    hop: int = 0
    """how often it was passed on by a worker that was chosen and had no free slot"""

    @property
    def lane(self) -> int | None:
        """The lane that it travels in; None reaches everybody."""
        if self.about is About.CHANGED:
            return ENDS
        alone = self.about is About.CLAIMABLE and self.n == 1 and not self.hop
        return self.draw % LANES if alone else None

    def text(self) -> str:
        """As it travels: short, and never anything of a job but its queue."""
        return f"{self.about.value}{self.n}.{self.draw}.{self.hop}.{self.queue or ''}"

    @staticmethod
    def of(text: str) -> Notice:
        """From its text; whatever else is found is a hint of anything."""
        try:
            n, draw, hop, queue = text[1:].split(".", 3)
            return Notice(About(text[:1]), queue or None, int(n), int(draw), int(hop))
        except ValueError:
            return ANYTHING

    @staticmethod
    def claimable(n: int, queue: str | None = None, hop: int = 0) -> Notice:
        """Jobs were queued; drawn anew."""
        return Notice(About.CLAIMABLE, queue, n, random.getrandbits(24), hop)


ANYTHING = Notice(About.ANYTHING)


class Notices(Protocol):
    """Wake-ups: hints, lossy by nature. Polling is the floor under them."""

    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener. The store's own operations tell of their changes by themselves."""
        ...

    def subscribe(self, wake: Callable[[Notice], None]) -> AbstractAsyncContextManager[None]:
        """Call `wake` in the running loop after changes, until left; re-opens for ever after faults.

        Several changes of a moment may be told as one. After a fault, and where a store cannot tell what was changed,
        the notice is about ANYTHING. An insert of queued jobs, a promotion and an unblocking are about CLAIMABLE.
        """
        ...

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Say which lanes a subscriber follows; None, as at first, is all of them. Others may be told all the same."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether changes made by others arrive by push now; if not, only polling finds them."""
        ...
