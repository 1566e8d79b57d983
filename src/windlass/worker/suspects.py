"""Suspects: a job that one more crash would fail is the only one of its kind in its worker.

When a worker dies, every job it held is found lost and has one crash more, the culprit and those that only happened to
be held beside it. So a worker holds one job on its last chance at a time and puts the others off, back into the store:
only the culprit meets its end there, the others finish in their turn.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.outcome import Snoozed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.job import Job
    from windlass.worker.slots import Running

STEP = timedelta(milliseconds=500)
LONGEST = timedelta(seconds=30)
_LOOK = 0.005  # seconds
NOTE = "one more crash would fail it, so it waits until it can run without others like it"


def is_suspect(job: Job) -> bool:
    """Whether its worker died under it before, and one more time would fail it."""
    return 0 < job.crashes >= job.max_crashes - 1


class Suspects:
    """The one that this worker holds, if any, and those it has put off."""

    def __init__(self, held_here: Mapping[str, Running]) -> None:
        self._held_here = held_here
        """by job id, everything whose end is not in the store yet"""
        self._one: Running | None = None
        self._put_off: list[Running] = []

    def hold(self, running: Running) -> Snoozed | None:
        """Nothing if the job may run now; else how it is put off, each a little longer than the one before."""
        if not is_suspect(running.job):
            return None
        if self._one is None:
            self._one, self._put_off = running, []
            return None
        self._put_off.append(running)
        return Snoozed(min(LONGEST, STEP * len(self._put_off)), NOTE)

    async def alone(self, running: Running) -> None:
        """Wait until the others are back in the store: what begins before that could take them along."""
        while self._some_left(running):  # noqa: ASYNC110  # the store's answer sets no event here
            await asyncio.sleep(_LOOK)

    def _some_left(self, running: Running) -> bool:
        return running is self._one and any(self._held_here.get(one.job.id) is one for one in self._put_off)

    def let_go(self, running: Running) -> None:
        """It has ended; the next may run."""
        if running is self._one:
            self._one = None
