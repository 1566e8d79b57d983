"""Prometheus: what was counted here, and how the store stands, as metrics that Prometheus reads.

Imported only where metrics are asked for: it needs the extra `metrics`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from windlass.observability.measures import (
    JOBS_CRASHED,
    JOBS_ENDED,
    JOBS_ENQUEUED,
    JOBS_FENCED,
    JOBS_REFUSED,
    JOBS_RESCUED,
    JOBS_RETRIED,
    JOBS_STARTED,
    MEASURES,
    OTHER,
    STORE_CALLS,
    STORE_ERRORS,
    STORE_FAILURES,
    TICKS,
    Kind,
    Measure,
)
from windlass.observability.tally import buckets_of, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from windlass.core.registry import Registry
    from windlass.observability.figures import Figures, Standing
    from windlass.observability.tally import Series

_PREFIX = "windlass_"
_UNITS = {Kind.COUNT: "_total", Kind.SECONDS: "_seconds", Kind.GAUGE: ""}
_KINDS = {Kind.COUNT: "counter", Kind.SECONDS: "histogram", Kind.GAUGE: "gauge"}
_STATUSES = ("queued", "scheduled", "retrying", "blocked", "processing", "succeeded", "failed", "cancelled")
_RESCUED_TO = ("queued", "failed")


@dataclass(frozen=True, slots=True)
class Described:
    """A metric as its reader meets it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def _described(measure: Measure) -> Described:
    name = _PREFIX + measure.name.replace(".", "_") + _UNITS[measure.kind]
    return Described(name, _KINDS[measure.kind], measure.labels, measure.help)


def _gauge(name: str, labels: tuple[str, ...], help: str) -> Described:
    return Described(_PREFIX + name, "gauge", labels, help)


COUNTED = {measure: _described(measure) for measure in MEASURES}
PROCESSES = _gauge("processes", (), "Processes whose counts are added up here.")
UP = _gauge("store_up", (), "1 while the store answers, else 0.")
AGE = _gauge("store_figures_age_seconds", (), "Age of the figures of the store.")
JOBS = _gauge("queue_jobs", ("queue", "status"), "Jobs by queue and status; failed ones are dead letters.")
OLDEST = _gauge("queue_oldest_waiting_seconds", ("queue",), "How long the longest-waiting queued job has waited.")
PAUSED = _gauge("queue_paused", ("queue",), "1 for a paused queue, else 0.")
WORKERS = _gauge("workers", ("presence",), "Workers of the store: alive, stopping, or silent and presumed dead.")
UNHANDLED = _gauge(
    "jobs_without_worker", ("type",), "Waiting jobs of types that no live worker handles; at most 1000 per type."
)
OF_STORE = (JOBS, OLDEST, PAUSED, WORKERS, UNHANDLED)
METRICS: tuple[Described, ...] = (*COUNTED.values(), PROCESSES, UP, AGE, *OF_STORE)
"""every metric there is"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from."""

    read: Callable[[], Series]
    figures: Figures
    processes: Callable[[], int] = lambda: 1


class Page(NamedTuple):
    """An answer to a scrape."""

    body: bytes
    content_type: str


class Prometheus(Collector):
    """The metrics of this process, or of all that count into one place; to be registered wherever metrics are kept.

    Figures of the store are those that were asked for last: `page` asks anew, `collect` alone asks nothing.
    """

    def __init__(self, source: Source, declared: Registry, registry: CollectorRegistry | None = None) -> None:
        self.source = source
        self._declared = declared
        self.registry = CollectorRegistry() if registry is None else registry
        self.registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """The names that it takes in a registry."""
        return [_family(one) for one in METRICS]

    def collect(self) -> Iterator[Metric]:
        """Every metric, those of the store as they were known last."""
        source = self.source
        by_measure: defaultdict[Measure, dict[tuple[str, ...], list[float]]] = defaultdict(dict)
        counted = source.read()
        for measure, labels in (*self._zeros(), *_zeros_of_calls(counted)):
            by_measure[measure][labels] = [0.0] * width_of(measure)
        for (measure, labels), cells in counted.items():
            by_measure[measure][labels] = cells
        for measure, described in COUNTED.items():
            yield _counted(described, measure, by_measure[measure])
        standing = source.figures.latest
        yield _gauges(PROCESSES, {(): source.processes()})
        yield _gauges(UP, {(): int(source.figures.up)})
        if standing is not None:
            yield _gauges(AGE, {(): time.monotonic() - standing.asked_at})
            yield from _of_store(standing)

    async def page(self, accept: str = "") -> Page:
        """All metrics of the registry, in the form that is accepted; the store is asked if that was long ago."""
        await self.source.figures.look()
        encode, content_type = choose_encoder(accept)
        return Page(encode(self.registry), content_type)

    def _zeros(self) -> Iterator[tuple[Measure, tuple[str, ...]]]:
        """What has not happened yet: without a 0 before it, the first time would look as if nothing had changed."""
        yield from ((measure, ()) for measure in MEASURES if measure.kind is not Kind.GAUGE and not measure.labels)
        yield from ((TICKS, (outcome,)) for outcome in ("fired", "skipped", "missed"))
        queues = {OTHER, *(one.options.queue for one in self._declared)}
        # A worker takes back jobs of whatever type.
        yield from ((JOBS_RESCUED, (OTHER, queue, to)) for queue in queues for to in _RESCUED_TO)
        for one in self._declared:
            labels = (one.name, one.options.queue)
            for measure in (JOBS_ENQUEUED, JOBS_STARTED, JOBS_RETRIED, JOBS_CRASHED, JOBS_REFUSED, JOBS_FENCED):
                yield measure, labels
            yield from ((JOBS_ENDED, (*labels, outcome)) for outcome in ("succeeded", "retrying", "failed"))
            yield from ((JOBS_RESCUED, (*labels, to)) for to in _RESCUED_TO)


def _zeros_of_calls(counted: Series) -> Iterator[tuple[Measure, tuple[str, ...]]]:
    """Failures of what the store has been called for."""
    for measure, labels in counted:
        if measure is STORE_CALLS:
            yield STORE_FAILURES, labels
            yield STORE_ERRORS, labels


def _family(one: Described) -> CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily:
    if one.kind == "counter":
        return CounterMetricFamily(one.name, one.help, labels=one.labels)
    if one.kind == "histogram":
        return HistogramMetricFamily(one.name, one.help, labels=one.labels)
    return GaugeMetricFamily(one.name, one.help, labels=one.labels)


def _counted(one: Described, measure: Measure, series: dict[tuple[str, ...], list[float]]) -> Metric:
    family = _family(one)
    bounds = [*map(_bound, buckets_of(measure)), "+Inf"]
    for labels, cells in sorted(series.items()):
        if isinstance(family, HistogramMetricFamily):
            family.add_metric(labels, list(zip(bounds, _running(cells[:-1]), strict=True)), cells[-1])
        else:
            family.add_metric(labels, cells[0])
    return family


def _bound(seconds: float) -> str:
    return str(float(seconds))


def _running(cells: Iterable[float]) -> Iterator[float]:
    total = 0.0
    for n in cells:
        total += n
        yield total


def _gauges(one: Described, values: dict[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(one.name, one.help, labels=one.labels)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def _of_store(standing: Standing) -> Iterator[Metric]:
    queues = {queue for queue, _ in standing.jobs} | set(standing.oldest)
    yield _gauges(JOBS, {(queue, it): standing.jobs.get((queue, it), 0) for queue in queues for it in _STATUSES})
    yield _gauges(OLDEST, {(queue,): seconds for queue, seconds in standing.oldest.items()})
    yield _gauges(PAUSED, {(queue,): paused for queue, paused in standing.paused.items()})
    yield _gauges(WORKERS, {(presence,): n for presence, n in standing.workers.items()})
    yield _gauges(UNHANDLED, {(type_,): n for type_, n in standing.unhandled.items()})
