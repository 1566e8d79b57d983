"""Claim: queued jobs become leased ones in one transaction; what may not run yet becomes blocked."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite.records import APPEND, COLUMNS, as_duration_ms, job_of, line_end

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from windlass.core.job import Job
    from windlass.stores.contract import Want

    Row = list[Any]

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
_ORDER = itemgetter(_NAMES.index("priority"), _NAMES.index("run_at"), _ID)
_ROUNDS = 20  # how often a claim looks again after meeting only jobs that had to be blocked


def claim(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int) -> list[Job]:
    """At most `want.n` jobs, first by priority, then time, then id."""
    allowances = _allowances(db, sql, want)
    types = json.dumps(sorted(want.types))
    taken: list[Row] = []
    gate = _Gate(db, sql, now)
    for _ in range(_ROUNDS):
        found = _candidates(db, sql, allowances, types, want.n - len(taken), {row[_SEQ] for row in taken})
        passed = [row for row in found if gate.lets_through(row)]
        for row in passed:
            allowances[row[_QUEUE]] -= 1
        taken.extend(passed)
        if len(passed) == len(found):
            break
    return _lease(db, sql, want, now, taken) if taken else []


OPEN_QUEUES = "SELECT name FROM windlass_queues WHERE paused_at IS NULL"


def _allowances(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> dict[str, int]:
    names = [name for (name,) in db.execute(sql(OPEN_QUEUES))]
    if want.queues is None:
        return dict.fromkeys(names, want.n)
    return {name: min(want.queues[name], want.n) for name in names if want.queues.get(name, 0) > 0}


# All rows come as one JSON text: sqlite3 gives up the interpreter lock at every row it steps to, and has to wait for it
# again while the event loop is busy. One step per batch lets SQLite and the handlers run at the same time.
CANDIDATES = f"""
SELECT json_group_array(json_array({COLUMNS}, seq)) FROM (
    SELECT * FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?))
    ORDER BY priority, run_at, id LIMIT ?
)
"""  # noqa: S608  # COLUMNS is a constant


def _candidates(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    allowances: dict[str, int],
    types: str,
    room: int,
    taken: set[int],
) -> list[Row]:
    rows: list[Row] = []
    for queue, allowance in allowances.items():
        if allowance > 0:
            # Jobs already taken in this claim are still queued until the lease is written: read past them.
            asked = (queue, types, min(allowance, room) + len(taken))
            found = json.loads(db.execute(sql(CANDIDATES), asked).fetchone()[0])
            rows.extend([row for row in found if row[_SEQ] not in taken] if taken else found)
    if len(allowances) > 1:
        rows.sort(key=_ORDER)
    return _within(rows, allowances, room)


def _within(rows: list[Row], allowances: dict[str, int], room: int) -> list[Row]:
    if len(allowances) == 1:
        return rows[:room]
    left = dict(allowances)
    kept: list[Row] = []
    for row in rows:
        queue = row[_QUEUE]
        if len(kept) < room and left[queue] > 0:
            left[queue] -= 1
            kept.append(row)
    return kept


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
        self._used: dict[str, int] = {}
        self._keys: set[str] = set()

    def lets_through(self, row: Row) -> bool:
        limit_key, running_key = row[_LIMIT_KEY], row[_UNIQUE_RUNNING]
        if limit_key is None and running_key is None:
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
            self._keys.add(running_key)
        if limit_key is not None:
            self._used[limit_key] += 1
        return True

    def _block(self, seq: int, by: str) -> bool:
        line = line_end(Happened.BLOCKED, Status.BLOCKED, note=by)
        self._db.execute(self._sql(BLOCK), (by, self._now, self._now, line, seq))
        return False


LEASE = f"""
UPDATE windlass_jobs SET status = 'processing', worker_id = ?, lease_token = lease_token + 1, lease_expires_at = ?,
    attempts = attempts + 1, started_at = ?, updated_at = ?, wait_ms = ? - queued_at, progress = NULL,
    unique_key = unique_running, moves = moves + 1, history = {APPEND} || (lease_token + 1) || '}}'
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
    row[_UNIQUE_KEY] = row[_UNIQUE_RUNNING]
    return job_of(row)


ANY = """
SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?)) LIMIT 1
"""


def anything(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> bool:
    """Whether a claim would find something. Only reads, so an idle worker never takes the write lock."""
    types = json.dumps(sorted(want.types))
    return any(db.execute(sql(ANY), (queue, types)).fetchone() for queue in _allowances(db, sql, want))
