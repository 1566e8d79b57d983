"""Shapes: what goes out over the wire, in camelCase; instants as RFC 3339 with ms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from windlass.client.dead_letters import DeadGroups
    from windlass.client.rehearsing import Rehearsal
    from windlass.client.workers import WorkerState
    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.contract import Looked, Page, QueueInfo


def rfc3339(instant: datetime) -> str:
    """An instant as text."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Shape(BaseModel):
    """The root of what goes out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, ser_json_inf_nan="null")


class ProgressShape(Shape):
    """How far a job has come."""

    done: float
    of: float | None
    note: str | None


class ErrorShape(Shape):
    """How the last attempt failed; `traceback` is for operators only."""

    type: str
    message: str
    traceback: str | None = None


class JobShape(Shape):
    """One job."""

    id: str
    id_: str = Field(serialization_alias="_id", validation_alias="_id")
    """the same, as clients of document stores expect it"""
    type: str
    queue: str
    status: str
    priority: int
    payload: Any
    result: Any
    error: ErrorShape | None
    progress: ProgressShape | None
    attempts: int
    max_attempts: int
    crashes: int
    created_at: Instant
    updated_at: Instant
    run_at: Instant
    expires_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    duration_ms: int | None
    wait_ms: int | None
    cancel_requested_at: Instant | None
    blocked_by: str | None
    worker_id: str | None
    unique_key: str | None
    user_id: str | None
    entity_name: str | None
    entity_id: str | None
    correlation_id: str | None
    parent_id: str | None
    replay_of: str | None
    schedule: str | None
    tags: list[str]
    metadata: dict[str, Any]


def job_shape(job: Job, *, inside: bool) -> JobShape:
    """A job as its caller sees it; `inside` shows what is only operators' business: workers, tracebacks, lines."""
    error = None
    if job.error is not None:
        error = ErrorShape(
            type=job.error.type, message=job.error.message, traceback=job.error.traceback if inside else None
        )
    progress = job.progress
    return JobShape(
        **{name: getattr(job, name) for name in _SAME},
        id_=job.id,
        status=job.status.value,
        payload=job.payload,
        result=job.result,
        error=error,
        progress=None if progress is None else ProgressShape(done=progress.done, of=progress.of, note=progress.note),
        blocked_by=job.blocked_by if inside else None,
        worker_id=job.worker_id if inside else None,
        tags=list(job.tags),
        metadata=job.metadata,
    )


_MADE = {"id_", "status", "payload", "result", "error", "progress", "blocked_by", "worker_id", "tags", "metadata"}
_SAME = tuple(name for name in JobShape.model_fields if name not in _MADE)


class EntryShape(Shape):
    """One line of a job's history."""

    number: int
    at: Instant
    happened: str
    status: str
    actor: str | None
    note: str | None


def entry_shape(entry: Entry, *, inside: bool) -> EntryShape:
    """A line of history; who of the operators or workers did it is told inside only."""
    return EntryShape(
        number=entry.number,
        at=entry.at,
        happened=entry.happened.value,
        status=entry.status.value,
        actor=entry.actor if inside else None,
        note=entry.note if inside else None,
    )


class PageShape(Shape):
    """A page of jobs; the cursors lead to the next and the previous one."""

    items: list[JobShape]
    next_cursor: str | None
    previous_cursor: str | None
    complete: bool


class HistoryShape(Shape):
    """A job's history, oldest first."""

    items: list[EntryShape]


def history_shape(looked: Looked, *, inside: bool) -> HistoryShape:
    """The history of a job."""
    return HistoryShape(items=[entry_shape(entry, inside=inside) for entry in looked.history])


class ExplanationShape(Shape):
    """Why a job is where it is."""

    job_id: str
    status: str
    why: str
    text: str
    since: Instant | None
    until: Instant | None


class QueueShape(Shape):
    """One queue."""

    name: str
    paused_at: Instant | None
    max_depth: int | None
    depth: int
    depth_exact: bool
    processing: int
    oldest_ms: int | None


def queue_shape(queue: QueueInfo) -> QueueShape:
    """A queue as it stands."""
    return QueueShape(
        name=queue.name,
        paused_at=queue.paused_at,
        max_depth=queue.max_depth,
        depth=queue.depth.n,
        depth_exact=queue.depth.exact,
        processing=queue.processing.n,
        oldest_ms=ms(queue.oldest),
    )


class WorkerShape(Shape):
    """One worker."""

    id: str
    presence: str
    host: str
    pid: int
    version: str
    queues: list[str]
    types: list[str]
    slots: int
    running: int
    stuck: int
    memory_mb: float | None
    loop_lag_ms: float | None
    started_at: Instant | None
    beat_at: Instant | None


def worker_shape(worker: WorkerState) -> WorkerShape:
    """A worker as it last described itself."""
    shown = {name: getattr(worker, name) for name in WorkerShape.model_fields}
    shown |= {"presence": worker.presence.value, "queues": [*worker.queues], "types": [*worker.types]}
    return WorkerShape(**shown)


class DeadGroupShape(Shape):
    """Jobs that failed alike."""

    fingerprint: str
    type: str
    error: str
    message: str
    count: int
    first_seen: Instant | None
    last_seen: Instant | None
    example: str


class DeadLettersShape(Shape):
    """Failed jobs by fingerprint, the largest group first."""

    groups: list[DeadGroupShape]
    looked_at: int
    complete: bool
    items: list[JobShape]
    """the newest of them"""
    next_cursor: str | None
    """where `GET /queue?status=failed` goes on after these"""


def dead_letters_shape(found: DeadGroups, newest: Page, *, inside: bool) -> DeadLettersShape:
    """Groups of dead letters, and the newest themselves."""
    names = DeadGroupShape.model_fields
    groups = [DeadGroupShape(**{name: getattr(group, name) for name in names}) for group in found.groups]
    items = [job_shape(job, inside=inside) for job in newest.jobs]
    return DeadLettersShape(
        groups=groups, looked_at=found.looked_at, complete=found.complete, items=items, next_cursor=newest.next
    )


class ConflictShape(Shape):
    """Jobs that a replay would leave out, and why."""

    why: str
    count: int
    examples: list[str]
    """the ids of some"""


class RehearsalShape(Shape):
    """How many a replay would be about, and which of the newest of them it would leave out."""

    id: None = None
    matched: int
    exact: bool
    dry_run: bool = True
    looked_at: int
    conflicts: list[ConflictShape]


def rehearsal_shape(found: Rehearsal) -> RehearsalShape:
    """What a replay would meet."""
    conflicts = [ConflictShape(why=why, count=len(ids), examples=[*ids[:5]]) for why, ids in found.skipped.items()]
    return RehearsalShape(matched=found.matched, exact=found.exact, looked_at=found.looked_at, conflicts=conflicts)


class OperationShape(Shape):
    """An order for many: the job that carries it out, and how many matched when it began."""

    id: str | None
    """nothing, where it was only counted"""
    matched: int
    exact: bool
    dry_run: bool


def ms(span: timedelta | None) -> int | None:
    """A duration in milliseconds."""
    return None if span is None else round(span.total_seconds() * 1000)


def page_shape(page: Page, *, inside: bool) -> PageShape:
    """A page of jobs."""
    return PageShape(
        items=[job_shape(job, inside=inside) for job in page.jobs],
        next_cursor=page.next,
        previous_cursor=page.previous,
        complete=page.complete,
    )
