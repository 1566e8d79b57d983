from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from windlass.core.ageing import Ageing
from windlass.core.errors import SettingsError

MINUTE = timedelta(minutes=1)


def test_jobs_are_raised_to_high_unless_it_says_otherwise() -> None:
    assert Ageing(MINUTE).level == 50
    assert Ageing(MINUTE, "critical").level == 10
    assert Ageing(MINUTE, 7).level == 7


def test_a_wait_is_seconds_or_a_timedelta() -> None:
    assert Ageing(60) == Ageing(MINUTE)
    assert Ageing(60).after == MINUTE


@pytest.mark.parametrize("after", [timedelta(0), timedelta(milliseconds=999), -MINUTE, 0.9, "60", True, None])
def test_a_wait_that_would_raise_everything_is_refused(after: Any) -> None:
    with pytest.raises(
        SettingsError, match=r"Ageing has after=.*: expected seconds or a timedelta, of at least a second"
    ):
        Ageing(after)


@pytest.mark.parametrize("to", ["urgent", 1.5, True, None])
def test_what_is_no_priority_is_refused(to: Any) -> None:
    with pytest.raises(SettingsError, match="priority"):
        Ageing(MINUTE, to)
