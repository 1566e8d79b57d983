"""Spreads: percentiles within a tenth of the truth, whatever the figures, and however they are added up."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.spread import (
    LAST,
    NOTHING,
    Spread,
    bounds_of,
    bucket_of,
    middle_of,
    spread_of,
    spread_of_average,
    spread_of_power,
    sum_of,
    unpacked,
)

MS = st.integers(0, 100 * 365 * 86_400_000)
MANY = st.lists(MS, min_size=1, max_size=200)


@given(MS)
def test_the_middle_of_a_bucket_is_within_a_tenth_of_all_that_it_holds(ms: int) -> None:
    bucket = bucket_of(ms)
    least, most = bounds_of(bucket)
    assert least <= ms <= most
    assert abs(middle_of(bucket) - ms) <= 0.0910 * ms


@given(MANY, st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_percentiles_are_within_a_tenth_of_those_of_the_figures_themselves(many: list[int], share: float) -> None:
    truth = sorted(many)[max(1, math.ceil(share * len(many))) - 1]
    told = spread_of(many).percentile_ms(share)
    assert told is not None
    assert abs(told - truth) <= 0.1 * truth


CHANCE = random.Random(18)
SHAPES = {
    "a long tail": [round(CHANCE.lognormvariate(5, 2)) for _ in range(20_000)],
    "a longer one": [round(20 * CHANCE.paretovariate(0.8)) for _ in range(20_000)],
    "two humps": [round(CHANCE.gauss(*CHANCE.choice([(12, 2), (9_000, 400)]))) for _ in range(20_000)],
    "two humps, one of them rare": [round(CHANCE.gauss(9_000, 400)) if n % 50 == 0 else 3 for n in range(20_000)],
    "all alike": [250] * 20_000,
    "mostly nothing at all": [0] * 18_000 + list(range(2_000)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_percentiles_of_skewed_and_of_two_humped_figures_are_within_a_tenth(shape: str) -> None:
    values = sorted(max(ms, 0) for ms in SHAPES[shape])
    minutes = [spread_of(values[start::60]) for start in range(60)]
    whole = sum_of(minutes)
    for share in (0.01, 0.05, 0.25, 0.49, 0.5, 0.51, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0):
        truth = values[math.ceil(share * len(values)) - 1]
        told = whole.percentile_ms(share)
        assert told is not None
        assert abs(told - truth) <= 0.1 * truth, (share, told, truth)
    assert (whole.average_ms, whole.least_ms, whole.most_ms) == (sum(values) / len(values), values[0], values[-1])


@given(MANY, MANY)
def test_spreads_add_up_to_the_spread_of_all(some: list[int], others: list[int]) -> None:
    both = sum_of([spread_of(some), NOTHING, spread_of(others)])
    assert both == spread_of([*some, *others])
    assert (both.n, both.total_ms) == (len(some) + len(others), sum(some) + sum(others))
    assert (both.least_ms, both.most_ms) == (min(*some, *others), max(*some, *others))


@given(MANY)
def test_a_spread_survives_json(many: list[int]) -> None:
    assert unpacked(json.loads(json.dumps(spread_of(many).packed()))) == spread_of(many)


def test_nothing_has_no_figures_and_a_clock_set_back_counts_as_no_time() -> None:
    assert spread_of([]) == sum_of([]) == spread_of_average(0, 0) == NOTHING
    assert (NOTHING.average_ms, NOTHING.percentile_ms(0.5)) == (None, None)
    assert spread_of([-5, 0]) == spread_of([0, 0])
    assert spread_of([0]).percentile_ms(0.99) == 0
    assert bucket_of(10**18) == LAST


@pytest.mark.parametrize("power", range(33))
def test_what_was_counted_by_powers_of_two_stays_within_them(power: int) -> None:
    old = spread_of_power(power, 7, 7 * 2**power // 2)
    assert (old.n, sum(old.buckets.values())) == (7, 7)
    for share in (0.01, 0.5, 1.0):
        told = old.percentile_ms(share)
        assert told is not None
        assert (2**power // 2) <= told < max(2**power, 1)
    assert spread_of_average(4, 40).percentile_ms(0.5) == 10


def test_where_buckets_are_missing_a_percentile_is_at_most_the_most() -> None:
    torn = Spread(n=10, total_ms=100, least_ms=1, most_ms=40, buckets={bucket_of(3): 2})
    assert torn.percentile_ms(0.95) == 40.0
