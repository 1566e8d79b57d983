"""Intervals: schedules that fire every so often, on no calendar and in no zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.schedule import Cron, Missed, Overlap, check_policy, in_utc
from windlass.core.signals import as_duration

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
_TEXT = re.compile(r"every ([1-9][0-9]{0,8})([dhms])")


@dataclass(frozen=True, slots=True)
class Every:
    """An interval: its ticks are the multiples of it since the beginning of 1970 in UTC.

    So every process knows the same ticks, and neither a restart nor a change of the clocks moves them. An interval that
    divides a day ticks at the same times every day.

    Raises `SettingsError` for an interval that is not of whole seconds, or not from a second to 366 days.
    """

    interval: timedelta
    overlap: Overlap = "skip"
    missed: Missed = "latest"
    missed_limit: int = 100

    def __post_init__(self) -> None:
        """Refuse now what would otherwise fail in a worker, at the first tick."""
        check_policy(self.overlap, self.missed, self.missed_limit)
        if not SHORTEST <= self.interval <= LONGEST or self.interval % SHORTEST:
            raise SettingsError(
                f"the interval of a schedule is {self.interval}: expected whole seconds, from 1 second to 366 days"
            )

    @property
    def expression(self) -> str:
        """What stores keep of it, where they keep the expression of a cron rule: `every 30s`."""
        return f"every {_amount(self.interval)[0]}{_amount(self.interval)[1]}"

    @property
    def tz(self) -> str:
        """The zone that its ticks are shown in."""
        return "UTC"

    def after(self, instant: datetime) -> datetime:
        """The first tick strictly after the instant, in UTC."""
        return _EPOCH + ((in_utc(instant) - _EPOCH) // self.interval + 1) * self.interval

    def next(self, n: int, after: datetime) -> list[datetime]:
        """The first `n` ticks strictly after the instant, oldest first."""
        first = self.after(after)
        return [first + self.interval * number for number in range(n)]

    def count(self, due: datetime, stop: datetime) -> tuple[int, bool]:
        """How many ticks there are from `due`, which is taken for one, until before `stop`; always all of them."""
        if due >= stop:
            return 0, True
        return 1 + max(0, -((self.after(due) - stop) // self.interval)), True

    def describe(self) -> str:
        """In English: `every 30 s`."""
        return "every {} {}".format(*_amount(self.interval))


When: TypeAlias = Cron | Every
"""when a schedule fires"""


def every(
    interval: float | timedelta, *, overlap: Overlap = "skip", missed: Missed = "latest", limit: int = 100
) -> Every:
    """A schedule that fires every so often: a timedelta, or a number of seconds.

    Ticks are multiples of the interval since 1970 in UTC. `overlap`, `missed` and `limit` are as with `cron`. Raises
    `SettingsError` as `Every` does.
    """
    return Every(as_duration(interval, "the interval of a schedule"), overlap, missed, limit)


def when(expression: str, tz: str, overlap: Overlap, missed: Missed, missed_limit: int) -> When:
    """What a store has kept of a schedule. Anything but an interval as `Every` writes it is a cron expression."""
    if not (read := _TEXT.fullmatch(expression)):
        return Cron(expression, tz, overlap, missed, missed_limit)
    rule = Every(int(read[1]) * _UNITS[read[2]], overlap, missed, missed_limit)
    if rule.expression != expression:
        raise SettingsError(
            f"the interval {shown(expression)} was not written by windlass, which writes it as {rule.expression!r}:"
            " put the schedule again"
        )
    return rule


def _amount(interval: timedelta) -> tuple[int, str]:
    """In the largest unit that it is a whole number of."""
    unit = next(unit for unit, length in _UNITS.items() if not interval % length)
    return interval // _UNITS[unit], unit
