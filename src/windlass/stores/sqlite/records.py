"""Between rows and values: what a job, a history line or an instant looks like in SQLite."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from windlass.core.history import HISTORY_LIMIT, Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = {status.value: status for status in Status}

COLUMNS = (
    "id, type, queue, payload, status, priority, run_at, attempts, max_attempts, crashes, max_crashes, timeout_ms,"
    " created_at, updated_at, queued_at, cancel_requested_at, worker_id, lease_token, lease_expires_at, started_at,"
    " result, error, progress, finished_at, duration_ms, wait_ms, unique_key, unique_queued, unique_running,"
    " idempotency_key, limit_key, limit_n, blocked_by, schedule, tick, parent_id, replay_of, correlation_id, user_id,"
    " entity_name, entity_id, tags, metadata, trace"
)
"""In the order `job_of` reads them."""

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


def job_of(row: tuple[Any, ...]) -> Job:
    """The job of a row selected as COLUMNS."""
    return Job(
        id=row[0],
        type=row[1],
        queue=row[2],
        payload_json=row[3],
        status=STATUSES[row[4]],
        priority=row[5],
        run_at=instant(row[6]),
        attempts=row[7],
        max_attempts=row[8],
        crashes=row[9],
        max_crashes=row[10],
        timeout=None if row[11] is None else duration(row[11]),
        created_at=instant(row[12]),
        updated_at=instant(row[13]),
        queued_at=maybe_instant(row[14]),
        cancel_requested_at=maybe_instant(row[15]),
        worker_id=row[16],
        lease_token=row[17],
        lease_expires_at=maybe_instant(row[18]),
        started_at=maybe_instant(row[19]),
        result_json=row[20],
        error=None if row[21] is None else Error(**json.loads(row[21])),
        progress=None if row[22] is None else Progress(**json.loads(row[22])),
        finished_at=maybe_instant(row[23]),
        duration_ms=row[24],
        wait_ms=row[25],
        unique_key=row[26],
        unique_queued=row[27],
        unique_running=row[28],
        idempotency_key=row[29],
        limit_key=row[30],
        limit=row[31],
        blocked_by=row[32],
        schedule=row[33],
        tick=maybe_instant(row[34]),
        parent_id=row[35],
        replay_of=row[36],
        correlation_id=row[37],
        user_id=row[38],
        entity_name=row[39],
        entity_id=row[40],
        tags=() if row[41] is None else tuple(json.loads(row[41])),
        metadata_json=row[42],
        trace=row[43],
    )


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
