"""`app.stats.only(user)`: the figures of one user's jobs, made of the newest of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from windlass.client.counting import Counts
from windlass.client.stats import HOUR, SECOND, Overview
from windlass.core.signals import as_duration
from windlass.stores.contract import Count, Minute, StatusCount

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from windlass.client.client import Client
    from windlass.client.jobs import JobsRoom
    from windlass.client.sharing import SharedByQuestion
    from windlass.core.job import Job

MOST = 2_000
"""so many of the user's newest jobs are looked at; where there are more, counts say that they are not exact"""
_PAGE = 500
_LAST_BUCKET = 32


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
        return await self._shared.get((self._jobs.user, span), lambda: self._ask(span), age)

    async def _ask(self, span: timedelta) -> Overview:
        at = await (await self._client.ready()).now()
        jobs, exact = await self._newest()
        standing = Counter((job.queue, job.status) for job in jobs)
        by = tuple(StatusCount(queue, status, Count(n, exact)) for (queue, status), n in sorted(standing.items()))
        first = (at - span).replace(second=0, microsecond=0)
        minutes = [_minute(job, job.finished_at) for job in jobs if job.finished_at and job.finished_at >= first]
        ended = tuple(sorted((one for one in minutes if one is not None), key=lambda one: one.minute))
        return Overview(at=at, since=span, counts=Counts(at=at, finished_at=at, by=by), minutes=ended)

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
    took = max(job.duration_ms, 0)
    return Minute(
        minute=finished_at.replace(second=0, microsecond=0),
        queue=job.queue,
        type=job.type,
        status=job.status,
        bucket=min(took.bit_length(), _LAST_BUCKET),
        n=1,
        duration_ms=took,
        wait_ms=job.wait_ms or 0,
    )
