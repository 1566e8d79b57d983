from __future__ import annotations

import copy
import math
import pickle
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError
from windlass.core.retry import DEFAULT_POLICY, JITTER, LONGEST, MOST_ATTEMPTS, Retry

seconds = st.floats(0, 1e6)
spreads = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, 10_000)
exponentials = st.builds(Retry, st.just(5), base=seconds, factor=st.floats(1, 1e6), cap=seconds, jitter=st.booleans())
fixed = st.builds(Retry.fixed, st.just(5), seconds, jitter=st.booleans())
linears = st.builds(Retry.linear, st.just(5), seconds, cap=seconds, jitter=st.booleans())
shapes = exponentials | fixed | linears


def delays(policy: Retry, n: int) -> list[float]:
    return [policy.delay_after(attempt, 0.0) for attempt in range(1, n + 1)]


def ten_a_time(attempt: int) -> float:
    return 10.0 * attempt


def one_over_zero(attempt: int) -> float:
    return attempt / 0


class Busy(Exception): ...


class VeryBusy(Busy): ...


def test_the_default_doubles_from_one_second_to_a_minute() -> None:
    assert delays(Retry(), 8) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_factor_of_one_is_a_fixed_delay() -> None:
    assert delays(Retry(base=7, factor=1), 3) == [7, 7, 7]


def test_fixed_waits_the_same_each_time_even_beyond_the_usual_cap() -> None:
    assert delays(Retry.fixed(3, 300), 3) == [300, 300, 300]


def test_linear_grows_by_its_step_up_to_its_cap() -> None:
    assert delays(Retry.linear(9, 20, cap=50), 4) == [20, 40, 50, 50]


def test_custom_asks_its_function() -> None:
    assert delays(Retry.custom(9, ten_a_time), 3) == [10, 20, 30]


def test_waits_are_seconds_or_timedeltas() -> None:
    minute = timedelta(minutes=1)
    assert Retry(5, base=minute, cap=timedelta(hours=1)) == Retry(5, base=60, cap=3600)
    assert delays(Retry(5, base=minute, cap=timedelta(minutes=3)), 3) == [60, 120, 180]
    assert Retry.fixed(3, minute) == Retry.fixed(3, 60)
    assert Retry.linear(3, minute, cap=timedelta(seconds=90)) == Retry.linear(3, 60, cap=90)
    assert delays(Retry.linear(3, minute, cap=timedelta(seconds=90)), 2) == [60, 90]
    assert delays(Retry.custom(3, lambda attempt: attempt * minute), 2) == [60, 120]
    assert Retry.custom(3, lambda _: -minute).wait_after(1, 0.0).fault is not None
    for wrong in (-minute, timedelta(days=36_501)):
        with pytest.raises(
            SettingsError, match=r"Retry base is .*: expected a number from 0 .* of seconds, or a timedelta"
        ):
            Retry(5, base=wrong)


def test_a_shape_keeps_the_options_it_is_given() -> None:
    for policy in (
        Retry.fixed(3, 1, jitter=False, on=(Busy,), never=(VeryBusy,)),
        Retry.linear(3, 1, jitter=False, on=(Busy,), never=(VeryBusy,)),
        Retry.custom(3, ten_a_time, jitter=False, on=(Busy,), never=(VeryBusy,)),
    ):
        assert (policy.attempts, policy.jitter, policy.on, policy.never) == (3, False, (Busy,), (VeryBusy,))


@pytest.mark.parametrize("told", [-1, -0.001, math.nan, math.inf, -math.inf, "5", None, True, 1j, [3]])
def test_a_custom_function_that_says_nonsense_gives_way_to_the_default(told: object) -> None:
    policy = Retry.custom(5, lambda _: cast("Any", told))
    assert delays(policy, 8) == delays(Retry(), 8)


def test_a_custom_function_that_raises_gives_way_to_the_default() -> None:
    assert delays(Retry.custom(5, one_over_zero), 8) == delays(Retry(), 8)


@pytest.mark.parametrize("told", [1e300, 10**400])
def test_a_custom_delay_ends_at_a_century(told: float) -> None:
    assert Retry.custom(5, lambda _: told).delay_after(1, 0.0) == LONGEST


def test_a_custom_delay_of_nothing_is_obeyed() -> None:
    assert delays(Retry.custom(5, lambda _: 0), 2) == [0, 0]


def test_jitter_adds_up_to_a_quarter() -> None:
    policy = Retry(base=40)
    assert [policy.delay_after(1, spread) for spread in (0.0, 0.5, 1.0)] == [40, 45, 50]


def test_without_jitter_chance_changes_nothing() -> None:
    assert Retry(base=40, jitter=False).delay_after(1, 0.9) == 40


@pytest.mark.parametrize("spread", [-1.0, -math.inf, math.nan])
def test_no_chance_makes_a_job_early(spread: float) -> None:
    assert Retry(base=40).delay_after(1, spread) == 40


@pytest.mark.parametrize("attempt", [0, -5])
def test_an_attempt_before_the_first_waits_like_the_first(attempt: int) -> None:
    assert Retry(base=3).delay_after(attempt, 0.0) == 3


@pytest.mark.parametrize("attempt", [310, 1_025, 10_000, MOST_ATTEMPTS, 10**400])
def test_a_huge_attempt_waits_the_cap(attempt: int) -> None:
    assert Retry().delay_after(attempt, 0.0) == 60
    assert Retry(base=2, factor=1_000_000, cap=50).delay_after(attempt, 0.0) == 50
    assert Retry.linear(5, 1e6).delay_after(attempt, 0.0) == 60


def test_a_base_of_nothing_stays_nothing_when_the_power_overflows() -> None:
    assert Retry(base=0).delay_after(10_000, 0.9) == 0


@given(shapes, attempts, attempts)
def test_a_later_attempt_never_waits_less(policy: Retry, one: int, other: int) -> None:
    earlier, later = sorted((one, other))
    assert policy.delay_after(earlier, 0.0) <= policy.delay_after(later, 0.0)


@given(shapes, attempts, spreads)
def test_a_delay_is_never_earlier_than_asked_and_never_above_cap_and_a_quarter(
    policy: Retry, attempt: int, spread: float
) -> None:
    asked = policy.delay_after(attempt, 0.0)
    waited = policy.delay_after(attempt, spread)
    cap = cast("float", policy.cap)
    assert 0 <= asked <= cap
    assert asked <= waited <= cap * (1 + JITTER)


@given(st.floats() | st.integers() | st.none() | st.text(), attempts, spreads)
def test_whatever_a_custom_function_returns_the_delay_is_usable(told: object, attempt: int, spread: float) -> None:
    waited = Retry.custom(5, lambda _: cast("Any", told)).delay_after(attempt, spread)
    assert 0 <= waited <= LONGEST * (1 + JITTER)


@given(shapes, spreads)
def test_chance_is_the_only_source_of_difference(policy: Retry, spread: float) -> None:
    assert policy.delay_after(3, spread) == copy.copy(policy).delay_after(3, spread)


def test_by_default_every_exception_is_tried_again_but_no_exit() -> None:
    assert Retry().allows(ValueError())
    assert not Retry().allows(KeyboardInterrupt())


def test_only_the_named_errors_and_their_kinds_are_tried_again() -> None:
    policy = Retry(on=(Busy, OSError))
    assert policy.allows(VeryBusy())
    assert policy.allows(ConnectionError())
    assert not policy.allows(ValueError())


def test_never_wins_over_on() -> None:
    policy = Retry(on=(Busy,), never=(VeryBusy,))
    assert policy.allows(Busy())
    assert not policy.allows(VeryBusy())


def test_a_number_means_attempts_none_the_default_and_a_policy_itself() -> None:
    policy = Retry(3, base=9)
    assert Retry.of(policy) is policy
    assert Retry.of(7) == Retry(7)
    assert Retry.of(None) is DEFAULT_POLICY
    assert Retry() == DEFAULT_POLICY
    assert DEFAULT_POLICY.attempts == 5


@pytest.mark.parametrize("found", [0, -1, MOST_ATTEMPTS + 1, 2.0, "3", True])
def test_attempts_out_of_range_are_refused_with_what_to_do(found: object) -> None:
    with pytest.raises(SettingsError, match=r"attempts is .*: expected a whole number from 1 .*; .* use 1"):
        Retry(cast("Any", found))
    with pytest.raises(SettingsError):
        Retry.of(cast("Any", found))


def test_the_ends_of_the_range_of_attempts_are_allowed() -> None:
    assert Retry(1).attempts == 1
    assert Retry(MOST_ATTEMPTS).attempts == MOST_ATTEMPTS


@pytest.mark.parametrize("name", ["base", "factor", "cap"])
@pytest.mark.parametrize("found", [-1, -0.1, math.nan, math.inf, -math.inf, "1", None, True, 1e300])
def test_numbers_that_make_no_policy_are_refused_by_name(name: str, found: object) -> None:
    with pytest.raises(SettingsError, match=f"Retry {name} is .*: expected a number from"):
        Retry(**cast("Any", {name: found}))


def test_a_factor_that_would_hurry_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"factor is 0\.5"):
        Retry(factor=0.5)


@pytest.mark.parametrize("name", ["on", "never"])
@pytest.mark.parametrize("found", [ValueError, [ValueError], (ValueError(),), ("ValueError",), (int,), None])
def test_what_is_not_a_tuple_of_exception_classes_is_refused(name: str, found: object) -> None:
    with pytest.raises(SettingsError, match=f"Retry {name} is .*: expected a tuple of exception classes"):
        Retry(**cast("Any", {name: found}))


def test_a_delay_that_is_no_function_is_refused() -> None:
    with pytest.raises(SettingsError, match="delay is 5: expected a function"):
        Retry.custom(5, cast("Any", 5))


@pytest.mark.parametrize(
    "policy",
    [Retry(), Retry(3, never=(Busy,)), Retry.fixed(3, 5), Retry.linear(3, 5), Retry.custom(3, ten_a_time)],
)
def test_a_policy_survives_pickling_and_compares_and_hashes_by_value(policy: Retry) -> None:
    same = pickle.loads(pickle.dumps(policy))
    assert same == policy
    assert hash(same) == hash(policy)
    assert delays(same, 5) == delays(policy, 5)


def test_policies_that_differ_are_not_equal() -> None:
    assert Retry.linear(3, 5) != Retry.linear(3, 6)
    assert Retry(3) != Retry(4)
