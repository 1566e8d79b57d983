"""`app.stats`: how many jobs stand where, and how those that ended lately did. One call serves all viewers."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.client.charts import Charts, charts_of
from windlass.client.counting import Counts, counted_soon
from windlass.client.figures import By, Kind, RunFigures, figures_of, kinds_of, total_of
from windlass.client.rolling import ENDED, LATE, SAMPLED, Rolled
from windlass.client.sharing import Shared, SharedByQuestion
from windlass.client.stepping import LONGEST, MINUTE, begin_of, step_of, steps_of
from windlass.core.errors import SettingsError
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
_INSTANT = timedelta(milliseconds=1)
_SPANS = 16
"""how many different spans of time are remembered"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The store as it was at `at`, and what ended in the time before."""

    at: datetime
    since: timedelta
    counts: Counts
    minutes: tuple[Minute, ...]
    """what ended, by minute, queue, type, status and length of run"""

    lately: tuple[Minute, ...]
    """what ended in the last hour, likewise"""

    whole: bool = True
    """False where a user has more jobs than are looked at: then all of this is of their newest ones"""

    def figures(self, by: By | str = By.TYPE) -> dict[str, RunFigures]:
        """The runs that ended, by type, queue or status, most runs first."""
        return figures_of(self.minutes, By(by))

    def kinds(self) -> dict[Kind, RunFigures]:
        """The runs that ended, by queue, type and status, most runs first."""
        return kinds_of(self.minutes)

    def total(self) -> RunFigures:
        """All runs that ended."""
        return total_of(self.minutes)

    def failed(self) -> int:
        """How many jobs failed for good."""
        return _failed(self.minutes)

    def failed_last_hour(self, *, queue: str | None = None, type: str | None = None) -> int:
        """How many jobs failed for good in the last hour, however far back the rest goes."""
        return _failed(one for one in self.lately if queue in (None, one.queue) and type in (None, one.type))

    def series(self, *, queue: str | None = None, type: str | None = None) -> list[tuple[datetime, Counter[Status]]]:
        """What ended in each step, oldest first, without gaps; of all jobs, or of a queue or a type.

        A step is a minute up to three hours back, and longer for longer times: there are at most about 180.
        """
        step = step_of(self.since)
        ended: defaultdict[datetime, Counter[Status]] = defaultdict(Counter[Status])
        for one in self.minutes:
            if queue in (None, one.queue) and type in (None, one.type):
                ended[begin_of(one.minute, step)][one.status] += one.n
        return [(begin, ended[begin]) for begin in steps_of(self.at, self.since, step)]


class StatsRoom:
    """Figures for any number of viewers: asked by all of them at once, it asks the store once.

    What has not finished is counted about every second, and more seldom where that takes long; see `Counts`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._shared: dict[timedelta, Shared[Overview]] = {}
        self._recent = Recent()
        self._rolled = Rolled(ENDED)
        self._sampled = Rolled(SAMPLED)
        self._own = SharedByQuestion()
        self._own_took: dict[str, float] = {}
        self._drawn = SharedByQuestion()

    def only(self, user: str) -> OwnStats:
        """The figures of one user's jobs: those of others are as if they were not there."""
        from windlass.client.own_stats import OwnStats  # loaded only to serve one user's figures

        return OwnStats(self._client, user, self._own, self._own_took)

    async def read(self, since: float | timedelta = HOUR, *, max_age: float | timedelta = SECOND) -> Overview:
        """How many jobs stand where, and what ended in the last hour or another time, as of at most so long ago.

        `since` is at most 30 days: what ended is kept for so long. An age of 0 asks the store anew. Where there is so
        much to count that it takes long, counts are older than asked for; they say from when they are.
        """
        span, age = kept_span(since), as_duration(max_age, "max_age")
        shared = self._shared.setdefault(span, Shared())
        if len(self._shared) > _SPANS:
            self._shared = {span: shared}
        return await shared.get(lambda: self._ask(span, age), age)

    async def charts(
        self,
        since: float | timedelta = HOUR,
        *,
        until: datetime | None = None,
        queue: str | None = None,
        type: str | None = None,
        max_age: float | timedelta = SECOND,
    ) -> Charts:
        """What there is to draw of the last hour or another time, of all jobs or those of a queue or a type.

        As `read`: one call to the store serves all callers within that age, of whatever queue or type. With `until` it
        is so long a time up to that instant, in steps that are as short as for a time up to now.
        """
        span, age = kept_span(since), as_duration(max_age, "max_age")
        if until is not None:
            question = span, queue, type, until
            return await self._drawn.get(question, lambda: self._before(span, until, queue, type), age)
        seen = await self.read(span, max_age=age)

        async def drawn() -> Charts:
            step = step_of(span)
            store = await self._client.ready()
            samples, _ = await self._sampled.read(store, step, begin_of(seen.at - span, step))
            return charts_of(seen.at, span, seen.minutes, samples, queue=queue, type=type)

        return await self._drawn.get((span, queue, type, seen.at), drawn, age or SECOND)

    async def _before(self, span: timedelta, until: datetime, queue: str | None, type_: str | None) -> Charts:
        store = await self._client.ready()
        step, at = step_of(span), min(until, await store.now())
        begin = until - span if until - span < at else at - span
        first = begin_of(begin, step)
        parts, reached = await self._rolled.between(store, step, first, at)
        minutes = [one for _, some in parts for one in some]
        minutes += await store.views.ended(max(reached, first), at)
        samples, _ = await self._sampled.between(store, step, first, at)
        # What begins at its very end is not in it.
        at -= _INSTANT
        return charts_of(at, at - begin, minutes, samples, queue=queue, type=type_)

    async def counts(self, *, max_age: float | timedelta = SECOND) -> Counts:
        """How many jobs stand where."""
        return (await self.read(max_age=max_age)).counts

    async def _ask(self, span: timedelta, max_age: timedelta) -> Overview:
        store = await self._client.ready()
        step, reach, until = step_of(span), max(span, HOUR), None
        rolled: list[Minute] = []
        if step > MINUTE:
            now = await store.now()
            parts, until = await self._rolled.read(store, step, begin_of(now - span, step))
            rolled = [one for _, some in parts for one in some]
            reach = max(now - until, HOUR)
        began, asked = time.monotonic(), self._recent.missing(reach)
        figures = await store.views.figures(asked)
        minutes = self._recent.put(figures.minutes, figures.at, asked, reach, began)
        return Overview(
            at=figures.at,
            since=span,
            counts=await counted_soon(store, figures, max_age, self._client.background),
            minutes=(*rolled, *(one for one in minutes if one.minute >= (until or begin_of(figures.at - span, step)))),
            lately=since_of(minutes, figures.at, HOUR),
        )


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
        return min(span, timedelta(seconds=time.monotonic() - self._read_at) + LATE)

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


def kept_span(since: float | timedelta) -> timedelta:
    """How far back to look; refused beyond what is kept."""
    span = as_duration(since, "since")
    if not timedelta(0) < span <= LONGEST:
        raise SettingsError(f"since is {span}: expected more than nothing and at most {LONGEST.days} days")
    return span


def since_of(minutes: Iterable[Minute], at: datetime, span: timedelta) -> tuple[Minute, ...]:
    """Those of so long ago and later."""
    first = _first_minute(at, span)
    return tuple(one for one in minutes if one.minute >= first)


def _failed(minutes: Iterable[Minute]) -> int:
    return sum(one.n for one in minutes if one.status is Status.FAILED)


def _first_minute(at: datetime, span: timedelta) -> datetime:
    return (at - span).replace(second=0, microsecond=0)
