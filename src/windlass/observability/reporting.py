"""Reporters of metrics: what a user writes in ten lines, or StatsD. Each event becomes calls of a reporter."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from windlass.core.errors import StoreError
from windlass.core.events import Event, LoopAnswered, WorkerStopped
from windlass.core.status import Status
from windlass.observability.logs import tell_raised
from windlass.observability.measures import (
    NOTIFIER_HEALTHY,
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from windlass.client.queues import QueuesRoom
    from windlass.client.stats import StatsRoom
    from windlass.client.workers import WorkersRoom
    from windlass.core.gathering import Claims, Ends
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.observability.measures import Measure

T = TypeVar("T")

EVERY = 5.0
"""seconds between two looks at the store"""


class MetricsReporter(Protocol):
    """Takes in figures. Called in the worker's loop and in other threads: it must be quick, and must not block."""

    def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """So many more of something."""
        ...

    def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """How much there is of something now."""
        ...

    def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None:
        """How long something took."""
        ...


@runtime_checkable
class TakesMany(Protocol):
    """A reporter that is quicker when it is given many times of one series at once."""

    def timings(self, name: str, seconds: Sequence[float], tags: Mapping[str, str]) -> None:
        """How long each of these took."""
        ...


class Reporting:
    """The listener that calls a reporter. If it raises, no job is harmed, and that is logged once.

    What happens to every job is told by the batch; that jobs have begun, with what happens next.
    """

    def __init__(self, reporter: MetricsReporter, registry: Registry) -> None:
        self._reporter, self._bounds = reporter, Bounds(registry)
        self._timings = reporter.timings if isinstance(reporter, TakesMany) else None
        self._tags: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, str]] = {}
        self._begun: deque[tuple[str, str]] = deque()
        """type and queue of jobs whose start is not reported yet; any thread may add and take"""
        self._pushed: dict[str, bool] = {}
        """by worker here: whether changes of the store are pushed to it"""
        self._troubled = False

    def __call__(self, event: Event) -> None:
        self._tell_begun()
        if isinstance(event, LoopAnswered):
            self._pushed[event.worker_id] = event.pushed
        elif isinstance(event, WorkerStopped):
            self._pushed.pop(event.worker_id, None)
        for measurement in measured(event, self._bounds):
            # Of a gauge a server keeps what it was told last: those of several workers would be that of one of them.
            if measurement.measure.kind is not Kind.GAUGE:
                self._tell(measurement)

    def take_claims(self, claims: Claims) -> None:
        """How long these had waited."""
        for of, seconds in claims.items():
            for measurement in waited(*of, self._bounds):
                self._tell_all(measurement, seconds)

    def take_start(self, job: Job) -> None:
        """One more has begun."""
        self._begun.append((job.type, job.queue))

    def take_ends(self, ends: Ends) -> None:
        """How these ended, and after how long."""
        self._tell_begun()
        for of, seconds in ends.items():
            for measurement in over(of, self._bounds):
                self._tell_all(measurement, seconds)

    def _tell_begun(self) -> None:
        found: Counter[tuple[str, str]] = Counter()
        with suppress(IndexError):
            while self._begun:
                found[self._begun.popleft()] += 1
        for of, n in found.items():
            for measurement in begun(*of, self._bounds):
                self._tell(measurement._replace(value=n))

    def _tell_all(self, measurement: Measurement, seconds: Sequence[float]) -> None:
        measure, labels = measurement.measure, measurement.labels
        if measure.kind is Kind.COUNT:
            self._tell(measurement._replace(value=len(seconds)))
        elif self._timings is not None:
            self._try(self._timings, measure.name, seconds, self._tags_of(measure, labels))
        else:
            for one in seconds:
                self._tell(measurement._replace(value=one))

    def _tell(self, measurement: Measurement) -> None:
        measure, value, labels = measurement
        self._report(measure.kind, measure.name, value, self._tags_of(measure, labels))

    def _tags_of(self, measure: Measure, labels: tuple[str, ...]) -> dict[str, str]:
        # Types, queues and outcomes are few: the same tags again and again.
        tags = self._tags.get((measure.labels, labels))
        if tags is None:
            tags = self._tags[measure.labels, labels] = dict(zip(measure.labels, labels, strict=True))
        return tags

    async def stand(
        self,
        queues: QueuesRoom,
        stats: StatsRoom,
        workers: WorkersRoom,
        on_duty: Callable[[], Awaitable[None]],
        every: float = EVERY,
    ) -> None:
        """Report how the store and all its workers stand, every few seconds, while this worker is the one on duty."""
        while True:
            await on_duty()
            try:
                found = await queues.list(max_age=every)
                dead = (await stats.counts(max_age=every)).of(status=Status.FAILED)
                there = [one for one in await workers.list() if one.alive]
            except StoreError:
                await asyncio.sleep(every)  # that it is away is announced by the worker's own calls
                continue
            for one in there:
                self._bounds.admit(one.queues)
            for queue in found:
                tags = {"queue": self._bounds.queue(queue.name)}
                if tags["queue"] == queue.name:  # of others there may be any number, and a gauge for all says nothing
                    self._report(Kind.GAUGE, "queue.depth", queue.depth.n, tags)
                    self._report(Kind.GAUGE, "queue.processing", queue.processing.n, tags)
                    self._report(
                        Kind.GAUGE, "queue.oldest_seconds", queue.oldest.total_seconds() if queue.oldest else 0, tags
                    )
            self._report(Kind.GAUGE, "jobs.dead", dead.n, {})
            for measure, value in (
                (SLOTS, sum(one.slots for one in there)),
                (SLOTS_BUSY, sum(one.running for one in there)),
                (SLOTS_STUCK, sum(one.stuck for one in there)),
                (NOTIFIER_HEALTHY, int(all(self._pushed.values()))),
            ):
                self._report(Kind.GAUGE, measure.name, value, {})
            await asyncio.sleep(every)

    def _report(self, kind: Kind, name: str, value: float, tags: Mapping[str, str]) -> None:
        match kind:
            case Kind.COUNT:
                self._try(self._reporter.increment, name, value, tags)
            case Kind.SECONDS:
                self._try(self._reporter.timing, name, value, tags)
            case Kind.GAUGE:
                self._try(self._reporter.gauge, name, value, tags)

    def _try(
        self, call: Callable[[str, T, Mapping[str, str]], None], name: str, told: T, tags: Mapping[str, str]
    ) -> None:
        try:
            call(name, told, tags)
        except Exception as error:  # noqa: BLE001  # code of the user, whose fault must harm no job
            if not self._troubled:
                self._troubled = True
                tell_raised(self._reporter, error)
