"""Between Redis and values: the layout of the keys, and what a job or a history line looks like in them.

Every key begins with `{namespace}:`. The braces make it a hash tag: in a cluster all keys of a namespace lie on one
node, so that a script may use them together.

    j:<id>              one job, its fields in the order of FIELDS between NUL characters; the last is its history
    x:<id>              its payload, where that is long: `apart` then says so, and moves do not write it again
    k:<id>              what it has kept, a hash of JSON texts by name; `keeps` then says so
    v:<status|queue|type>   ids of the jobs of one status, queue and type; ids sort by age, so views list newest first.
                        Those that are queued or processing are in one list, as of the status `a`: claims leave it alone
    counts              how many jobs there are of each status, queue and type; what has none is not in it
    kinds:<queue>       the types of a queue that are counted there
    w:<queue|type|priority> queued jobs by run_at, then id; `lines` names those that are not empty, by priority
    by:<queue>          the lines of one queue (type|priority), by priority, for claims where there are many;
                        `of:<type>` those of one type (queue|priority), but for queues that are paused
    due                 scheduled and retrying jobs by run_at, and those that wait for a signal by when their time is up
    expiring            waiting jobs that no worker has taken yet, by when they expire
    leases:<queue|type> processing jobs by the end of their lease; `cancels` those somebody asked to cancel
    leased              queue|type of those lists, by an instant before which no lease of them ends
    confirmed           processing jobs whose lease was extended, by its token
    charged             jobs a lost lease of which is counted as a crash, by its token
    b:<what>            jobs blocked by one limit, key, rate, flow or signal, by queued_at; `blocked` names what is not
                        empty, but for signals: no sweep has to look at these
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
    minute:<ms>         what ended in one minute; `minutes` names them; expires after 30 days. Under the bucket -1 are
                        whole spreads: r12, w12 are runs and waits of bucket 12, rl, rm, wl, wm their least and most
    series:<name>       texts by the instant that they were noted for; `series` has the names
    mark:<call>         what one claim took, or that it was given up, for an hour; what another call did, for a minute:
                        in case that its answer is lost
    request:<id>        what was asked under an idempotency key, and the answer; expires with what is promised of it
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
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from windlass.core.errors import ValueRefused
from windlass.core.fields import Kind
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status
from windlass.stores.columns import Columns, make_job, writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAYOUT = "3"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUL = "\0"
SEP = "\x1f"
PART = "\x1e"
LONG = 512
"""a payload of more characters than this lies apart"""
STAMP = "\x1d"
"""in place of an instant that a script is to fill in"""

KEPT = Columns(
    {
        "cancel_requested_at": "cancel_at",
        "correlation_id": "correlation",
        "duration_ms": "duration",
        "entity_name": "entity",
        "expires_at": "expiry",
        "idempotency_key": "idempotent",
        "kept_json": "keeps",
        "lease_expires_at": "expires_at",
        "lease_token": "token",
        "metadata_json": "metadata",
        "parent_id": "parent",
        "payload_json": "payload",
        "result_json": "result",
        "unique_key": "key",
        "unique_queued": "key_queued",
        "unique_running": "key_running",
        "user_id": "user",
        "wait_ms": "wait",
        "worker_id": "worker",
    }
)
OWN = (
    *("status", "run_at", "queued_at", "updated_at", "created_at", "wait", "result"),
    *("key", "key_queued", "key_running", "limit_key", "more"),
)
"""What a job has for itself, even among jobs that were asked for alike."""
SHARED = (
    *("queue", "type", "priority", "attempts", "crashes", "token", "worker", "expires_at", "started_at", "cancel_at"),
    *("finished_at", "duration", "limit", "blocked_by", "schedule", "progress", "error", "moves", "max_attempts"),
    *("max_crashes", "timeout", "control", "apart"),
)
"""What jobs share that were asked for alike and have come as far: one piece, which is taken apart once for all of them,
here and in records.lua. Before it stands its size in bytes."""
REST = (
    *("tick", "parent", "user", "entity", "entity_id", "correlation", "idempotent", "payload", "replay_of", "tags"),
    *("metadata", "trace"),
)
"""What moves leave alone, in one piece with the history behind it."""
FIELDS = (*OWN, "size", *SHARED, *REST, "history")
"""The order of a record's fields; scripts know them by their numbers."""
PARTS = {
    "more": ("rate_key", "fair_key", "next_id", "expiry", "origin"),
    "control": ("rate_n", "rate_ms", "awaits", "takes", "keeps"),
}
"""Fields that are made of several, which few jobs have: empty if all of them are. A new field comes last in one of
these, in `more` if each job has its own: records that were written without it are read as well."""
MORE, SIZE, MOVES = (FIELDS.index(name) for name in ("more", "size", "moves"))
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
    Happened.SUSPENDED: "w",
    Happened.SIGNALLED: "i",
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


_TEXT: dict[Kind, Convert] = {
    Kind.INTEGER: int,
    Kind.INSTANT: instant,
    Kind.DURATION: duration,
    Kind.ERROR: Error.of_text,
    Kind.PROGRESS: Progress.of_text,
    Kind.TAGS: lambda text: tuple(json.loads(text)),
}
_BYTES: dict[Kind, Convert] = {
    Kind.STATUS: _STATUS.__getitem__,
    Kind.INTEGER: int,
    Kind.INSTANT: instant,
}
Convert: TypeAlias = Callable[[Any], Any]
Shared: TypeAlias = list[Any]
"""A job as far as all of its kind are alike: its own fields are still to be filled in."""


_AT = {name: at for at, name in enumerate(KEPT.names)}
_ID, _PAYLOAD, _TAGS, _KEEPS = _AT["id"], _AT["payload"], _AT["tags"], _AT["keeps"]


def _reading(names: Sequence[str], convert: Mapping[Kind, Convert]) -> tuple[tuple[int, Convert | None], ...]:
    """Where a job has each of these fields, and how it is read."""
    return tuple((_AT[name], convert.get(KEPT.kinds[name])) for name in names)


_OWN, _REST = _reading(OWN[:-1], _BYTES), _reading(REST, _TEXT)
_MORE, _CONTROL = _reading(PARTS["more"], _TEXT), _reading(PARTS["control"], _TEXT)
_SHARED = [(place, *_reading([name], _TEXT)[0]) for place, name in enumerate(SHARED) if name in _AT]
_CONTROL_AT = SHARED.index("control")

# Without `strict`, here and below: it would take time for every job, and some texts have more fields or fewer.
# ruff: noqa: B905


def _shared(piece: bytes) -> Shared:
    job: list[Any] = [None] * len(_AT)
    job[_TAGS] = ()
    texts = piece.decode().split(NUL)
    for place, at, value_of in _SHARED:
        if text := texts[place]:
            job[at] = value_of(text) if value_of else text
    if texts[_CONTROL_AT]:
        for (at, value_of), part in zip(_CONTROL, texts[_CONTROL_AT].split(PART)):
            if part:
                job[at] = value_of(part) if value_of else part
    return job


def job_of(id_: str, record: bytes, kinds: dict[bytes, Shared], apart: str = "", kept_json: str | None = None) -> Job:
    """The job of a record; `kinds` is what records read before it have shared.

    `apart` is a payload that lies apart, and `kept_json` what the job has kept, if the record says that it keeps some.
    """
    own = record.split(b"\0", SIZE + 1)
    more, end, pieces = own[MORE], int(own[SIZE]), own[-1]
    piece = pieces[:end]
    shared = kinds.get(piece)
    if shared is None:
        shared = kinds[piece] = _shared(piece)
    job = shared.copy()
    job[_ID] = id_
    for (at, value_of), value in zip(_OWN, own):
        if value:
            job[at] = value_of(value) if value_of else value.decode()
    for (at, value_of), text in zip(_REST, pieces[end + 1 :].decode().split(NUL)):
        if text:
            job[at] = value_of(text) if value_of else text
    if apart or job[_PAYLOAD] is None:
        job[_PAYLOAD] = apart
    if more:
        for (at, value_of), part in zip(_MORE, more.decode().split(PART)):
            if part:
                job[at] = value_of(part) if value_of else part
    if job[_KEEPS]:
        job[_KEEPS] = kept_json
    return make_job(Job, job)


def kept_of(texts: Sequence[bytes]) -> str:
    """What a job has kept, from names and texts in turn. In the order of the names: Redis promises none."""
    words = [text.decode() for text in texts]
    return json.dumps(dict(zip(words[::2], words[1::2])), sort_keys=True)


asked_of = writer(
    {
        Kind.INTEGER: str,
        Kind.INSTANT: lambda instant: str(as_ms(instant)),
        Kind.DURATION: lambda duration: str(as_duration_ms(duration)),
        Kind.TAGS: lambda tags: json.dumps(tags) if tags else None,
    }
)
"""What the records of new jobs have from their options, as text."""


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
