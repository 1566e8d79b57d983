from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError, WindlassError
from windlass.core.signals import LONGEST, Cancel, Reject, Signal, Snooze, as_duration


def test_a_signal_is_not_an_error() -> None:
    for signal in (Snooze(1), Cancel(), Reject()):
        assert isinstance(signal, Signal)
        assert not isinstance(signal, WindlassError)


def test_a_snooze_takes_seconds_or_a_timedelta() -> None:
    assert Snooze(90).for_ == timedelta(seconds=90)
    assert Snooze(0.5).for_ == timedelta(milliseconds=500)
    assert Snooze(timedelta(days=2), "weekend").for_ == timedelta(days=2)


def test_signals_say_why() -> None:
    assert str(Snooze(90)) == "snoozed for 0:01:30"
    assert Snooze(90).reason is None
    assert str(Snooze(90, "not yet")) == Snooze(90, "not yet").reason == "not yet"
    assert str(Cancel()) == Cancel().reason == "cancelled by its handler"
    assert str(Reject("bad address")) == Reject("bad address").reason == "bad address"


@pytest.mark.parametrize(
    "signal", [Snooze(90), Snooze(timedelta(days=1), "weekend"), Cancel(), Cancel("enough"), Reject("bad address")]
)
def test_a_signal_survives_the_way_between_processes(signal: Signal) -> None:
    found = pickle.loads(pickle.dumps(signal))
    assert type(found) is type(signal)
    assert str(found) == str(signal)
    assert vars(found) == vars(signal)


@given(st.timedeltas(timedelta(0), LONGEST))
def test_a_duration_is_itself(value: timedelta) -> None:
    assert as_duration(value, "delay") is value


@given(st.floats(0, LONGEST.total_seconds()) | st.integers(0, 36_500 * 86_400))
def test_a_number_is_so_many_seconds(value: float) -> None:
    assert as_duration(value, "delay") == timedelta(seconds=value)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        float("nan"),
        float("inf"),
        float("-inf"),
        1e300,
        10**400,
        10**5000,
        timedelta(-1),
        timedelta.max,
        LONGEST + timedelta(microseconds=1),
        "5",
        None,
        [5],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_duration_that_is_negative_endless_or_none_at_all_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match=r"delay is .*: give seconds or a timedelta from 0 to 100 years") as caught:
        as_duration(value, "delay")
    assert len(str(caught.value)) < 200
    with pytest.raises(SettingsError, match=r"^Snooze is "):
        Snooze(value)
