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

    Candidate = tuple[int, int, int, str, str | None, int | None, str | None, str | None]

_ROUNDS = 20  # how often a claim looks again after meeting only jobs that had to be blocked


def claim(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int) -> list[Job]:
    """At most `want.n` jobs, first by priority, then time, then id."""
    allowances = _allowances(db, sql, want)
    types = json.dumps(sorted(want.types))
    taken: list[Candidate] = []
    gate = _Gate(db, sql, now)
    for _ in range(_ROUNDS):
        room = want.n - len(taken)
        found = _candidates(db, sql, allowances, types, room, {one[0] for one in taken})
        passed = [one for one in found if gate.lets_through(one)]
        for one in passed:
            allowances[one[-1] or ""] -= 1
        taken.extend(passed)
        if len(passed) == len(found):
            break
    return _lease(db, sql, want, now, [one[0] for one in taken]) if taken else []


OPEN_QUEUES = "SELECT name FROM windlass_queues WHERE paused_at IS NULL"


def _allowances(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> dict[str, int]:
    names = [name for (name,) in db.execute(sql(OPEN_QUEUES))]
    if want.queues is None:
        return dict.fromkeys(names, want.n)
    return {name: min(want.queues[name], want.n) for name in names if want.queues.get(name, 0) > 0}


CANDIDATES = """
SELECT seq, priority, run_at, id, limit_key, limit_n, CASE WHEN unique_key IS unique_running THEN NULL ELSE unique_running END, queue
FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?))
ORDER BY priority, run_at, id LIMIT ?
"""


def _candidates(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    allowances: dict[str, int],
    types: str,
    room: int,
    taken: set[int],
) -> list[Candidate]:
    found: list[Candidate] = []
    for queue, allowance in allowances.items():
        if allowance > 0:
            # Jobs already taken in this claim are still queued until the lease is written: read past them.
            rows = db.execute(sql(CANDIDATES), (queue, types, min(allowance, room) + len(taken)))
            found.extend(row for row in rows if row[0] not in taken)
    if len(allowances) > 1:
        found.sort(key=itemgetter(1, 2, 3))
    kept: list[Candidate] = []
    left = dict(allowances)
    for one in found:
        queue = one[-1] or ""
        if len(kept) < room and left[queue] > 0:
            left[queue] -= 1
            kept.append(one)
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

    def lets_through(self, one: Candidate) -> bool:
        seq, _, _, job_id, limit_key, limit, running_key, _ = one
        if limit_key is None and running_key is None:
            return True
        if limit_key is not None:
            if limit_key not in self._used:
                self._used[limit_key] = self._db.execute(self._sql(RUNNING), (limit_key,)).fetchone()[0]
            if self._used[limit_key] >= (limit or 1):
                return self._block(seq, f"limit:{limit_key}")
        if running_key is not None:
            held = running_key in self._keys or self._db.execute(self._sql(HELD), (running_key, job_id)).fetchone()
            if held:
                return self._block(seq, f"unique:{running_key}")
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
WHERE seq IN (SELECT value FROM json_each(?)) RETURNING {COLUMNS}
"""  # noqa: S608  # APPEND and COLUMNS are constants


def _lease(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int, seqs: list[int]) -> list[Job]:
    until = now + as_duration_ms(want.lease)
    line = f'{line_end(Happened.CLAIMED, Status.PROCESSING, want.worker_id)[:-1]},"token":'
    rows: list[tuple[Any, ...]] = db.execute(
        sql(LEASE), (want.worker_id, until, now, now, now, now, line, json.dumps(seqs))
    ).fetchall()
    rows.sort(key=itemgetter(5, 6, 0))
    return [job_of(row) for row in rows]


ANY = """
SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?)) LIMIT 1
"""


def anything(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> bool:
    """Whether a claim would find something. Only reads, so an idle worker never takes the write lock."""
    types = json.dumps(sorted(want.types))
    return any(db.execute(sql(ANY), (queue, types)).fetchone() for queue in _allowances(db, sql, want))
