"""How a resume stands, in the words that its clients know: made of its record and of the job that tracks it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from windlass import Status

if TYPE_CHECKING:
    from windlass import Job
    from windlass.apps.resumes.records.record import Record


class Standing(StrEnum):
    """Where a resume is on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"


_OF_JOB = {
    Status.SCHEDULED: Standing.QUEUED,
    Status.QUEUED: Standing.QUEUED,
    Status.BLOCKED: Standing.QUEUED,
    Status.PROCESSING: Standing.PROCESSING,
    Status.RETRYING: Standing.RETRYING,
    Status.SUCCEEDED: Standing.COMPLETED,
    Status.FAILED: Standing.FAILED,
    Status.CANCELLED: Standing.FAILED,
}
ENDED = (Standing.COMPLETED, Standing.FAILED)


def standing_of_job(status: Status) -> Standing:
    """How a job of resumes stands, in these words."""
    return _OF_JOB[status]


def standing_of(record: Record, job: Job | None) -> Standing:
    """A record says by itself whether it is complete; until then its job does, and without one it has failed."""
    if record.completed_at is not None:
        return Standing.COMPLETED
    if record.error is not None:
        return Standing.FAILED
    if record.job_id is None:  # processed at once, or about to be given to a job
        return Standing.PROCESSING
    found = Standing.FAILED if job is None else _OF_JOB[job.status]
    # The job is done, but was so without this record: it was told to begin anew.
    return Standing.FAILED if found is Standing.COMPLETED else found


def reason_of(record: Record, job: Job | None) -> str | None:
    """Why a resume has failed, in words for its owner. What an error said inside is for operators."""
    if standing_of(record, job) is not Standing.FAILED:
        return None
    if record.error is not None:
        return record.error
    if job is not None and job.status is Status.CANCELLED:
        return "its processing was cancelled: send it again"
    return "something went wrong while it was processed: send it again, or ask who runs this service"
