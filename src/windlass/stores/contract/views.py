"""Looking at jobs: which, how many, their history, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from windlass.core.history import Entry
from windlass.core.job import Job
from windlass.core.spread import Spread, spread_of_average, spread_of_power, sum_of
from windlass.core.status import Status
from windlass.stores.contract.filtering import Filter
from windlass.stores.contract.paging import Page

COUNT_CAP = 100_000
"""Counts stop here and say that they did: a view must stay cheap at any size."""
MOST_COUNTED = 5_000_000
"""A recount stops here in each status, and says so: it must end within the time that a store has for an answer."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many; not exact when the count stopped at its cap."""

    n: int
    exact: bool


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How many jobs of one queue stand in one status."""

    queue: str
    status: Status
    count: Count


@dataclass(frozen=True, slots=True)
class Minute:
    """What ended in one minute: attempts of one queue and type that ended so, how long they ran and had waited.

    Written with the endings it counts; see `Jobs.apply`.
    """

    minute: datetime
    queue: str
    type: str
    status: Status
    run: Spread
    wait: Spread

    @property
    def n(self) -> int:
        """How many ended so."""
        return self.run.n

    @staticmethod
    def of_power(of: tuple[datetime, str, str, Status], power: int, n: int, duration_ms: int, wait_ms: int) -> Minute:
        """From what earlier versions counted: runs of less than 2^power milliseconds, and the sum of their waits."""
        return Minute(*of, spread_of_power(power, n, duration_ms), spread_of_average(n, wait_ms))


def together(minutes: Iterable[Minute]) -> tuple[Minute, ...]:
    """One for each minute, queue, type and status, oldest first, of what a store counts in several parts."""
    parts: dict[tuple[datetime, str, str, Status], list[Minute]] = {}
    for one in minutes:
        parts.setdefault((one.minute, one.queue, one.type, one.status), []).append(one)
    whole = (
        some[0] if len(some) == 1 else Minute(*of, sum_of(one.run for one in some), sum_of(one.wait for one in some))
        for of, some in parts.items()
    )
    return tuple(sorted(whole, key=lambda one: one.minute))


@dataclass(frozen=True, slots=True)
class Figures:
    """What windows read: the minutes since, and what somebody counted and kept. Cheap, however many jobs there are."""

    at: datetime
    minutes: tuple[Minute, ...]
    kept: str | None
    """as it was given to `keep`"""


@dataclass(frozen=True, slots=True)
class Stats:
    """The store at one moment, and the minutes since."""

    at: datetime
    counts: tuple[StatusCount, ...]
    minutes: tuple[Minute, ...]


class Looked(NamedTuple):
    """A job and its moves, oldest first, as both stood at one moment."""

    job: Job
    history: list[Entry]


class Ran(NamedTuple):
    """As much of a job as figures are made of."""

    id: str
    queue: str
    type: str
    status: Status
    finished_at: datetime | None
    duration_ms: int | None
    wait_ms: int | None


class Views(Protocol):
    """Looking, without changing anything. Where a user is given, jobs of others are as if they were not there."""

    async def get(self, ids: Sequence[str], user: str | None = None) -> list[Job | None]:
        """The jobs of these ids, in order."""
        ...

    async def blocked(self, lines: Sequence[str], n: int, after: Job | None = None) -> list[Job]:
        """The first `n` jobs of each of these lines, those that have stood longest first.

        A line is what jobs are blocked by, as `BlockedBy.text` writes it. With `after`, a job that stood in a line,
        those behind it. The work does not grow with other lines, nor with the jobs that stand before.
        """
        ...

    async def find(self, filter_: Filter, limit: int, after: str | None = None, *, oldest_first: bool = False) -> Page:
        """Jobs that match, newest first unless asked for otherwise, from the cursor on.

        Cost does not grow with the page's place. At most `MOST_LOOKED_AT` jobs are looked at that match the words with
        an index and not the others: a page that stopped there says that it is not complete, and its cursor goes on.
        """
        ...

    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, counted up to the cap; not exact either when so many were looked at for the other words."""
        ...

    async def look(self, job_id: str, user: str | None = None) -> Looked | None:
        """The job with its history, in one read."""
        ...

    async def history(self, job_id: str, user: str | None = None) -> list[Entry]:
        """The job's moves, oldest first; empty for a job that is not there."""
        ...

    async def ran(self, user: str, limit: int, after: str | None = None) -> Sequence[Ran]:
        """A user's jobs, newest first, with `after` those made before that job; nothing else of them is read."""
        ...

    async def stats(self, since: timedelta) -> Stats:
        """Live counts by queue and status, and the minutes of the time asked for. Costs as much as it counts."""
        ...

    async def figures(self, since: timedelta) -> Figures:
        """The minutes of the time asked for, and what was kept last."""
        ...

    async def ended(self, first: datetime, until: datetime) -> Sequence[Minute]:
        """The minutes that begin at the one instant or later and before the other."""
        ...

    async def first_minute(self) -> datetime | None:
        """The oldest minute in which something ended; None where nothing has."""
        ...

    async def recount(self, statuses: frozenset[Status], most: int = MOST_COUNTED) -> Sequence[StatusCount]:
        """How many jobs of each queue stand in each of these statuses, counted up to `most` of each status.

        Costs as much as it counts: callers see to it that it is not asked often. Other looks go on meanwhile. What a
        store knows without counting it tells whole.
        """
        ...

    async def keep(self, text: str) -> None:
        """Keep what was counted, in place of what was kept before."""
        ...
