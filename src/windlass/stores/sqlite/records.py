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


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row selected as COLUMNS; positions and not names, because this runs for every job there is."""
    return Job(
        row[0],
        row[1],
        row[2],
        row[3],
        STATUSES[row[4]],
        row[5],
        instant(row[6]),
        row[7],
        row[8],
        row[9],
        row[10],
        None if row[11] is None else duration(row[11]),
        instant(row[12]),
        instant(row[13]),
        maybe_instant(row[14]),
        maybe_instant(row[15]),
        row[16],
        row[17],
        maybe_instant(row[18]),
        maybe_instant(row[19]),
        row[20],
        None if row[21] is None else Error(**json.loads(row[21])),
        None if row[22] is None else Progress(**json.loads(row[22])),
        maybe_instant(row[23]),
        row[24],
        row[25],
        row[26],
        row[27],
        row[28],
        row[29],
        row[30],
        row[31],
        row[32],
        row[33],
        maybe_instant(row[34]),
        row[35],
        row[36],
        row[37],
        row[38],
        row[39],
        row[40],
        () if row[41] is None else tuple(json.loads(row[41])),
        row[42],
        row[43],
        row[44],
        row[45],
        row[46],
        row[47],
        row[48],
        row[49],
        row[50],
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
