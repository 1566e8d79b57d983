"""Between Redis and values: the layout of the keys, and what a job or a history line looks like in them.

Every key begins with `{namespace}:`. The braces make it a hash tag: in a cluster all keys of a namespace lie on one
node, so that a script may use them together.

    j:<id>              one job, its fields in the order of FIELDS between NUL characters; the last is its history
    x:<id>              its payload, where that is long: `apart` then says so, and moves do not write it again
    v:<status|queue|type>   ids of the jobs of one status, queue and type; ids sort by age, so views list newest first.
                        Those that are queued or processing are in one list, as of the status `a`: claims leave it alone
    counts              how many jobs there are of each status, queue and type; what has none is not in it
    kinds:<queue>       the types of a queue that are counted there
    w:<queue|type|priority> queued jobs by run_at, then id; `lines` names those that are not empty, by priority
    by:<queue>          the lines of one queue (type|priority), by priority, for claims where there are many;
                        `of:<type>` those of one type (queue|priority), but for queues that are paused
    due                 scheduled and retrying jobs by run_at
    leases:<queue|type> processing jobs by the end of their lease; `cancels` those somebody asked to cancel
    leased              queue|type of those lists, by an instant before which no lease of them ends
    confirmed           processing jobs whose lease was extended, by its token
    charged             jobs a lost lease of which is counted as a crash, by its token
    b:<what>            jobs blocked by one limit, key, rate or flow, by queued_at; `blocked` names what is not empty
    rooms               rates that jobs are blocked by, by the instant at which there may be room
    slots               how many jobs of each limit key are processing
    keys                which job holds each unique key
    i:<key>             which job an idempotency key stands for; expires with its window
    ended:<status|queue>    finished jobs by finished_at, for pruning; `ending:<status>` names their queues by the first
    aside:<id>          finished jobs that this live one awaits: they are not pruned yet; `aside` names these lists
    kept                how many finished jobs were last counted: of each status, and of each status and queue
    user: entity: entity_id: correlation: schedule: parent: next:   ids of the jobs with one such value
    await:<id>          those that a job awaits and that have not ended
    rate:<key>          how many jobs of a rate started, by the part of the window that they are booked under; expires
    called              how many queued jobs were called from the line of each rate
    fair:<queue|priority>   queued jobs that take turns, by run_at; and those of one key, `fair:<queue|priority|key>`;
                        under the empty key those that were queued beside them and take no part, and those that came
                        back, by what nobody who comes later may stand before; the oldest of many as one without an id
    live:<schedule>     its jobs that have not ended; `ticked:<schedule>` the job of each tick; `ticks:<schedule>`
    minute:<ms>         what ended in one minute; `minutes` names them; expires after 30 days
    mark:<call>         what one claim took, or that it was given up, for an hour; what another call did, for a minute:
                        in case that its answer is lost
    lock:<name>         token, end and owner; expires some minutes after the lock
    types               versions of types (type|fingerprint) by when a worker last told of them; `types:<type>` has each
    access              API keys and sessions by id; `secrets` their ids by the hash; `sessions` the end of each session
    audited             what was done, by id; `audit` the ids by time, `audit:<field>:<value>` those of one value
    upcoming            schedules by their next tick; those that are paused at +inf
    peers               workers that are not stopping, by their last beat; `consume` has their queues
    queues paused depths schedules workers meta   one hash each
    notices             the channel of wake-ups; `notices:<lane>` those of single jobs

Names that are joined (|) have the character 31 between them: no name has control characters. Instants are milliseconds
since 1970 UTC. A status or an event is one letter. A field without a value is empty.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from windlass.core.errors import ValueRefused
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYOUT = "1"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUL = "\0"
SEP = "\x1f"
PART = "\x1e"
_NO_CONTROL = ("",) * 4
_NO_MORE = ("",) * 3
LONG = 512
"""a payload of more characters than this lies apart"""

FIELDS = (
    "status",
    "run_at",
    "queued_at",
    "updated_at",
    "created_at",
    "wait",
    "result",
    "key",
    "key_queued",
    "key_running",
    "limit_key",
    "more",
    "size",
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
    "limit",
    "blocked_by",
    "schedule",
    "progress",
    "error",
    "moves",
    "max_attempts",
    "max_crashes",
    "timeout",
    "control",
    "apart",
    "tick",
    "parent",
    "user",
    "entity",
    "entity_id",
    "correlation",
    "idempotent",
    "payload",
    "replay_of",
    "tags",
    "metadata",
    "trace",
    "history",
)
"""The first twelve are a job's own; `more` is its rate key, its fair key and its next, if it has one of them, and
`control` the number and window of its rate, what it awaits and what it takes. `size` tells how many bytes those up to
`apart` take, which jobs share that were asked for alike and have come as far: that piece is taken apart once for all of
them, here and in records.lua, which numbers the fields that scripts use from 1."""
OWN = FIELDS.index("size")
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
_STATUS = {code.encode(): status for status, code in CODES.items()}
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
    Happened.AGED: "g",
    Happened.REFUSED: "x",
}
_HAPPENED = {code: happened for happened, code in EVENTS.items()}


@lru_cache(maxsize=8192)
def instant(ms: int | str | bytes) -> datetime:
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
        raise ValueRefused("Redis cannot keep a value of this job: it has a NUL character")
    return value.encode()


def unpacked(value: bytes) -> list[str]:
    """The fields of a value."""
    return value.decode().split(NUL)


class Shared:
    """What jobs of one kind have in common, as values."""

    __slots__ = (
        *("attempts", "blocked_by", "cancel_at", "crashes", "duration", "error", "expires_at", "finished_at", "limit"),
        *("max_attempts", "max_crashes", "priority", "progress", "queue", "schedule", "started_at", "timeout"),
        *("awaits", "rate_ms", "rate_n", "takes", "token", "type", "worker"),
    )

    def __init__(self, piece: bytes) -> None:
        f = piece.decode().split(NUL)
        self.queue = f[0]
        self.type = f[1]
        self.priority = int(f[2])
        self.attempts = int(f[3])
        self.crashes = int(f[4])
        self.token = int(f[5])
        self.worker = f[6] or None
        self.expires_at = maybe_instant(f[7])
        self.started_at = maybe_instant(f[8])
        self.cancel_at = maybe_instant(f[9])
        self.finished_at = maybe_instant(f[10])
        self.duration = int(f[11]) if f[11] else None
        self.limit = int(f[12]) if f[12] else None
        self.blocked_by = f[13] or None
        self.schedule = f[14] or None
        self.progress = Progress(**json.loads(f[15])) if f[15] else None
        self.error = Error(**json.loads(f[16])) if f[16] else None
        self.max_attempts = int(f[18])
        self.max_crashes = int(f[19])
        self.timeout = duration(f[20]) if f[20] else None
        rate_n, rate_ms, awaits, takes = f[21].split(PART) if f[21] else _NO_CONTROL
        self.rate_n = int(rate_n) if rate_n else None
        self.rate_ms = int(rate_ms) if rate_ms else None
        self.awaits = awaits or None
        self.takes = takes or None


def job_of(id_: str, record: bytes, kinds: dict[bytes, Shared], apart: str = "") -> Job:
    """The job of a record; `kinds` is what records read before it have shared, `apart` a payload that lies apart."""
    own = record.split(b"\0", OWN + 1)
    status, run_at, queued_at, updated_at, created_at, wait, result, key, queued, running, limit, more, size, pieces = (
        own
    )
    end = int(size)
    piece = pieces[:end]
    kind = kinds.get(piece)
    if kind is None:
        kind = kinds[piece] = Shared(piece)
    tick, parent, user, entity, entity_id, correlation, idempotent, payload, replay_of, tags, metadata, trace, _ = (
        pieces[end + 1 :].decode().split(NUL)
    )
    rate_key, fair_key, next_id = more.decode().split(PART) if more else _NO_MORE
    return Job(
        id_,
        kind.type,
        kind.queue,
        apart or payload,
        _STATUS[status],
        kind.priority,
        instant(run_at),
        kind.attempts,
        kind.max_attempts,
        kind.crashes,
        kind.max_crashes,
        kind.timeout,
        instant(created_at),
        instant(updated_at),
        instant(queued_at) if queued_at else None,
        kind.cancel_at,
        kind.worker,
        kind.token,
        kind.expires_at,
        kind.started_at,
        result.decode() if result else None,
        kind.error,
        kind.progress,
        kind.finished_at,
        kind.duration,
        int(wait) if wait else None,
        key.decode() if key else None,
        queued.decode() if queued else None,
        running.decode() if running else None,
        idempotent or None,
        limit.decode() if limit else None,
        kind.limit,
        kind.blocked_by,
        kind.schedule,
        instant(tick) if tick else None,
        parent or None,
        replay_of or None,
        correlation or None,
        user or None,
        entity or None,
        entity_id or None,
        tuple(json.loads(tags)) if tags else (),
        metadata or None,
        trace or None,
        rate_key or None,
        kind.rate_n,
        kind.rate_ms,
        fair_key or None,
        next_id or None,
        kind.awaits,
        kind.takes,
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
