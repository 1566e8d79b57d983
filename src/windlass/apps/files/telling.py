"""Telling: one write in the words of files: waiting, active, completed, failed, delayed, paused, stalled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from windlass import Happened, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass import Entry, Job

STATES = ("waiting", "active", "completed", "failed", "delayed", "paused", "stalled")
_WORDS = {
    Status.QUEUED: "waiting",
    Status.BLOCKED: "waiting",
    Status.PROCESSING: "active",
    Status.SUCCEEDED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "failed",
    Status.SCHEDULED: "delayed",
    Status.RETRYING: "delayed",
}
_LOST = (Happened.LOST, Happened.CRASHED)


def state_of(job: Job, history: Sequence[Entry], *, paused: bool, now: datetime | None = None) -> str:
    """The state of a write. One whose worker was lost is stalled until another attempt begins."""
    word = _WORDS[job.status]
    if word == "active":
        over = job.lease_expires_at is not None and job.lease_expires_at < (now or datetime.now(UTC))
        return "stalled" if over else word
    if word == "waiting":
        last = next((one.happened for one in reversed(history) if one.happened is not Happened.BLOCKED), None)
        if last in _LOST:
            return "stalled"
        return "paused" if paused else word
    return word


def reason_of(job: Job) -> str | None:
    """Why a write has failed, or will be tried again; None for one that went well."""
    if job.status is Status.CANCELLED:
        return "cancelled"
    if job.error is None or job.status is Status.SUCCEEDED:
        return None
    return job.error.message


def progress_of(job: Job) -> int:
    """From 0 to 100."""
    return 100 if job.status is Status.SUCCEEDED else 0


def milliseconds(instant: datetime | None) -> int | None:
    """Since 1970."""
    return None if instant is None else round(instant.timestamp() * 1000)
