"""What a log line says of the job that it belongs to; the lines of handlers, too, whatever logger they use."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from windlass.core.context import running
from windlass.observability.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.job import Job

ATTRIBUTES = {
    "job": "job_id",
    "type": "job_type",
    "queue": "job_queue",
    "attempt": "job_attempt",
    "worker": "job_worker",
    "correlation": "job_correlation",
    "user": "job_user",
    "trace_id": "job_trace_id",
}
"""facts of a job, and what a record's attributes of them are called"""


def about(job: Job) -> dict[str, Any]:
    """The facts of a job that each line of it has."""
    facts: dict[str, Any] = {"job": job.id, "type": job.type, "queue": job.queue, "attempt": job.attempts}
    if job.worker_id is not None:
        facts["worker"] = job.worker_id
    if job.correlation_id is not None:
        facts["correlation"] = job.correlation_id
    if job.user_id is not None:
        facts["user"] = job.user_id
    trace_id = job.trace_id
    if trace_id is not None:
        facts["trace_id"] = trace_id
    return facts


def attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same as attributes of a record, fit for any formatter: text without control characters, "" for none."""
    return {name: _fit(facts.get(fact, "")) for fact, name in ATTRIBUTES.items()}


def _fit(value: object) -> object:
    return plain(value) if isinstance(value, str) else value


class JobContext(logging.Filter):
    """Gives each record the job that it was logged in: `job_id`, `job_type`, `job_queue`, `job_attempt`, and so on.

    Put it on a handler: `handler.addFilter(JobContext())`. Then every formatter can have them, `%(job_id)s` for one.
    Outside of jobs they are empty. Nothing is filtered out.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record through, with its job."""
        if not hasattr(record, "job_id"):
            ctx = running()
            record.__dict__.update(_NOWHERE if ctx is None else attributes(about(ctx.job)))
        return True


_NOWHERE = attributes({})


def bind_structlog(job: Job) -> None:
    """Let lines of structlog in this context carry the job, where an application uses that."""
    structlog = sys.modules.get("structlog")
    if structlog is not None:
        facts = about(job)
        bound = {name: _fit(facts[fact]) for fact, name in ATTRIBUTES.items() if fact in facts}
        structlog.contextvars.bind_contextvars(**bound)
