"""Claim: queued jobs become leased ones in one transaction; what may not run yet becomes blocked."""

from __future__ import annotations

import json
import random
import time
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.weights import first_turn
from windlass.stores.contract import Claimed
from windlass.stores.sqlite.rates import Rates
from windlass.stores.sqlite.records import APPEND, COLUMNS, KEPT, as_duration_ms, job_of, line_end

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping

    from windlass.stores.contract import Want

    Row = list[Any]
    Place = tuple[int, int, str]
    Ask = Callable[[str, Place, int], list[Row]]

_NAMES = (*KEPT.names, "seq")
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
_PRIORITY = _NAMES.index("priority")
_ORDER = itemgetter(_PRIORITY, _NAMES.index("run_at"), _ID)
_FIRST: Place = (-(2**63), -(2**63), "")  # before every priority, time and id
_MOST_READ = 500  # rows read at once from one queue
_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has


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
    reader = _Reader(db, sql, want)
    lines: list[_Line] = _lines(db, sql, want, reader, heads)
    taken: list[Row] = []
    gate = _Gate(db, sql, now)
    while lines and len(taken) < want.n and not gate.full:
        level = min(line.level for line in lines)
        _take_turns([line for line in lines if line.level == level], want, gate, taken)
        lines = [line for line in lines if line.waits]
    gate.close()
    if taken:
        _lease(db, sql, want, now, taken)
    return Taken(taken, more=gate.full and len(taken) < want.n, seconds=reader.seconds)


def _take_turns(lines: list[_Line], want: Want, gate: _Gate, taken: list[Row]) -> None:
    """Let queues whose first jobs are of one priority take turns, until none has another job of it."""
    level = lines[0].level
    weights = [line.weight for line in lines]
    at, begun = first_turn(weights, random.randrange(sum(weights)))
    left: int | None = begun
    while lines:
        line = lines[at % len(lines)]
        for row in line.turn(level, len(lines), left):
            if gate.lets_through(row):
                line.allowance -= 1
                taken.append(row)
                if len(taken) == want.n:
                    return
            elif gate.full:
                return
        if line.waits and line.level == level:
            at = (at + 1) % len(lines)
        else:
            at %= len(lines)
            del lines[at]
        left = None


# From one queue that has something to the next by the index: queues that have nothing cost nothing.
WAITING = """
WITH RECURSIVE lines (queue) AS (
    SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued'
    UNION ALL
    SELECT (
        SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim
        WHERE status = 'queued' AND windlass_jobs.queue > lines.queue
    ) FROM lines WHERE queue IS NOT NULL
)
SELECT json_group_array(json_array(queue, (
    SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND windlass_jobs.queue = lines.queue
))) FROM lines WHERE queue IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM windlass_queues WHERE name = lines.queue AND paused_at IS NOT NULL)
"""
WAITING_OF = """
SELECT json_group_array(json_array(value, (
    SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued' AND queue = value
))) FROM json_each(?)
WHERE NOT EXISTS (SELECT 1 FROM windlass_queues WHERE name = value AND paused_at IS NOT NULL)
"""


def _lines(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    want: Want,
    reader: _Reader,
    heads: Mapping[str, Place | None],
) -> list[_Line]:
    return [
        _Line(reader, queue, level, n, want, head)
        for queue, level, n in _waiting(db, sql, want)
        if (head := heads.get(queue, _FIRST)) is not None
    ]


def _waiting(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> list[tuple[str, int, int]]:
    """Queues that have something, with the first priority there and how many may be taken."""
    if want.queues is None:
        text = db.execute(sql(WAITING)).fetchone()[0]
        allowances: Mapping[str, int] = {}
    else:
        allowances = {queue: n for queue, n in want.queues.items() if n > 0}
        text = db.execute(sql(WAITING_OF), (json.dumps(list(allowances)),)).fetchone()[0]
    return [(queue, level, allowances.get(queue, want.n)) for queue, level in _levels(text) if level is not None]


def _levels(text: str) -> list[tuple[str, int | None]]:
    levels: list[tuple[str, int | None]] = json.loads(text)
    return levels


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


class _Reader:
    """Reads what waits, and knows what that took."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> None:
        self._db, self._statement, self._types = db, sql(CANDIDATES), _types(want)
        self.seconds = 0.0

    def __call__(self, queue: str, after: Place, n: int) -> list[Row]:
        began = time.thread_time()
        text = self._db.execute(self._statement, (queue, *after, self._types, n)).fetchone()[0]
        self.seconds += time.thread_time() - began
        rows: list[Row] = json.loads(text)
        return rows


def _types(want: Want) -> str:
    return json.dumps(sorted(want.types))


class _Line:
    """What waits in one queue, in order, read when its turn has come and in batches that grow."""

    __slots__ = ("_ask", "_at_once", "_ended", "_head_at", "_next", "_rows", "_want", "allowance", "level", "queue")

    def __init__(self, ask: Ask, queue: str, level: int, allowance: int, want: Want, head: Place) -> None:
        self._ask, self.queue, self._want, self._head_at = ask, queue, want, head
        self._rows: list[Row] = []
        self._next = self._at_once = 0
        self._ended = False
        self.allowance = allowance
        self.level = level
        """the priority of the first that waits; before anything was read, of any type"""

    @property
    def waits(self) -> bool:
        """Whether a job of this queue may still be taken."""
        return self.allowance > 0 and not (self._ended and self._next == len(self._rows))

    @property
    def weight(self) -> int:
        """How many jobs its turn takes."""
        return self._want.weights.get(self.queue, 1)

    def turn(self, level: int, sharers: int, left: int | None = None) -> Iterator[Row]:
        """The rows of one turn, at most its weight, or what is left, of those let through; others are passed over."""
        weight = (left or self.weight) if sharers > 1 else self.allowance
        most = self.allowance - min(weight, self.allowance)
        while self.allowance > most and (self._next < len(self._rows) or self._head(sharers) is not None):
            row = self._rows[self._next]
            if row[_PRIORITY] != level:
                break
            self._next += 1
            yield row
        self._head(sharers)

    def _head(self, sharers: int) -> int | None:
        if self._next == len(self._rows) and not self._ended and self.allowance > 0:
            self._read(sharers)
        if self._next == len(self._rows):
            return None
        level: int = self._rows[self._next][_PRIORITY]
        self.level = level
        return level

    def _read(self, sharers: int) -> None:
        share = max(-(-self._want.n // sharers), self.weight)
        self._at_once = min(max(share, 2 * self._at_once), _MOST_READ)
        after = _ORDER(self._rows[-1]) if self._rows else self._head_at
        self._rows, self._next = self._ask(self.queue, after, self._at_once), 0
        self._ended = len(self._rows) < self._at_once


RUNNING = "SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = ?"
HELD = "SELECT id FROM windlass_jobs WHERE unique_key = ? AND id <> ?"
# Who is blocked by what as the members of one JSON object: one step, however many are put aside.
BLOCK = f"""
UPDATE windlass_jobs SET status = 'blocked', blocked_by = told.value, updated_at = ?, moves = moves + 1,
    history = {APPEND} || json_quote(told.value) || '}}'
FROM json_each(?) AS told WHERE seq = CAST(told.key AS INTEGER) AND status = 'queued'
"""  # noqa: S608  # APPEND is a constant


class _Gate:
    """Limits and running keys, counting what this very claim has already let through."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> None:
        self._db, self._sql, self._now = db, sql, now
        self._blocked: dict[int, str] = {}
        self._used: dict[str, int] = {}
        self._keys: set[str] = set()
        self._rates = Rates(db, sql, now)

    @property
    def full(self) -> bool:
        """Whether it has put aside as many as one claim does."""
        return len(self._blocked) >= _MOST_BLOCKED

    def lets_through(self, row: Row) -> bool:
        """Whether the job may run now; if not, it is put aside."""
        limit_key, running_key, rate_key = row[_LIMIT_KEY], row[_UNIQUE_RUNNING], row[_RATE_KEY]
        if limit_key is None and running_key is None and rate_key is None:
            return True
        if running_key == row[_UNIQUE_KEY]:
            running_key = None  # held since an earlier attempt
        if limit_key is not None:
            if limit_key not in self._used:
                self._used[limit_key] = self._db.execute(self._sql(RUNNING), (limit_key,)).fetchone()[0]
            if self._used[limit_key] >= (row[_LIMIT] or 1):
                return self._block(row[_SEQ], BlockedBy(Kind.LIMIT, limit_key))
        if running_key is not None:
            held = running_key in self._keys or self._db.execute(self._sql(HELD), (running_key, row[_ID])).fetchone()
            if held:
                return self._block(row[_SEQ], BlockedBy(Kind.UNIQUE, running_key))
        if rate_key is not None:
            called = row[_BLOCKED_BY] is not None
            if not self._rates.lets_through(rate_key, row[_RATE_N], row[_RATE_MS], called=called):
                return self._block(row[_SEQ], BlockedBy(Kind.RATE, rate_key))
        if running_key is not None:
            self._keys.add(running_key)
        if limit_key is not None:
            self._used[limit_key] += 1
        return True

    def close(self) -> None:
        """Book what was let through, and write down what was put aside."""
        self._rates.book()
        if self._blocked:
            line = f'{line_end(Happened.BLOCKED, Status.BLOCKED)[:-1]},"note":'
            self._db.execute(self._sql(BLOCK), (self._now, self._now, line, json.dumps(self._blocked)))

    def _block(self, seq: int, by: BlockedBy) -> bool:
        self._blocked[seq] = by.text
        return False


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


# By its index in order. What stands there with it at the same instant is still before the id.
HEAD = """
SELECT priority, run_at FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND type IN (SELECT value FROM json_each(?)) ORDER BY priority, run_at, id LIMIT 1
"""


def find_heads(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> dict[str, Place | None]:
    """Where the first job that is wanted stands in each queue that has something. Only reads."""
    types, heads = _types(want), dict[str, "Place | None"]()
    for queue, _level, _n in _waiting(db, sql, want):
        head = db.execute(sql(HEAD), (queue, types)).fetchone()
        heads[queue] = None if head is None else (*head, "")
    return heads


def anything(db: sqlite3.Connection, sql: Callable[[str], str], want: Want) -> bool:
    """Whether a claim would find something. Only reads, so an idle worker never takes the write lock."""
    types = _types(want)
    return any(db.execute(sql(HEAD), (queue, types)).fetchone() for queue, _level, _n in _waiting(db, sql, want))
