"""Figures of the store for metrics: read at most every few seconds, once for all scrapers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.client.queues import QueuesRoom
from windlass.client.stats import StatsRoom
from windlass.client.types import TypesRoom
from windlass.client.workers import Presence, WorkersRoom
from windlass.core.errors import WindlassError
from windlass.observability.measures import OTHER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.client.client import Client
    from windlass.client.workers import WorkerState
    from windlass.stores.contract import TypeInfo

EVERY = 5.0
"""seconds: figures of this age are not asked for again"""
FIRST, LATER = 1.0, 0.03
"""seconds that a scrape waits for figures: while there are none, and while there are older ones"""
SILENT = 3.0
"""seconds after which a store that has not answered counts as away"""
_LONGEST = 20.0
_SINCE = timedelta(minutes=1)
_CATALOGUE = 60.0
"""seconds: what types there are changes with deployments"""
_MOST_TYPES, _MOST_JOBS = 20, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How many jobs stand where, and how the workers are. Names of queues and types are known ones, or `other`."""

    jobs: Mapping[tuple[str, str], int]
    """by queue and status"""
    oldest: Mapping[str, float]
    """seconds that the longest-waiting queued job of each queue has waited"""
    paused: Mapping[str, int]
    """by queue: 1 where it is"""
    workers: Mapping[str, int]
    """by presence"""
    unhandled: Mapping[str, int]
    """waiting jobs of types that no live worker handles"""
    asked_at: float
    """by the monotonic clock"""


@dataclass(slots=True)
class _Catalogue:
    types: Sequence[TypeInfo] = ()
    queues: frozenset[str] = field(default_factory=frozenset[str])
    asked_at: float = float("-inf")


class Figures:
    """The newest figures, and whether the store answers. Asked in one event loop, read from any thread."""

    def __init__(self, client: Client, every: float = EVERY) -> None:
        self._client, self.every = client, every
        self._stats = StatsRoom(client)
        self._queues, self._workers = QueuesRoom(client, self._stats), WorkersRoom(client)
        self._types = TypesRoom(client)
        self._catalogue = _Catalogue()
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")
        self._failed = False
        self.latest: Standing | None = None

    @property
    def up(self) -> bool:
        """Whether the store answered when it was last asked something."""
        asking = self._asking is not None and not self._asking.done()
        began = max(self._asked_at, self._answered_at)
        return self.latest is not None and not self._failed and not (asking and time.monotonic() - began > SILENT)

    async def look(self) -> None:
        """Read the figures anew if they are old; return soon, whether or not the store has answered."""
        running = self._asking
        if running is None or running.done() or running.get_loop() is not asyncio.get_running_loop():
            if time.monotonic() - self._asked_at < self.every:
                return
            self._asked_at = time.monotonic()
            running = self._asking = asyncio.create_task(self._ask(), name="windlass-figures")
        waits = FIRST if self.latest is None and not self._failed else LATER
        await asyncio.wait([running], timeout=waits)

    async def close(self) -> None:
        """Ask no more."""
        running, self._asking = self._asking, None
        if running is not None and not running.done() and running.get_loop() is asyncio.get_running_loop():
            running.cancel()
            await asyncio.wait([running])

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST):
                self.latest = await self._standing()
            self._failed = False
        except (WindlassError, OSError, TimeoutError):
            # The reason is announced by the worker that uses the store; here only the fact counts.
            self._failed = True

    async def _standing(self) -> Standing:
        workers = await self._workers.list()
        self._answered_at = asked_at = time.monotonic()
        catalogue = await self._known_types()
        known = catalogue.queues | {queue for one in workers if one.alive for queue in one.queues}
        queues = await self._queues.list(max_age=self.every)
        oldest: defaultdict[str, float] = defaultdict(float)
        paused: defaultdict[str, int] = defaultdict(int)
        for queue in queues:
            name = queue.name if queue.name in known else OTHER
            waited = 0.0 if queue.oldest is None else queue.oldest.total_seconds()
            oldest[name] = max(oldest[name], waited)
            paused[name] = max(paused[name], int(queue.paused_at is not None))
        self._answered_at = time.monotonic()
        jobs: Counter[tuple[str, str]] = Counter()
        for one in (await self._stats.read(_SINCE, max_age=self.every)).counts.by:
            jobs[one.queue if one.queue in known else OTHER, one.status.value] += one.count.n
        self._answered_at = time.monotonic()
        return Standing(
            jobs=jobs,
            oldest=oldest,
            paused=paused,
            workers={kind.value: sum(one.presence is kind for one in workers) for kind in Presence},
            unhandled=await self._unhandled(workers, catalogue),
            asked_at=asked_at,
        )

    async def _known_types(self) -> _Catalogue:
        if time.monotonic() - self._catalogue.asked_at > _CATALOGUE:
            asked_at, types = time.monotonic(), await self._types.list()
            queues = {one.declared.enqueued_with.queue for one in types}
            registry = self._client.registry
            queues |= {one.options.queue for one in registry}
            queues |= {registry.get(name).options.queue for name in registry.built_in()}
            self._catalogue = _Catalogue(types, frozenset(queues), asked_at)
        return self._catalogue

    async def _unhandled(self, workers: Sequence[WorkerState], catalogue: _Catalogue) -> Mapping[str, int]:
        """Only types without a worker are counted: as a rule there are none."""
        known = {one.name for one in self._client.registry} | {one.declared.type for one in catalogue.types}
        handled = {name for one in workers if one.presence is Presence.ALIVE for name in one.types}
        names = sorted(known - handled - self._client.registry.built_in())
        found = {name: (await self._types.waiting(name, _MOST_JOBS)).n for name in names[:_MOST_TYPES]}
        return {name: n for name, n in found.items() if n}
