"""Gauges: depths of queues and numbers of workers, sampled from time to time; samples are told as averages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from windlass.client.counting import counted
from windlass.client.workers import states
from windlass.core.status import Status

if TYPE_CHECKING:
    from windlass.stores.contract import Store

OTHER = "other"
MOST_QUEUES = 20
"""so many queues are told apart in a look, those with most in them; the others are `other`"""
_AGE = timedelta(minutes=1)
_MS = timedelta(milliseconds=1)
_COLUMNS = {
    Status.QUEUED: 0,
    Status.PROCESSING: 1,
    Status.SCHEDULED: 2,
    Status.RETRYING: 2,
    Status.BLOCKED: 3,
}


class Standing(NamedTuple):
    """What stood in a queue, summed over looks, and the longest wait of any of them."""

    waiting: int = 0
    running: int = 0
    scheduled: int = 0
    blocked: int = 0
    oldest_ms: int = 0

    @property
    def size(self) -> int:
        """All that had not ended."""
        return self.waiting + self.running + self.scheduled + self.blocked

    def plus(self, other: Standing) -> Standing:
        """Both."""
        return Standing(
            self.waiting + other.waiting,
            self.running + other.running,
            self.scheduled + other.scheduled,
            self.blocked + other.blocked,
            max(self.oldest_ms, other.oldest_ms),
        )


@dataclass(frozen=True, slots=True)
class Gauges:
    """Some looks, summed up."""

    looks: int
    queues: dict[str, Standing]
    workers: int
    slots: int
    used: int
    """slots in which something ran"""


async def look(store: Store) -> Gauges:
    """How it stands now. Costs little at any size: jobs are counted as seldom as `counted` has it."""
    figures = await store.views.figures(timedelta(0))
    counts = await counted(store, figures, _AGE)
    sums: dict[str, list[int]] = {}
    for one in counts.by:
        if one.status in _COLUMNS:
            sums.setdefault(one.queue, [0, 0, 0, 0])[_COLUMNS[one.status]] += one.count.n
    queues = {queue: Standing(*some) for queue, some in sums.items()}
    for info in await store.queues.list():
        known = queues.get(info.name, Standing())
        oldest = info.oldest // _MS if info.oldest is not None else 0
        # A list is of this moment, and exact as far as it goes; what is beyond was counted a while ago.
        waiting = info.depth.n if info.depth.exact else max(info.depth.n, known.waiting)
        running = info.processing.n if info.processing.exact else max(info.processing.n, known.running)
        queues[info.name] = Standing(waiting, running, known.scheduled, known.blocked, oldest)
    alive = [worker for worker in await states(store) if worker.alive]
    return Gauges(
        1,
        _largest({name: standing for name, standing in queues.items() if standing.size}),
        len(alive),
        sum(worker.slots for worker in alive),
        sum(worker.running for worker in alive),
    )


def sum_of_gauges(some: Iterable[Gauges]) -> Gauges:
    """All of these looks."""
    queues: dict[str, Standing] = {}
    looks = workers = slots = used = 0
    for one in some:
        looks, workers = looks + one.looks, workers + one.workers
        slots, used = slots + one.slots, used + one.used
        for queue, standing in one.queues.items():
            queues[queue] = queues.get(queue, Standing()).plus(standing)
    return Gauges(looks, _largest(queues), workers, slots, used)


def gauges_text(gauges: Gauges) -> str:
    """As the store keeps them."""
    rest = [gauges.looks, gauges.workers, gauges.slots, gauges.used]
    return json.dumps([*rest, gauges.queues], separators=(",", ":"))


def gauges_of(_at: datetime, text: str) -> Gauges:
    """From that text."""
    looks, workers, slots, used, queues = json.loads(text)
    return Gauges(looks, {queue: Standing(*some) for queue, some in queues.items()}, workers, slots, used)


def _largest(queues: dict[str, Standing], most: int = MOST_QUEUES) -> dict[str, Standing]:
    if len(queues) <= most:
        return queues
    names = sorted((name for name in queues if name != OTHER), key=lambda name: (-queues[name].size, name))
    kept = {name: queues[name] for name in names[:most]}
    rest = queues.get(OTHER, Standing())
    for name in names[most:]:
        rest = rest.plus(queues[name])
    return {**kept, OTHER: rest}
