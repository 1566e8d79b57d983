"""A daily job in every zone there is, at every change of its clocks from 2000 to 2040: once for every local day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.support import cron_reference as reference
from windlass.core.schedule import cron

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
STRIDE = timedelta(days=5)  # no zone has gone there and back in so few days
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2040, 12, 31, tzinfo=UTC)


# Together, so that the changes are looked for once.
pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("zones")]


class Change(NamedTuple):
    """The clocks of a zone go from one offset to another at this instant."""

    instant: datetime
    before: timedelta
    after: timedelta


def offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def changes(zone: ZoneInfo) -> Iterator[Change]:
    day, before = FIRST, offset(zone, FIRST)
    while day < LAST:
        after = offset(zone, day + STRIDE)
        if after != before:
            low, high = day, day + STRIDE
            while high - low > MINUTE:
                middle = low + (high - low) // 2 // MINUTE * MINUTE
                low, high = (middle, high) if offset(zone, middle) == before else (low, middle)
            yield Change(high, before, offset(zone, high))
        day, before = day + STRIDE, after


@cache
def every_change() -> dict[Change, str]:
    """Each change of any zone, and a zone that has it."""
    found: dict[Change, str] = {}
    for tz in sorted(available_timezones()):
        for change in changes(ZoneInfo(tz)):
            found.setdefault(change, tz)
    return found


def expected(zone: ZoneInfo, days: list[date], hour: int, minute: int) -> list[datetime]:
    """For each date that exists the instant at which its clocks first show the time, or first show a later one."""
    found: list[datetime] = []
    for day in days:
        wanted = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
        instant = wanted.astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) != wanted.replace(tzinfo=None):  # jumped over
            if not exists(zone, day):
                continue
            # The offset before the jump, which fold=0 takes, puts it just as far behind the jump as it lies in it.
            instant = first_after_jump(zone, instant)
        found.append(instant)
    return found


def exists(zone: ZoneInfo, day: date) -> bool:
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return any((noon + n * timedelta(hours=1)).astimezone(zone).date() == day for n in range(-36, 37))


def first_after_jump(zone: ZoneInfo, instant: datetime) -> datetime:
    after = offset(zone, instant)
    while offset(zone, instant - MINUTE) == after:
        instant -= MINUTE
    return instant


def ticks(expression: str, tz: str, start: datetime, end: datetime) -> list[datetime]:
    rule = cron(expression, tz)
    found: list[datetime] = []
    instant = rule.after(start - MINUTE)
    while instant < end:
        found.append(instant)
        instant = rule.after(instant)
    return found


def test_there_are_zones_and_changes_to_look_at() -> None:
    assert len(available_timezones()) > 400
    assert len(every_change()) > 1_000


@pytest.mark.parametrize("time", [(0, 0), (2, 30), (23, 45)])
def test_at_every_change_of_every_zone_a_daily_job_fires_once_for_each_local_day(time: tuple[int, int]) -> None:
    hour, minute = time
    for change, tz in every_change().items():
        zone = ZoneInfo(tz)
        middle = change.instant.astimezone(zone).date()
        days = [middle + n * DAY for n in range(-2, 3)]
        wanted = expected(zone, days, hour, minute)
        assert ticks(f"{minute} {hour} * * *", tz, wanted[0], wanted[-1] + MINUTE) == wanted, (tz, change)


def test_at_every_kind_of_change_a_daily_job_agrees_with_the_reference() -> None:
    kinds: dict[tuple[timedelta, timedelta], tuple[Change, str]] = {}
    for change, tz in every_change().items():
        wall = (change.instant + change.before).replace(tzinfo=UTC)
        kinds.setdefault((change.after - change.before, wall - wall.replace(hour=0, minute=0)), (change, tz))
    assert len(kinds) > 15
    for change, tz in kinds.values():
        start, end = change.instant - timedelta(hours=30), change.instant + timedelta(hours=30)
        for expression in ("0 0 * * *", "30 0 * * *", "15 1 * * *", "30 2 * * *", "0 3 * * *", "45 23 * * *"):
            assert ticks(expression, tz, start, end) == reference.ticks(expression, tz, start, end), (tz, change)
