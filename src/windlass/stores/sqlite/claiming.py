"""Claim: queued jobs become leased ones in one transaction; what may not run yet becomes blocked."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite.rates import Rates
from windlass.stores.sqlite.records import APPEND, COLUMNS, as_duration_ms, job_of, line_end

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from windlass.core.job import Job
    from windlass.stores.contract import Want

    Row = list[Any]
    Place = tuple[int, int, str]

_NAMES = [*COLUMNS.replace(" ", "").split(","), "seq"]
_ID, _QUEUE, _STATUS, _ATTEMPTS, _UPDATED_AT, _QUEUED_AT, _WORKER_ID, _LEASE_TOKEN, _LEASE_EXPIRES_AT, _STARTED_AT = (
    _NAMES.index(name)
    for name in (
        "id",
        "queue",
        "status",
        "attempts",
        "updated_at",
        "queued_at",
        "worker_id",
        "lease_token",
        "lease_expires_at",
        "started_at",
    )
)
_PROGRESS, _WAIT_MS, _UNIQUE_KEY, _UNIQUE_RUNNING, _LIMIT_KEY, _LIMIT, _SEQ = (
    _NAMES.index(name)
    for name in ("progress", "wait_ms", "unique_key", "unique_running", "limit_key", "limit_n", "seq")
)
_RATE_KEY, _RATE_N, _RATE_MS, _BLOCKED_BY = (
    _NAMES.index(name) for name in ("rate_key", "rate_n", "rate_ms", "blocked_by")
)
_ORDER = itemgetter(_NAMES.index("priority"), _NAMES.index("run_at"), _ID)
_LEAST = 20  # rows read at once from each of many queues
_FIRST: Place = (-(2**63), -(2**63), "")  # before every priority, time and id
_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has


def claim(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int) -> list[Job]:
    """At most `want.n` jobs, first by priority, then time, then id."""
    allowances = _allowances(db, sql, want)
    types = json.dumps(sorted(want.types))
    at_once = max(_LEAST, want.n // max(1, len(allowances)))
    lines = [_Line(db, sql, queue, types, allowance, at_once) for queue, allowance in allowances.items()]
    taken: list[Row] = []
    gate = _Gate(db, sql, now)
    while len(taken) < want.n and gate.blocked < _MOST_BLOCKED:
        line = _foremost(lines)
        if line is None:
            break
        row = line.pop()
        if gate.lets_through(row):
            line.allowance -= 1
            taken.append(row)
    gate.close()
    return _lease(db, sql, want, now, taken) if taken else []


def _foremost(lines: list[_Line]) -> _Line | None:
    waiting = [line for line in lines if line.waits()]
    if len(waiting) < 2:
        lines[:] = waiting
        return waiting[0] if waiting else None
    return min(waiting, key=lambda line: _ORDER(line.head()))


OPEN_QUEUES = "SELECT json_group_array(name) FROM windlass_queues WHERE paused_at IS NULL"


def _allowances(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> dict[str, int]:
    names: list[str] = json.loads(db.execute(sql(OPEN_QUEUES)).fetchone()[0])
    if want.queues is None:
        return dict.fromkeys(names, want.n)
    return {name: min(want.queues[name], want.n) for name in names if want.queues.get(name, 0) > 0}


# All rows come as one JSON text: sqlite3 gives up the interpreter lock at every row it steps to, and has to wait for it
# again while the event loop is busy. One step per batch lets SQLite and the handlers run at the same time.
CANDIDATES = f"""
SELECT json_group_array(json_array({COLUMNS}, seq)) FROM (
    SELECT * FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND queue = ? AND (priority, run_at, id) > (?, ?, ?)
        AND type IN (SELECT value FROM json_each(?))
    ORDER BY priority, run_at, id LIMIT ?
)
"""  # noqa: S608  # COLUMNS is a constant


class _Line:
    """What waits in one queue, in order, read a batch at a time."""

    __slots__ = ("_ask", "_at_once", "_next", "_rows", "allowance")

    def __init__(
        self, db: sqlite3.Connection, sql: Callable[[str], str], queue: str, types: str, allowance: int, at_once: int
    ) -> None:
        def ask(after: Place) -> list[Row]:
            found = db.execute(sql(CANDIDATES), (queue, *after, types, at_once)).fetchone()[0]
            rows: list[Row] = json.loads(found)
            return rows

        self._ask, self._at_once = ask, at_once
        self.allowance = allowance
        self._rows: list[Row] = ask(_FIRST)
        self._next = 0

    def waits(self) -> bool:
        """Whether a job of this queue may still be taken."""
        if self.allowance < 1:
            return False
        if self._next == len(self._rows) and len(self._rows) == self._at_once:
            self._rows, self._next = self._ask(_ORDER(self._rows[-1])), 0
        return self._next < len(self._rows)

    def head(self) -> Row:
        """The first that waits."""
        return self._rows[self._next]

    def pop(self) -> Row:
        """The first that waits, passed over from now on."""
        self._next += 1
        return self._rows[self._next - 1]


RUNNING = "SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = ?"
HELD = "SELECT id FROM windlass_jobs WHERE unique_key = ? AND id <> ?"
BLOCK = f"""
UPDATE windlass_jobs SET status = 'blocked', blocked_by = ?, updated_at = ?, moves = moves + 1, history = {APPEND}
WHERE seq = ? AND status = 'queued'
"""  # noqa: S608  # APPEND is a constant


class _Gate:
    """Limits and running keys, counting what this very claim has already let through."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> None:
        self._db, self._sql, self._now = db, sql, now
        self.blocked = 0
        self._used: dict[str, int] = {}
        self._keys: set[str] = set()
        self._rates = Rates(db, sql, now)

    def lets_through(self, row: Row) -> bool:
        limit_key, running_key, rate_key = row[_LIMIT_KEY], row[_UNIQUE_RUNNING], row[_RATE_KEY]
        if limit_key is None and running_key is None and rate_key is None:
            return True
        if running_key == row[_UNIQUE_KEY]:
            running_key = None  # held since an earlier attempt
        if limit_key is not None:
            if limit_key not in self._used:
                self._used[limit_key] = self._db.execute(self._sql(RUNNING), (limit_key,)).fetchone()[0]
            if self._used[limit_key] >= (row[_LIMIT] or 1):
                return self._block(row[_SEQ], f"limit:{limit_key}")
        if running_key is not None:
            held = running_key in self._keys or self._db.execute(self._sql(HELD), (running_key, row[_ID])).fetchone()
            if held:
                return self._block(row[_SEQ], f"unique:{running_key}")
        if rate_key is not None:
            called = row[_BLOCKED_BY] is not None
            if not self._rates.lets_through(rate_key, row[_RATE_N], row[_RATE_MS], called=called):
                return self._block(row[_SEQ], f"rate:{rate_key}")
        if running_key is not None:
            self._keys.add(running_key)
        if limit_key is not None:
            self._used[limit_key] += 1
        return True

    def close(self) -> None:
        """Book what was let through."""
        self._rates.book()

    def _block(self, seq: int, by: str) -> bool:
        self.blocked += 1
        line = line_end(Happened.BLOCKED, Status.BLOCKED, note=by)
        self._db.execute(self._sql(BLOCK), (by, self._now, self._now, line, seq))
        return False


LEASE = f"""
UPDATE windlass_jobs SET status = 'processing', worker_id = ?, lease_token = lease_token + 1, lease_expires_at = ?,
    attempts = attempts + 1, started_at = ?, updated_at = ?, wait_ms = ? - queued_at, progress = NULL,
    unique_key = unique_running, blocked_by = NULL, moves = moves + 1, history = {APPEND} || (lease_token + 1) || '}}'
WHERE seq IN (SELECT value FROM json_each(?))
"""  # noqa: S608  # APPEND is a constant


def _lease(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int, taken: list[Row]) -> list[Job]:
    until = now + as_duration_ms(want.lease)
    line = f'{line_end(Happened.CLAIMED, Status.PROCESSING, want.worker_id)[:-1]},"token":'
    seqs = json.dumps([row[_SEQ] for row in taken])
    db.execute(sql(LEASE), (want.worker_id, until, now, now, now, now, line, seqs))
    return [_leased(row, want.worker_id, now, until) for row in taken]


def _leased(row: Row, worker_id: str, now: int, until: int) -> Job:
    # Read and written under one write lock, so what the row is now is known without reading it again.
    row[_STATUS] = Status.PROCESSING.value
    row[_ATTEMPTS] += 1
    row[_UPDATED_AT] = row[_STARTED_AT] = now
    row[_WORKER_ID], row[_LEASE_EXPIRES_AT] = worker_id, until
    row[_LEASE_TOKEN] += 1
    row[_PROGRESS] = None
    row[_WAIT_MS] = None if row[_QUEUED_AT] is None else now - row[_QUEUED_AT]
    row[_UNIQUE_KEY], row[_BLOCKED_BY] = row[_UNIQUE_RUNNING], None
    return job_of(row)


ANY = """
SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?)) LIMIT 1
"""


def anything(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> bool:
    """Whether a claim would find something. Only reads, so an idle worker never takes the write lock."""
    types = json.dumps(sorted(want.types))
    return any(db.execute(sql(ANY), (queue, types)).fetchone() for queue in _allowances(db, sql, want))
