"""What the chores are told: what came due, what was rescued, how long finished jobs are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from windlass.core.job import Job
from windlass.core.status import Status


@dataclass(frozen=True, slots=True)
class Promoted:
    """What came due."""

    promoted: int
    unblocked: int
    next_due: timedelta | None
    """how long until the next scheduled or retrying job is due or a spent rate has room, by the store's clock"""
    queues: Mapping[str, int] = field(default_factory=dict[str, int])
    """how many of the promoted went to each queue"""
    expired: tuple[str, ...] = ()
    """the jobs that were cancelled because no worker had taken them in time"""


@dataclass(frozen=True, slots=True)
class Rescued:
    """One job whose lease had expired, and what the law made of it."""

    job: Job
    """as it was found, still of the worker that lost it"""
    to: Status

    @property
    def id(self) -> str:
        """Which job."""
        return self.job.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished jobs are kept; a queue may have its own."""

    succeeded: timedelta = timedelta(days=7)
    failed: timedelta = timedelta(days=30)
    cancelled: timedelta = timedelta(days=30)
    most: int | None = None
    """at most so many of each ending, the newest, even before their time; of all queues without their own together"""
    audit: timedelta = timedelta(days=365)
    """how long what was written down with `app.audit` is kept; of a queue's own retention it is not read"""
    queues: Mapping[str, Retention] = field(default_factory=dict[str, "Retention"])

    def of(self, status: Status) -> timedelta:
        """How long a job that ended so is kept."""
        kept: timedelta = getattr(self, status.value)
        return kept


class Pruned(int):
    """How many jobs one call has deleted, and whether another one at once may delete more.

    A call looks at a part of what there is, so it may delete less than it was asked for, or nothing, and still say so.
    """

    more: bool

    def __new__(cls, n: int = 0, *, more: bool = False) -> Self:
        """So many."""
        pruned = super().__new__(cls, n)
        pruned.more = more
        return pruned
