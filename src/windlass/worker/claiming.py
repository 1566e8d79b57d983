"""Claiming: as many jobs as there are free slots, in one call, woken by notice, by the next due time, or by poll."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.events import JobFenced
from windlass.stores.contract import Want
from windlass.worker.slots import Running
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windlass.core.events import Hub
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.stores.contract import Claimed, Store
    from windlass.worker.batching import Batching
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Slots

_UNPUSHED = 1.0  # seconds between polls at most, while nothing wakes us when others change something
_MOMENT, _LONGEST_MOMENT = 0.0005, 0.01  # seconds between claims that bring nothing although more may follow
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
        ramp_up: Callable[[int], None],
    ) -> None:
        self._store, self._config, self._registry, self._slots = store, config, registry, slots
        self._start, self._hand_back, self._hub, self._ramp_up = start, hand_back, hub, ramp_up
        self._steady = Steady(hub, "claim")
        self.wake = slots.look
        # Half the slots at a time: while one half runs here, the other is being claimed and settled in the store.
        self._most = max(_FEW, config.concurrency // 2)
        handled = frozenset[str]() if config.own else frozenset(one.name for one in registry)
        self.types = (handled | registry.built_in(config.queues)) - set(config.exclude)
        self._single = self.types - {one.name for one in registry if one.batch is not None}
        """those that are claimed here; of those that take batches each has a claim of its own"""
        self._batches: Sequence[Batching] = ()
        self.stopping = False
        self._under_way = 0
        self._asked = False
        self._in_vain = 0
        self._short = True
        """whether the last claim found less than it asked for: all there was"""
        self._plenty = asyncio.Event()
        """set while claims bring all that they ask for"""
        self._left = config.max_jobs
        """how many more jobs may be claimed by a worker that is to be recycled"""

    @property
    def empty(self) -> bool:
        """Whether the last claim found all there was, and no other is under way."""
        # A wake-up not yet followed is a claim not yet made: it may find something.
        here = not self._single or (self._asked and self._short and not self.wake.is_set())
        return here and not self._under_way and all(batching.empty for batching in self._batches)

    def add_batches(self, batches: Sequence[Batching]) -> None:
        """Claim for these, too, as far as this worker handles their types."""
        self._batches = [batching for batching in batches if batching.type in self.types]
        self._slots.batches = [batching.wake for batching in self._batches]

    def look(self) -> None:
        """Claim: there may be something."""
        self.wake.set()
        for batching in self._batches:
            batching.wake.set()

    def reserve(self, n: int) -> int:
        """How many of so many jobs may be claimed by a worker that is to be recycled; they count as claimed."""
        if self._left is None:
            return n
        room = min(n, self._left)
        self._left -= room
        return room

    def stop(self) -> None:
        """Claim no more."""
        self.stopping = True
        self.look()
        self._plenty.set()
        self._slots.freed.set()

    async def run(self) -> None:
        """Claim until stopped."""
        # One that is to be recycled counts what it claims: one claim after the other.
        others = 0 if self._left is not None else self._store.capabilities.claims_at_once - 1
        async with asyncio.TaskGroup() as claims:
            for batching in self._batches:
                claims.create_task(batching.run(), name=f"windlass-batches-{batching.type}")
            if self._single:
                claims.create_task(self._fill(), name="windlass-claims")
                for _ in range(others):
                    claims.create_task(self._fill_beside(), name="windlass-claims-beside")

    async def _fill(self) -> None:
        while not self.stopping:
            self._slots.freed.clear()
            room, by_queue = self._slots.free()
            room = self.reserve(min(room, self._most)) if room > 0 else 0
            if room < 1:
                await self._slots.freed.wait()
                continue
            self.wake.clear()
            jobs = await self._claim(room, by_queue)
            if jobs is None:
                continue
            if len(jobs) < room:
                if jobs:
                    await asyncio.sleep(0)  # what was claimed begins first
                await (self._wait_a_moment(jobs) if jobs.more else self._wait())

    async def _fill_beside(self) -> None:
        """While there is plenty: a claim is on its way while another is being written, but never a small one."""
        while not self.stopping:
            self._slots.freed.clear()
            room, by_queue = self._slots.free()
            if not self._plenty.is_set():
                await self._plenty.wait()
            elif room < self._most:
                await self._slots.freed.wait()
            else:
                jobs = await self._claim(self._most, by_queue)
                if jobs is not None and len(jobs) == self._most:
                    self.wake.set()  # there is more than the other may have seen

    async def _claim(self, n: int, by_queue: Mapping[str, int] | None) -> Claimed | None:
        """Start what the store has, at most n; returns it, or None if it could not be asked."""
        want = self._want(n, by_queue, self._single)
        before = time.monotonic()
        jobs = await self._ask(want)
        if jobs is None:
            self._asked = False
            self._plenty.clear()
            return None
        came_of_idling, self._short = self._short, len(jobs) < n and not jobs.more
        self._asked = True
        if len(jobs) < n:
            self._plenty.clear()
        else:
            self._plenty.set()
        self._begin(jobs, before)
        if by_queue is not None:
            self._note_exhausted(jobs, by_queue)
        if came_of_idling and not self._short and self._slots.full():
            self._ramp_up(n)
        return jobs

    async def claim_batch(
        self, type_: str, n: int, by_queue: Mapping[str, int] | None, begin: Callable[[Sequence[Running]], None]
    ) -> Claimed | None:
        """Claim at most n of one type for one slot, and let them begin there; None if the store could not be asked."""
        want = self._want(n, by_queue, frozenset({type_}))
        before = time.monotonic()
        jobs = await self._ask(want, slots=1)
        if jobs:
            self._receive(jobs, before, begin)
        return jobs

    def _want(self, n: int, by_queue: Mapping[str, int] | None, types: frozenset[str]) -> Want:
        return Want(
            worker_id=self._config.worker_id,
            n=n,
            lease=self._config.lease,
            queues=by_queue,
            weights=self._config.weights,
            types=types,
        )

    async def _ask(self, want: Want, slots: int | None = None) -> Claimed | None:
        self._under_way += 1
        jobs: Claimed | None = None
        try:
            with self._slots.asked(want, slots):
                jobs = await self._steady.attempt(lambda: self._store.jobs.claim(want))
        finally:
            self._under_way -= 1
            if self._left is not None:
                self._left += want.n - len(jobs or ())
        return jobs

    def _note_exhausted(self, jobs: list[Job], by_queue: Mapping[str, int]) -> None:
        brought = Counter(job.queue for job in jobs)
        exhausted = frozenset(name for name, most in by_queue.items() if brought[name] >= most)
        self._slots.exhausted = exhausted
        room = self._slots.free()[1] or {}
        if any(room[name] > 0 for name in exhausted):  # one of their jobs ended while the claim was under way
            self.wake.set()

    def _begin(self, jobs: list[Job], before: float) -> None:
        def begin(members: Sequence[Running]) -> None:
            for running in members:
                self._slots.take(running)
                self._start(running)

        self._receive(jobs, before, begin)

    def _receive(self, jobs: list[Job], before: float, begin: Callable[[Sequence[Running]], None]) -> None:
        valid_until = before + self._config.lease.total_seconds()
        # Of an answer that was long under way, as while a store fails over: the fence would stop the jobs at once.
        late = time.monotonic() > valid_until - self._config.fence.total_seconds()
        get = self._registry.get
        members: list[Running] = []
        for job in jobs:
            self._give_up_earlier(job)
            members.append(Running(job, get(job.type), valid_until))
        self._hub.claimed(jobs)
        if not late:
            begin(members)
            return
        for running in members:
            self._slots.take(running)
            self._hand_back(running, "the claim took longer than the lease")

    def _give_up_earlier(self, job: Job) -> None:
        # After a pause of this process its own lease may have been rescued, and the same job claimed here again.
        earlier = self._slots.running.get(job.id)
        if earlier is not None and not earlier.ended:
            earlier.stop("fence")
            self._hub.tell(JobFenced(earlier.job))

    async def _wait_a_moment(self, jobs: Claimed) -> None:
        """More may follow at once; but while it does not, rivals are left the time to get on."""
        self._in_vain = 0 if jobs else self._in_vain + 1
        await asyncio.sleep(min(_LONGEST_MOMENT, _MOMENT * 2**self._in_vain) if self._in_vain else 0)

    async def _wait(self) -> None:
        await self.wait(self.wake)

    async def wait(self, wake: asyncio.Event) -> None:
        """Until woken, or until it is time to look without that."""
        poll = self._config.poll.total_seconds()
        if not self._store.notices.healthy:
            poll = min(poll, _UNPUSHED)
        # Spread the polls of many workers that started together.
        poll *= random.uniform(0.8, 1.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(poll):
                await wake.wait()
