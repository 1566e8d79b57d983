"""Facts: what `--json` prints. Keys are snake_case and stay; instants are ISO 8601 in UTC, durations milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client.workers import WorkerState
    from windlass.core.history import Entry
    from windlass.core.job import Job, Progress
    from windlass.stores.contract import QueueInfo, Schedule, Tick


def job_facts(job: Job, *, contents: bool = False) -> dict[str, Any]:
    """A job; with `contents` also its payload, result, metadata and traceback."""
    told: dict[str, Any] = {
        "id": job.id,
        "type": job.type,
        "queue": job.queue,
        "status": job.status.value,
        "priority": job.priority,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "crashes": job.crashes,
        "max_crashes": job.max_crashes,
        "created_at": at(job.created_at),
        "run_at": at(job.run_at),
        "expires_at": at(job.expires_at),
        "queued_at": at(job.queued_at),
        "started_at": at(job.started_at),
        "finished_at": at(job.finished_at),
        "cancel_requested_at": at(job.cancel_requested_at),
        "lease_expires_at": at(job.lease_expires_at),
        "wait_ms": job.wait_ms,
        "duration_ms": job.duration_ms,
        "timeout_ms": ms(job.timeout),
        "worker_id": job.worker_id,
        "lease_token": job.lease_token,
        "blocked_by": job.blocked_by,
        "unique_key": job.unique_key,
        "limit_key": job.limit_key,
        "schedule": job.schedule,
        "tick": at(job.tick),
        "parent_id": job.parent_id,
        "replay_of": job.replay_of,
        "origin": job.origin,
        "user": job.user_id,
        "entity": None if job.entity_name is None else {"name": job.entity_name, "id": job.entity_id},
        "correlation": job.correlation_id,
        "trace_id": job.trace_id,
        "tags": list(job.tags),
        "progress": None if job.progress is None else progress_facts(job.progress),
        "error": None if job.error is None else {"type": job.error.type, "message": job.error.message},
    }
    if contents:
        told |= {"payload": job.payload, "result": job.result, "metadata": job.metadata, "kept": job.kept}
        if job.error is not None:
            told["error"]["traceback"] = job.error.traceback
    return told


def progress_facts(progress: Progress) -> dict[str, Any]:
    """How far a job has come."""
    return {"done": progress.done, "of": progress.of, "note": progress.note}


def entry_facts(entry: Entry) -> dict[str, Any]:
    """One line of a job's history."""
    return {
        "number": entry.number,
        "at": at(entry.at),
        "happened": entry.happened.value,
        "status": entry.status.value,
        "actor": entry.actor,
        "token": entry.token,
        "note": entry.note,
    }


def queue_facts(queue: QueueInfo) -> dict[str, Any]:
    """A queue."""
    return {
        "name": queue.name,
        "paused_at": at(queue.paused_at),
        "max_depth": queue.max_depth,
        "depth": queue.depth.n,
        "depth_exact": queue.depth.exact,
        "processing": queue.processing.n,
        "oldest_ms": ms(queue.oldest),
    }


def worker_facts(worker: WorkerState) -> dict[str, Any]:
    """A worker as it last described itself."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "queues": list(worker.queues),
        "types": list(worker.types),
        "slots": worker.slots,
        "running": worker.running,
        "stuck": worker.stuck,
        "memory_mb": worker.memory_mb,
        "loop_lag_ms": worker.loop_lag_ms,
        "stopping": worker.stopping,
        "started_at": at(worker.started_at),
        "beat_at": at(worker.beat_at),
        "beat_age_ms": ms(worker.beat_age),
        "alive": worker.alive,
    }


def schedule_facts(one: Schedule, *, last: Tick | None, upcoming: list[datetime], orphan: bool) -> dict[str, Any]:
    """A schedule, where it stands, and its next ticks."""
    return {
        "name": one.name,
        "cron": one.cron.expression,
        "timezone": one.cron.tz,
        "described": one.cron.describe(),
        "overlap": one.cron.overlap,
        "missed": one.cron.missed,
        "type": one.type,
        "queue": one.queue,
        "declared": one.declared,
        "paused_at": at(one.paused_at),
        "next_ticks": [at(tick) for tick in upcoming],
        "last": None if last is None else {"tick": at(last.tick), "result": last.fired.value, "job": last.job_id},
        "orphan": orphan,
    }


def at(instant: datetime | None) -> str | None:
    """An instant as text."""
    return None if instant is None else instant.astimezone(UTC).isoformat(timespec="milliseconds")


def ms(span: timedelta | None) -> int | None:
    """A duration in milliseconds."""
    return None if span is None else round(span.total_seconds() * 1000)
