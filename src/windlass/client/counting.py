"""Counts that are kept: how many jobs stand where, counted seldom enough to cost little, for all viewers.

Counting costs as much as there is to count, so it is done on demand, one at a time over all processes, and
after a count that took long not again for a hundred times as long. In between, what has finished is carried forward by
the minutes that every ending is counted in. Where nobody looks nothing is counted.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.errors import StoreError
from windlass.core.status import FINISHED, LIVE, Status
from windlass.stores.contract import Count, Granted, StatusCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.client.background import Background
    from windlass.stores.contract import Figures, Minute, Store

SHARE = 100
"""a count that took a second is not made again for so many seconds"""
LONGEST = timedelta(hours=1)
CHEAP = timedelta(milliseconds=20)
"""a count that took no longer is made again when a newer one is wanted"""
BEARABLE = timedelta(milliseconds=100)
"""so long may a count take that is made for somebody who wants it anew"""
PATIENCE = timedelta(milliseconds=50)
"""a count that takes longer goes on while callers are told what was known before"""
FEW = 9_999
"""so many of each status are counted for the very first caller, who does not wait for the rest"""
_NAME = "count jobs"
LOCK = "windlass.figures"
_TURN = timedelta(seconds=30)
"""how long others wait for a count whose process died"""
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many jobs of each queue stand in each status.

    Those that have not finished were counted at `at`. Those that have were counted at `finished_at`; what ended since
    then was added, and what was deleted or queued again since then is still among them.
    """

    at: datetime
    finished_at: datetime
    by: tuple[StatusCount, ...]

    def of(self, *, queue: str | None = None, status: Status | None = None) -> Count:
        """How many there are of a queue, in a status, of both or at all."""
        some = [one.count for one in self.by if queue in (None, one.queue) and status in (None, one.status)]
        return Count(sum(count.n for count in some), all(count.exact for count in some))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some statuses, when they were counted, and how long that took."""

    at: datetime
    took: timedelta
    counts: tuple[StatusCount, ...]

    def is_due(self, now: datetime, max_age: timedelta) -> bool:
        """Whether it is to be counted again."""
        if self.took <= CHEAP or (not max_age and self.took <= BEARABLE):
            return now - self.at >= max_age
        return now - self.at >= min(max(self.took * SHARE, max_age), LONGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was counted last, as the store keeps it."""

    live: Part
    finished: Part
    since: datetime
    """the minute from which endings are carried forward"""
    before: Counter[tuple[str, Status]]
    """what those minutes held already when the finished were counted"""
    ended: Counter[tuple[str, Status]]
    """what ended since"""

    def takes(self, now: datetime, max_age: timedelta) -> timedelta:
        """How long it took the last time to count what is due now."""
        if not self.live.is_due(now, max_age):
            return timedelta(0)
        return self.live.took + (self.finished.took if self.finished.is_due(now, max_age) else timedelta(0))

    def counts(self) -> Counts:
        """With the finished carried forward."""
        finished = {(one.queue, one.status): one.count for one in self.finished.counts}
        for key in self.ended:
            finished.setdefault(key, Count(0, exact=True))
        carried = [
            StatusCount(queue, status, Count(count.n + self.ended[queue, status], count.exact))
            for (queue, status), count in sorted(finished.items())
        ]
        return Counts(at=self.live.at, finished_at=self.finished.at, by=(*self.live.counts, *carried))

    def text(self) -> str:
        """As JSON."""
        return json.dumps(
            {
                "live": _part_json(self.live),
                "finished": _part_json(self.finished),
                "since": _ms(self.since),
                "before": _sums_json(self.before),
                "ended": _sums_json(self.ended),
            },
            separators=(",", ":"),
        )

    @staticmethod
    def of(text: str | None) -> Kept | None:
        """From its text; None where there is none, or none that this version wrote."""
        try:
            kept = json.loads(text or "")
            return Kept(
                live=_part(kept["live"]),
                finished=_part(kept["finished"]),
                since=_at(kept["since"]),
                before=_sums(kept["before"]),
                ended=_sums(kept["ended"]),
            )
        except (ValueError, KeyError, TypeError):
            return None


async def counted_soon(store: Store, figures: Figures, max_age: timedelta, background: Background) -> Counts:
    """The same without a long wait: a count that takes long goes on in the background, and what was known is told.

    Where nobody has counted yet, a few of each status are, which costs little: such counts are not exact.
    """
    kept = Kept.of(figures.kept)
    if not max_age or (kept is not None and kept.takes(figures.at, max_age) <= PATIENCE):
        return await counted(store, figures, max_age)
    found = await background.within(PATIENCE.total_seconds(), _NAME, lambda: counted(store, figures, max_age))
    if found is not None:
        return found
    if kept is not None:
        return kept.counts()
    few = await store.views.recount(frozenset(Status), FEW)
    return Counts(at=figures.at, finished_at=figures.at, by=tuple(few))


async def counted(store: Store, figures: Figures, max_age: timedelta) -> Counts:
    """What was counted last, counted again if that is due and nobody else is at it."""
    kept = Kept.of(figures.kept)
    while kept is None or kept.live.is_due(figures.at, max_age):
        try:
            fresh = await _in_turn(store, kept, max_age)
        except StoreError:
            # A read-only account is told what is kept, or counts for itself.
            return (kept or await _recounted(store, None, max_age)).counts()
        known = fresh or kept
        if known is not None:
            return known.counts()
        # Nobody has ever counted here, and somebody does just now.
        await asyncio.sleep(0.05)
        figures = await store.views.figures(timedelta(0))
        kept = Kept.of(figures.kept)
    return kept.counts()


async def _in_turn(store: Store, kept: Kept | None, max_age: timedelta) -> Kept | None:
    """What is counted now; None if somebody else is at it."""
    turn = await store.locks.acquire(LOCK, secrets.token_hex(8), _TURN)
    if not isinstance(turn, Granted):
        return None
    try:
        fresh = await _recounted(store, kept, max_age)
        await store.views.keep(fresh.text())
    finally:
        await store.locks.release(LOCK, turn.token)
    return fresh


async def _recounted(store: Store, kept: Kept | None, max_age: timedelta) -> Kept:
    now = await store.now()
    live = await _part_of(store, LIVE, now)
    if kept is None or kept.finished.is_due(now, max_age):
        figures = await store.views.figures(_MINUTE)
        since = figures.at.replace(second=0, microsecond=0) - _MINUTE
        before = _ended(figures.minutes, since)
        finished = await _part_of(store, FINISHED, figures.at)
        return Kept(live=live, finished=finished, since=since, before=before, ended=Counter())
    minutes = (await store.views.figures(now - kept.since)).minutes
    return replace(kept, live=live, ended=_ended(minutes, kept.since) - kept.before)


async def _part_of(store: Store, statuses: frozenset[Status], at: datetime) -> Part:
    began = time.monotonic()
    counts = await store.views.recount(statuses)
    took = timedelta(seconds=time.monotonic() - began)
    return Part(at=at, took=took, counts=tuple(counts))


def _ended(minutes: Iterable[Minute], since: datetime) -> Counter[tuple[str, Status]]:
    sums: Counter[tuple[str, Status]] = Counter()
    for one in minutes:
        if one.minute >= since and one.status in FINISHED:
            sums[one.queue, one.status] += one.n
    return sums


def _part_json(part: Part) -> dict[str, Any]:
    counts = [[one.queue, one.status.value, one.count.n, one.count.exact] for one in part.counts]
    return {"at": _ms(part.at), "took_ms": part.took // timedelta(milliseconds=1), "counts": counts}


def _part(found: dict[str, Any]) -> Part:
    counts = tuple(StatusCount(queue, Status(status), Count(n, exact)) for queue, status, n, exact in found["counts"])
    return Part(at=_at(found["at"]), took=timedelta(milliseconds=found["took_ms"]), counts=counts)


def _sums_json(sums: Counter[tuple[str, Status]]) -> list[list[Any]]:
    return [[queue, status.value, n] for (queue, status), n in sums.items()]


def _sums(found: Sequence[Sequence[Any]]) -> Counter[tuple[str, Status]]:
    return Counter({(queue, Status(status)): n for queue, status, n in found})


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _at(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
