"""Schedules: cron rules and intervals, their ticks, and one job per tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from windlass.core.draft import Draft
from windlass.core.every import When


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A rule as stored: which job each of its ticks makes, and where it stands."""

    name: str
    cron: When
    """when it fires: a cron rule, or an interval"""
    type: str
    payload_json: str
    queue: str
    options_json: str = "{}"
    """what else its jobs are enqueued with; opaque to the store"""
    next_tick: datetime
    last_tick: datetime | None = None
    paused_at: datetime | None = None
    declared: bool = False
    """it came from code: one that no running worker declares any more is an orphan"""
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One tick to account for: compare-and-set on the schedule's next tick."""

    name: str
    expected: datetime
    """the schedule's next tick as the caller read it; also the tick this firing accounts for"""
    next_tick: datetime
    draft: Draft | None
    """the job to enqueue; None records the tick as missed"""
    unless_live: bool = False
    """overlap="skip": make no job while an earlier one of this schedule is live"""
    ticks: int = 1
    """how many ticks it accounts for: missed ones are recorded together, from the oldest of them"""


class Fired(StrEnum):
    """What became of a firing."""

    FIRED = "fired"
    SKIPPED = "skipped"
    """an earlier job of the schedule is still live"""
    MISSED = "missed"
    """accounted without a job"""
    STALE = "stale"
    """somebody else fired this tick, or the schedule changed, is paused or is gone"""
    EARLY = "early"
    """by the store's clock the tick has not come yet"""


@dataclass(frozen=True, slots=True)
class Tick:
    """One accounted tick of a schedule."""

    tick: datetime
    fired: Fired
    job_id: str | None
    ticks: int = 1
    """how many, if several were missed in a row from this one on"""


@dataclass(frozen=True, slots=True)
class Due:
    """The schedules whose tick has come, and when the next tick of the others is."""

    schedules: tuple[Schedule, ...]
    """at most as many as were asked for, longest due first; none that is paused"""
    now: datetime
    """the store's clock"""
    next_in: timedelta | None
    """how long until the next tick of a schedule that is not due yet; None if there is no other"""


class Schedules(Protocol):
    """Cron rules and intervals; exactly one job per tick with any number of workers."""

    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name. A changed rule takes the new next tick; an unchanged one keeps the tick it stands at."""
        ...

    async def remove(self, names: Sequence[str]) -> int:
        """Forget these; jobs already made stay."""
        ...

    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        ...

    async def due(self, n: int) -> Due:
        """What is to be fired now, at most `n`, in one step. The work does not grow with schedules that are not due."""
        ...

    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        ...

    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Move each schedule on if it still stands at `expected` and that tick has come by the store's clock.

        In the same step: the job is inserted with its schedule and tick, and the tick recorded.
        """
        ...

    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks of a schedule, newest first, at most 50."""
        ...
