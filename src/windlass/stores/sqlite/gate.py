"""The gate: a job that needs a slot, a running key or room in a rate is let through, or put aside as blocked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.admission import Candidate, InUse, admit
from windlass.core.blocked import Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite.rates import Rates
from windlass.stores.sqlite.records import APPEND, line_end
from windlass.stores.sqlite.wanting import at

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from windlass.stores.sqlite.wanting import Row

_SEQ, _LIMIT_KEY, _LIMIT, _UNIQUE_KEY, _UNIQUE_RUNNING = at(
    "seq", "limit_key", "limit_n", "unique_key", "unique_running"
)
_EXPIRES_AT, _LEASE_TOKEN = at("expires_at", "lease_token")
_RATE_KEY, _RATE_N, _RATE_MS, _BLOCKED_BY = at("rate_key", "rate_n", "rate_ms", "blocked_by")
_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has

RUNNING = "SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = ?"
HELD = "SELECT 1 FROM windlass_jobs WHERE unique_key = ?"
# Jobs and what blocks each, as members of one JSON object: one statement, however many are put aside.
BLOCK = f"""
UPDATE windlass_jobs SET status = 'blocked', blocked_by = told.value, updated_at = ?, moves = moves + 1,
    history = {APPEND} || json_quote(told.value) || '}}'
FROM json_each(?) AS told WHERE seq = CAST(told.key AS INTEGER) AND status = 'queued'
"""  # noqa: S608  # APPEND is a constant


def is_plain(row: Row) -> bool:
    """Whether a job needs nothing but a worker, at any time, or has held its running key since before."""
    running = row[_UNIQUE_RUNNING]
    return (
        row[_LIMIT_KEY] is None
        and row[_RATE_KEY] is None
        and row[_EXPIRES_AT] is None
        and (running is None or running == row[_UNIQUE_KEY])
    )


def _candidate(row: Row) -> Candidate:
    running = row[_UNIQUE_RUNNING]
    key = None if running == row[_UNIQUE_KEY] else running
    called = row[_BLOCKED_BY] is not None
    return Candidate(row[_LIMIT_KEY], row[_LIMIT] or 1, key, row[_RATE_KEY], row[_RATE_N] or 0, called)


class Gate:
    """Limits, running keys and rates, counting what this very claim has already let through."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> None:
        self._db, self._sql, self._now = db, sql, now
        self._blocked: dict[int, str] = {}
        self._slots: dict[str, int] = {}
        self._held: dict[str, bool] = {}
        self._rates = Rates(db, sql, now)
        self._passed = 0

    @property
    def full(self) -> bool:
        """Whether it has put aside, or passed over, as many as one claim does."""
        return len(self._blocked) + self._passed >= _MOST_BLOCKED

    def lets_through(self, row: Row) -> bool:
        """Whether the job may run now; if not, it is put aside. What has expired is left to `promote`."""
        if row[_EXPIRES_AT] is not None and row[_LEASE_TOKEN] == 0 and row[_EXPIRES_AT] <= self._now:
            self._passed += 1
            return False
        job, per = _candidate(row), row[_RATE_MS]
        by = admit(job, self._in_use(job, per))
        if by is None:
            self._take(job, per)
            return True
        self._blocked[row[_SEQ]] = by.text
        if by.kind is Kind.RATE:
            self._rates.put_aside(by.key, per)
        return False

    def _in_use(self, job: Candidate, per: int) -> InUse:
        limit, _, key, rate, n, _ = job
        slots, held, starts, in_line = 0, False, 0, 0
        if limit is not None:
            if limit not in self._slots:
                self._slots[limit] = self._db.execute(self._sql(RUNNING), (limit,)).fetchone()[0]
            slots = self._slots[limit]
        if key is not None:
            if key not in self._held:
                self._held[key] = self._db.execute(self._sql(HELD), (key,)).fetchone() is not None
            held = self._held[key]
        if rate is not None:
            starts, in_line = self._rates.look(rate, n, per)
        return InUse(slots, held, starts, in_line)

    def _take(self, job: Candidate, per: int) -> None:
        limit, _, key, rate, _, _ = job
        if limit is not None:
            self._slots[limit] += 1
        if key is not None:
            self._held[key] = True
        if rate is not None:
            self._rates.start(rate, per)

    def close(self) -> None:
        """Book what was let through, and write down what was put aside."""
        self._rates.book()
        if self._blocked:
            line = f'{line_end(Happened.BLOCKED, Status.BLOCKED)[:-1]},"note":'
            self._db.execute(self._sql(BLOCK), (self._now, self._now, line, json.dumps(self._blocked)))
