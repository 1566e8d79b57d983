"""Batching: up to so many jobs of one type are claimed for one slot, and done in one call of their handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.core.transition import WORKER_DIED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.core.handler import Declaration
    from windlass.core.job import Job
    from windlass.worker.attempt import Attempts
    from windlass.worker.claiming import Claiming
    from windlass.worker.slots import Running, Slots

APART = "its worker died under it in a batch before, so it runs apart from others"
_MOMENT = 0.005  # seconds between claims that bring nothing although more may follow
_GROWTH = 4  # times as many are asked for after a claim without a suspect


class Batching:
    """The loop that fills slots with batches of one type."""

    def __init__(self, declaration: Declaration, slots: Slots, attempts: Attempts, claiming: Claiming) -> None:
        self._declaration, self._slots, self._attempts, self._claiming = declaration, slots, attempts, claiming
        self._most = declaration.batch or 1
        self._n = self._most
        """how many are asked for: one while jobs come that have to run apart"""
        self.wake = asyncio.Event()
        self._all_claimed = False

    @property
    def type(self) -> str:
        """Of the jobs."""
        return self._declaration.name

    @property
    def empty(self) -> bool:
        """Whether the last claim found all there was, and no other is under way or asked for."""
        return self._all_claimed and not self.wake.is_set()

    async def run(self) -> None:
        """Claim and start batches until the worker claims no more."""
        while not self._claiming.stopping:
            self._slots.freed.clear()
            room, by_queue = self._slots.free()
            n = self._claiming.reserve(self._n) if room > 0 else 0
            if n < 1:
                await self._slots.freed.wait()
                continue
            self.wake.clear()
            self._all_claimed = False
            jobs = await self._claiming.claim_batch(self.type, n, self._queues(by_queue), self._begin)
            if jobs is not None and len(jobs) < n and not jobs.more:
                self._all_claimed = True
                await self._claiming.wait(self.wake)
            elif jobs is not None and not jobs:
                await asyncio.sleep(_MOMENT)

    def _queues(self, by_queue: Mapping[str, int] | None) -> Mapping[str, int] | None:
        """Of each queue that has a slot left, as many as a batch takes."""
        return None if by_queue is None else {name: self._n if room > 0 else 0 for name, room in by_queue.items()}

    def _begin(self, members: Sequence[Running]) -> None:
        """Start what may run together. What has to run apart goes back, to be claimed by itself; or goes on alone."""
        apart = [member for member in members if has_to_run_apart(member.job)]
        self._n = 1 if apart else min(self._most, self._n * _GROWTH)
        together = [member for member in members if member not in apart] or apart[:1]
        for member in members:
            if member not in together:
                self._slots.take(member)
                self._attempts.hand_back(member, APART)
        if together:
            self._slots.take(*together)
            self._attempts.start_together(together)


def has_to_run_apart(job: Job) -> bool:
    """Whether its worker died under it: in a batch nobody knows which of the jobs it was."""
    return job.crashes > 0 or (job.error is not None and job.error.type == WORKER_DIED)
