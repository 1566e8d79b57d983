from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from windlass.core import wording
from windlass.core.errors import SettingsError


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"),
        (0.0124, "12 ms"),
        (0.8, "0.8 s"),
        (timedelta(seconds=59.94), "59.9 s"),
        (243, "4 m 3 s"),
        (7500, "2 h 5 m"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
        (-243, "-4 m 3 s"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(seconds: float | timedelta | None, said: str) -> None:
    assert wording.span(seconds) == said


def test_milliseconds_are_said_alike() -> None:
    assert [wording.milliseconds(ms) for ms in (None, 12, 800)] == ["–", "12 ms", "0.8 s"]


def test_an_instant_is_said_in_utc_to_the_second() -> None:
    there = datetime(2026, 11, 30, 10, 0, 7, 999, tzinfo=timezone(timedelta(hours=1)))
    assert wording.clock(there) == wording.clock(there.astimezone(UTC)) == "2026-11-30 09:00:07"
    assert wording.clock(None) == "–"


def test_a_number_of_things() -> None:
    assert [wording.plural(n, "job") for n in (0, 1, 2_000)] == ["0 jobs", "1 job", "2,000 jobs"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("500ms", 0.5), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("7", 7), ("0", 0)],
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert wording.duration(text, "--in") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 s", "1h30", "5x", "99999999d", "1e3"])
def test_what_is_no_duration_is_refused_by_name(text: str) -> None:
    with pytest.raises(SettingsError, match="--in is"):
        wording.duration(text, "--in")
