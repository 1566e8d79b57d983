"""Figures made of the store's minutes: how runs ended, how long they took and had waited, told apart as asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from windlass.core.spread import NOTHING, Spread, sum_of
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from windlass.stores.contract import Minute

K = TypeVar("K")


class By(StrEnum):
    """What figures are told apart by."""

    TYPE = "type"
    QUEUE = "queue"
    STATUS = "status"


class Kind(NamedTuple):
    """Runs of one type that ended in one status, in one queue."""

    queue: str
    type: str
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """How long something took, in milliseconds: average, shortest and longest exactly, percentiles within a tenth.

    All but `n` are None where there was nothing.
    """

    n: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    least_ms: int | None
    most_ms: int | None


def band_of(spread: Spread) -> Band:
    """The figures of a spread that people look at."""
    return Band(
        n=spread.n,
        average_ms=spread.average_ms,
        p50_ms=spread.percentile_ms(0.5),
        p95_ms=spread.percentile_ms(0.95),
        p99_ms=spread.percentile_ms(0.99),
        least_ms=spread.least_ms if spread.n else None,
        most_ms=spread.most_ms if spread.n else None,
    )


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The runs that ended in a stretch of time, of one type, queue or whatever they are told apart by."""

    ended: Counter[Status] = field(default_factory=Counter[Status])
    run: Spread = NOTHING
    """how long they ran"""
    wait: Spread = NOTHING
    """how long they had waited from being queued to their run"""

    @property
    def runs(self) -> int:
        """How many runs ended, well or not."""
        return self.ended.total()

    @property
    def error_rate(self) -> float:
        """The share of runs that ended badly: those tried again and those failed for good."""
        return (self.ended[Status.FAILED] + self.ended[Status.RETRYING]) / self.runs if self.runs else 0.0

    @property
    def average_wait(self) -> timedelta | None:
        """How long a job waited from being queued to its run."""
        return _span(self.wait.average_ms)

    @property
    def average_run(self) -> timedelta | None:
        """How long a run took."""
        return _span(self.run.average_ms)

    def percentile(self, share: float) -> timedelta | None:
        """How long the run at this share of them took, within a tenth."""
        return _span(self.run.percentile_ms(share))

    def wait_percentile(self, share: float) -> timedelta | None:
        """How long the wait at this share of them was, within a tenth."""
        return _span(self.wait.percentile_ms(share))

    @property
    def run_band(self) -> Band:
        """Average, percentiles, shortest and longest of the runs."""
        return band_of(self.run)

    @property
    def wait_band(self) -> Band:
        """The same of the waits before them."""
        return band_of(self.wait)


def figures_of(minutes: Iterable[Minute], by: By) -> dict[str, RunFigures]:
    """The figures of each type, queue or status, most runs first."""
    return _told_apart(minutes, lambda one: str(getattr(one, by.value)))


def kinds_of(minutes: Iterable[Minute]) -> dict[Kind, RunFigures]:
    """The figures of each queue, type and status, most runs first."""
    return _told_apart(minutes, lambda one: Kind(one.queue, one.type, one.status))


def total_of(minutes: Sequence[Minute]) -> RunFigures:
    """The figures of all of them."""
    ended: Counter[Status] = Counter()
    for one in minutes:
        ended[one.status] += one.n
    return RunFigures(ended, sum_of(one.run for one in minutes), sum_of(one.wait for one in minutes))


def _told_apart(minutes: Iterable[Minute], name: Callable[[Minute], K]) -> dict[K, RunFigures]:
    found: defaultdict[K, list[Minute]] = defaultdict(list)
    for one in minutes:
        found[name(one)].append(one)
    figures = {of: total_of(some) for of, some in found.items()}
    return dict(sorted(figures.items(), key=lambda pair: (-pair[1].runs, str(pair[0]))))


def _span(ms: float | None) -> timedelta | None:
    return None if ms is None else timedelta(milliseconds=ms)
