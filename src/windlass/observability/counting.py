"""Counting: a listener that adds events to a tally. Where an event of a job counts is looked up once for its kind."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from windlass.core.events import Event, LoopAnswered, WorkerStopped
from windlass.observability.measures import (
    NOTIFIER_HEALTHY,
    OTHER,
    SLOTS,
    SLOTS_BUSY,
    SLOTS_STUCK,
    Bounds,
    Kind,
    Measurement,
    begun,
    measured,
    over,
    waited,
)
from windlass.observability.tally import LONG, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.gathering import Claims, Ending, Ends
    from windlass.core.job import Job
    from windlass.core.registry import Registry

K = TypeVar("K")
_Places: TypeAlias = dict[K, tuple[list[int], int]]
"""where what happens to jobs counts: the cells that are one more for each, and where their seconds go, or -1"""
_SUM = len(LONG) + 1
_PLACE = partial(bisect_left, LONG)


class Counting:
    """Counts every event by the table in `measures`; gauges are those of all workers of this process together."""

    def __init__(self, registry: Registry, tally: Tally) -> None:
        self._bounds, self._tally = Bounds(registry), tally
        self._claims: _Places[tuple[str, str]] = {}
        self._starts: _Places[tuple[str, str]] = {}
        self._ends: _Places[Ending] = {}
        self._workers: dict[str, LoopAnswered] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, (LoopAnswered, WorkerStopped)):
            self._of_worker(event)
        else:
            self._add(event)

    # What happens to every job: no event is made of it, and no label is looked up twice.

    def take_claims(self, claims: Claims) -> None:
        """How long these had waited."""
        for of, seconds in claims.items():
            known = self._claims.get(of)
            self._count(known or self._found(self._claims, of, waited(*of, self._bounds)), seconds)

    def take_start(self, job: Job) -> None:
        """One more has begun."""
        of = (job.type, job.queue)
        known = self._starts.get(of) or self._found(self._starts, of, begun(*of, self._bounds))
        tally = self._tally
        with tally.lock:
            tally.cells[known[0][0]] += 1

    def take_ends(self, ends: Ends) -> None:
        """How these ended, and after how long."""
        for of, seconds in ends.items():
            known = self._ends.get(of)
            self._count(known or self._found(self._ends, of, over(of, self._bounds)), seconds)

    def _count(self, places: tuple[list[int], int], seconds: Sequence[float]) -> None:
        ones, timed = places
        spread = Counter(map(_PLACE, seconds if timed >= 0 else ()))
        with self._tally.lock:
            cells = self._tally.cells
            for place in ones:
                cells[place] += len(seconds)
            for bucket, n in spread.items():
                cells[timed + bucket] += n
            if timed >= 0:
                cells[timed + _SUM] += sum(seconds)

    def _found(self, places: _Places[K], of: K, measurements: Sequence[Measurement]) -> tuple[list[int], int]:
        ones: list[int] = []
        timed, settled = -1, True
        for measure, _, labels in measurements:
            place = self._tally.place(measure, labels)
            if measure.kind is Kind.SECONDS:
                timed = place
            else:
                ones.append(place)
            settled &= OTHER not in labels
        if settled:  # what is unknown may be declared later
            places[of] = ones, timed
        return ones, timed

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
