"""What counts as flat: growth that goes on does not, a start and a moment's need do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.faults.slopes import FEWEST, Slope


def judged(samples: Sequence[float]) -> list[str]:
    return Slope(name="memory in MiB", samples=samples, allowance=8).missing()


@pytest.mark.parametrize(
    "samples",
    [
        [60.0] * 40,
        [60.0 + number % 7 for number in range(40)],
        [20.0 + min(number, 9) * 10 for number in range(40)],
        [60.0] * 30 + [600.0] * 4 + [60.0] * 6,
        [90.0 - number for number in range(40)],
        [60.0 + number * 0.2 for number in range(40)],
    ],
    ids=["still", "restless", "a start", "a moment's need", "falling", "within the allowance"],
)
def test_what_does_not_go_on_growing_is_flat(samples: list[float]) -> None:
    assert judged(samples) == []


@pytest.mark.parametrize(
    "samples",
    [
        [60.0 + number for number in range(40)],
        [60.0] * 30 + [90.0] * 10,
        [60.0 + number + 50 * (number % 5 == 0) for number in range(200)],
    ],
    ids=["a leak", "a step that is kept", "a leak beneath peaks"],
)
def test_what_goes_on_growing_is_not_flat(samples: list[float]) -> None:
    [told] = judged(samples)
    assert told.startswith("memory in MiB grew from ")


def test_a_slow_leak_is_found_by_whoever_looks_for_longer() -> None:
    slow = [60.0 + number * 0.2 for number in range(400)]
    assert judged(slow[:40]) == []
    assert judged(slow)


def test_too_few_samples_prove_nothing() -> None:
    assert judged([60.0] * FEWEST) == []
    [told] = judged([60.0] * (FEWEST - 1))
    assert "nothing was proved" in told


def test_the_ends_are_told() -> None:
    assert Slope(name="files", samples=[1.0] * 8 + [2.0] * 8, allowance=4).told() == "files 1.0 → 2.0"
    assert Slope(name="files", samples=[], allowance=4).told() == "files unknown"
