"""What a cron expression should do, by brute force: look at the wall clock in every minute and remember what it showed.

Shares nothing with the code it judges: its own parser (numbers, names, ranges, steps and lists), its own rule, no
arithmetic with offsets. Good for zones whose offsets are whole minutes, which all have been since 1972.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Minute:
    """One minute of real time, and what the wall clock did in it."""

    instant: datetime
    wall: datetime
    again: bool
    """the wall clock has shown this before"""
    jumped: tuple[datetime, ...]
    """the local times left out just before, of dates that exist"""


@lru_cache(maxsize=256)
def minutes(tz: str, start: datetime, end: datetime) -> tuple[Minute, ...]:
    """Every minute from `start` until before `end`. What came in the day before `start` is remembered."""
    zone = ZoneInfo(tz)
    found: list[Minute] = []
    shown: set[datetime] = set()
    instant = start - timedelta(days=1)
    before = instant.astimezone(zone).replace(tzinfo=None)
    while instant < end:
        wall = instant.astimezone(zone).replace(tzinfo=None)
        jumped = tuple(local for local in _between(before, wall) if local.date() in (before.date(), wall.date()))
        if instant >= start:
            found.append(Minute(instant, wall, wall in shown, jumped))
        shown.add(wall)
        before = wall
        instant += MINUTE
    return tuple(found)


def ticks(expression: str, tz: str, start: datetime, end: datetime) -> list[datetime]:
    """Every tick from `start` until before `end`, both whole minutes in UTC."""
    wanted = Expression(expression)
    return [minute.instant for minute in minutes(tz, start, end) if _fires(wanted, minute)]


def changes(tz: str, first: int, last: int) -> list[datetime]:
    """The instants in these years at which the zone's offset changes, to the minute."""
    zone = ZoneInfo(tz)
    found: list[datetime] = []
    day = datetime(first, 1, 1, tzinfo=UTC)
    while day.year <= last:
        if day.astimezone(zone).utcoffset() != (day + timedelta(days=1)).astimezone(zone).utcoffset():
            found.append(_change_after(day, zone))
        day += timedelta(days=1)
    return found


class Expression:
    """Five fields as sets of numbers."""

    def __init__(self, text: str) -> None:
        minute, hour, day, month, weekday = text.lower().split()
        self.minutes = _numbers(minute, 0, 59)
        self.hours = _numbers(hour, 0, 23)
        self.days = _numbers(day, 1, 31)
        self.months = _numbers(month, 1, 12, MONTHS, 1)
        self.weekdays = {number % 7 for number in _numbers(weekday, 0, 7, WEEKDAYS, 0)}
        self.either_day = not day.startswith("*") and not weekday.startswith("*")
        self.every_hour = len(self.hours) == 24
        self.interval = self.every_hour or (minute.startswith("*") and len(self.minutes) > 1)

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self._matches_date(wall.date())

    def _matches_date(self, day: date) -> bool:
        by_month = day.day in self.days
        by_week = day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_month or by_week if self.either_day else by_month and by_week)


def _fires(wanted: Expression, minute: Minute) -> bool:
    if wanted.matches(minute.wall) and (wanted.interval or not minute.again):
        return True
    return not wanted.every_hour and any(wanted.matches(local) for local in minute.jumped)


def _between(before: datetime, wall: datetime) -> Iterator[datetime]:
    local = before + MINUTE
    while local < wall:
        yield local
        local += MINUTE


def _change_after(day: datetime, zone: ZoneInfo) -> datetime:
    offset = day.astimezone(zone).utcoffset()
    instant = day
    while instant.astimezone(zone).utcoffset() == offset:
        instant += MINUTE
    return instant


def _numbers(field: str, least: int, most: int, names: list[str] | None = None, first: int = 0) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        spread, _, step = term.partition("/")
        low, dash, high = spread.partition("-")
        start = least if low == "*" else _number(low, names, first)
        end = _number(high, names, first) if dash else most if low == "*" or step else start
        found.update(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str, names: list[str] | None, first: int) -> int:
    return names.index(text) + first if names and text in names else int(text)
