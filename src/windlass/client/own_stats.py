"""`app.stats.only(user)`: the figures of one user's jobs, made of the newest of them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.client.charts import Charts, charts_of
from windlass.client.counting import Counts
from windlass.client.stats import HOUR, SECOND, Overview, kept_span, since_of
from windlass.client.stepping import LONGEST
from windlass.core.signals import as_duration
from windlass.core.spread import spread_of
from windlass.stores.contract import Count, Minute, StatusCount

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.client.client import Client
    from windlass.client.sharing import SharedByQuestion
    from windlass.core.status import Status
    from windlass.stores.contract import Ran

MOST = 50_000
"""so many of the user's newest jobs are looked at; where there are more, an overview says that it is not whole"""
PAGE = 1_000
_SHARE = 20
"""a look that took long is made seldom: it takes at most one part of so many of the time"""
_USERS = 1_000
"""of so many it is known how long that took"""


class OwnStats:
    """Figures of one user's jobs, as if there were no others.

    The store's minutes do not tell users apart, so these are made of the jobs themselves: of each the run that ended
    it counts, and not those before that were tried again.
    """

    def __init__(self, client: Client, user: str, shared: SharedByQuestion, took: dict[str, float]) -> None:
        self._client, self._user, self._shared = client, user, shared
        self._took = took
        """by user: how long it took to look at their jobs"""

    async def read(self, since: float | timedelta = HOUR, *, max_age: float | timedelta = SECOND) -> Overview:
        """How many of the user's jobs stand where, and how those did that ended in the last hour or another time."""
        span, age = kept_span(since), as_duration(max_age, "max_age")
        if age:
            age = max(age, timedelta(seconds=_SHARE * self._took.get(self._user, 0)))
        return await self._shared.get((self._user, span), lambda: self._ask(span, age), age)

    async def charts(
        self,
        since: float | timedelta = HOUR,
        *,
        until: datetime | None = None,
        queue: str | None = None,
        type: str | None = None,
        max_age: float | timedelta = SECOND,
    ) -> Charts:
        """What there is to draw of the user's jobs; depths of queues and workers are not told to a single user."""
        span = kept_span(since)
        seen = await self.read(span if until is None else LONGEST, max_age=max_age)
        at = seen.at if until is None else until
        return charts_of(at, span, (one for one in seen.minutes if one.minute < at), queue=queue, type=type)

    async def _ask(self, span: timedelta, max_age: timedelta) -> Overview:
        at = await (await self._client.ready()).now()
        jobs, exact = await self._shared.get((self._user, "newest"), self._newest, max_age)
        standing = Counter((job.queue, job.status) for job in jobs)
        by = tuple(StatusCount(queue, status, Count(n, exact)) for (queue, status), n in sorted(standing.items()))
        ended = minutes_of(jobs)
        return Overview(
            at=at,
            since=span,
            counts=Counts(at=at, finished_at=at, by=by),
            minutes=since_of(ended, at, span),
            lately=since_of(ended, at, HOUR),
            whole=exact,
        )

    async def _newest(self) -> tuple[list[Ran], bool]:
        began = time.monotonic()
        views = (await self._client.ready()).views
        jobs = list(await views.ran(self._user, PAGE))
        page = len(jobs)
        while page == PAGE and len(jobs) <= MOST:
            some = await views.ran(self._user, PAGE, jobs[-1].id)
            jobs += some
            page = len(some)
        if len(self._took) >= _USERS:
            self._took.clear()
        self._took[self._user] = time.monotonic() - began
        return jobs[:MOST], len(jobs) <= MOST


def minutes_of(jobs: Iterable[Ran]) -> list[Minute]:
    """The last runs of jobs, counted as the store counts endings, oldest first; not of those that never began."""
    ended: defaultdict[tuple[datetime, str, str, Status], list[Ran]] = defaultdict(list)
    for job in jobs:
        if job.finished_at is not None and job.duration_ms is not None:
            minute = job.finished_at.replace(second=0, microsecond=0)
            ended[minute, job.queue, job.type, job.status].append(job)
    return [
        Minute(*of, spread_of([job.duration_ms or 0 for job in some]), spread_of([job.wait_ms or 0 for job in some]))
        for of, some in sorted(ended.items())
    ]
