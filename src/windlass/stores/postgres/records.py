"""Between rows and values: what a job, a history line or an instant looks like in PostgreSQL."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from windlass.core.history import HISTORY_LIMIT, Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status
from windlass.stores.postgres.connection import FIRST_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = {status.value: status for status in Status}

NAMES = (
    *("id", "type", "queue", "payload", "status", "priority", "run_at", "attempts", "max_attempts", "crashes"),
    *("max_crashes", "timeout_ms", "created_at", "updated_at", "queued_at", "cancel_requested_at", "worker_id"),
    *("lease_token", "lease_expires_at", "started_at", "result", "error", "progress", "finished_at", "duration_ms"),
    *("wait_ms", "unique_key", "unique_queued", "unique_running", "idempotency_key", "limit_key", "limit_n"),
    *("blocked_by", "schedule", "tick", "parent_id", "replay_of", "correlation_id", "user_id", "entity_name"),
    *("entity_id", "tags", "metadata", "trace", "rate_key", "rate_n", "rate_ms", "fair_key", "next_id", "awaits"),
    "takes",
)
COLUMNS = ", ".join(f"j.{name}" for name in NAMES)
"""Of a job called j, in the order `job_of` reads them."""
_STATUS, _TIMEOUT, _ERROR, _PROGRESS, _TAGS, _FAIR = (
    NAMES.index(name) for name in ("status", "timeout_ms", "error", "progress", "tags", "fair_key")
)

CLOCK = "clock AS MATERIALIZED (SELECT date_trunc('milliseconds', statement_timestamp()) AS now)"
"""The server's time, one for the whole statement; the first member of every WITH."""
AT = "greatest(c.now, j.updated_at)"
"""When a change of job j is made: now, but never before what its history tells of already."""

# Plans are kept, and while a table is small any index looks as good as another. So statements that are run for every
# line say what they look for in words that lead to one index only.
IS_BLOCKED = "(status = 'blocked' OR 'blocked' = status AND queued_at IS NOT NULL)"
"""Whether a job is blocked; the index of blocked jobs follows from it, and none can be looked up by its status."""


def slots_of(key: str) -> str:
    """How many run of a limit; the order is that of the index by limits, others would have to be sorted."""
    return f"""(
        SELECT count(*) FROM (
            SELECT FROM windlass_jobs WHERE status = 'processing' AND limit_key >= {key} AND limit_key <= {key}
            ORDER BY limit_key
        ) AS running
    )"""  # noqa: S608  # made of constants


NEXT_TOKEN = f"greatest(j.lease_token + 1, (SELECT {FIRST_TOKEN}))"
"""The token of a new lease of job j; the server is asked for its timeline once in a statement."""

TURNS = "EXISTS (SELECT FROM windlass_jobs WHERE status = 'queued' AND fair_key > '')"
"""Whether jobs with a fair key wait anywhere."""


# Where one that comes now, with a fair key that nobody else has, would stand in job j's queue and priority.
_NEXT = """coalesce(greatest((
        SELECT min(f.run_at) FROM windlass_jobs AS f
        WHERE f.status = 'queued' AND f.fair_key > '' AND f.queue || '' = j.queue AND f.priority = j.priority
    ), (
        SELECT max(f.floor) FROM windlass_jobs AS f
        WHERE f.status = 'queued' AND f.floor IS NOT NULL AND f.queue || '' = j.queue AND f.priority = j.priority
    )), c.now)"""


def marked(queued: str = "true") -> str:
    """What an UPDATE that queues job j, if `queued`, sets so that nobody who comes later, with a fair key, overtakes.

    Of one without a key: the key '' while others with one wait, by which those without are found. One with a key may
    come back to an old place: its floor says where those that come later would have stood without it.
    """
    return (
        f"fair_key = CASE WHEN j.fair_key IS NULL AND {queued} AND {TURNS} THEN '' ELSE j.fair_key END,"
        f" floor = CASE WHEN j.fair_key > '' AND {queued} THEN {_NEXT} END"
    )


def append(end: str) -> str:
    """One line appended to the history of job j inside an UPDATE that has the clock as c; `end` is SQL for its rest."""
    return (
        f"moves = j.moves + 1, history = CASE WHEN j.moves >= {HISTORY_LIMIT}"
        " THEN substr(j.history, strpos(j.history, chr(10)) + 1) ELSE j.history END"
        f" || chr(10) || '{{\"n\":' || (j.moves + 1) || ',\"at\":' || {epoch(AT)} || {end}"
    )


def epoch(instant: str) -> str:
    """SQL for an instant in milliseconds since 1970."""
    return f"(date_part('epoch', {instant}) * 1000)::bigint"


def between(later: str, earlier: str) -> str:
    """SQL for the milliseconds from one instant to another."""
    return f"(date_part('epoch', {later} - {earlier}) * 1000)::bigint"


@lru_cache(maxsize=1024)
def duration(ms: int) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=ms)


def as_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


def whole(value: timedelta) -> timedelta:
    """The same as a timedelta."""
    return timedelta(milliseconds=as_ms(value))


def floored(value: datetime) -> datetime:
    """An instant in whole milliseconds, as the tables keep them."""
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def job_of(row: Iterable[Any]) -> Job:
    """The job of a row selected as COLUMNS; positions and not names, because this runs for every job there is."""
    values = list(row)
    values[_STATUS] = STATUSES[values[_STATUS]]
    if values[_TIMEOUT] is not None:
        values[_TIMEOUT] = duration(values[_TIMEOUT])
    if values[_ERROR] is not None:
        values[_ERROR] = Error(**json.loads(values[_ERROR]))
    if values[_PROGRESS] is not None:
        values[_PROGRESS] = Progress(**json.loads(values[_PROGRESS]))
    values[_TAGS] = () if values[_TAGS] is None else tuple(values[_TAGS])
    values[_FAIR] = values[_FAIR] or None
    return Job._make(values)


def error_json(error: Error | None) -> str | None:
    """An error as its column holds it."""
    if error is None:
        return None
    told = {"type": error.type, "message": error.message, "traceback": error.traceback}
    return json.dumps(told, ensure_ascii=False)


def progress_json(progress: Progress) -> str:
    """A progress as its column holds it."""
    return json.dumps({"done": progress.done, "of": progress.of, "note": progress.note}, ensure_ascii=False)


def line_end(
    happened: Happened, status: Status, actor: str | None = None, token: int | None = None, note: str | None = None
) -> str:
    """The rest of a history line after its number and instant."""
    told: dict[str, Any] = {}
    if actor is not None:
        told["by"] = actor
    if token is not None:
        told["token"] = token
    if note is not None:
        told["note"] = note
    more = "," + json.dumps(told, ensure_ascii=False)[1:-1] if told else ""
    return f',"what":"{happened.value}","status":"{status.value}"{more}}}'


def token_end(happened: Happened, status: Status, actor: str | None = None, note: str | None = None) -> str:
    """The same for a line whose token the statement itself puts behind it, with a closing brace."""
    return f'{line_end(happened, status, actor, note=note)[:-1]},"token":'


def entries_of(history: str) -> list[Entry]:
    """A job's history, oldest first."""
    return [
        Entry(
            number=line["n"],
            at=EPOCH + timedelta(milliseconds=line["at"]),
            happened=Happened(line["what"]),
            status=Status(line["status"]),
            actor=line.get("by"),
            token=line.get("token"),
            note=line.get("note"),
        )
        for line in json.loads(f"[{','.join(history.split(chr(10)))}]")
    ]
