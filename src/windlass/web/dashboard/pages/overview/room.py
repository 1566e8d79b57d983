"""The overview: how many jobs stand where, how those that ended lately did, and what waits longest."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.core.status import Status
from windlass.web.dashboard.room import Page, Rail, Room

if TYPE_CHECKING:
    from windlass.web.dashboard.visit import Visit

HOUR, DAY = timedelta(hours=1), timedelta(hours=24)


async def show(visit: Visit) -> dict[str, Any]:
    """The figures of the last hour, and of what failed in a day."""
    hour, day = await visit.stats.read(since=HOUR), await visit.stats.read(since=DAY)
    queues = await visit.app.queues.list(max_age=1) if visit.sees_all else ()
    oldest = max((one for one in queues if one.oldest is not None), key=lambda one: one.oldest, default=None)  # type: ignore[arg-type,return-value]  # None is left out
    return {
        "counts": {status: hour.counts.of(status=status) for status in Status},
        "runs": hour.total(),
        "failed": day.failed(),
        "oldest": oldest,
        "series": [sum(ended.values()) for _, ended in hour.series()],
        "paused": [one.name for one in queues if one.paused_at is not None],
    }


ROOM = Room(
    name="overview",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/",
            title="Overview",
            template="overview.html",
            show=show,
            rail=Rail(word="Overview", icon="M3 11l7-7 7 7M5 9.5V17h10V9.5", order=10, key="o"),
        ),
    ),
)
