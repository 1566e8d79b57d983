"""Turns: where a job with a fair key is put among the others that wait. An order only: nobody waits for its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from windlass.core.draft import Options

HEAD = """
SELECT min(run_at) FROM windlass_jobs INDEXED BY windlass_jobs_turn
WHERE status = 'queued' AND fair_key IS NOT NULL AND queue = ? AND priority = ?
"""
# What takes no part and stood there before, or came back there: nobody who comes later stands before it.
FLOOR = """
SELECT max(floor) FROM windlass_jobs INDEXED BY windlass_jobs_floor
WHERE status = 'queued' AND floor IS NOT NULL AND queue = ? AND priority = ?
"""
FLOOR_OF = """CASE WHEN fair_key IS NOT NULL OR EXISTS (
        SELECT 1 FROM windlass_jobs AS fair INDEXED BY windlass_jobs_turn
        WHERE fair.status = 'queued' AND fair.fair_key IS NOT NULL AND fair.queue = windlass_jobs.queue
            AND fair.priority = windlass_jobs.priority
    ) THEN ? END"""
"""The floor of a job that is queued again, now: its own place may be an old one, or fair ones may stand there."""
LAST = """
SELECT max(run_at) FROM windlass_jobs INDEXED BY windlass_jobs_fair
WHERE status = 'queued' AND fair_key IS NOT NULL AND queue = ? AND priority = ? AND fair_key = ?
"""


class Turns:
    """The turns of one insert's drafts."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str]) -> None:
        self._db, self._sql = db, sql

    def floor(self, options: Options, now: int) -> int | None:
        """The floor of a job without a fair key: where others with one stand, those who come later stand behind it."""
        line = (options.queue, options.priority)
        return None if self._db.execute(self._sql(HEAD), line).fetchone()[0] is None else now

    def take(self, options: Options, fair_key: str, now: int) -> int:
        """The millisecond to stand at: beside the first that waits, but behind the last of the same key."""
        line = (options.queue, options.priority)
        head: int | None = self._db.execute(self._sql(HEAD), line).fetchone()[0]
        last: int | None = self._db.execute(self._sql(LAST), (*line, fair_key)).fetchone()[0]
        floor: int | None = self._db.execute(self._sql(FLOOR), line).fetchone()[0]
        first = now if head is None else head
        if floor is not None:
            first = max(first, floor + 1)
        return first if last is None else max(first, last + 1)
