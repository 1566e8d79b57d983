"""Statistics: how many jobs stand where, and how those that ended did."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from windlass.web.asking import App, Overseer
from windlass.web.shapes import Shape

router = APIRouter(tags=["statistics"])


class StatusShape(Shape):
    """How many jobs of a queue stand in a status."""

    queue: str
    status: str
    count: int
    exact: bool


class RunsShape(Shape):
    """How the jobs of a type did."""

    type: str
    runs: int
    error_rate: float
    average_run_ms: float | None
    average_wait_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class StatsShape(Shape):
    """Figures: how many stand where, and how those that ended lately did."""

    counts: list[StatusShape]
    types: list[RunsShape]
    failed: int
    since_seconds: float


@router.get("/queue/stats", summary="Figures")
async def stats(app: App, _: Overseer, since: Annotated[float, Query(gt=0, le=2_592_000)] = 3600) -> StatsShape:
    """How many jobs stand where, and how those that ended in the last `since` seconds did."""
    seen = await app.stats.read(since=since)
    counts = [
        StatusShape(queue=one.queue, status=one.status.value, count=one.count.n, exact=one.count.exact)
        for one in seen.counts.by
    ]
    types = [
        RunsShape(
            type=type_,
            runs=runs.runs,
            error_rate=runs.error_rate,
            average_run_ms=_ms(runs.average_run),
            average_wait_ms=_ms(runs.average_wait),
            p50_ms=_ms(runs.percentile(0.5)),
            p95_ms=_ms(runs.percentile(0.95)),
            p99_ms=_ms(runs.percentile(0.99)),
        )
        for type_, runs in seen.figures().items()
    ]
    return StatsShape(counts=counts, types=types, failed=seen.failed(), since_seconds=since)


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1000
