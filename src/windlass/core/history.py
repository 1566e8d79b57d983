"""The audit trail: one entry per move, appended in the write that makes the move."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.status import Status

HISTORY_LIMIT = 100
"""A job keeps its newest entries up to this many; `Entry.number` shows that older ones were dropped."""


class Happened(StrEnum):
    """What an entry tells of."""

    ENQUEUED = "enqueued"
    REPLACED = "replaced"
    PROMOTED = "promoted"
    CLAIMED = "claimed"
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    FAILED = "failed"
    SNOOZED = "snoozed"
    RELEASED = "released"
    LOST = "lost"
    CRASHED = "crashed"
    SUSPENDED = "suspended"
    """its handler waits for a signal or for other jobs, and holds no worker meanwhile"""
    SIGNALLED = "signalled"
    """a signal came; the note names it"""
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    AGED = "aged"
    """it waited so long that its priority was raised"""
    REFUSED = "refused"
    """a late result of a worker that had lost its lease: recorded, never applied"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a job's history, stamped by the store's clock."""

    number: int
    at: datetime
    happened: Happened
    status: Status
    actor: str | None = None
    token: int | None = None
    note: str | None = None
