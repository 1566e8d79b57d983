"""Shapes of resumes over the wire, in the names that their clients know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field

from windlass.apps.resumes.standing import Standing, reason_of
from windlass.web import Asked, Instant, Shape

if TYPE_CHECKING:
    from windlass.apps.resumes.forgetting import Forgotten
    from windlass.apps.resumes.generating import Generated
    from windlass.apps.resumes.rendering.render import Format
    from windlass.apps.resumes.resumes import Seen

Wanted: TypeAlias = Literal["markdown", "md", "docx", "pdf"]
UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_MESSAGES = {
    Standing.QUEUED: "Processing in the background for faster generations: ask for its status, or wait for its events",
    Standing.PROCESSING: "It is being processed",
    Standing.RETRYING: "It could not be processed yet and is tried again",
    Standing.COMPLETED: "It is processed: resumes can be generated of it",
    Standing.FAILED: "It could not be processed",
}
ADVICE = (
    "The score advises the owner of a resume how well it answers one job description. It is not made for ranking or"
    " rejecting applicants."
)


class GenerateResume(Asked):
    """A tailored resume that is wanted."""

    processing_id: Annotated[str, Field(pattern=UUID)]
    job_description: Annotated[str, Field(min_length=1, max_length=50_000)]
    company_name: Annotated[str, Field(max_length=200)] | None = None
    format: Wanted = "markdown"

    @property
    def as_format(self) -> Format:
        """Without its short form."""
        return "markdown" if self.format == "md" else self.format


class ProgressShape(Shape):
    """How far the processing has come."""

    done: float
    of: float | None
    note: str | None


class HeadShape(Shape):
    """A resume in a list."""

    processing_id: str
    status: Standing
    message: str
    file_name: str
    file_size: int
    file_hash: str
    user_id: str
    job_id: str | None
    """the job that tracks it; none where it was processed at once"""
    events_url: str | None
    """what happens to that job, as Server-Sent Events, while it goes on"""
    progress: ProgressShape | None
    error: str | None
    usage_count: int
    last_used_at: Instant | None
    completed_at: Instant | None
    created_at: Instant
    updated_at: Instant


class ResumeShape(HeadShape):
    """A resume, with what was found in it."""

    extracted_text: str | None
    structured_content: dict[str, Any] | None
    """JSON Resume"""
    metadata: dict[str, Any]


class UploadedShape(Shape):
    """A resume that was sent."""

    processing_id: str
    status: Standing
    message: str
    created: bool
    """false where the same file was sent before: this is the resume that is there"""
    result: ResumeShape | None = None
    """what was found, if it is processed already"""


class BatchShape(Shape):
    """Resumes that were sent together; one job tracks those that are new."""

    items: list[UploadedShape]


class ListShape(Shape):
    """A page of resumes, the newest first."""

    items: list[HeadShape]
    next_cursor: str | None


class GeneratedShape(Shape):
    """A tailored resume with its score."""

    processing_id: str
    company_name: str | None
    format: str
    file_name: str
    media_type: str
    content: str | None
    """the file, where it is text"""
    content_base64: str | None
    """the file, where it is not; `?download=true` gives it as it is"""
    ats_score: dict[str, Any]
    """of the tailored resume"""
    ats_score_before: dict[str, Any]
    """of the document as it was sent"""
    advice: str = ADVICE
    resume: dict[str, Any]
    """JSON Resume"""


class ForgottenShape(Shape):
    """What was deleted."""

    records: int
    files: int
    jobs: int
    missing: int
    """files that were not where they had been put"""
    running: list[str]
    """jobs that would not stop in time: ask again"""


class StatusShape(Shape):
    """Jobs of one status."""

    count: int
    avg_duration_ms: float | None


class LiveCountsShape(Shape):
    """Jobs as they stand now."""

    waiting: int
    active: int
    completed: int
    failed: int
    delayed: int


class QueueStatsShape(Shape):
    """Counts of the queue: live ones under the name by which clients of Bull ask for them, and by status."""

    bull: LiveCountsShape
    database: dict[str, dict[Standing, StatusShape]]
    """by queue and status; durations of what ended in the last 24 hours"""


def head_of(seen: Seen, base: str) -> dict[str, Any]:
    """What all shapes of a resume have."""
    record, standing = seen.record, seen.standing
    progress = None if seen.job is None or seen.job.progress is None else seen.job.progress
    goes_on = seen.job is not None and not seen.job.status.finished
    return {
        "processing_id": record.id,
        "status": standing,
        "message": _MESSAGES[standing],
        "file_name": record.original_file_name,
        "file_size": record.file_size,
        "file_hash": record.file_hash,
        "user_id": record.user_id,
        "job_id": record.job_id,
        "events_url": f"{base}/api/v1/queue/{record.job_id}/events" if goes_on else None,
        "progress": None if progress is None else ProgressShape(done=progress.done, of=progress.of, note=progress.note),
        "error": reason_of(record, seen.job),
        "usage_count": record.usage_count,
        "last_used_at": record.last_used_at,
        "completed_at": record.completed_at,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def resume_shape(seen: Seen, base: str) -> ResumeShape:
    """A resume over the wire."""
    record = seen.record
    return ResumeShape(
        **head_of(seen, base),
        extracted_text=record.extracted_text,
        structured_content=record.structured_content,
        metadata=record.business_metadata,
    )


def uploaded_shape(seen: Seen, base: str) -> UploadedShape:
    """The answer to a file that was sent."""
    done = seen.standing is Standing.COMPLETED
    return UploadedShape(
        processing_id=seen.record.id,
        status=seen.standing,
        message=_MESSAGES[seen.standing],
        created=seen.created,
        result=resume_shape(seen, base) if done else None,
    )


def forgotten_shape(told: Forgotten) -> ForgottenShape:
    """What was deleted, over the wire."""
    return ForgottenShape(
        records=told.records, files=told.files, jobs=told.jobs, missing=told.missing, running=list(told.running)
    )


def text_of(generated: Generated) -> str | None:
    """The file, where it is text."""
    return generated.content.decode() if generated.media_type.startswith("text/") else None
