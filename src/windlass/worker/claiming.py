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
    from collections.abc import Callable

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
        self.empty = False
        """whether the last claim found less than it asked for"""
        self.stopping = False
        self._left = config.max_jobs
        """how many more jobs may be claimed by a worker that is to be recycled"""

    def stop(self) -> None:
        """Claim no more."""
        self.stopping = True
        self.wake.set()
        self._slots.freed.set()

    async def run(self) -> None:
        """Claim until stopped, or until all has been claimed that this worker may."""
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
            want = Want(
                worker_id=self._config.worker_id,
                n=room,
                lease=self._config.lease,
                queues=by_queue,
                types=self.types,
            )
            self.empty = False
            before = time.monotonic()
            jobs = await self._steady.attempt(lambda want=want: self._store.jobs.claim(want))  # type: ignore[misc]  # bound per turn
            if jobs is None:
                continue
            self._begin(jobs, before)
            if self._left is not None:
                self._left -= len(jobs)
                if not self._left:
                    return
            self.empty = len(jobs) < room
            if self.empty:
                await self._wait()

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
