"""Sweep: promote what is due, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.rate import LONGEST
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued, Retention
from windlass.stores.sqlite.rates import FORGET_ALL
from windlass.stores.sqlite.records import APPEND, COLUMNS, as_duration_ms, duration, job_of, line_end
from windlass.stores.sqlite.settling import tally, write
from windlass.stores.sqlite.unblocking import ANY_BLOCKED, free_slots, next_room, sweep

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from datetime import timedelta

    from windlass.core.transition import Transition

NEXT_DUE = "SELECT min(run_at) FROM windlass_jobs WHERE status IN ('scheduled', 'retrying')"


def next_due(db: sqlite3.Connection, sql: Callable[[str], str]) -> int | None:
    """The instant of the first scheduled or retrying job."""
    found: int | None = db.execute(sql(NEXT_DUE)).fetchone()[0]
    return found


def anything_due(db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> tuple[bool, int | None]:
    """Whether a promotion would change something, and when the next job is due. Only reads."""
    due = next_due(db, sql)
    return (due is not None and due <= now) or db.execute(sql(ANY_BLOCKED)).fetchone() is not None, due


PROMOTE = f"""
UPDATE windlass_jobs SET status = 'queued', queued_at = ?, updated_at = ?, moves = moves + 1, history = {APPEND}
WHERE seq IN (
    SELECT seq FROM windlass_jobs WHERE status IN ('scheduled', 'retrying') AND run_at <= ? ORDER BY run_at LIMIT ?
)
"""  # noqa: S608  # APPEND is a constant


def promote(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int) -> Promoted:
    """Queue what is due."""
    line = line_end(Happened.PROMOTED, Status.QUEUED)
    promoted = db.execute(sql(PROMOTE), (now, now, now, line, now, n)).rowcount
    unblocked = sweep(db, sql, n, now)
    dues = [due for due in (next_due(db, sql), next_room(db, sql, now)) if due is not None]
    return Promoted(promoted, unblocked, until(min(dues, default=None), now))


def until(due: int | None, now: int) -> timedelta | None:
    """How long from now to an instant; nothing when there is none."""
    return None if due is None else duration(max(0, due - now))


LEVEL = """
SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND priority > ?
"""
AGE = f"""
UPDATE windlass_jobs SET priority = ?, updated_at = ?, moves = moves + 1, history = {APPEND}
WHERE seq IN (
    SELECT seq FROM windlass_jobs INDEXED BY windlass_jobs_claim
    WHERE status = 'queued' AND queue = ? AND priority = ? AND run_at <= ? ORDER BY run_at, id LIMIT ?
)
"""  # noqa: S608  # APPEND is a constant
QUEUES = "SELECT name FROM windlass_queues"


def age(db: sqlite3.Connection, sql: Callable[[str], str], before: int, to: int, n: int, now: int) -> int:
    """Raise what has stood since before an instant, one later priority after the other."""
    raised = 0
    for (queue,) in db.execute(sql(QUEUES)).fetchall():
        level = db.execute(sql(LEVEL), (queue, to)).fetchone()[0]
        while level is not None and raised < n:
            line = line_end(Happened.AGED, Status.QUEUED, note=f"priority {level} to {to}")
            told = (to, now, now, line, queue, level, before, n - raised)
            raised += db.execute(sql(AGE), told).rowcount
            level = db.execute(sql(LEVEL), (queue, level)).fetchone()[0]
    return raised


ANY_LOST = "SELECT 1 FROM windlass_jobs WHERE status = 'processing' AND lease_expires_at <= ? LIMIT 1"
LOST = f"""
SELECT {COLUMNS}, confirmed FROM windlass_jobs WHERE status = 'processing' AND lease_expires_at <= ?
ORDER BY lease_expires_at LIMIT ?
"""  # noqa: S608  # COLUMNS is a constant


def anything_lost(db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> bool:
    """Whether some lease has expired. Only reads."""
    return db.execute(sql(ANY_LOST), (now,)).fetchone() is not None


class Handed(NamedTuple):
    """What was lost and became of it, the transitions, and how many jobs went on that had waited for them."""

    rescued: list[Rescued]
    transitions: list[Transition]
    freed: int


def rescue(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int) -> Handed:
    """Hand back what was lost. Expiry is read under the same write lock that the change is made under."""
    rows = [(job_of(row), row[-1]) for row in db.execute(sql(LOST), (now, n)).fetchall()]
    jobs = [job for job, _ in rows]
    decided = [(job, decide(job, Lost(confirmed=confirmed == job.lease_token))) for job, confirmed in rows]
    told = [(job, one if job.cancel_requested_at is None else honour_cancel(one)) for job, one in decided]
    write(db, sql, [one for _, one in told], now, forced=True)
    ids = [job.id for job in jobs]
    tally(db, sql, ids, now)
    freed = free_slots(db, sql, ids, now)
    rescued = [Rescued(job.id, job.worker_id, one.to) for job, one in told]
    return Handed(rescued, [one for _, one in told], freed)


PRUNE = """
DELETE FROM windlass_jobs WHERE seq IN (
    SELECT seq FROM windlass_jobs
    WHERE status = ? AND status <> 'processing' AND finished_at <= ? AND queue IN (SELECT value FROM json_each(?))
    ORDER BY id LIMIT ?
)
"""
PRUNE_REST = """
DELETE FROM windlass_jobs WHERE seq IN (
    SELECT seq FROM windlass_jobs
    WHERE status = ? AND status <> 'processing' AND finished_at <= ? AND queue NOT IN (SELECT value FROM json_each(?))
    ORDER BY id LIMIT ?
)
"""
# The newest `most` of an ending stay, of these queues alone or of all but these.
PRUNE_BEYOND = """
DELETE FROM windlass_jobs WHERE seq IN (
    SELECT seq FROM windlass_jobs
    WHERE status = ? AND status <> 'processing' AND (queue IN (SELECT value FROM json_each(?))) = ? AND id <= (
        SELECT id FROM windlass_jobs
        WHERE status = ? AND status <> 'processing' AND (queue IN (SELECT value FROM json_each(?))) = ?
        ORDER BY id DESC LIMIT 1 OFFSET ?
    ) ORDER BY id LIMIT ?
)
"""
FORGET_KEYS = "DELETE FROM windlass_idempotency WHERE expires_at <= ?"
FORGET_MINUTES = "DELETE FROM windlass_minutes WHERE minute < ?"
FORGET_WORKERS = "DELETE FROM windlass_workers WHERE beat_at < ?"
FORGET_LOCKS = "DELETE FROM windlass_locks WHERE expires_at < ?"
_DAY = 86_400_000
_MINUTES_KEPT = 30 * _DAY


def _prune_beyond(
    db: sqlite3.Connection, sql: Callable[[str], str], retention: Retention, status: Status, n: int
) -> int:
    kept = [(sorted(retention.queues), False, retention.most)]
    kept += [([queue], True, own.most) for queue, own in retention.queues.items()]
    removed = 0
    for queues, inside, most in kept:
        if most is not None:
            which = (status.value, json.dumps(queues), inside)
            removed += db.execute(sql(PRUNE_BEYOND), (*which, *which, most, n - removed)).rowcount
    return removed


def prune(db: sqlite3.Connection, sql: Callable[[str], str], retention: Retention, n: int, now: int) -> int:
    """Delete finished jobs past their time, and keys, figures, workers and locks that have expired."""
    own = json.dumps(sorted(retention.queues))
    removed = 0
    for status in sorted(FINISHED):
        before = now - as_duration_ms(retention.of(status))
        removed += db.execute(sql(PRUNE_REST), (status.value, before, own, n - removed)).rowcount
        for queue, kept in retention.queues.items():
            before = now - as_duration_ms(kept.of(status))
            removed += db.execute(sql(PRUNE), (status.value, before, json.dumps([queue]), n - removed)).rowcount
        removed += _prune_beyond(db, sql, retention, status, n - removed)
    db.execute(sql(FORGET_KEYS), (now,))
    db.execute(sql(FORGET_ALL), (now - as_duration_ms(LONGEST),))
    db.execute(sql(FORGET_MINUTES), (now - _MINUTES_KEPT,))
    db.execute(sql(FORGET_WORKERS), (now - _DAY,))
    db.execute(sql(FORGET_LOCKS), (now - _DAY,))
    return removed
