"""`app.stats`: how many jobs stand where, and how those that ended lately did. One call serves all who look."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.client.counting import Counts, counted
from windlass.client.sharing import Shared, SharedByQuestion
from windlass.core.signals import as_duration
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.client.client import Client
    from windlass.client.own_stats import OwnStats
    from windlass.stores.contract import Minute

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_LATE = timedelta(minutes=2)
"""minutes that are older than this are not written to any more"""
_SPANS = 16
"""how many different spans of time are remembered"""


class By(StrEnum):
    """What figures are told apart by."""

    TYPE = "type"
    QUEUE = "queue"


@dataclass(slots=True)
class RunFigures:
    """The runs that ended in a stretch of time, of one type or queue."""

    ended: Counter[Status] = field(default_factory=Counter[Status])
    buckets: Counter[int] = field(default_factory=Counter[int])
    """by length: the bucket b holds runs of less than 2^b milliseconds"""
    wait_ms: int = 0
    duration_ms: int = 0

    def add(self, minute: Minute) -> None:
        """Count one line of the store's minutes."""
        self.ended[minute.status] += minute.n
        self.buckets[minute.bucket] += minute.n
        self.wait_ms += minute.wait_ms
        self.duration_ms += minute.duration_ms

    @property
    def runs(self) -> int:
        """How many runs ended, well or not."""
        return self.ended.total()

    @property
    def error_rate(self) -> float:
        """The share of runs that ended badly: those tried again and those failed for good."""
        return (self.ended[Status.FAILED] + self.ended[Status.RETRYING]) / self.runs if self.runs else 0.0

    @property
    def average_wait(self) -> timedelta | None:
        """How long a job waited from being queued to its run."""
        return timedelta(milliseconds=self.wait_ms / self.runs) if self.runs else None

    @property
    def average_run(self) -> timedelta | None:
        """How long a run took."""
        return timedelta(milliseconds=self.duration_ms / self.runs) if self.runs else None

    def percentile(self, share: float) -> timedelta | None:
        """How long the run at this share of them took: right to its bucket, estimated by place inside it."""
        left = share * self.runs
        for bucket in sorted(self.buckets):
            n = self.buckets[bucket]
            if left <= n:
                low = 0.0 if bucket == 0 else 2.0 ** (bucket - 1)
                return timedelta(milliseconds=low + (2.0**bucket - low) * (left / n))
            left -= n
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The store as somebody saw it at `at`, and what ended in the time before."""

    at: datetime
    since: timedelta
    counts: Counts
    minutes: tuple[Minute, ...]
    """what ended, by minute, queue, type, status and length of run"""

    def figures(self, by: By | str = By.TYPE) -> dict[str, RunFigures]:
        """The runs that ended, by type or queue, most runs first."""
        return figures_of(self.minutes, By(by))

    def failed(self) -> int:
        """How many jobs failed for good."""
        return sum(one.n for one in self.minutes if one.status is Status.FAILED)

    def series(self, *, queue: str | None = None, type: str | None = None) -> list[tuple[datetime, Counter[Status]]]:
        """What ended in each minute, oldest first, without gaps; of all jobs, or of a queue or a type."""
        ended: defaultdict[datetime, Counter[Status]] = defaultdict(Counter[Status])
        for one in self.minutes:
            if queue in (None, one.queue) and type in (None, one.type):
                ended[one.minute][one.status] += one.n
        last = self.at.replace(second=0, microsecond=0)
        n = (last - _first_minute(self.at, self.since)) // _MINUTE
        return [(minute, ended[minute]) for minute in (last - _MINUTE * back for back in range(n, -1, -1))]


class StatsRoom:
    """Figures for any number of viewers: asked by all of them at once, it asks the store once.

    What has not finished is counted about every second, and more seldom where that takes long; see `Counts`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._shared: dict[timedelta, Shared[Overview]] = {}
        self._recent = Recent()
        self._own = SharedByQuestion()

    def only(self, user: str) -> OwnStats:
        """The figures of one user's jobs: those of others are as if they were not there."""
        from windlass.client.jobs import JobsRoom  # only who serves users asks for it
        from windlass.client.own_stats import OwnStats

        return OwnStats(self._client, JobsRoom(self._client).only(user), self._own)

    async def read(self, since: float | timedelta = HOUR, *, max_age: float | timedelta = SECOND) -> Overview:
        """How many jobs stand where, and what ended in the last hour or another time, as of at most so long ago.

        An age of 0 asks the store anew. Where there is so much to count that it takes long, counts are older than
        asked for; they say from when they are.
        """
        span, age = as_duration(since, "since"), as_duration(max_age, "max_age")
        shared = self._shared.setdefault(span, Shared())
        if len(self._shared) > _SPANS:
            self._shared = {span: shared}
        return await shared.get(lambda: self._ask(span, age), age)

    async def counts(self, *, max_age: float | timedelta = SECOND) -> Counts:
        """How many jobs stand where."""
        return (await self.read(max_age=max_age)).counts

    async def _ask(self, span: timedelta, max_age: timedelta) -> Overview:
        store = await self._client.ready()
        began, asked = time.monotonic(), self._recent.missing(span)
        figures = await store.views.figures(asked)
        minutes = self._recent.put(figures.minutes, figures.at, asked, span, began)
        return Overview(at=figures.at, since=span, counts=await counted(store, figures, max_age), minutes=minutes)


class Recent:
    """The minutes that were read before: only those that may still change are read again."""

    def __init__(self) -> None:
        self._minutes: dict[datetime, list[Minute]] = {}
        self._span = timedelta(-1)
        """how far back they are known"""
        self._read_at = 0.0
        """when they were last read, by the monotonic clock"""

    def missing(self, span: timedelta) -> timedelta:
        """How far back to read to know all of the span."""
        if span > self._span:
            return span
        return min(span, timedelta(seconds=time.monotonic() - self._read_at) + _LATE)

    def put(
        self, minutes: Iterable[Minute], at: datetime, asked: timedelta, span: timedelta, began: float
    ) -> tuple[Minute, ...]:
        """Take in what was read from `began` on, `asked` far back, and give all that is known of the span."""
        self._span, self._read_at = max(self._span, span), began
        known, fresh = _first_minute(at, self._span), _first_minute(at, asked)
        self._minutes = {minute: lines for minute, lines in self._minutes.items() if known <= minute < fresh}
        for one in minutes:
            self._minutes.setdefault(one.minute, []).append(one)
        first = _first_minute(at, span)
        return tuple(one for minute in sorted(self._minutes) if minute >= first for one in self._minutes[minute])


def figures_of(minutes: Iterable[Minute], by: By) -> dict[str, RunFigures]:
    """The figures of each type or queue, most runs first."""
    found: defaultdict[str, RunFigures] = defaultdict(RunFigures)
    for one in minutes:
        found[one.type if by is By.TYPE else one.queue].add(one)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].runs, pair[0])))


def _first_minute(at: datetime, span: timedelta) -> datetime:
    return (at - span).replace(second=0, microsecond=0)
