from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError
from windlass.core.rate import GRAINS, LONGEST, MOST, Rate, booked_at

SECOND = timedelta(seconds=1)


def test_a_rate_is_by_the_second_unless_it_says_otherwise() -> None:
    assert Rate(5).per == SECOND
    assert Rate(MOST, LONGEST).n == MOST


def test_a_window_is_seconds_or_a_timedelta() -> None:
    assert Rate(5, 60) == Rate(5, timedelta(minutes=1))
    assert Rate(5, 0.5).per_ms == 500
    assert hash(Rate(5, 60)) == hash(Rate(5, timedelta(minutes=1)))


def test_a_rates_key_is_filled_from_arguments_or_is_the_type() -> None:
    assert Rate(5, SECOND, "api:{host}").key_for("fetch", {"host": "a"}) == "api:a"
    assert Rate(5).key_for("fetch", {"host": "a"}) == "type:fetch"


@pytest.mark.parametrize("n", [0, -1, MOST + 1, 1.5, True, "3", None])
def test_a_rate_that_lets_nothing_through_or_is_no_number_is_refused(n: Any) -> None:
    with pytest.raises(SettingsError, match=r"Rate allows .* starts: expected 1 to 1000000"):
        Rate(n)


@pytest.mark.parametrize(
    "per", [timedelta(0), timedelta(milliseconds=19), timedelta(days=32), 0, 0.019, "1", True, None, -SECOND]
)
def test_a_window_that_cannot_be_counted_is_refused(per: Any) -> None:
    with pytest.raises(SettingsError, match=r"Rate has per=.*: expected seconds or a timedelta from 20 ms to 31 days"):
        Rate(5, per)


def test_a_key_that_cannot_be_filled_in_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"the key template"):
        Rate(5, key="{a.b}")


def test_a_window_is_never_shorter_than_asked() -> None:
    assert Rate(1, timedelta(microseconds=20_001)).per_ms == 21


@given(st.integers(0, 10**14), st.integers(GRAINS, LONGEST // timedelta(milliseconds=1)))
def test_starts_are_booked_no_earlier_than_they_happened_and_at_most_a_part_later(now: int, per: int) -> None:
    booked = booked_at(now, per)
    assert now <= booked < now + per // GRAINS
    assert booked_at(booked, per) == booked


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(1, 5), st.integers(GRAINS, 300))
def test_no_window_ever_holds_more_than_its_number(steps: list[int], n: int, per: int) -> None:
    now, started, booked = 0, list[int](), dict[int, int]()
    for step in steps:
        now += step
        spent = sum(count for at, count in booked.items() if at > now - per)
        for _ in range(max(0, n - spent)):
            started.append(now)
            at = booked_at(now, per)
            booked[at] = booked.get(at, 0) + 1
    for start in started:
        assert sum(start - per < one <= start for one in started) <= n
