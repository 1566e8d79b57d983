"""Statistics: how many jobs stand where, and how those that ended lately did."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from windlass.web.asking import App, Reader
from windlass.web.figured import (
    ChartsShape,
    QueueStatsShape,
    StatsShape,
    charts_shape,
    queue_stats_shape,
    stats_shape,
)
from windlass.web.given import Name

router = APIRouter(tags=["statistics"])
DAY = timedelta(days=1)
Since = Annotated[float, Query(ge=0.001, le=2_592_000)]


@router.get("/queue/stats", summary="Figures")
async def stats(
    app: App, caller: Reader, since: Since = 3600, type: Name | None = None, queue: Name | None = None
) -> StatsShape:
    """How many jobs stand where, and how those that ended in the last `since` seconds did, of a type or a queue.

    How many stand where is known by queue and status, not by type. Series have a point for every minute up to three
    hours, and at most about 180 of them. One user's key is told of that user's jobs alone: of the newest 50,000, each
    counted once.
    """
    return stats_shape(await caller.stats(app).read(since=since), type_=type, queue=queue)


@router.get("/queue/stats/charts", summary="Figures over time")
async def charts(
    app: App, caller: Reader, since: Since = 3600, type: Name | None = None, queue: Name | None = None
) -> ChartsShape:
    """What there is to draw of the last `since` seconds, of a type or a queue, in at most about 180 steps.

    Outcomes, throughput, error rate, run times and waits, a heat map of run times; what stood in queues, and who
    worked. One user's key is told of that user's jobs alone, and neither of queues nor of workers.
    """
    return charts_shape(await caller.stats(app).charts(since, queue=queue, type=type))


@router.get("/queue-stats", summary="Figures in the words of other queues")
async def queue_stats(app: App, caller: Reader) -> QueueStatsShape:
    """How many jobs wait, run, have completed and have failed, and by queue how long that took on average."""
    return queue_stats_shape(await caller.stats(app).read(since=DAY))
