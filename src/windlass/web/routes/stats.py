"""Statistics: how many jobs stand where, and how those that ended lately did."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from windlass.client.figures import By, RunFigures, figures_of, total_of
from windlass.client.stepping import step_of
from windlass.core.status import Status
from windlass.web.asking import App, Reader
from windlass.web.given import Name
from windlass.web.shapes import Instant, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.client.stats import Overview
    from windlass.stores.contract import Minute

router = APIRouter(tags=["statistics"])
HOUR = timedelta(hours=1)
Since = Annotated[float, Query(gt=0, le=2_592_000)]


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


@router.get("/queue/stats", summary="Figures")
async def stats(
    app: App, caller: Reader, since: Since = 3600, type: Name | None = None, queue: Name | None = None
) -> StatsShape:
    """How many jobs stand where, and how those that ended in the last `since` seconds did, of a type or a queue.

    How many stand where is known by queue and status, not by type. Series have a point for every minute up to three
    hours, and at most about 180 of them. One user's key is told of that user's jobs alone: of the newest 2,000, each
    counted once.
    """
    room = caller.stats(app)
    seen = await room.read(since=since)
    minutes = [one for one in seen.minutes if type in (None, one.type) and queue in (None, one.queue)]
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
        failed_last_hour=seen.failed_last_hour(queue=queue, type=type),
        since_seconds=since,
        step_seconds=step_of(seen.since) // timedelta(seconds=1),
        series=_series(seen, type, queue),
    )


@router.get("/queue-stats", summary="Figures in the words of other queues")
async def queue_stats(app: App, caller: Reader) -> QueueStatsShape:
    """How many jobs wait, run, have completed and have failed, and by queue how long that took on average."""
    seen = await caller.stats(app).read(since=24 * HOUR)
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
    sums: defaultdict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in minutes:
        runs = sums[one.queue, one.type, one.status.value]
        runs[0], runs[1] = runs[0] + one.n, runs[1] + one.run.total_ms
    return [
        EndedShape(queue=queue, type=type_, status=status, count=n, avg_duration_ms=took / n)
        for (queue, type_, status), (n, took) in sorted(sums.items())
        if n
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
    return {
        "runs": runs.runs,
        "error_rate": runs.error_rate,
        "average_run_ms": _ms(runs.average_run),
        "average_wait_ms": _ms(runs.average_wait),
        "p50_ms": _ms(runs.percentile(0.5)),
        "p95_ms": _ms(runs.percentile(0.95)),
        "p99_ms": _ms(runs.percentile(0.99)),
    }


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1000
