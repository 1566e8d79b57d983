"""Between Redis and values: the layout of the keys, and what a job or a history line looks like in them.

Every key begins with `{namespace}:`. The braces make it a hash tag: in a cluster all keys of a namespace lie on one
node, so that a script may use them together.

    j:<id>              one job, its fields in the order of FIELDS between NUL characters; the last is its history
    x:<id>              its payload, where that is long: `apart` then says so, and moves do not write it again
    v:<status|queue|type>   ids of the jobs of one status, queue and type; ids sort by age, so views list newest first
    counts              how many jobs are in each of these lists; a list without jobs is not in it
    w:<queue|type|priority> queued jobs by run_at, then id; `lines` names those that are not empty, by priority
    due                 scheduled and retrying jobs by run_at
    leases              processing jobs by the end of their lease; `cancels` those somebody asked to cancel
    b:<what>            jobs blocked by one limit or key, by queued_at; `blocked` names those that are not empty
    slots               how many jobs of each limit key are processing
    keys                which job holds each unique key
    i:<key>             which job an idempotency key stands for; expires with its window
    ended:<status|queue>    finished jobs by finished_at, for pruning
    user: entity: entity_id: correlation: schedule: parent:   ids of the jobs with one such value
    live:<schedule>     its jobs that have not ended; `ticked:<schedule>` the job of each tick; `ticks:<schedule>`
    minute:<ms>         what ended in one minute; `minutes` names them; expires after 30 days
    mark:<call>         what one claim took, or another call did, for a minute, in case its answer is lost
    lock:<name>         token, end, mark and owner; expires with the lock
    queues paused depths schedules workers meta   one hash each
    notices             the channel of wake-ups

Names that are joined (|) have the character 31 between them: no name has control characters. Instants are milliseconds
since 1970 UTC. A status or an event is one letter. A field without a value is empty.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from windlass.core.errors import StoreError
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYOUT = "1"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUL = "\0"
SEP = "\x1f"
LONG = 512
"""a payload of more characters than this lies apart"""

FIELDS = (
    "status",
    "run_at",
    "queued_at",
    "updated_at",
    "created_at",
    "queue",
    "type",
    "priority",
    "attempts",
    "crashes",
    "token",
    "worker",
    "expires_at",
    "started_at",
    "cancel_at",
    "finished_at",
    "duration",
    "wait",
    "key",
    "key_queued",
    "key_running",
    "limit_key",
    "limit",
    "blocked_by",
    "schedule",
    "progress",
    "result",
    "error",
    "moves",
    "apart",
    "tick",
    "parent",
    "user",
    "entity",
    "entity_id",
    "correlation",
    "idempotent",
    "payload",
    "max_attempts",
    "max_crashes",
    "timeout",
    "replay_of",
    "tags",
    "metadata",
    "trace",
    "history",
)
"""In the order that `job_of` reads them; common.lua numbers the ones that scripts use from 1."""
PAYLOAD = FIELDS.index("payload")
APART = FIELDS.index("apart")
MOVES = FIELDS.index("moves")
HISTORY = FIELDS.index("history")

CODES = {
    Status.SCHEDULED: "s",
    Status.QUEUED: "q",
    Status.BLOCKED: "b",
    Status.PROCESSING: "p",
    Status.RETRYING: "r",
    Status.SUCCEEDED: "d",
    Status.FAILED: "f",
    Status.CANCELLED: "c",
}
STATUSES = {code: status for status, code in CODES.items()}
EVENTS = {
    Happened.ENQUEUED: "e",
    Happened.REPLACED: "R",
    Happened.PROMOTED: "p",
    Happened.CLAIMED: "k",
    Happened.BLOCKED: "b",
    Happened.UNBLOCKED: "u",
    Happened.SUCCEEDED: "d",
    Happened.RETRYING: "r",
    Happened.FAILED: "f",
    Happened.SNOOZED: "s",
    Happened.RELEASED: "l",
    Happened.LOST: "L",
    Happened.CRASHED: "C",
    Happened.CANCEL_REQUESTED: "a",
    Happened.CANCELLED: "c",
    Happened.RETRIED: "t",
    Happened.REFUSED: "x",
}
_HAPPENED = {code: happened for happened, code in EVENTS.items()}


@lru_cache(maxsize=8192)
def instant(ms: int | str) -> datetime:
    """Milliseconds since 1970 as an aware datetime; cached because a batch shares its instants."""
    return EPOCH + timedelta(milliseconds=int(ms))


def maybe_instant(ms: str) -> datetime | None:
    """The same for a field that may be empty."""
    return instant(ms) if ms else None


@lru_cache(maxsize=1024)
def duration(ms: int | str) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=int(ms))


def as_ms(value: datetime) -> int:
    """An aware datetime in milliseconds since 1970."""
    return (value - EPOCH) // timedelta(milliseconds=1)


def as_duration_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


def packed(fields: Sequence[str]) -> bytes:
    """Fields as one value; a NUL in one of them would be taken for an end."""
    value = NUL.join(fields)
    if value.count(NUL) != len(fields) - 1:
        raise StoreError("Redis cannot keep a value of this job: it has a NUL character")
    return value.encode()


def unpacked(value: bytes) -> list[str]:
    """The fields of a value."""
    return value.decode().split(NUL)


def job_of(id_: str, fields: Sequence[str]) -> Job:
    """The job of a record; by place, because this runs for every job there is."""
    f = fields
    return Job(
        id_,
        f[6],
        f[5],
        f[37],
        STATUSES[f[0]],
        int(f[7]),
        instant(f[1]),
        int(f[8]),
        int(f[38]),
        int(f[9]),
        int(f[39]),
        duration(f[40]) if f[40] else None,
        instant(f[4]),
        instant(f[3]),
        maybe_instant(f[2]),
        maybe_instant(f[14]),
        f[11] or None,
        int(f[10]),
        maybe_instant(f[12]),
        maybe_instant(f[13]),
        f[26] or None,
        Error(**json.loads(f[27])) if f[27] else None,
        Progress(**json.loads(f[25])) if f[25] else None,
        maybe_instant(f[15]),
        int(f[16]) if f[16] else None,
        int(f[17]) if f[17] else None,
        f[18] or None,
        f[19] or None,
        f[20] or None,
        f[36] or None,
        f[21] or None,
        int(f[22]) if f[22] else None,
        f[23] or None,
        f[24] or None,
        maybe_instant(f[30]),
        f[31] or None,
        f[41] or None,
        f[35] or None,
        f[32] or None,
        f[33] or None,
        f[34] or None,
        tuple(json.loads(f[42])) if f[42] else (),
        f[43] or None,
        f[44] or None,
    )


def error_json(error: Error | None) -> str:
    """An error as its field holds it."""
    if error is None:
        return ""
    return json.dumps({"type": error.type, "message": error.message, "traceback": error.traceback})


def progress_json(progress: Progress) -> str:
    """A progress as its field holds it."""
    return json.dumps({"done": progress.done, "of": progress.of, "note": progress.note})


def told(actor: str | None = None, note: str | None = None) -> str:
    """Who and why, as the end of a history line; one line, since JSON escapes what would break it."""
    if actor is None and note is None:
        return ""
    return json.dumps([actor, note])


def entries_of(fields: Sequence[str]) -> list[Entry]:
    """A job's history, oldest first. The lines are numbered by how many there ever were."""
    lines = fields[HISTORY].split("\n")
    first = int(fields[MOVES]) - len(lines) + 1
    return [_entry(number, line) for number, line in enumerate(lines, first)]


def _entry(number: int, line: str) -> Entry:
    at, what, token, rest = line.split(",", 3)
    actor, note = _rest(rest)
    return Entry(
        number=number,
        at=instant(at),
        happened=_HAPPENED[what[0]],
        status=STATUSES[what[1]],
        actor=actor,
        token=int(token) if token else None,
        note=note,
    )


def _rest(rest: str) -> tuple[Any, Any]:
    if not rest:
        return None, None
    if rest[0] == "!":  # a script's own words
        return None, rest[1:]
    actor, note = json.loads(rest)
    return actor, note
