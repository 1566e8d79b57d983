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
LAST = """
SELECT max(run_at) FROM windlass_jobs INDEXED BY windlass_jobs_fair
WHERE status = 'queued' AND fair_key IS NOT NULL AND queue = ? AND priority = ? AND fair_key = ?
"""


def _floor_of(place: str) -> str:
    first = """SELECT min(fair.run_at) FROM windlass_jobs AS fair INDEXED BY windlass_jobs_turn
        WHERE fair.status = 'queued' AND fair.fair_key IS NOT NULL AND fair.queue = windlass_jobs.queue
            AND fair.priority = windlass_jobs.priority"""
    return f"""(SELECT CASE WHEN windlass_jobs.fair_key IS NOT NULL THEN coalesce(max(({first}), coalesce((
        SELECT max(kept.floor) FROM windlass_jobs AS kept INDEXED BY windlass_jobs_floor
        WHERE kept.status = 'queued' AND kept.floor IS NOT NULL AND kept.queue = windlass_jobs.queue
            AND kept.priority = windlass_jobs.priority
    ), 0)), now) WHEN ({first}) IS NOT NULL THEN {place} END FROM (SELECT ? AS now))"""  # noqa: S608  # constants


FLOOR_OF = _floor_of("now")
"""The floor of a job that is queued again, now.

Of one with a fair key, whose place may be an old one: where those that come later would have stood without it. Of one
that takes no part: its own place, if fair ones stand there.
"""
FLOOR_AS_BEFORE = _floor_of("windlass_jobs.run_at")
"""The same of one whose `run_at` stays what it was."""


def standing(db: sqlite3.Connection, sql: Callable[[str], str], queue: str, priority: int, now: int) -> int:
    """Where one that comes now, with a fair key that nobody else has, stands, but for those that take no part."""
    head: int | None = db.execute(sql(HEAD), (queue, priority)).fetchone()[0]
    floor: int | None = db.execute(sql(FLOOR), (queue, priority)).fetchone()[0]
    return now if head is None else max(head, floor or 0)


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
