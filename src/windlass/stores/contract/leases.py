"""Claims and leases: what a worker asks for and proves, and what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from windlass.core.job import Job, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a worker asks for in one claim."""

    worker_id: str
    n: int
    lease: timedelta
    queues: Mapping[str, int] | None = None
    """at most so many from each of these queues; None is every queue"""
    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    """how many jobs of a queue one turn takes, where queues of equal priority take turns; 1 where it is not said"""
    types: frozenset[str]
    """only jobs of these types: others stay queued for a worker that has their handler"""


class Claimed(list[Job]):
    """The jobs of one claim, and whether another claim at once may bring more.

    Less than was asked for is all there is, unless `more` is set: the claim may have put aside as many jobs as one
    claim may, or have passed over jobs that other claims had locked.
    """

    __slots__ = ("more",)

    def __init__(self, jobs: Iterable[Job] = (), *, more: bool = False) -> None:
        super().__init__(jobs)
        self.more = more


@dataclass(frozen=True, slots=True)
class Lease:
    """What proves that a worker holds a job."""

    id: str
    token: int


@dataclass(frozen=True, slots=True)
class Extended:
    """What an extension found: leases that are no longer the worker's, and jobs someone asked to cancel."""

    lost: frozenset[str]
    cancels: frozenset[str]
    held: frozenset[str] = frozenset()
    """still the worker's, but NOT extended: somebody else held the record. Their leases end when they would have"""


@dataclass(frozen=True, slots=True)
class Report:
    """A running job's newest progress."""

    lease: Lease
    progress: Progress


@dataclass(frozen=True, slots=True)
class Keep:
    """A value that a running job is to remember, in place of the one it had under that name; see `core.kept`."""

    lease: Lease
    name: str
    json: str


class Verdict(StrEnum):
    """What became of one fenced write."""

    APPLIED = "applied"
    """written now, or earlier by the same token"""
    CANCELLED = "cancelled"
    """written as cancelled instead: that was asked for, and the transition would have let the job run again"""
    STALE = "stale"
    """the token is no longer the job's: nothing changed but a line in its history"""
    MISSING = "missing"
    """no such job"""
    HELD = "held"
    """somebody's open transaction holds the job, or the line of those who wait for its end: not written, try again"""
