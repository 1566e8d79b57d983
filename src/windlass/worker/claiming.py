"""Claiming: as many jobs as there are free slots, in one call, woken by notice, by the next due time, or by poll."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.events import JobFenced
from windlass.stores.contract import Want
from windlass.worker.slots import Running
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.core.events import Hub
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Slots

_UNPUSHED = 1.0  # seconds between polls at most, while nothing wakes us when others change something
_FEW = 64  # so few slots are claimed for all at once: splitting them would only make more transactions


class Claiming:
    """The loop that fills free slots."""

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        registry: Registry,
        slots: Slots,
        hub: Hub,
        start: Callable[[Running], None],
        hand_back: Callable[[Running, str], None],
    ) -> None:
        self._store, self._config, self._registry, self._slots = store, config, registry, slots
        self._start, self._hand_back, self._hub = start, hand_back, hub
        self._steady = Steady(hub, "claim")
        self.wake = asyncio.Event()
        # Half the slots at a time: while one half runs here, the other is being claimed and settled in the store.
        self._most = max(_FEW, config.concurrency // 2)
        self.types = frozenset(one.name for one in registry) - set(config.exclude)
        self.stopping = False
        self._under_way = 0
        self._short = False
        self._plenty = asyncio.Event()
        """set while claims bring all that they ask for"""
        self._left = config.max_jobs
        """how many more jobs may be claimed by a worker that is to be recycled"""

    @property
    def empty(self) -> bool:
        """Whether the last claim found less than it asked for, and no other is under way."""
        return self._short and not self._under_way

    def stop(self) -> None:
        """Claim no more."""
        self.stopping = True
        self.wake.set()
        self._plenty.set()
        self._slots.freed.set()

    async def run(self) -> None:
        """Claim until stopped, or until all has been claimed that this worker may."""
        # One that is to be recycled counts what it claims: one claim after the other.
        others = 0 if self._left is not None else self._store.capabilities.claims_at_once - 1
        async with asyncio.TaskGroup() as claims:
            claims.create_task(self._fill(), name="windlass-claims")
            for _ in range(others):
                claims.create_task(self._fill_beside(), name="windlass-claims-beside")

    async def _fill(self) -> None:
        while not self.stopping:
            self._slots.freed.clear()
            room, by_queue = self._slots.free()
            if room < 1:
                await self._slots.freed.wait()
                continue
            self.wake.clear()
            room = min(room, self._most)
            if self._left is not None:
                room = min(room, self._left)
            found = await self._claim(room, by_queue)
            if self._left is not None and found is not None:
                self._left -= found
                if not self._left:
                    return
            if found is not None and found < room:
                await self._wait()

    async def _fill_beside(self) -> None:
        """While there is plenty: a claim is on its way while another is being written, but never a small one."""
        while not self.stopping:
            self._slots.freed.clear()
            room, by_queue = self._slots.free()
            if not self._plenty.is_set():
                await self._plenty.wait()
            elif room < self._most:
                await self._slots.freed.wait()
            elif await self._claim(self._most, by_queue) == self._most:
                self.wake.set()  # there is more than the other may have seen

    async def _claim(self, n: int, by_queue: Mapping[str, int] | None) -> int | None:
        """Start what the store has, at most n; returns how many, or None if it could not be asked."""
        want = Want(worker_id=self._config.worker_id, n=n, lease=self._config.lease, queues=by_queue, types=self.types)
        before = time.monotonic()
        self._under_way += 1
        try:
            with self._slots.asked(want):
                jobs = await self._steady.attempt(lambda: self._store.jobs.claim(want))
        finally:
            self._under_way -= 1
        self._short = jobs is not None and len(jobs) < n
        if jobs is None or self._short:
            self._plenty.clear()
        else:
            self._plenty.set()
        if jobs is None:
            return None
        self._begin(jobs, before)
        return len(jobs)

    def _begin(self, jobs: list[Job], before: float) -> None:
        valid_until = before + self._config.lease.total_seconds()
        # Of an answer that was long under way, as while a store fails over: the fence would stop the jobs at once.
        late = time.monotonic() > valid_until - self._config.fence.total_seconds()
        get = self._registry.get
        for job in jobs:
            self._give_up_earlier(job)
            running = Running(job, get(job.type), valid_until)
            self._slots.take(running)
            if late:
                self._hand_back(running, "the claim took longer than the lease")
            else:
                self._start(running)

    def _give_up_earlier(self, job: Job) -> None:
        # After a pause of this process its own lease may have been rescued, and the same job claimed here again.
        earlier = self._slots.running.get(job.id)
        if earlier is not None and not earlier.ended:
            earlier.stop("fence")
            self._hub.tell(JobFenced(earlier.job))

    async def _wait(self) -> None:
        poll = self._config.poll.total_seconds()
        if not self._store.notices.healthy:
            poll = min(poll, _UNPUSHED)
        # Spread the polls of many workers that started together.
        poll *= random.uniform(0.8, 1.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(poll):
                await self.wake.wait()
