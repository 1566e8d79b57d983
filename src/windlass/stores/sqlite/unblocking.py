"""Unblock: jobs that waited for a limit slot, a running key, a rate or other jobs go on, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.blocked import BlockedBy, Kind, lines
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite import flows, rates
from windlass.stores.sqlite.records import APPEND, line_end
from windlass.stores.sqlite.turns import FLOOR_AS_BEFORE

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

ANY_BLOCKED = "SELECT 1 FROM windlass_jobs WHERE status = 'blocked' LIMIT 1"
KEYS = "SELECT limit_key, unique_running, next_id FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?))"


def free_slots(db: sqlite3.Connection, sql: Callable[[str], str], ids: Sequence[str], now: int) -> int:
    """Let go on what waited for these jobs, which have just ended or stepped back."""
    if not ids or db.execute(sql(ANY_BLOCKED)).fetchone() is None:
        return 0
    waited: set[str] = set()
    for limit_key, running_key, next_id in db.execute(sql(KEYS), (json.dumps(ids),)):
        waited.update(lines(limit=limit_key, unique=running_key, flow=next_id))
    return unblock(db, sql, waited, now)


def _is(kind: Kind) -> str:
    return f"substr(by, 1, {len(kind.prefix)}) = '{kind.prefix}'"


def _key(kind: Kind) -> str:
    return f"substr(by, {len(kind.prefix) + 1})"


# From one line to the next by the index, however many jobs stand in each, and of each whether its way is free. A rate's
# line is called when its time has come, so here it needs a look only if nobody has written down when that is.
LINES = f"""
WITH RECURSIVE lines (by) AS (
    SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by > :after
    UNION ALL
    SELECT (SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by > by)
    FROM lines WHERE by IS NOT NULL LIMIT :most
)
SELECT by, CASE
    WHEN {_is(Kind.UNIQUE)} THEN NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE unique_key = {_key(Kind.UNIQUE)})
    WHEN {_is(Kind.RATE)} THEN NOT EXISTS (SELECT 1 FROM windlass_calls WHERE key = {_key(Kind.RATE)})
    WHEN {_is(Kind.FLOW)} THEN NOT EXISTS (
        SELECT 1 FROM windlass_jobs
        WHERE next_id = {_key(Kind.FLOW)} AND status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying')
    ) OR EXISTS (
        SELECT 1 FROM windlass_jobs AS waiting WHERE waiting.id = {_key(Kind.FLOW)} AND waiting.awaits = 'success'
            AND EXISTS (SELECT 1 FROM windlass_jobs WHERE next_id = waiting.id AND status IN ('failed', 'cancelled'))
    )
    WHEN {_is(Kind.LIMIT)} THEN (
        SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = {_key(Kind.LIMIT)}
    ) < (
        SELECT limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = by ORDER BY queued_at, id LIMIT 1
    ) ELSE false END
FROM lines WHERE by IS NOT NULL
"""  # noqa: S608  # made of constants
_AT_ONCE = 100  # how many lines one sweep looks at; the next goes on behind them


class Sweep:
    """Heals what no ending freed, a part of the lines at a time: a way that became free otherwise."""

    def __init__(self) -> None:
        self._after = ""

    def free(self, db: sqlite3.Connection, sql: Callable[[str], str]) -> list[str]:
        """Of the next lines those whose way is free. Only reads."""
        rows = db.execute(sql(LINES), {"after": self._after, "most": _AT_ONCE}).fetchall()
        self._after = rows[-1][0] if len(rows) == _AT_ONCE else ""
        return [by for by, free in rows if free]


SLOTS_TAKEN = "SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = ?"
KEY_HELD = "SELECT 1 FROM windlass_jobs WHERE unique_key = ?"
FIRST = """
SELECT limit_n, rate_n, rate_ms FROM windlass_jobs
WHERE status = 'blocked' AND blocked_by = ? ORDER BY queued_at, id LIMIT 1
"""
CALLED = "SELECT count(*) FROM windlass_jobs WHERE status = 'queued' AND blocked_by = ?"
# One of a rate stays known as called from its line, so that the claim lets it pass those who still stand there.
UNBLOCK = f"""
UPDATE windlass_jobs SET status = 'queued',
    blocked_by = CASE WHEN substr(blocked_by, 1, {len(Kind.RATE.prefix)}) = '{Kind.RATE.prefix}' THEN blocked_by END,
    updated_at = ?, floor = {FLOOR_AS_BEFORE}, moves = moves + 1, history = {APPEND}
WHERE seq IN (SELECT seq FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = ? ORDER BY queued_at, id LIMIT ?)
"""  # noqa: S608  # APPEND is a constant


def unblock(
    db: sqlite3.Connection, sql: Callable[[str], str], waited: Iterable[str], now: int, deleted: str | None = None
) -> int:
    """Queue as many of each line as have room now; the claim tests them again."""
    done = 0
    line = line_end(Happened.UNBLOCKED, Status.QUEUED)
    left = list(waited)
    while left:
        by = BlockedBy.of(left.pop())
        if by.kind is Kind.FLOW:
            went_on, freed = flows.settle(db, sql, by.key, now, deleted)
            done += went_on
            left += freed
            deleted = None  # only the first in a chain awaited it
            continue
        if (room := _room(db, sql, by, now)) > 0:
            done += db.execute(sql(UNBLOCK), (now, now, now, line, by.text, room)).rowcount
        if by.kind is Kind.RATE:
            _call_again(db, sql, by, now)
    return done


def _call_again(db: sqlite3.Connection, sql: Callable[[str], str], by: BlockedBy, now: int) -> None:
    first = db.execute(sql(FIRST), (by.text,)).fetchone()
    if first is None:
        db.execute(sql(rates.DISMISS), (by.key,))
    else:
        rates.call(db, sql, by.key, first[2], now)


def _room(db: sqlite3.Connection, sql: Callable[[str], str], by: BlockedBy, now: int) -> int:
    if by.kind is Kind.UNIQUE:
        return 0 if db.execute(sql(KEY_HELD), (by.key,)).fetchone() else 1
    first = db.execute(sql(FIRST), (by.text,)).fetchone()
    if first is None:
        return 0
    limit, n, per = first
    if by.kind is Kind.RATE:
        called = db.execute(sql(CALLED), (by.text,)).fetchone()[0]
        return rates.room(db, sql, by.key, n, per, now) - int(called)
    return int(limit) - int(db.execute(sql(SLOTS_TAKEN), (by.key,)).fetchone()[0])


CALLS = "SELECT key FROM windlass_calls WHERE at <= ? ORDER BY at LIMIT ?"
NEXT_CALL = "SELECT min(at) FROM windlass_calls"


def called(db: sqlite3.Connection, sql: Callable[[str], str], now: int, n: int) -> list[str]:
    """At most `n` lines of rates that should have room by now."""
    return [BlockedBy(Kind.RATE, key).text for (key,) in db.execute(sql(CALLS), (now, n))]


def next_call(db: sqlite3.Connection, sql: Callable[[str], str]) -> int | None:
    """When the first of the rates that jobs wait for should have room."""
    at: int | None = db.execute(sql(NEXT_CALL)).fetchone()[0]
    return at
