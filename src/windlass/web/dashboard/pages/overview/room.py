"""The overview: whether all is well, how many jobs stand where, how those that ended did, and what fails most."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.figures import total_of
from windlass.client.stats import since_of
from windlass.core.status import Status
from windlass.core.transition import WORKER_DIED
from windlass.web.dashboard.pages.failures.grouping import failing
from windlass.web.dashboard.pages.overview.deploys import deploys
from windlass.web.dashboard.pages.overview.drawing import drawn
from windlass.web.dashboard.pages.overview.standing import OLD, standing
from windlass.web.dashboard.pages.overview.window import window_of
from windlass.web.dashboard.room import Page, Rail, Room

if TYPE_CHECKING:
    from windlass.client.charts import Charts
    from windlass.web.dashboard.visit import Visit

DAY, LATELY = timedelta(hours=24), timedelta(minutes=15)


async def show(visit: Visit) -> dict[str, Any]:
    """Everything of the first page; of one user's jobs alone where the key is one user's."""
    window = window_of(visit)
    charts, day = await window.charts(visit), await visit.stats.read(since=DAY, max_age=visit.age)
    stands = await standing(visit, total_of(since_of(day.lately, day.at, LATELY)))
    counts = {status: day.counts.of(status=status) for status in Status}
    failures = await failing(visit)
    marks = deploys(await visit.app.types.list(), charts) if visit.sees_all else ()
    empty = not charts.total.runs and not any(one.n for one in counts.values())
    return {
        "window": window,
        "segments": window.segments(visit),
        "charts_of": charts,
        "drawn": drawn(visit, charts, marks),
        "deploys": marks,
        "stands": stands,
        "counts": counts,
        "failed": day.failed(),
        "old": stands.oldest is not None and (stands.oldest.oldest or timedelta(0)) > OLD,
        "total": charts.total,
        "ended": _ended(charts),
        "failures": failures,
        "worker_died": WORKER_DIED,
        "empty": empty and not stands.queues,
    }


def _ended(charts: Charts) -> str:
    """The same time in the words of a search."""
    first, last = (one.strftime("%Y-%m-%dT%H:%M:%SZ") for one in (charts.steps[0], charts.at))
    return f"finished>={first} finished<{last}"


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
