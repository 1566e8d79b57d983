"""Unblock: jobs that waited for a limit slot or a running key go back to the queue, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite.records import APPEND, line_end

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

ANY_BLOCKED = "SELECT 1 FROM windlass_jobs WHERE status = 'blocked' LIMIT 1"
KEYS = "SELECT limit_key, unique_running FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?))"


def free_slots(db: sqlite3.Connection, sql: Callable[[str], str], ids: Sequence[str], now: int) -> int:
    """Let go on what waited for these jobs, which have just ended or stepped back."""
    if not ids or db.execute(sql(ANY_BLOCKED)).fetchone() is None:
        return 0
    waited: set[str] = set()
    for limit_key, running_key in db.execute(sql(KEYS), (json.dumps(ids),)):
        if limit_key is not None:
            waited.add(f"limit:{limit_key}")
        if running_key is not None:
            waited.add(f"unique:{running_key}")
    return unblock(db, sql, waited, now)


# Steps from one line to the next by the index, however many jobs stand in each, and keeps those whose way is free:
# lines that are held must not hide a free one behind them.
WAITED_FOR = """
WITH RECURSIVE lines (by) AS (
    SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked'
    UNION ALL
    SELECT (SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by > by)
    FROM lines WHERE by IS NOT NULL
)
SELECT by FROM lines WHERE by IS NOT NULL AND CASE
    WHEN substr(by, 1, 7) = 'unique:' THEN NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE unique_key = substr(by, 8))
    ELSE (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = substr(by, 7)) < (
        SELECT limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = by ORDER BY queued_at, id LIMIT 1
    ) END
LIMIT ?
"""


def sweep(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int) -> int:
    """Heal what no ending freed: a way that became free otherwise, as when the next in line was cancelled."""
    return unblock(db, sql, [by for (by,) in db.execute(sql(WAITED_FOR), (n,))], now)


SLOTS_TAKEN = "SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = ?"
KEY_HELD = "SELECT 1 FROM windlass_jobs WHERE unique_key = ?"
OLDEST = """
SELECT seq, limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = ? ORDER BY queued_at, id LIMIT ?
"""
UNBLOCK = f"""
UPDATE windlass_jobs SET status = 'queued', blocked_by = NULL, updated_at = ?, moves = moves + 1, history = {APPEND}
WHERE seq = ? AND status = 'blocked'
"""  # noqa: S608  # APPEND is a constant


def unblock(db: sqlite3.Connection, sql: Callable[[str], str], waited: Iterable[str], now: int) -> int:
    """Queue as many of each line as have room now; the claim tests them again."""
    done = 0
    line = line_end(Happened.UNBLOCKED, Status.QUEUED)
    for by in waited:
        for seq in _next_in_line(db, sql, by):
            done += db.execute(sql(UNBLOCK), (now, now, line, seq)).rowcount
    return done


def _next_in_line(db: sqlite3.Connection, sql: Callable[[str], str], by: str) -> list[int]:
    kind, key = by.split(":", 1)
    if kind == "unique":
        held = db.execute(sql(KEY_HELD), (key,)).fetchone()
        return [] if held else [seq for seq, _ in db.execute(sql(OLDEST), (by, 1))]
    taken = db.execute(sql(SLOTS_TAKEN), (key,)).fetchone()[0]
    first = db.execute(sql(OLDEST), (by, 1)).fetchone()
    room = 0 if first is None else first[1] - taken
    return [seq for seq, _ in db.execute(sql(OLDEST), (by, room))] if room > 0 else []
