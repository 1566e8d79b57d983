from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.limit import MOST, Limit

HUGE = pytest.param(10**5000, id="5,001 digits")


def test_a_limit_is_one_at_a_time_unless_it_says_more() -> None:
    assert Limit("thumb").n == 1
    assert Limit("thumb", MOST).n == MOST


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=50), st.integers())
def test_jobs_with_the_same_arguments_share_a_key_and_others_do_not(path: str, page: int) -> None:
    limit = Limit("thumb:{path}:{page}", 2)
    assert limit.key_for({"path": path, "page": page}) == f"thumb:{path}:{page}"
    assert limit.key_for({"path": path, "page": page + 1}) != limit.key_for({"path": path, "page": page})


@pytest.mark.parametrize("n", [0, -1, MOST + 1, 1.5, True, "3", None, HUGE])
def test_a_limit_that_lets_nothing_through_or_is_no_number_is_refused(n: Any) -> None:
    with pytest.raises(SettingsError, match=r"Limit\('thumb'\) allows .* at once: expected 1 to 1000000"):
        Limit("thumb", n)


@pytest.mark.parametrize("key", ["", "{a.b}", "{a[0]}", "{a!r}", "{a:x}", "{a", "{}", "a\x00", "a" * 600, None, ["a"]])
def test_a_limit_whose_key_cannot_be_filled_in_is_refused(key: Any) -> None:
    with pytest.raises(SettingsError, match=r"the key template"):
        Limit(key)


@pytest.mark.parametrize("value", [None, [], {}, ["a"]])
def test_a_container_makes_no_key(value: object) -> None:
    with pytest.raises(PayloadInvalid, match=r"needs the argument 'path' as text or a number"):
        Limit("thumb:{path}").key_for({"path": value})
