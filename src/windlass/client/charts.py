"""What charts show: how runs ended over time, how long they took and had waited, what stood where, and who worked."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.client.figures import Band, RunFigures, total_of
from windlass.client.gauges import OTHER, Gauges, Standing, sum_of_gauges
from windlass.client.stepping import begin_of, step_of, steps_of
from windlass.core.spread import middle_of
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.stores.contract import Minute

_SOON = timedelta(seconds=10)
"""the rate of a step that has just begun is told as if it had gone on for so long"""
MOST_LINES = 12
"""so many queues have a line of their own in a chart"""
_DECADES = (1, 2, 5)
EDGES_MS = (0, *(digit * 10**power for power in range(9) for digit in _DECADES))
"""where the bands of the heat map begin: less than a millisecond, then 1, 2, 5, 10, 20, 50 and so on up to days"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What ended in one step of time."""

    at: datetime
    """when the step begins"""
    succeeded: int
    failed: int
    retrying: int
    """ended badly, and tried again"""
    cancelled: int
    other: int
    """handed back, snoozed or suspended"""
    per_minute: float
    error_rate: float
    """the share of runs that ended badly: retrying and failed"""
    run: Band
    wait: Band

    @property
    def runs(self) -> int:
        """How many runs ended, well or not."""
        return self.succeeded + self.failed + self.retrying + self.cancelled + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatBand:
    """The runs of about one length: how many ended in each step."""

    from_ms: int
    to_ms: int
    """the length that the next band begins with"""
    n: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What stood in a queue at each step, on average, and the longest wait; None where nobody looked."""

    queue: str
    waiting: tuple[float | None, ...]
    running: tuple[float | None, ...]
    scheduled: tuple[float | None, ...]
    """scheduled or to be tried again"""
    blocked: tuple[float | None, ...]
    oldest_ms: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Who worked, at each step; None where nobody looked."""

    workers: tuple[float | None, ...]
    slots: tuple[float | None, ...]
    used: tuple[float | None, ...]
    """slots in which something ran"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """One axis of time, and what there is to draw on it. Every series has a value for every step, oldest first."""

    at: datetime
    since: timedelta
    step: timedelta
    steps: tuple[datetime, ...]
    """when each begins; the last one goes on"""
    points: tuple[Point, ...]
    """one for each step: outcomes, throughput, error rate, bands of run time and wait"""
    total: Point
    """all of it"""
    heat: tuple[HeatBand, ...]
    """run times, from the shortest band in which there was a run to the longest"""
    backlog: tuple[Backlog, ...]
    """the queues with most in them first; those beyond the largest are one, `other`"""
    fleet: Fleet


def charts_of(
    at: datetime,
    span: timedelta,
    minutes: Iterable[Minute],
    samples: Iterable[tuple[datetime, Gauges]] = (),
    *,
    queue: str | None = None,
    type: str | None = None,
) -> Charts:
    """Charts of what ended, of all jobs or those of a queue or a type, and of what stood in queues meanwhile."""
    step = step_of(span)
    steps = steps_of(at, span, step)
    places = {begin: place for place, begin in enumerate(steps)}
    by_step: defaultdict[int, list[Minute]] = defaultdict(list)
    for one in minutes:
        if queue in (None, one.queue) and type in (None, one.type):
            place = places.get(begin_of(one.minute, step))
            if place is not None:
                by_step[place].append(one)
    looks: list[list[Gauges]] = [[] for _ in steps]
    for when, gauges in samples:
        place = places.get(begin_of(when, step))
        if place is not None:
            looks[place].append(gauges)
    stood = [sum_of_gauges(some) for some in looks]
    return Charts(
        at=at,
        since=span,
        step=step,
        steps=steps,
        points=tuple(
            _point(begin, total_of(by_step[place]), min(at - begin, step)) for place, begin in enumerate(steps)
        ),
        total=_point(steps[0], total_of([one for some in by_step.values() for one in some]), at - steps[0]),
        heat=_heat([by_step[place] for place in range(len(steps))]),
        backlog=_backlog(stood, queue),
        fleet=Fleet(
            workers=tuple(_average(one.workers, one.looks) for one in stood),
            slots=tuple(_average(one.slots, one.looks) for one in stood),
            used=tuple(_average(one.used, one.looks) for one in stood),
        ),
    )


def _point(at: datetime, figures: RunFigures, lasted: timedelta) -> Point:
    told = (Status.SUCCEEDED, Status.FAILED, Status.RETRYING, Status.CANCELLED)
    succeeded, failed, retrying, cancelled = (figures.ended[status] for status in told)
    return Point(
        at=at,
        succeeded=succeeded,
        failed=failed,
        retrying=retrying,
        cancelled=cancelled,
        other=figures.runs - succeeded - failed - retrying - cancelled,
        per_minute=figures.runs * 60 / max(lasted, _SOON).total_seconds(),
        error_rate=figures.error_rate,
        run=figures.run_band,
        wait=figures.wait_band,
    )


def _heat(by_step: Sequence[Sequence[Minute]]) -> tuple[HeatBand, ...]:
    cells: Counter[tuple[int, int]] = Counter()
    for place, minutes in enumerate(by_step):
        for one in minutes:
            for bucket, n in one.run.buckets.items():
                cells[bisect_right(EDGES_MS, round(middle_of(bucket))) - 1, place] += n
    bands = [band for band, _ in cells]
    if not bands:
        return ()
    return tuple(
        HeatBand(
            from_ms=EDGES_MS[band],
            to_ms=EDGES_MS[band + 1] if band + 1 < len(EDGES_MS) else EDGES_MS[band] * 2,
            n=tuple(cells[band, place] for place in range(len(by_step))),
        )
        for band in range(min(bands), max(bands) + 1)
    )


def _backlog(stood: Sequence[Gauges], queue: str | None) -> tuple[Backlog, ...]:
    sizes: Counter[str] = Counter()
    for one in stood:
        for name, standing in one.queues.items():
            sizes[name] += standing.size
    names = [name for name, _ in sizes.most_common() if queue in (None, name)]
    most = [name for name in names if name != OTHER][:MOST_LINES]
    told = [_line(stood, name, [name]) for name in most]
    rest = [name for name in names if name not in most]
    return tuple([*told, _line(stood, OTHER, rest)] if rest else told)


def _line(stood: Sequence[Gauges], queue: str, names: Sequence[str]) -> Backlog:
    sums: list[tuple[Standing, int]] = []
    for one in stood:
        standing = Standing()
        for name in names:
            standing = standing.plus(one.queues.get(name, Standing()))
        sums.append((standing, one.looks))
    return Backlog(
        queue=queue,
        waiting=tuple(_average(standing.waiting, looks) for standing, looks in sums),
        running=tuple(_average(standing.running, looks) for standing, looks in sums),
        scheduled=tuple(_average(standing.scheduled, looks) for standing, looks in sums),
        blocked=tuple(_average(standing.blocked, looks) for standing, looks in sums),
        oldest_ms=tuple(float(standing.oldest_ms) if looks else None for standing, looks in sums),
    )


def _average(total: int, looks: int) -> float | None:
    return total / looks if looks else None
