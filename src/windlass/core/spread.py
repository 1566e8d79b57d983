"""How a figure is spread: counted in buckets that grow by a fifth, so that percentiles are known within a tenth.

Spreads of different minutes, workers and types add up to the spread of all of them; averages, least and most are exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

GROWTH = 1.2
"""Each bucket reaches so many times as far as the one before it: its middle is within 9.1 % of all that it holds."""
LAST = 160
"""the last bucket, of more than a hundred years"""
_LOG = math.log(GROWTH)


@lru_cache(maxsize=4096)
def bucket_of(ms: int) -> int:
    """The bucket of so many milliseconds: 0 holds none at all, 1 one, and each further those up to its bound."""
    return min(1 + math.ceil(math.log(ms) / _LOG), LAST) if ms > 0 else 0


@lru_cache(maxsize=LAST + 1)
def bounds_of(bucket: int) -> tuple[int, int]:
    """The least and the most whole milliseconds that the bucket holds."""
    if bucket <= 0:
        return 0, 0
    least = math.floor(GROWTH ** (bucket - 2)) + 1
    return least, max(least, math.floor(GROWTH ** (bucket - 1)))


@lru_cache(maxsize=LAST + 1)
def middle_of(bucket: int) -> float:
    """What is as far, as a share, from the least as from the most that the bucket holds."""
    least, most = bounds_of(bucket)
    return 2 * least * most / (least + most) if most else 0.0


class Spread(NamedTuple):
    """How many there were, their sum, their least and most, and how many of them each bucket holds."""

    n: int
    total_ms: int
    least_ms: int
    most_ms: int
    buckets: Mapping[int, int]

    @property
    def average_ms(self) -> float | None:
        """Their average; None of nothing."""
        return self.total_ms / self.n if self.n else None

    def percentile_ms(self, share: float) -> float | None:
        """What so large a share of them does not exceed, within a tenth; None of nothing."""
        if not self.n:
            return None
        rank, passed = max(1, math.ceil(share * self.n)), 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= rank:
                return min(max(middle_of(bucket), self.least_ms), self.most_ms)
        return float(self.most_ms)

    def packed(self) -> list[Any]:
        """As JSON can hold it; `unpacked` reads it."""
        flat = [part for pair in sorted(self.buckets.items()) for part in pair]
        return [self.n, self.total_ms, self.least_ms, self.most_ms, flat]


NOTHING = Spread(0, 0, 0, 0, {})


def spread_of(values: Iterable[int]) -> Spread:
    """The spread of so many milliseconds each; a clock that was set back makes them none at all."""
    counted = Counter(values)
    buckets: dict[int, int] = {}
    n = total = 0
    for ms, times in counted.items():
        bucket = bucket_of(ms)
        buckets[bucket] = buckets.get(bucket, 0) + times
        n += times
        total += times * ms if ms > 0 else 0
    return Spread(n, total, max(min(counted), 0), max(*counted, 0), buckets) if n else NOTHING


def sum_of(spreads: Iterable[Spread]) -> Spread:
    """The spread of all that these hold."""
    buckets: dict[int, int] = {}
    n = total = most = 0
    least: int | None = None
    for one in spreads:
        if one.n:
            n += one.n
            total += one.total_ms
            least = one.least_ms if least is None else min(least, one.least_ms)
            most = max(most, one.most_ms)
            for bucket, times in one.buckets.items():
                buckets[bucket] = buckets.get(bucket, 0) + times
    return Spread(n, total, least or 0, most, buckets)


def unpacked(packed: Sequence[Any]) -> Spread:
    """From what `packed` made."""
    n, total, least, most, flat = packed
    return Spread(n, total, least, most, dict(zip(flat[::2], flat[1::2], strict=True)))


def spread_of_power(power: int, n: int, total_ms: int) -> Spread:
    """What an earlier version counted: n of at least 2^(power - 1) and less than 2^power milliseconds.

    They are dealt out evenly over the buckets that these bounds lie in, so percentiles are within a factor of two.
    """
    least, most = (2 ** (power - 1), 2**power - 1) if power > 0 else (0, 0)
    first, last = bucket_of(least), bucket_of(most)
    each, left = divmod(n, last - first + 1)
    dealt = {bucket: each + (bucket - first < left) for bucket in range(first, last + 1)}
    return Spread(n, total_ms, least, most, {bucket: times for bucket, times in dealt.items() if times})


def spread_of_average(n: int, total_ms: int) -> Spread:
    """What an earlier version knew the sum of and no more: as if all were alike."""
    average = round(total_ms / n) if n else 0
    return Spread(n, total_ms, average, average, {bucket_of(average): n}) if n else NOTHING
