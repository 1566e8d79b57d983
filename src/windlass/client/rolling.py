"""Rolling up: what is noted by the minute is added up to five minutes, hours and four hours, for looks far back.

The worker that has the duty in a fleet adds up, once what it adds is complete. A reader takes the longest stretches
that fit and fills the rest with shorter ones, down to the minutes: nothing is missing where nobody has added up yet.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from windlass.client.gauges import Gauges, gauges_of, gauges_text, sum_of_gauges
from windlass.client.stepping import LONGEST, MINUTE, begin_of
from windlass.core.spread import sum_of, unpacked
from windlass.core.status import Status
from windlass.stores.contract import Minute

if TYPE_CHECKING:
    from windlass.stores.contract import Store

T = TypeVar("T")
LEVELS = (timedelta(minutes=5), timedelta(hours=1), timedelta(hours=4))
LATE = timedelta(minutes=2)
"""minutes that are older than this are not written to any more"""
MOST_KINDS = 500
"""so many queues, types and statuses are told apart in what is added up; the others are `other`"""
OTHER = "other"
_AT_ONCE, _FARTHEST = timedelta(hours=1), timedelta(hours=6)
_READS = 24  # of minutes in one turn: a store that has many of them is caught up with in several turns
_BREATH = 0.05  # seconds between two of them: live work comes first
_STATUSES = {status.value: status for status in Status}


@dataclass(frozen=True)
class Track(Generic[T]):
    """One kind of what is noted: its lengths, how it is added up, and the text that a store keeps of it."""

    name: str
    levels: tuple[timedelta, ...]
    add: Callable[[datetime, Iterable[T]], T]
    text: Callable[[T], str]
    value: Callable[[datetime, str], T]

    def series(self, level: timedelta) -> str:
        """The name under which the store keeps it."""
        return f"{self.name}:{level // timedelta(seconds=1)}"


def add_minutes(at: datetime, parts: Iterable[Sequence[Minute]]) -> Sequence[Minute]:
    """The minutes of a stretch of time as one, by queue, type and status."""
    kinds: defaultdict[tuple[str, str, Status], list[Minute]] = defaultdict(list)
    for minutes in parts:
        for one in minutes:
            kinds[one.queue, one.type, one.status].append(one)
    largest = sorted(kinds, key=lambda kind: -sum(one.n for one in kinds[kind]))
    for queue, type_, status in largest[MOST_KINDS:]:
        kinds[OTHER, OTHER, status] += kinds.pop((queue, type_, status))
    return [
        Minute(at, *kind, sum_of(one.run for one in some), sum_of(one.wait for one in some))
        for kind, some in kinds.items()
    ]


def _minutes_text(minutes: Sequence[Minute]) -> str:
    rows = [[one.queue, one.type, one.status.value, one.run.packed(), one.wait.packed()] for one in minutes]
    return json.dumps(rows, separators=(",", ":"))


def _minutes_value(at: datetime, text: str) -> Sequence[Minute]:
    return [
        Minute(at, queue, type_, _STATUSES[status], unpacked(run), unpacked(wait))
        for queue, type_, status, run, wait in json.loads(text)
    ]


ENDED = Track[Sequence[Minute]]("ended", LEVELS, add_minutes, _minutes_text, _minutes_value)
SAMPLED = Track[Gauges]("sampled", (MINUTE, *LEVELS), lambda _, some: sum_of_gauges(some), gauges_text, gauges_of)


class Rolled(Generic[T]):
    """What was added up, as far as this process has read it: it does not change any more, so it is read once."""

    def __init__(self, track: Track[T]) -> None:
        self._track = track
        self._known: dict[timedelta, dict[datetime, T]] = {level: {} for level in track.levels}
        self._first: dict[timedelta, datetime] = {}

    async def read(self, store: Store, step: timedelta, first: datetime) -> tuple[list[tuple[datetime, T]], datetime]:
        """Stretches of at most a step, oldest first, from the beginning of one on; and up to when they reach."""
        found: list[tuple[datetime, T]] = []
        for level in reversed(self._track.levels):
            if level <= step:
                some = await self._read(store, level, first)
                found += some
                first = max([first, *(at + level for at, _ in some[-1:])])
        return found, first

    async def between(
        self, store: Store, step: timedelta, first: datetime, until: datetime
    ) -> tuple[list[tuple[datetime, T]], datetime]:
        """The same of a time that may be long ago, which is not remembered; all of it begins before `until`."""
        found: list[tuple[datetime, T]] = []
        for level in reversed(self._track.levels):
            if level <= step and first < until:
                texts = await store.series.read(self._track.series(level), first, until)
                found += [(at, self._track.value(at, text)) for at, text in texts if at + level <= until]
                first = max([first, *(at + level for at, _ in found[-1:])])
        return found, first

    async def _read(self, store: Store, level: timedelta, first: datetime) -> list[tuple[datetime, T]]:
        known = self._known[level]
        if first < self._first.get(level, first + MINUTE):
            known.clear()
            self._first[level] = first
        newest = max(known, default=None)
        since = first if newest is None else newest + level
        for at, text in await store.series.read(self._track.series(level), since):
            known[at] = self._track.value(at, text)
        for at in [at for at in known if at < since - LONGEST]:
            del known[at]
        return sorted(((at, value) for at, value in known.items() if at >= first), key=lambda pair: pair[0])


class Rolling:
    """Adds up what is complete. Any number may: they write the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._done: dict[str, datetime] = {}

    async def once(self) -> None:
        """Add up what has become complete since the last time, or a part of it where there is much."""
        now = await self._store.now()
        await self._roll_minutes(begin_of(now - LATE, LEVELS[0]), now)
        for track in (ENDED, SAMPLED):
            for finer, level in zip(track.levels, track.levels[1:], strict=False):
                await self._roll(track, finer, level, now)

    async def _roll_minutes(self, until: datetime, now: datetime) -> None:
        level, length = LEVELS[0], _AT_ONCE
        first = await self._begin(ENDED, level, now)
        for _ in range(_READS):
            if first >= until:
                return
            last = min(first + length, until)
            minutes = await self._store.views.ended(first, last)
            await self._put(ENDED, level, last, [(one.minute, [one]) for one in minutes])
            # Where nothing was done there is nothing to hold up.
            length = _AT_ONCE if minutes else min(length * 2, _FARTHEST)
            first = last
            await asyncio.sleep(_BREATH if minutes else 0)

    async def _roll(self, track: Track[Any], finer: timedelta, level: timedelta, now: datetime) -> None:
        first = await self._begin(track, level, now)
        until = begin_of(min(await self._begin(track, finer, now), now - LATE), level)
        if first < until:
            texts = await self._store.series.read(track.series(finer), first)
            await self._put(track, level, until, [(at, track.value(at, text)) for at, text in texts if at < until])

    async def _put(
        self, track: Track[Any], level: timedelta, until: datetime, parts: Sequence[tuple[datetime, Any]]
    ) -> None:
        by_step: defaultdict[datetime, list[Any]] = defaultdict(list)
        for at, part in parts:
            by_step[begin_of(at, level)].append(part)
        by_step[until - level] += []  # kept be it empty: it tells how far this has come
        for at in sorted(by_step):
            await self._store.series.put(track.series(level), at, track.text(track.add(at, by_step[at])))
        self._done[track.series(level)] = until

    async def _begin(self, track: Track[Any], level: timedelta, now: datetime) -> datetime:
        """Up to when it was added up."""
        name = track.series(level)
        if name not in self._done:
            last = await self._store.series.last(name)
            if last is not None:
                self._done[name] = last + level
            elif track is ENDED and level == LEVELS[0]:
                oldest = await self._store.views.first_minute()
                self._done[name] = begin_of(now if oldest is None else max(oldest, now - LONGEST), level)
            else:
                self._done[name] = begin_of(now - LONGEST, LEVELS[-1])
        return self._done[name]
