"""Prune: finished jobs leave when they have been kept long enough, and with them what else has expired.

What is to go is looked for on a snapshot, without locking the file, and tested again where it is deleted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.rate import LONGEST
from windlass.core.status import FINISHED, Status
from windlass.stores.sqlite.rates import FORGET_ALL
from windlass.stores.sqlite.records import as_duration_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from windlass.stores.contract import Retention

_AT_ONCE = 50  # how many queues one look goes through; the next goes on behind them

# From one queue that has finished jobs to the next by the index: what is kept in each costs nothing.
QUEUES = """
WITH RECURSIVE ended (queue) AS (
    SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_finished
    WHERE finished_at IS NOT NULL AND status = :status AND queue > :after
    UNION ALL
    SELECT (
        SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_finished
        WHERE finished_at IS NOT NULL AND status = :status AND windlass_jobs.queue > ended.queue
    ) FROM ended WHERE queue IS NOT NULL
)
SELECT queue FROM ended WHERE queue IS NOT NULL LIMIT :most
"""
_AWAITED = """EXISTS (
    SELECT 1 FROM windlass_jobs AS waiting WHERE waiting.id = windlass_jobs.next_id
        AND waiting.status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying')
)"""
PAST = f"""
SELECT seq FROM windlass_jobs INDEXED BY windlass_jobs_finished
WHERE finished_at IS NOT NULL AND status = ? AND queue = ? AND finished_at <= ? AND NOT {_AWAITED}
ORDER BY finished_at LIMIT ?
"""  # noqa: S608  # a constant


class Rounds:
    """Where the next look goes on, by ending: with many queues, one look is a part of a round."""

    def __init__(self) -> None:
        self._after: dict[Status, str] = {}

    def queues(self, db: sqlite3.Connection, sql: Callable[[str], str], status: Status) -> list[str]:
        """The next queues that have jobs with this ending."""
        values = {"status": status.value, "after": self._after.get(status, ""), "most": _AT_ONCE}
        queues = [queue for (queue,) in db.execute(sql(QUEUES), values)]
        self._after[status] = queues[-1] if len(queues) == _AT_ONCE else ""
        return queues


# Never less than there are, and found at the two ends of the table.
ROWS = """
SELECT coalesce((SELECT max(seq) FROM windlass_jobs) - (SELECT min(seq) FROM windlass_jobs) + 1, 0)
"""


def past(
    db: sqlite3.Connection, sql: Callable[[str], str], retention: Retention, rounds: Rounds, n: int, now: int
) -> list[int]:
    """At most `n` finished jobs that have been kept long enough, or that newer ones leave no room for. Only reads."""
    seqs: list[int] = []
    rows: int = db.execute(sql(ROWS)).fetchone()[0]
    for status in sorted(FINISHED):
        for queue in rounds.queues(db, sql, status):
            before = now - as_duration_ms(retention.queues.get(queue, retention).of(status))
            seqs += _all(db, sql(PAST), (status.value, queue, before, n - len(seqs)))
        for statement, values in _beyond(retention, status):
            if rows <= values[-1]:
                continue
            seqs += _all(db, sql(statement), (*values, n - len(seqs)))
    return seqs


def _all(db: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> list[int]:
    return [seq for (seq,) in db.execute(statement, values)] if values[-1] else []


# The newest `most` of an ending stay: of one queue by the time they ended, of all but some by their ids.
BEYOND_OF_QUEUE = f"""
SELECT seq FROM windlass_jobs INDEXED BY windlass_jobs_finished
WHERE finished_at IS NOT NULL AND status = ?1 AND queue = ?2 AND NOT {_AWAITED} AND (finished_at, id) <= (
    SELECT finished_at, id FROM windlass_jobs INDEXED BY windlass_jobs_finished
    WHERE finished_at IS NOT NULL AND status = ?1 AND queue = ?2 ORDER BY finished_at DESC, id DESC LIMIT 1 OFFSET ?3
) ORDER BY finished_at, id LIMIT ?4
"""  # noqa: S608  # a constant
BEYOND = f"""
SELECT seq FROM windlass_jobs
WHERE status = ?1 AND status <> 'processing' AND queue NOT IN (SELECT value FROM json_each(?2)) AND NOT {_AWAITED}
    AND id <= (
        SELECT id FROM windlass_jobs
        WHERE status = ?1 AND status <> 'processing' AND queue NOT IN (SELECT value FROM json_each(?2))
        ORDER BY id DESC LIMIT 1 OFFSET ?3
    ) ORDER BY id LIMIT ?4
"""  # noqa: S608  # a constant


def _beyond(retention: Retention, status: Status) -> Iterator[tuple[str, tuple[str, str, int]]]:
    if retention.most is not None:
        yield BEYOND, (status.value, json.dumps(sorted(retention.queues)), retention.most)
    for queue, own in retention.queues.items():
        if own.most is not None:
            yield BEYOND_OF_QUEUE, (status.value, queue, own.most)


# Tested again: since it was looked for, an operator may have had it run again, or a new job may await it.
DELETE = f"""
DELETE FROM windlass_jobs
WHERE seq IN (SELECT value FROM json_each(?)) AND status IN ('succeeded', 'failed', 'cancelled') AND NOT {_AWAITED}
"""  # noqa: S608  # a constant
FORGET_KEYS = "DELETE FROM windlass_idempotency WHERE expires_at <= ?"
FORGET_MINUTES = "DELETE FROM windlass_minutes WHERE minute < ?"
FORGET_WORKERS = "DELETE FROM windlass_workers WHERE beat_at < ?"
FORGET_LOCKS = "DELETE FROM windlass_locks WHERE expires_at < ?"
_DAY = 86_400_000
_MINUTES_KEPT = 30 * _DAY


def prune(db: sqlite3.Connection, sql: Callable[[str], str], seqs: list[int], now: int) -> int:
    """Delete these finished jobs, and keys, figures, workers and locks that have expired."""
    removed = db.execute(sql(DELETE), (json.dumps(seqs),)).rowcount if seqs else 0
    db.execute(sql(FORGET_KEYS), (now,))
    db.execute(sql(FORGET_ALL), (now - as_duration_ms(LONGEST),))
    db.execute(sql(FORGET_MINUTES), (now - _MINUTES_KEPT,))
    db.execute(sql(FORGET_WORKERS), (now - _DAY,))
    db.execute(sql(FORGET_LOCKS), (now - _DAY,))
    return removed
