"""Admission: what becomes of a draft that is inserted, and of a queued job that is about to start.

The law alone, on facts that a store has looked up in the step in which it writes. A store that decides inside a
statement or a script mirrors these functions; `tests/contract/test_law.py` holds it to them case by case.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.status import WAITING, Status

if TYPE_CHECKING:
    from windlass.core.draft import Draft, Options

_NOW = timedelta(0)
EXPIRED = "expired: no worker had taken it in time"
"""the note of a job that was cancelled for that"""


@dataclass(frozen=True, slots=True)
class Created:
    """The job is in the store. Also the answer to the same id inserted again."""

    id: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Another live job holds the unique key, or an earlier one the idempotency key; nothing was written."""

    id: str
    """the job already there"""
    key: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A waiting job held the key and took over the draft's payload, priority and time (`on_conflict="replace"`)."""

    id: str


@dataclass(frozen=True, slots=True)
class Full:
    """The queue has reached its largest depth; nothing was written."""

    queue: str
    depth: int


Inserted: TypeAlias = Created | Duplicate | Replaced | Full


class Holder(NamedTuple):
    """The live job that holds a unique key."""

    id: str
    status: Status


class Known(NamedTuple):
    """What a store knows that matters to one draft."""

    is_there: bool = False
    """a job with the draft's id, whatever its status"""
    same: str | None = None
    """the job that the idempotency key stands for, while its window lasts"""
    holder: Holder | None = None
    """of the unique key"""
    depth: int = 0
    """how many jobs wait in the draft's queue, those written before it by the same insert included"""
    most: int | None = None
    """the queue's largest depth"""


def judge(draft: Draft, known: Known) -> Inserted | None:
    """What an insert answers without writing a new job; None where it writes one, and answers that it is created."""
    if known.is_there:
        # The same id again is the same job, even after it has ended and its keys have gone to others.
        return Created(draft.id)
    if draft.idempotency_key is not None and known.same not in (None, draft.id):
        return Duplicate(known.same or "", draft.idempotency_key)
    holder = known.holder
    if draft.unique_queued is not None and holder is not None and holder.id != draft.id:
        if draft.options.on_conflict == "replace" and holder.status in WAITING:
            return Replaced(holder.id)
        return Duplicate(holder.id, draft.unique_queued)
    if known.most is not None and known.depth >= known.most:
        return Full(draft.options.queue, known.most)
    return None


def status_of_new(options: Options, *, later: bool) -> Status:
    """The status a job is created with; `later`: its time is still to come, by the store's clock."""
    if options.awaits is not None:
        return Status.BLOCKED
    return Status.SCHEDULED if later else Status.QUEUED


class Waiting(NamedTuple):
    """A waiting job that is replaced, as it stands."""

    blocked_by: str | None
    age: timedelta
    """since its creation"""


class Replacement(NamedTuple):
    """How a job stands after it was replaced."""

    status: Status
    wait: timedelta | None
    """until it is due; None: its time stays as it is"""


def replacement(options: Options, holder: Waiting, wait: timedelta) -> Replacement:
    """How the holder of a key stands once it has taken over a draft that is due after `wait`."""
    if Kind.FLOW.blocks(holder.blocked_by):
        return Replacement(Status.BLOCKED, None)  # one that awaits others goes on waiting
    if options.longest_wait is not None:
        wait = max(_NOW, min(wait, options.longest_wait - holder.age))
    return Replacement(Status.SCHEDULED if wait > _NOW else Status.QUEUED, wait)


class Candidate(NamedTuple):
    """What a queued job needs in order to start."""

    limit_key: str | None = None
    limit: int = 1
    running_key: str | None = None
    """None also where it has held its key since an earlier attempt"""
    rate_key: str | None = None
    rate_n: int = 0
    called: bool = False
    """`promote` called it from the line of its rate"""


class InUse(NamedTuple):
    """What of that is in use, by running jobs and by those that the same claim has let through."""

    slots: int = 0
    """of its limit"""
    held: bool = False
    """another job has its running key"""
    starts: int = 0
    """of its rate, in the window that ends now"""
    in_line: int = 0
    """jobs that are blocked by its rate"""


def admit(job: Candidate, in_use: InUse) -> BlockedBy | None:
    """What a job that is about to start has to wait for; None if it may start.

    The rate comes last: a job that has to wait for anything else must not spend it.
    """
    limit_key, limit, running_key, rate_key, rate_n, called = job
    slots, held, starts, in_line = in_use
    if limit_key is not None and slots >= limit:
        return BlockedBy(Kind.LIMIT, limit_key)
    if running_key is not None and held:
        return BlockedBy(Kind.UNIQUE, running_key)
    if rate_key is not None and starts + (0 if called else in_line) >= rate_n:
        return BlockedBy(Kind.RATE, rate_key)
    return None
