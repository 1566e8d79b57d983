"""Counting: a listener that adds events to a tally. Where an event of a job counts is looked up once for its kind."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from windlass.core.events import Event, JobClaimed, JobEnded, JobStarted, LoopAnswered, WorkerStopped
from windlass.observability.measures import (
    JOB_WAIT,
    NOTIFIER_HEALTHY,
    OTHER,
    SLOTS,
    SLOTS_BUSY,
    SLOTS_STUCK,
    Bounds,
    Kind,
    measured,
)
from windlass.observability.tally import LONG, Tally

if TYPE_CHECKING:
    from collections.abc import Hashable

    from windlass.core.registry import Registry

_SUM = len(LONG) + 1


class Counting:
    """Counts every event by the table in `measures`; gauges are those of all workers of this process together."""

    def __init__(self, registry: Registry, tally: Tally) -> None:
        self._bounds, self._tally = Bounds(registry), tally
        self._places: dict[Hashable, tuple[tuple[int, ...], int]] = {}
        """where an event of a job counts: the cells that are one more, and where its seconds go, or -1"""
        self._waits: dict[tuple[str, str], int] = {}
        self._workers: dict[str, LoopAnswered] = {}

    def __call__(self, event: Event) -> None:
        # Three events of every job come by here: no object is made for them, and no label is looked up twice.
        if isinstance(event, JobClaimed):
            self._claimed(event)
        elif isinstance(event, JobStarted):
            self._count(event, (event.job.type, event.job.queue), 0.0)
        elif isinstance(event, JobEnded):
            self._ended(event)
        elif isinstance(event, (LoopAnswered, WorkerStopped)):
            self._of_worker(event)
        else:
            self._add(event)

    def _claimed(self, event: JobClaimed) -> None:
        job = event.job
        if job.wait_ms is None:
            return
        key = (job.type, job.queue)
        place = self._waits.get(key)
        if place is None:
            labels = (self._bounds.type(job.type), self._bounds.queue(job.queue))
            place = self._tally.place(JOB_WAIT, labels)
            if OTHER not in labels:
                self._waits[key] = place
        seconds, tally = job.wait_ms / 1000, self._tally
        with tally.lock:
            cells = tally.cells
            cells[place + bisect_left(LONG, seconds)] += 1
            cells[place + _SUM] += seconds

    def _ended(self, event: JobEnded) -> None:
        job, change = event.job, event.transition
        self._count(event, (job.type, job.queue, change.happened, change.to, change.crashed), event.seconds)

    def _count(self, event: JobStarted | JobEnded, key: Hashable, seconds: float) -> None:
        found = self._places.get(key)
        if found is None:
            found = self._found(event, key)
        ones, timed = found
        tally = self._tally
        with tally.lock:
            cells = tally.cells
            for place in ones:
                cells[place] += 1
            if timed >= 0:
                cells[timed + bisect_left(LONG, seconds)] += 1
                cells[timed + _SUM] += seconds

    def _found(self, event: JobStarted | JobEnded, key: Hashable) -> tuple[tuple[int, ...], int]:
        ones: list[int] = []
        timed, settled = -1, True
        for measure, _, labels in measured(event, self._bounds):
            place = self._tally.place(measure, labels)
            if measure.kind is Kind.SECONDS:
                timed = place
            else:
                ones.append(place)
            settled &= OTHER not in labels
        found = (tuple(ones), timed)
        if settled:  # what is unknown may be declared later
            self._places[key] = found
        return found

    def _of_worker(self, event: LoopAnswered | WorkerStopped) -> None:
        if isinstance(event, LoopAnswered):
            self._workers[event.worker_id] = event
        else:
            self._workers.pop(event.worker_id, None)
        self._add(event)
        every = list(self._workers.values())
        for measure, value in (
            (SLOTS, sum(one.slots for one in every)),
            (SLOTS_BUSY, sum(one.busy for one in every)),
            (SLOTS_STUCK, sum(one.stuck for one in every)),
            (NOTIFIER_HEALTHY, int(all(one.pushed for one in every))),
        ):
            self._tally.add(measure, value, ())

    def _add(self, event: Event) -> None:
        for measure, value, labels in measured(event, self._bounds):
            self._tally.add(measure, value, labels)
