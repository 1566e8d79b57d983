"""Claim: queued jobs become leased ones in one transaction.

Jobs are taken in order, the queues of one priority by turns. What needs a slot, a running key or room in a rate has to
pass the gate before; see `gate`.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.weights import first_turn
from windlass.stores.contract import Claimed
from windlass.stores.sqlite.gate import Gate, is_plain
from windlass.stores.sqlite.records import APPEND, COLUMNS, as_duration_ms, job_of, line_end
from windlass.stores.sqlite.wanting import Line, Reader, at, lines

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from windlass.stores.contract import Want
    from windlass.stores.sqlite.wanting import Place, Row

_ID, _STATUS, _ATTEMPTS, _UPDATED_AT, _QUEUED_AT, _STARTED_AT = at(
    "id", "status", "attempts", "updated_at", "queued_at", "started_at"
)
_WORKER_ID, _LEASE_TOKEN, _LEASE_EXPIRES_AT = at("worker_id", "lease_token", "lease_expires_at")
_PROGRESS, _WAIT_MS, _UNIQUE_KEY, _UNIQUE_RUNNING, _BLOCKED_BY, _SEQ = at(
    "progress", "wait_ms", "unique_key", "unique_running", "blocked_by", "seq"
)


class Taken(NamedTuple):
    """The rows that a claim leased, in the order taken, and whether another claim at once may bring more."""

    rows: list[Row]
    more: bool
    seconds: float = 0.0
    """what it took to look for them, while the file was locked"""

    def leases(self) -> dict[str, int]:
        """Their ids and tokens."""
        return {row[_ID]: row[_LEASE_TOKEN] for row in self.rows}

    def jobs(self) -> Claimed:
        """The jobs of these rows."""
        return Claimed(map(job_of, self.rows), more=self.more)


def claim(
    db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int, heads: Mapping[str, Place | None]
) -> Taken:
    """At most `want.n` jobs: first by priority, the queues of one priority by turns, inside a queue by time and id.

    Queues whose heads were looked for before are not looked at ahead of them.
    """
    reader = Reader(db, sql, want)
    waiting: list[Line] = lines(db, sql, want, reader, heads)
    taken: list[Row] = []
    gate = Gate(db, sql, now)
    while waiting and len(taken) < want.n and not gate.full:
        level = min(line.level for line in waiting)
        _take_turns([line for line in waiting if line.level == level], want, gate, taken)
        waiting = [line for line in waiting if line.waits]
    gate.close()
    if taken:
        _lease(db, sql, want, now, taken)
    return Taken(taken, more=gate.full and len(taken) < want.n, seconds=reader.seconds)


def _take_turns(sharers: list[Line], want: Want, gate: Gate, taken: list[Row]) -> None:
    """Let queues whose first jobs are of one priority take turns, until none has another job of it."""
    level = sharers[0].level
    weights = [line.weight for line in sharers]
    turn, begun = first_turn(weights, random.randrange(sum(weights)))
    left: int | None = begun
    while sharers:
        line = sharers[turn % len(sharers)]
        for row in line.turn(level, len(sharers), left):
            if is_plain(row) or gate.lets_through(row):
                line.allowance -= 1
                taken.append(row)
                if len(taken) == want.n:
                    return
            elif gate.full:
                return
        if line.waits and line.level == level:
            turn = (turn + 1) % len(sharers)
        else:
            turn %= len(sharers)
            del sharers[turn]
        left = None


LEASE = f"""
UPDATE windlass_jobs SET status = 'processing', worker_id = ?, lease_token = lease_token + 1, lease_expires_at = ?,
    attempts = attempts + 1, started_at = ?, updated_at = ?, wait_ms = ? - queued_at, progress = NULL,
    unique_key = unique_running, blocked_by = NULL, moves = moves + 1, history = {APPEND} || (lease_token + 1) || '}}'
WHERE seq IN (SELECT value FROM json_each(?))
"""  # noqa: S608  # APPEND is a constant


def _lease(db: sqlite3.Connection, sql: Callable[[str], str], want: Want, now: int, taken: list[Row]) -> None:
    until = now + as_duration_ms(want.lease)
    line = f'{line_end(Happened.CLAIMED, Status.PROCESSING, want.worker_id)[:-1]},"token":'
    seqs = json.dumps([row[_SEQ] for row in taken])
    db.execute(sql(LEASE), (want.worker_id, until, now, now, now, now, line, seqs))
    for row in taken:
        _mark_leased(row, want.worker_id, now, until)


def _mark_leased(row: Row, worker_id: str, now: int, until: int) -> None:
    # Read and written under one write lock, so what the row is now is known without reading it again.
    row[_STATUS] = Status.PROCESSING.value
    row[_ATTEMPTS] += 1
    row[_UPDATED_AT] = row[_STARTED_AT] = now
    row[_WORKER_ID], row[_LEASE_EXPIRES_AT] = worker_id, until
    row[_LEASE_TOKEN] += 1
    row[_PROGRESS] = None
    row[_WAIT_MS] = None if row[_QUEUED_AT] is None else now - row[_QUEUED_AT]
    row[_UNIQUE_KEY], row[_BLOCKED_BY] = row[_UNIQUE_RUNNING], None


RENEW = """
UPDATE windlass_jobs SET lease_expires_at = ? FROM json_each(?) AS told
WHERE windlass_jobs.id = told.key AND lease_token = told.value AND status = 'processing' AND worker_id = ?
"""
STILL_HELD = f"""
SELECT json_group_array(json_array({COLUMNS}, seq)) FROM (
    SELECT windlass_jobs.* FROM json_each(?) AS told CROSS JOIN windlass_jobs
    WHERE windlass_jobs.id = told.key AND lease_token = told.value AND status = 'processing' AND worker_id = ?
)
"""  # noqa: S608  # COLUMNS is a constant


def hand_over(
    db: sqlite3.Connection, sql: Callable[[str], str], want: Want, leases: Mapping[str, int], now: int
) -> Taken:
    """The jobs of these leases that still are the worker's, their time renewed."""
    told = json.dumps(leases)
    db.execute(sql(RENEW), (now + as_duration_ms(want.lease), told, want.worker_id))
    rows: list[Row] = json.loads(db.execute(sql(STILL_HELD), (told, want.worker_id)).fetchone()[0])
    return Taken(rows, more=True)
