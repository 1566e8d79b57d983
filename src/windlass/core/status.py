"""The eight statuses of a job and the moves between them."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a job stands. Every change of it is one conditional write that also appends to the history."""

    SCHEDULED = "scheduled"
    """waits for its time"""
    QUEUED = "queued"
    """waits for a worker"""
    BLOCKED = "blocked"
    """waits for a limit slot, its running key, its rate, other jobs, a signal, or a worker that can read its payload"""
    PROCESSING = "processing"
    """leased by a worker"""
    RETRYING = "retrying"
    """failed, waits for its next attempt"""
    SUCCEEDED = "succeeded"
    """ended with a result"""
    FAILED = "failed"
    """ended without one: the dead letters, kept for inspection, replay or deletion"""
    CANCELLED = "cancelled"
    """ended on request"""

    @property
    def finished(self) -> bool:
        """Whether only an operator's recorded action can still change the job."""
        return self in FINISHED


WAITING = frozenset({Status.SCHEDULED, Status.QUEUED, Status.BLOCKED, Status.RETRYING})
FINISHED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})
LIVE = WAITING | {Status.PROCESSING}

MOVES: dict[Status, frozenset[Status]] = {
    Status.SCHEDULED: frozenset({Status.QUEUED, Status.CANCELLED}),
    Status.RETRYING: frozenset({Status.QUEUED, Status.CANCELLED}),
    Status.QUEUED: frozenset({Status.PROCESSING, Status.BLOCKED, Status.CANCELLED}),
    Status.BLOCKED: frozenset({Status.QUEUED, Status.CANCELLED}),
    Status.PROCESSING: frozenset(Status),
    Status.SUCCEEDED: frozenset({Status.QUEUED}),
    Status.FAILED: frozenset({Status.QUEUED}),
    Status.CANCELLED: frozenset({Status.QUEUED}),
}
"""From each status, the statuses a job may move to; anything else is refused."""


def allowed(from_: Status, to: Status) -> bool:
    """Whether the law knows a move from one status to the other."""
    return to in MOVES[from_]
