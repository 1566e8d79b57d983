"""Prune: finished jobs leave when they have been kept long enough, and with them what else has expired.

What is to go is looked for on a snapshot, without locking the file, and tested again where it is deleted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.rate import LONGEST
from windlass.core.status import FINISHED, Status
from windlass.stores.contract import SERIES_KEPT, Pruned
from windlass.stores.sqlite.rates import FORGET_ALL
from windlass.stores.sqlite.records import as_duration_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from windlass.stores.contract import Retention

_AT_ONCE = 150  # at how many endings of queues one call looks; the next goes on behind them
_PASSED = 1000  # how many that live jobs await it passes in one of them, beside those that go
_STATUSES = sorted(FINISHED)

_AWAITED = """EXISTS (
    SELECT 1 FROM windlass_jobs AS waiting WHERE waiting.id = windlass_jobs.next_id
        AND waiting.status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying')
)"""
# What may go, oldest first, from a place on: that is two values more, which each of these selects.
PAST = f"""
SELECT seq, {_AWAITED}, finished_at, seq FROM windlass_jobs INDEXED BY windlass_jobs_finished
WHERE finished_at IS NOT NULL AND status = ?1 AND queue = ?2 AND finished_at <= ?3 AND (finished_at, seq) >= (?4, ?5)
ORDER BY finished_at, seq
"""  # noqa: S608  # a constant
# The newest `most` of an ending stay: of one queue by the time they ended, of all but some by their ids.
BEYOND_OF_QUEUE = f"""
SELECT seq, {_AWAITED}, finished_at, seq FROM windlass_jobs INDEXED BY windlass_jobs_finished
WHERE finished_at IS NOT NULL AND status = ?1 AND queue = ?2 AND (finished_at, seq) <= (
    SELECT finished_at, seq FROM windlass_jobs INDEXED BY windlass_jobs_finished
    WHERE finished_at IS NOT NULL AND status = ?1 AND queue = ?2 ORDER BY finished_at DESC, seq DESC LIMIT 1 OFFSET ?3
) AND (finished_at, seq) >= (?4, ?5) ORDER BY finished_at, seq
"""  # noqa: S608  # a constant
BEYOND = f"""
SELECT seq, {_AWAITED}, id, seq FROM windlass_jobs
WHERE status = ?1 AND status <> 'processing' AND queue NOT IN (SELECT value FROM json_each(?2)) AND id <= (
    SELECT id FROM windlass_jobs
    WHERE status = ?1 AND status <> 'processing' AND queue NOT IN (SELECT value FROM json_each(?2))
    ORDER BY id DESC LIMIT 1 OFFSET ?3
) AND (id, seq) >= (?4, ?5) ORDER BY id
"""  # noqa: S608  # a constant
Place = tuple[str | int, int]
_OLDEST: dict[str, Place] = {PAST: (0, 0), BEYOND_OF_QUEUE: (0, 0), BEYOND: ("", 0)}

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


class Rounds:
    """Where the next call goes on: with many queues one call is a part of a round, and some jobs have to stay."""

    def __init__(self) -> None:
        self._behind = _STATUSES[0], ""
        self._passed: dict[tuple[str, str, str], Place] = {}

    @property
    def over(self) -> bool:
        """Whether the next call begins another round."""
        return self._behind == (_STATUSES[0], "")

    def endings(self, db: sqlite3.Connection, sql: Callable[[str], str]) -> list[tuple[Status, str]]:
        """The next queues that have finished jobs, each with one of the statuses that these have."""
        found: list[tuple[Status, str]] = []
        first, after = self._behind
        for status in _STATUSES[_STATUSES.index(first) :]:
            values = {"status": status.value, "after": after, "most": _AT_ONCE - len(found)}
            found += [(status, queue) for (queue,) in db.execute(sql(QUEUES), values)]
            after = ""
        return found

    def go_on(self, behind: list[tuple[Status, str]]) -> None:
        """Nothing more is to go in these."""
        self._behind = behind[-1] if len(behind) == _AT_ONCE else (_STATUSES[0], "")

    def first(
        self, db: sqlite3.Connection, sql: Callable[[str], str], statement: str, of: tuple[str, str, int], n: int
    ) -> Iterator[int]:
        """At most `n` that no live job awaits, from where the last call stopped; it passes only so many others."""
        found = passed = 0
        asked = (statement, *of[:2])
        since = self._passed.pop(asked, _OLDEST[statement])
        for seq, awaited, *place in db.execute(sql(statement), (*of, *since)):
            if not awaited:
                found += 1
                yield seq
                if found == n:
                    return
            elif passed < _PASSED:
                passed += 1
            else:
                self._passed[asked] = place[0], place[1]
                return


class Past(NamedTuple):
    """What may go now, and whether a call at once may find more."""

    seqs: list[int]
    more: bool


def past(
    db: sqlite3.Connection, sql: Callable[[str], str], retention: Retention, rounds: Rounds, n: int, now: int
) -> Past:
    """At most `n` finished jobs that have been kept long enough, or that newer ones leave no room for. Only reads."""
    seqs: list[int] = []
    endings = rounds.endings(db, sql)
    for status, queue in endings:
        before = now - as_duration_ms(retention.queues.get(queue, retention).of(status))
        if len(seqs) < n:
            seqs += rounds.first(db, sql, PAST, (status.value, queue, before), n - len(seqs))
    if len(seqs) < n:
        rounds.go_on(endings)
    rows: int = db.execute(sql(ROWS)).fetchone()[0]
    for statement, of in _beyond(retention):
        if len(seqs) < n and rows > of[-1]:
            seqs += rounds.first(db, sql, statement, of, n - len(seqs))
    return Past(seqs, more=len(seqs) >= n or not rounds.over)


# Never less than there are, and found at the two ends of the table.
ROWS = """
SELECT coalesce((SELECT max(seq) FROM windlass_jobs) - (SELECT min(seq) FROM windlass_jobs) + 1, 0)
"""


def _beyond(retention: Retention) -> Iterator[tuple[str, tuple[str, str, int]]]:
    for status in _STATUSES:
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
FORGET_SERIES = "DELETE FROM windlass_series WHERE at < ?"
FORGET_WORKERS = "DELETE FROM windlass_workers WHERE beat_at < ?"
FORGET_LOCKS = "DELETE FROM windlass_locks WHERE expires_at < ?"
_DAY = 86_400_000


def prune(db: sqlite3.Connection, sql: Callable[[str], str], old: Past, now: int) -> Pruned:
    """Delete these finished jobs, and keys, figures, workers and locks that have expired."""
    removed = db.execute(sql(DELETE), (json.dumps(old.seqs),)).rowcount if old.seqs else 0
    db.execute(sql(FORGET_KEYS), (now,))
    db.execute(sql(FORGET_ALL), (now - as_duration_ms(LONGEST),))
    db.execute(sql(FORGET_MINUTES), (now - as_duration_ms(SERIES_KEPT),))
    db.execute(sql(FORGET_SERIES), (now - as_duration_ms(SERIES_KEPT),))
    db.execute(sql(FORGET_WORKERS), (now - _DAY,))
    db.execute(sql(FORGET_LOCKS), (now - _DAY,))
    return Pruned(removed, more=old.more)
