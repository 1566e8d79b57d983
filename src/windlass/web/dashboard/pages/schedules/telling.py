"""Schedules in words: when they fire, what their policies are, and what a change of the clocks does to a run."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.every import When

_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_SECOND, _HOUR = timedelta(seconds=1), timedelta(hours=1)
_YEAR = timedelta(days=366)
_DAY = timedelta(days=1)

OVERLAP = {
    "skip": "skips its tick while an earlier job is live",
    "queue": "its jobs wait for each other",
    "allow": "its jobs may run side by side",
}
MISSED = {
    "latest": "makes up for the latest missed tick",
    "all": "makes up for all missed ticks",
    "none": "leaves missed ticks out",
}


def in_words(rule: When) -> str:
    """When it fires, as people say it: `Weekdays at 09:00`."""
    told = rule.describe()
    for pattern, put in _PHRASES:
        found = re.fullmatch(pattern, told)
        if found is not None:
            return put(found) if callable(put) else found.expand(put)
    return told


def _steps(found: re.Match[str]) -> str:
    return f"Every {_ORDINALS.index(found[1]) + 2} minutes"


def _every(found: re.Match[str]) -> str:
    n, unit = int(found[1]), _UNITS[found[2]]
    return f"Every {unit}" if n == 1 else f"Every {n:,} {unit}s"


_TIMES = r"([\d:, and]+)"
_PHRASES = (
    (rf"At {_TIMES} on Monday through Friday", r"Weekdays at \1"),
    (rf"At {_TIMES} on Saturday and Sunday", r"Weekends at \1"),
    (rf"At {_TIMES} on Sunday and Saturday", r"Weekends at \1"),
    (rf"At {_TIMES} every day", r"Daily at \1"),
    (rf"At {_TIMES} on (\w+day)", r"\2s at \1"),
    (rf"At {_TIMES} on the first day of every month", r"On the first of every month at \1"),
    ("At the start of every hour", "Every hour"),
    (rf"Every ({'|'.join(_ORDINALS)}) minute of every hour", _steps),
    (r"Every (\d+)th minute of every hour", r"Every \1 minutes"),
    (r"Every (\d+)th minute (from .*)", r"Every \1 minutes \2"),
    (r"every (\d+) ([smhd])", _every),
)


class Run(NamedTuple):
    """One run to come."""

    at: datetime
    there: str
    """on the wall clock of the schedule's zone"""
    warning: str = ""
    """what a change of the clocks does to it"""


def runs(rule: When, first: datetime, n: int = 5) -> list[Run]:
    """The next runs, the first of which is given."""
    ticks = [first, *rule.next(n - 1, first)]
    before = [first - _DAY, *ticks]
    return [
        Run(at, on_the_wall(at, rule.tz), _warning(rule, at, last)) for at, last in zip(ticks, before, strict=False)
    ]


def on_the_wall(at: datetime, tz: str) -> str:
    """`Fri 20 Nov, 09:00 CET`; with the year where that is another than now."""
    local = at.astimezone(ZoneInfo(tz))
    year = "" if local.year == datetime.now(local.tzinfo).year else f" {local.year}"
    seconds = f":{local:%S}" if local.second else ""
    return f"{local:%a} {local.day} {local:%b}{year}, {local:%H:%M}{seconds} {local:%Z}"


def next_affected(rule: When, now: datetime) -> Run | None:
    """The first run within a year that a change of the clocks moves or makes unclear, if there is one."""
    zone = ZoneInfo(rule.tz)
    at = _next_change(zone, now)
    while at is not None and at < now + _YEAR:
        for tick in _around(rule, at):
            said = _moved(rule, tick)
            if said:
                return Run(tick, on_the_wall(tick, rule.tz), said)
        at = _next_change(zone, at)
    return None


def _around(rule: When, change: datetime) -> Sequence[datetime]:
    """The runs near a change; of a rule that fires all the time none, for nobody would miss one."""
    ticks = rule.next(4, change - 3 * _HOUR)
    return [tick for tick in ticks if tick < change + 3 * _HOUR] if ticks[3] > change + 3 * _HOUR else ()


def _warning(rule: When, at: datetime, before: datetime) -> str:
    said = _moved(rule, at)
    if said or rule.expression.startswith("every"):
        return said
    zone = ZoneInfo(rule.tz)
    shift = _offset(zone, at) - _offset(zone, before)
    if not shift or at - before > 2 * _DAY or at - before < _HOUR * 12:
        return ""
    way = "forward" if shift > timedelta(0) else "back"
    return f"the clocks go {way} before it: {(at - before) / _HOUR:g} h after the run before"


def _moved(rule: When, at: datetime) -> str:
    """What is odd about its time on the wall clock."""
    if rule.expression.startswith("every"):
        return ""
    zone = ZoneInfo(rule.tz)
    local = at.astimezone(zone)
    jumped = _offset(zone, at) - _offset(zone, at - _SECOND)
    if jumped > timedelta(0):
        return f"the clocks go forward: the time it would run at is left out, so it runs at {local:%H:%M}"
    wall = local.replace(tzinfo=None)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if second > first:
        which = "first" if local.fold == 0 else "second"
        return f"the clocks go back: {local:%H:%M} comes twice, and this is the {which} time"
    return ""


def _next_change(zone: ZoneInfo, after: datetime) -> datetime | None:
    """When the clocks are next put forward or back, within a year."""
    low = after
    for _ in range(_YEAR // _DAY):
        high = low + _DAY
        if _offset(zone, high) != _offset(zone, low):
            while high - low > _SECOND:
                middle = low + (high - low) / 2
                low, high = (low, middle) if _offset(zone, middle) != _offset(zone, low) else (middle, high)
            return high.replace(microsecond=0)
        low = high
    return None


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)
