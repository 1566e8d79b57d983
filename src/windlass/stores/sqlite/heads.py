"""Heads: where the first jobs that can be run stand, when many of types without a handler stand before them.

A claim that had to step over many looks at them with the file locked. The next ones look before that, on a snapshot:
what is queued before a head meanwhile is told of like everything that is queued after a claim.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from windlass.stores.sqlite.wanting import find_heads

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from windlass.stores.contract import Want
    from windlass.stores.sqlite.engine import Engine
    from windlass.stores.sqlite.wanting import Place

_SLOW = 0.005  # seconds of the processor: to look for jobs takes a tenth of it unless there is much to step over
_SHARE = 10  # how many times longer than it took, the next look is put off while there is enough behind the heads,
_LONGEST = 1.0  # but never longer than so many seconds: a job of higher priority may stand before them


class Found(NamedTuple):
    """Where a claim may begin in each queue: nowhere where it is None, at the beginning where nothing is said."""

    places: Mapping[str, Place | None]
    old: bool
    """found by an earlier claim: since then, something may have been queued before them"""


NOWHERE = Found({}, old=False)


class Heads:
    """The heads of the queues; in use only after a claim that was slow to find its jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._places: Mapping[str, Place | None] = {}
        self._of: object = None
        self._slow = False
        self._due = 0.0

    async def find(self, want: Want) -> Found:
        """Where a claim may begin."""
        if not self._slow:
            return NOWHERE
        asked = (want.types, None if want.queues is None else frozenset(want.queues))
        if time.monotonic() < self._due and asked == self._of:
            return Found(self._places, old=True)
        self._places, seconds = await self._engine.read(lambda db, _: self._look(db, want))
        self._of, self._slow = asked, seconds > _SLOW
        self._due = time.monotonic() + min(seconds * _SHARE, _LONGEST)
        return Found(self._places, old=False)

    def learn(self, seconds: float) -> None:
        """Be told how long a claim looked for its jobs with the file locked."""
        self._slow = self._slow or seconds > _SLOW

    def forget(self) -> None:
        """Look again next time."""
        self._due = 0.0

    def _look(self, db: sqlite3.Connection, want: Want) -> tuple[Mapping[str, Place | None], float]:
        began = time.thread_time()
        places = find_heads(db, self._engine.sql, want)
        return places, time.thread_time() - began
