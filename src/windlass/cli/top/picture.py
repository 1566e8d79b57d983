"""The picture: what a screen of `top` shows, made of the answers of one look. Nothing here asks a store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.cli.top.pace import Rates, throughput
from windlass.client.figures import By
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.client.dead_letters import DeadGroups
    from windlass.client.stats import Overview
    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.stores.contract import Count, Page, QueueInfo

LATELY = timedelta(minutes=5)
"""the time that percentiles speak of"""
_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSeen:
    """A queue with how it does."""

    info: QueueInfo
    slots: int
    """of the workers that take from it"""
    rates: Rates
    wait: timedelta | None
    run: timedelta | None
    """how long 95 of 100 jobs waited, and ran, at most, lately"""

    @property
    def drain(self) -> timedelta | None:
        """How long what waits now will take at this pace; None where nothing waits, or nothing ends."""
        if not self.info.depth.n or self.rates.all <= 0:
            return None
        seconds = self.info.depth.n / self.rates.all
        return timedelta(seconds=seconds) if seconds < timedelta.max.total_seconds() / 2 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSeen:
    """A running job, and how it comes along."""

    job: Job
    since: timedelta | None
    share: float | None
    """how much of it is done, where it says so"""
    rate: float | None
    """by the second, over its whole run"""
    eta: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One look at the whole store."""

    at: datetime
    rates: Rates
    good: Sequence[float]
    """by the second, in each minute of the last hour"""
    bad: Sequence[float]
    counts: Mapping[Status, int]
    exact: bool
    oldest: timedelta | None
    wait: timedelta | None
    run: timedelta | None
    queues: Sequence[QueueSeen]
    workers: Sequence[WorkerState]
    running: Sequence[RunningSeen]
    failures: DeadGroups | None = None
    """where they are on the screen"""
    jobs: Page | None = None
    matched: Count | None = None

    @property
    def slots(self) -> int:
        """How many jobs the workers that are there can run at once."""
        return sum(one.slots for one in self.workers if one.alive)


def picture(
    seen: Overview,
    rates: Mapping[str, Rates],
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerState],
    running: Sequence[Job],
) -> Picture:
    """What the answers show together."""
    since = seen.at - LATELY
    lately = replace(seen, since=LATELY, minutes=tuple(one for one in seen.minutes if one.minute >= since))
    runs = lately.figures(By.QUEUE)
    good, bad = throughput(seen)
    counts: Counter[Status] = Counter()
    for one in seen.counts.by:
        counts[one.status] += one.count.n
    return Picture(
        at=seen.at,
        rates=Rates(sum(one.good for one in rates.values()), sum(one.bad for one in rates.values())),
        good=good,
        bad=bad,
        counts=counts,
        exact=all(one.count.exact for one in seen.counts.by),
        oldest=max((one.oldest for one in queues if one.oldest is not None), default=None),
        wait=lately.total().wait_percentile(_SHARE),
        run=lately.total().percentile(_SHARE),
        queues=[
            QueueSeen(
                info=one,
                slots=_slots(workers, one.name),
                rates=rates.get(one.name, Rates()),
                wait=runs[one.name].wait_percentile(_SHARE) if one.name in runs else None,
                run=runs[one.name].percentile(_SHARE) if one.name in runs else None,
            )
            for one in queues
        ],
        workers=workers,
        running=[coming_along(job, seen.at) for job in running],
    )


def _slots(workers: Sequence[WorkerState], queue: str) -> int:
    return sum(one.slots for one in workers if one.alive and not one.stopping and queue in (one.queues or (queue,)))


def coming_along(job: Job, now: datetime) -> RunningSeen:
    """How far a running job is at this moment, and when it will be done if it goes on like that."""
    since = None if job.started_at is None else max(now - job.started_at, timedelta(0))
    done, of = (None, None) if job.progress is None else (job.progress.done, job.progress.of)
    seconds = 0.0 if since is None else since.total_seconds()
    rate = done / seconds if done is not None and done > 0 and seconds > 0 else None
    left = None if done is None or of is None else max(of - done, 0.0)
    share = min(max(done / of, 0.0), 1.0) if done is not None and of else None
    ahead = None if left is None or rate is None else left / rate
    eta = (
        timedelta(seconds=ahead) if ahead is not None and ahead < 1e9 else None
    )  # beyond that an estimate says nothing
    return RunningSeen(job=job, since=since, share=share, rate=rate, eta=eta)
