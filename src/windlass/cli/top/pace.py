"""Pace: how many jobs end by the second, from how the store's minutes grow between one look and the next."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.status import Status

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.client.stats import Overview

GOOD = frozenset({Status.SUCCEEDED})
BAD = frozenset({Status.FAILED, Status.RETRYING})
"""attempts that ended badly, whether they are tried again or not"""
_WINDOW = timedelta(seconds=10)
_ENOUGH = timedelta(seconds=4)
"""looks that are closer together say little: until then, the last minutes are spoken for"""
_CHANGING = timedelta(minutes=2)
"""minutes that are older are not written to any more"""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Rates:
    """Attempts that ended by the second, well and badly."""

    good: float = 0.0
    bad: float = 0.0

    @property
    def all(self) -> float:
        """Both."""
        return self.good + self.bad


class Pace:
    """The looks of the last seconds."""

    def __init__(self) -> None:
        self._looks: deque[tuple[datetime, Counter[tuple[datetime, str, bool]]]] = deque()

    def note(self, seen: Overview) -> dict[str, Rates]:
        """Take in another look; the rates of each queue by it."""
        ended = _ended(seen)
        while self._looks and not timedelta(0) <= seen.at - self._looks[0][0] <= _WINDOW:
            self._looks.popleft()
        self._looks.append((seen.at, ended))
        first_at, first = self._looks[0]
        passed = seen.at - first_at
        if passed < _ENOUGH:
            return _by_minutes(seen, ended)
        grown: Counter[tuple[str, bool]] = Counter()
        for (minute, queue, good), n in ended.items():
            if minute >= first_at - _CHANGING:
                grown[queue, good] += max(n - first[minute, queue, good], 0)
        return _rates(grown, passed)


def _by_minutes(seen: Overview, ended: Counter[tuple[datetime, str, bool]]) -> dict[str, Rates]:
    """Of the minute that is under way and the one before it."""
    since = seen.at.replace(second=0, microsecond=0) - _MINUTE
    sums: Counter[tuple[str, bool]] = Counter()
    for (minute, queue, good), n in ended.items():
        if minute >= since:
            sums[queue, good] += n
    return _rates(sums, seen.at - since)


def _ended(seen: Overview) -> Counter[tuple[datetime, str, bool]]:
    sums: Counter[tuple[datetime, str, bool]] = Counter()
    for one in seen.minutes:
        if one.minute >= seen.at - _CHANGING - _WINDOW and one.status in GOOD | BAD:
            sums[one.minute, one.queue, one.status in GOOD] += one.n
    return sums


def _rates(sums: Counter[tuple[str, bool]], of: timedelta) -> dict[str, Rates]:
    seconds = of.total_seconds()
    return {
        queue: Rates(sums[queue, True] / seconds, sums[queue, False] / seconds) for queue in {one for one, _ in sums}
    }


def throughput(seen: Overview) -> tuple[list[float], list[float]]:
    """Attempts by the second in each minute of the look, oldest first: those that ended well, and badly.

    The minute that is under way counts for as much of it as has passed.
    """
    good: list[float] = []
    bad: list[float] = []
    for minute, ended in seen.series():
        seconds = min(max((seen.at - minute).total_seconds(), 1.0), 60.0)
        good.append(sum(ended[one] for one in GOOD) / seconds)
        bad.append(sum(ended[one] for one in BAD) / seconds)
    return good, bad
