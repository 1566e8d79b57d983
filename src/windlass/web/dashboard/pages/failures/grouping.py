"""Failures that are alike: what is shown of a group, for the page of failures and for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from windlass.client.stepping import begin_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.dead_letters import DeadGroup, DeadGroups
    from windlass.web.dashboard.visit import Visit

LOOKED_AT = 1000
"""so many of the newest failed jobs are looked at"""
AGE = timedelta(seconds=2)
"""viewers share what is at most so old"""
_BARS, _BAR = 24, timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Row:
    """A group, and how often it was seen in each of the last 24 hours."""

    group: DeadGroup
    bars: Sequence[int]

    @property
    def lately(self) -> int:
        """How many in these hours."""
        return sum(self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """The groups, most jobs first."""

    rows: Sequence[Row]
    looked_at: int
    complete: bool


async def failing(visit: Visit) -> Failing:
    """What has failed for good, among the newest."""
    return failing_of(await visit.dead_letters.groups(most=LOOKED_AT, max_age=AGE), datetime.now(UTC))


def failing_of(found: DeadGroups, now: datetime) -> Failing:
    """The groups with their bars."""
    last = begin_of(now, _BAR)
    steps = [last - _BAR * n for n in reversed(range(_BARS))]
    rows = [Row(group, _bars(group, steps)) for group in found.groups]
    return Failing(rows=rows, looked_at=found.looked_at, complete=found.complete)


def _bars(group: DeadGroup, steps: Sequence[datetime]) -> list[int]:
    places = {begin: place for place, begin in enumerate(steps)}
    bars = [0] * len(steps)
    for at, n in group.seen.items():
        place = places.get(begin_of(at, _BAR))
        if place is not None:
            bars[place] += n
    return bars
