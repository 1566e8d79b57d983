"""The job: a frozen value that a store reads and writes. It has no methods that save it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta  # read at run time where jobs are sent between processes
from typing import Any, NamedTuple

from windlass.core.sealing import masked
from windlass.core.status import Status

MAX_ATTEMPTS = 5
MAX_CRASHES = 3
PRIORITIES = {"critical": 10, "high": 50, "normal": 100, "low": 200}
"""Names for priorities; lower runs first."""


LONGEST_NOTE = 500
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TRACE_ID = re.compile("[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-")


def storable(text: str, longest: int = LONGEST_NOTE, *, tail: bool = False) -> str:
    """A handler's words as every store can keep them: cut to size, with NUL and lone surrogates replaced.

    With `tail` the end is kept of what is too long: of a traceback it tells the most.
    """
    if len(text) > longest:
        kept = longest - 3
        text = f"...{text[-kept:]}" if tail else f"{text[:kept]}..."
    return _UNSTORABLE.sub("\ufffd", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How an attempt failed, as text only: nothing stored ever becomes a class or code again."""

    type: str
    message: str
    traceback: str | None = None

    def text(self, *, ascii_only: bool = True) -> str:
        """As stores keep it."""
        values = {"type": self.type, "message": self.message, "traceback": self.traceback}
        return json.dumps(values, ensure_ascii=ascii_only)

    @staticmethod
    def of_text(text: str) -> Error:
        """From its text."""
        return Error(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a running job says it has come."""

    done: float
    of: float | None = None
    note: str | None = None

    def text(self, *, ascii_only: bool = True) -> str:
        """As stores keep it."""
        return json.dumps({"done": self.done, "of": self.of, "note": self.note}, ensure_ascii=ascii_only)

    @staticmethod
    def of_text(text: str) -> Progress:
        """From its text."""
        return Progress(**json.loads(text))


class Job(NamedTuple):
    """One unit of work as the store held it at one moment. Instants are UTC by the store's clock."""

    id: str
    type: str
    queue: str
    payload_json: str
    status: Status
    priority: int
    run_at: datetime
    attempts: int
    max_attempts: int
    crashes: int
    max_crashes: int
    timeout: timedelta | None
    created_at: datetime
    updated_at: datetime
    queued_at: datetime | None
    cancel_requested_at: datetime | None = None
    worker_id: str | None = None
    lease_token: int = 0
    lease_expires_at: datetime | None = None
    started_at: datetime | None = None
    result_json: str | None = None
    error: Error | None = None
    progress: Progress | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    wait_ms: int | None = None
    unique_key: str | None = None
    unique_queued: str | None = None
    unique_running: str | None = None
    idempotency_key: str | None = None
    limit_key: str | None = None
    limit: int | None = None
    blocked_by: str | None = None
    schedule: str | None = None
    tick: datetime | None = None
    parent_id: str | None = None
    replay_of: str | None = None
    correlation_id: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata_json: str | None = None
    trace: str | None = None
    rate_key: str | None = None
    rate_n: int | None = None
    rate_ms: int | None = None
    fair_key: str | None = None
    next_id: str | None = None
    awaits: str | None = None
    takes: str | None = None
    kept_json: str | None = None
    """an object of JSON texts by name: see `core.kept`"""
    origin: str | None = None
    """the first of the jobs that this one is a replay of, or a replay of a replay"""
    expires_at: datetime | None = None
    """if no worker has taken it by then, it is cancelled"""

    @property
    def payload(self) -> dict[str, Any]:
        """The arguments as plain JSON values, by parameter name; `***` for a secret."""
        arguments: dict[str, Any] = masked(self.payload_json)
        return arguments

    @property
    def result(self) -> Any:
        """The result as a plain JSON value, `***` for a secret; None while there is none."""
        return None if self.result_json is None else masked(self.result_json)

    @property
    def kept(self) -> dict[str, Any]:
        """What it remembers from one attempt to the next, by name, as plain JSON values."""
        texts: dict[str, str] = {} if self.kept_json is None else json.loads(self.kept_json)
        return {name: json.loads(text) for name, text in texts.items()}

    @property
    def metadata(self) -> dict[str, Any]:
        """What the caller attached for its own use."""
        found: dict[str, Any] = {} if self.metadata_json is None else json.loads(self.metadata_json)
        return found

    @property
    def trace_id(self) -> str | None:
        """The trace that it was sent in, as tracing tools look it up; None where that was not traced."""
        found = None if self.trace is None else _TRACE_ID.match(self.trace)
        return None if found is None else found[1]
