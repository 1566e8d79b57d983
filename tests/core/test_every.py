from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError
from windlass.core.every import LONGEST, Every, every, when
from windlass.core.schedule import Missed, Plan, cron, plan

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
intervals = st.integers(1, LONGEST // SECOND).map(lambda seconds: timedelta(seconds=seconds))
short = st.integers(1, 5_000).map(lambda seconds: timedelta(seconds=seconds))
instants = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # given one


# ticks


@given(intervals, instants)
def test_ticks_are_multiples_of_the_interval_since_1970(interval: timedelta, instant: datetime) -> None:
    tick = every(interval).after(instant)
    assert (tick - EPOCH) % interval == timedelta(0)
    assert timedelta(0) < tick - instant <= interval
    assert tick.tzinfo is UTC


@given(intervals, instants)
def test_the_next_ticks_are_those_that_come_one_after_another(interval: timedelta, instant: datetime) -> None:
    rule = every(interval)
    first, second, third = rule.next(3, instant)
    assert [first, second, third] == [rule.after(instant), rule.after(first), rule.after(second)]
    assert rule.next(0, instant) == []


def test_half_a_minute_ticks_on_the_minute_and_on_its_half() -> None:
    rule = every(timedelta(seconds=30))
    assert rule.next(2, NOON) == [NOON + 30 * SECOND, NOON + 60 * SECOND]
    assert rule.after(NOON - timedelta(microseconds=1)) == NOON


def test_an_instant_may_come_in_any_zone_and_needs_one() -> None:
    assert every(60).after(NOON.astimezone(timezone(timedelta(hours=3)))) == NOON + 60 * SECOND
    with pytest.raises(SettingsError, match="has no time zone"):
        every(60).after(NOON.replace(tzinfo=None))


# what is refused


@pytest.mark.parametrize("interval", [0, 0.5, 1.5, -30, timedelta(milliseconds=1500), timedelta(days=367), "30s", True])
def test_an_interval_that_is_too_short_too_long_or_no_whole_seconds_is_refused(interval: Any) -> None:
    with pytest.raises(SettingsError, match="the interval of a schedule is"):
        every(interval)


@pytest.mark.parametrize("policy", [{"overlap": "never"}, {"missed": "some"}, {"limit": 0}, {"limit": True}])
def test_policies_and_limits_that_do_not_exist_are_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="of a schedule is"):
        every(30, **policy)


# as text


@pytest.mark.parametrize(
    ("seconds", "expression", "described"),
    [
        (1, "every 1s", "every 1 s"),
        (30, "every 30s", "every 30 s"),
        (90, "every 90s", "every 90 s"),
        (300, "every 5m", "every 5 m"),
        (7200, "every 2h", "every 2 h"),
        (86_400, "every 1d", "every 1 d"),
    ],
)
def test_an_interval_is_written_in_its_largest_unit(seconds: int, expression: str, described: str) -> None:
    rule = every(seconds)
    assert (rule.expression, rule.describe(), rule.tz) == (expression, described, "UTC")


@given(intervals)
def test_what_was_written_is_read_back(interval: timedelta) -> None:
    rule = every(interval, overlap="queue", missed="all", limit=7)
    assert when(rule.expression, rule.tz, rule.overlap, rule.missed, rule.missed_limit) == rule


@pytest.mark.parametrize(
    "text", ["every 60s", "every 24h", "every 0s", "every 030s", "every 30", "every 30s ", "every"]
)
def test_text_that_was_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        when(text, "UTC", "skip", "latest", 100)


def test_any_other_text_is_a_cron_expression() -> None:
    assert when("0 9 * * *", "Europe/Paris", "skip", "all", 7) == cron(
        "0 9 * * *", "Europe/Paris", missed="all", limit=7
    )


# missed ticks


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("latest", Plan((NOON,), 2, NOON - 60 * SECOND, NOON + 30 * SECOND)),
        ("all", Plan((NOON - 60 * SECOND, NOON - 30 * SECOND, NOON), 0, None, NOON + 30 * SECOND)),
        ("none", Plan((NOON,), 2, NOON - 60 * SECOND, NOON + 30 * SECOND)),
    ],
)
def test_missed_ticks_are_made_up_for_as_with_cron(missed: Missed, expected: Plan) -> None:
    assert plan(every(30, missed=missed), NOON - 60 * SECOND, NOON + SECOND) == expected


def test_a_late_tick_of_a_long_interval_is_missed_where_none_is_made_up_for() -> None:
    found = plan(every(timedelta(days=1), missed="none"), NOON.replace(hour=0), NOON)
    assert found == Plan((), 1, NOON.replace(hour=0), NOON.replace(hour=0) + timedelta(days=1))


def test_years_of_every_second_are_counted_exactly() -> None:
    found = plan(every(1), NOON - timedelta(days=3650), NOON)
    assert (found.fire, found.missed, found.missed_exact) == ((NOON,), 3650 * 86_400, True)


@given(short, instants, st.integers(0, 100_000), st.sampled_from(["latest", "all", "none"]))
def test_every_tick_is_fired_or_counted(interval: timedelta, due: datetime, late: int, missed: Missed) -> None:
    """Also from a stored tick that the interval does not have, as of the rule that it took the place of."""
    rule, due = Every(interval, missed=missed), due.replace(microsecond=0)
    found = plan(rule, due, due + late * SECOND)
    between = (found.next - rule.after(due)) // interval
    assert len(found.fire) + found.missed == 1 + between
