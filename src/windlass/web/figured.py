"""Figured: figures as they go out, and what they are made of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.client.figures import By, RunFigures, figures_of, kinds_of, total_of
from windlass.client.stepping import step_of
from windlass.core.status import Status
from windlass.web.shapes import Instant, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.client.charts import Charts
    from windlass.client.stats import Overview
    from windlass.stores.contract import Minute


class CountShape(Shape):
    """How many jobs of a queue stand in a status."""

    queue: str
    status: str
    count: int
    exact: bool


class RunsShape(Shape):
    """How the runs that ended did; percentiles are right within a tenth."""

    runs: int
    error_rate: float
    average_run_ms: float | None
    average_wait_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    least_ms: int | None
    most_ms: int | None
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    wait_p99_ms: float | None
    wait_most_ms: int | None


class TypeRunsShape(RunsShape):
    """The same of one type."""

    type: str


class EndedShape(Shape):
    """How many runs of a type in a queue ended in a status, and how long they took."""

    queue: str
    type: str
    status: str
    count: int
    avg_duration_ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    least_ms: int | None
    most_ms: int | None


class StandingShape(Shape):
    """How many jobs of a queue stand in a status, and how long the runs that ended so lately took."""

    count: int
    avg_duration_ms: float | None


class PointShape(Shape):
    """What ended in one step of the series."""

    at: Instant
    succeeded: int
    failed: int
    retrying: int
    cancelled: int


class StatsShape(Shape):
    """Figures: how many stand where, and how those that ended lately did."""

    counts: list[CountShape]
    queues: dict[str, dict[str, StandingShape]]
    """by queue and status"""
    all: RunsShape
    types: list[TypeRunsShape]
    ended: list[EndedShape]
    """by queue, type and status"""
    failed: int
    failed_last_hour: int
    whole: bool
    """false where a user has more jobs than are looked at: then all of this is of their newest ones"""

    since_seconds: float
    step_seconds: int
    series: list[PointShape]
    """throughput, oldest first, without gaps"""


class WaitingShape(Shape):
    """How many jobs stand where, in the words of other queues."""

    waiting: int
    active: int
    completed: int
    failed: int
    delayed: int


class QueueStatsShape(Shape):
    """The same figures, in the words and the shape of others: `completed` for what succeeded."""

    bull: WaitingShape
    database: dict[str, dict[str, StandingShape]]


class BandShape(Shape):
    """How long something took: percentiles are right within a tenth, the rest exactly. Null where there was nothing."""

    n: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    least_ms: int | None
    most_ms: int | None


class StepShape(PointShape):
    """What ended in one step, how long it took and had waited."""

    other: int
    """handed back, snoozed or suspended"""
    per_minute: float
    error_rate: float
    run: BandShape
    wait: BandShape


class HeatShape(Shape):
    """The runs of about one length: how many ended in each step."""

    from_ms: int
    to_ms: int
    n: list[int]


class BacklogShape(Shape):
    """What stood in a queue at each step, on average; null where nobody looked."""

    queue: str
    waiting: list[float | None]
    running: list[float | None]
    scheduled: list[float | None]
    blocked: list[float | None]
    oldest_ms: list[float | None]


class FleetShape(Shape):
    """Who worked at each step, on average; null where nobody looked."""

    workers: list[float | None]
    slots: list[float | None]
    used: list[float | None]


class ChartsShape(Shape):
    """One axis of time, and what there is to draw on it: every series has a value for each step, oldest first."""

    at: Instant
    since_seconds: float
    step_seconds: int
    steps: list[Instant]
    """when each begins; the last one goes on"""
    points: list[StepShape]
    total: StepShape
    heat: list[HeatShape]
    """from the shortest runs to the longest"""
    backlog: list[BacklogShape]
    """the queues with most in them first; those beyond the largest are one, `other`"""
    fleet: FleetShape


def stats_shape(seen: Overview, *, type_: str | None, queue: str | None) -> StatsShape:
    """Of a type or a queue, where one is named."""
    minutes = [one for one in seen.minutes if type_ in (None, one.type) and queue in (None, one.queue)]
    return StatsShape(
        counts=[
            CountShape(queue=one.queue, status=one.status.value, count=one.count.n, exact=one.count.exact)
            for one in seen.counts.by
            if queue in (None, one.queue)
        ],
        queues=_standing(seen, minutes, queue),
        all=RunsShape(**_runs(total_of(minutes))),
        types=[TypeRunsShape(type=name, **_runs(runs)) for name, runs in figures_of(minutes, By.TYPE).items()],
        ended=_ended(minutes),
        failed=_failed(minutes),
        failed_last_hour=seen.failed_last_hour(queue=queue, type=type_),
        whole=seen.whole,
        since_seconds=seen.since.total_seconds(),
        step_seconds=step_of(seen.since) // timedelta(seconds=1),
        series=_series(seen, type_, queue),
    )


def charts_shape(drawn: Charts) -> ChartsShape:
    """What there is to draw."""
    return ChartsShape(
        at=drawn.at,
        since_seconds=drawn.since.total_seconds(),
        step_seconds=drawn.step // timedelta(seconds=1),
        steps=list(drawn.steps),
        points=[StepShape.model_validate(asdict(point)) for point in drawn.points],
        total=StepShape.model_validate(asdict(drawn.total)),
        heat=[HeatShape.model_validate(asdict(band)) for band in drawn.heat],
        backlog=[BacklogShape.model_validate(asdict(line)) for line in drawn.backlog],
        fleet=FleetShape.model_validate(asdict(drawn.fleet)),
    )


def queue_stats_shape(seen: Overview) -> QueueStatsShape:
    """In the words of other queues."""
    by = {status: seen.counts.of(status=status).n for status in Status}
    return QueueStatsShape(
        bull=WaitingShape(
            waiting=by[Status.QUEUED] + by[Status.BLOCKED],
            active=by[Status.PROCESSING],
            completed=by[Status.SUCCEEDED],
            failed=by[Status.FAILED],
            delayed=by[Status.SCHEDULED] + by[Status.RETRYING],
        ),
        database={
            name: {_THEIRS.get(status, status): one for status, one in states.items()}
            for name, states in _standing(seen, seen.minutes, None).items()
        },
    )


_THEIRS = {"succeeded": "completed"}


def _standing(seen: Overview, minutes: Sequence[Minute], queue: str | None) -> dict[str, dict[str, StandingShape]]:
    sums: defaultdict[tuple[str, Status], list[int]] = defaultdict(lambda: [0, 0])
    for one in minutes:
        runs = sums[one.queue, one.status]
        runs[0], runs[1] = runs[0] + one.n, runs[1] + one.run.total_ms
    standing: defaultdict[str, dict[str, StandingShape]] = defaultdict(dict)
    for stand in seen.counts.by:
        if queue in (None, stand.queue):
            n, took = sums[stand.queue, stand.status]
            average = took / n if n else None
            standing[stand.queue][stand.status.value] = StandingShape(count=stand.count.n, avg_duration_ms=average)
    return standing


def _ended(minutes: list[Minute]) -> list[EndedShape]:
    return [
        EndedShape(
            queue=kind.queue,
            type=kind.type,
            status=kind.status.value,
            count=band.n,
            avg_duration_ms=band.average_ms or 0,
            p50_ms=band.p50_ms,
            p95_ms=band.p95_ms,
            p99_ms=band.p99_ms,
            least_ms=band.least_ms,
            most_ms=band.most_ms,
        )
        for kind, band in sorted((kind, figures.run_band) for kind, figures in kinds_of(minutes).items())
        if band.n
    ]


def _series(seen: Overview, type_: str | None, queue: str | None) -> list[PointShape]:
    return [
        PointShape(
            at=begin,
            succeeded=ended[Status.SUCCEEDED],
            failed=ended[Status.FAILED],
            retrying=ended[Status.RETRYING],
            cancelled=ended[Status.CANCELLED],
        )
        for begin, ended in seen.series(type=type_, queue=queue)
    ]


def _failed(minutes: Iterable[Minute]) -> int:
    return sum(one.n for one in minutes if one.status is Status.FAILED)


def _runs(runs: RunFigures) -> dict[str, Any]:
    run, wait = runs.run_band, runs.wait_band
    return {
        "runs": runs.runs,
        "error_rate": runs.error_rate,
        "average_run_ms": run.average_ms,
        "average_wait_ms": wait.average_ms,
        "p50_ms": run.p50_ms,
        "p95_ms": run.p95_ms,
        "p99_ms": run.p99_ms,
        "least_ms": run.least_ms,
        "most_ms": run.most_ms,
        "wait_p50_ms": wait.p50_ms,
        "wait_p95_ms": wait.p95_ms,
        "wait_p99_ms": wait.p99_ms,
        "wait_most_ms": wait.most_ms,
    }
