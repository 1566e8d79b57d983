"""`app.stats.only(user)`: the figures of one user's jobs, made of the newest of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from windlass.client.charts import Charts, charts_of
from windlass.client.counting import Counts
from windlass.client.stats import HOUR, SECOND, Overview, chart_span, since_of
from windlass.client.stepping import LONGEST
from windlass.core.signals import as_duration
from windlass.core.spread import spread_of
from windlass.stores.contract import Count, Minute, StatusCount

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from windlass.client.client import Client
    from windlass.client.jobs import JobsRoom
    from windlass.client.sharing import SharedByQuestion
    from windlass.core.job import Job

MOST = 1_000
"""so many of the user's newest jobs are looked at; where there are more, counts say that they are not exact"""
_PAGE = 500


class OwnStats:
    """Figures of one user's jobs, as if there were no others.

    The store's minutes do not tell users apart, so these are made of the jobs themselves: of each the run that ended
    it counts, and not those before that were tried again.
    """

    def __init__(self, client: Client, jobs: JobsRoom, shared: SharedByQuestion) -> None:
        self._client, self._jobs, self._shared = client, jobs, shared

    async def read(self, since: float | timedelta = HOUR, *, max_age: float | timedelta = SECOND) -> Overview:
        """How many of the user's jobs stand where, and how those did that ended in the last hour or another time."""
        span, age = as_duration(since, "since"), as_duration(max_age, "max_age")
        return await self._shared.get((self._jobs.user, span), lambda: self._ask(span, age), age)

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
        span = chart_span(since)
        seen = await self.read(span if until is None else LONGEST, max_age=max_age)
        at = seen.at if until is None else until
        return charts_of(at, span, (one for one in seen.minutes if one.minute < at), queue=queue, type=type)

    async def _ask(self, span: timedelta, max_age: timedelta) -> Overview:
        at = await (await self._client.ready()).now()
        jobs, exact = await self._shared.get((self._jobs.user, "newest"), self._newest, max_age)
        standing = Counter((job.queue, job.status) for job in jobs)
        by = tuple(StatusCount(queue, status, Count(n, exact)) for (queue, status), n in sorted(standing.items()))
        minutes = [_minute(job, job.finished_at) for job in jobs if job.finished_at]
        ended = sorted((one for one in minutes if one is not None), key=lambda one: one.minute)
        return Overview(
            at=at,
            since=span,
            counts=Counts(at=at, finished_at=at, by=by),
            minutes=since_of(ended, at, span),
            lately=since_of(ended, at, HOUR),
        )

    async def _newest(self) -> tuple[list[Job], bool]:
        jobs: list[Job] = []
        after: str | None = None
        while len(jobs) < MOST:
            page = await self._jobs.find(limit=_PAGE, after=after)
            jobs += page.jobs
            after = page.next
            if after is None:
                return jobs, True
        return jobs, False


def _minute(job: Job, finished_at: datetime) -> Minute | None:
    """A job's last run, counted as the store counts endings; None of a job that ended without having begun."""
    if job.duration_ms is None:
        return None
    return Minute(
        minute=finished_at.replace(second=0, microsecond=0),
        queue=job.queue,
        type=job.type,
        status=job.status,
        run=spread_of([job.duration_ms]),
        wait=spread_of([job.wait_ms or 0]),
    )
