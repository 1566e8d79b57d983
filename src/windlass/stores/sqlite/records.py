"""Between rows and values: what a job, a history line or an instant looks like in SQLite."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from windlass.core.history import HISTORY_LIMIT, Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = {status.value: status for status in Status}

COLUMNS = (
    "id, type, queue, payload, status, priority, run_at, attempts, max_attempts, crashes, max_crashes, timeout_ms,"
    " created_at, updated_at, queued_at, cancel_requested_at, worker_id, lease_token, lease_expires_at, started_at,"
    " result, error, progress, finished_at, duration_ms, wait_ms, unique_key, unique_queued, unique_running,"
    " idempotency_key, limit_key, limit_n, blocked_by, schedule, tick, parent_id, replay_of, correlation_id, user_id,"
    " entity_name, entity_id, tags, metadata, trace, rate_key, rate_n, rate_ms, fair_key, next_id, awaits, takes"
)
"""In the order of a job's own fields."""
_WIDTH = len(Job._fields)
_INSTANTS = (14, 15, 18, 19, 23, 34)  # of the columns those that hold one, or nothing

# One line appended to a job's history inside an UPDATE. The three parameters are the instant, what happened with the
# status it led to, and the rest of the object: all JSON that `line_parts` wrote.
APPEND = (
    f"CASE WHEN moves >= {HISTORY_LIMIT} THEN substr(history, instr(history, char(10)) + 1) ELSE history END"
    " || char(10) || '{\"n\":' || (moves + 1) || ',\"at\":' || ? || ?"
)


@lru_cache(maxsize=8192)
def instant(ms: int) -> datetime:
    """Milliseconds since 1970 as an aware datetime; cached because a batch shares its instants."""
    return EPOCH + timedelta(milliseconds=ms)


def maybe_instant(ms: int | None) -> datetime | None:
    """The same for a column that may be empty."""
    return None if ms is None else instant(ms)


@lru_cache(maxsize=1024)
def duration(ms: int) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=ms)


def as_ms(value: datetime) -> int:
    """An aware datetime in milliseconds since 1970."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def as_duration_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row selected as COLUMNS, which has more behind them or not.

    Positions and not names, and only what differs from its column is touched, because this runs for every job there is.
    """
    job = list(row)
    del job[_WIDTH:]
    job[4] = STATUSES[job[4]]
    job[6], job[12], job[13] = instant(job[6]), instant(job[12]), instant(job[13])
    for at in _INSTANTS:
        if job[at] is not None:
            job[at] = instant(job[at])
    if job[11] is not None:
        job[11] = duration(job[11])
    if job[21] is not None:
        job[21] = Error(**json.loads(job[21]))
    if job[22] is not None:
        job[22] = Progress(**json.loads(job[22]))
    job[41] = () if job[41] is None else tuple(json.loads(job[41]))
    return Job._make(job)


def error_json(error: Error | None) -> str | None:
    """An error as its column holds it."""
    if error is None:
        return None
    return json.dumps({"type": error.type, "message": error.message, "traceback": error.traceback})


def progress_json(progress: Progress) -> str:
    """A progress as its column holds it."""
    return json.dumps({"done": progress.done, "of": progress.of, "note": progress.note})


def line_end(
    happened: Happened, status: Status, actor: str | None = None, token: int | None = None, note: str | None = None
) -> str:
    """The rest of a history line after its number and instant, for APPEND's last parameter."""
    told: dict[str, Any] = {}
    if actor is not None:
        told["by"] = actor
    if token is not None:
        told["token"] = token
    if note is not None:
        told["note"] = note
    more = "," + json.dumps(told)[1:-1] if told else ""
    return f',"what":"{happened.value}","status":"{status.value}"{more}}}'


def first_line(now: int, status: Status, note: str | None = None) -> str:
    """The line a job is born with."""
    return f'{{"n":1,"at":{now}{line_end(Happened.ENQUEUED, status, note=note)}'


def entries_of(history: str) -> list[Entry]:
    """A job's history, oldest first."""
    return [
        Entry(
            number=line["n"],
            at=instant(line["at"]),
            happened=Happened(line["what"]),
            status=Status(line["status"]),
            actor=line.get("by"),
            token=line.get("token"),
            note=line.get("note"),
        )
        for line in json.loads(f"[{','.join(history.split(chr(10)))}]")
    ]
