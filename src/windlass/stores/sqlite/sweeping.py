"""Sweep: promote what is due, raise what has stood long, rescue what was lost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued
from windlass.stores.sqlite.expiring import expire, next_expiry
from windlass.stores.sqlite.keeping import next_out, time_out
from windlass.stores.sqlite.records import APPEND, COLUMNS, duration, job_of, line_end
from windlass.stores.sqlite.settling import tally, write
from windlass.stores.sqlite.turns import FLOOR_AS_BEFORE, standing
from windlass.stores.sqlite.unblocking import called, free_slots, next_call, unblock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from datetime import timedelta

    from windlass.core.transition import Transition
    from windlass.stores.sqlite.unblocking import Sweep

NEXT_DUE = "SELECT min(run_at) FROM windlass_jobs WHERE status IN ('scheduled', 'retrying')"


def next_due(db: sqlite3.Connection, sql: Callable[[str], str]) -> int | None:
    """The instant of the first scheduled or retrying job."""
    found: int | None = db.execute(sql(NEXT_DUE)).fetchone()[0]
    return found


class Look(NamedTuple):
    """What a promotion would find."""

    due: bool
    lines: list[str]
    """what jobs are blocked by that has become free"""
    next_due: timedelta | None

    @property
    def anything(self) -> bool:
        """Whether it would change something."""
        return self.due or bool(self.lines)


def look(db: sqlite3.Connection, sql: Callable[[str], str], sweep: Sweep, n: int, now: int) -> Look:
    """Whether there is something to promote. Only reads, so that an idle worker never takes the write lock."""
    timed = [at for at in (next_due(db, sql), next_out(db, sql), next_expiry(db, sql)) if at is not None]
    lines = [*called(db, sql, now, n), *sweep.free(db, sql)]
    return Look(bool(timed) and min(timed) <= now, lines, _next(db, sql, now))


def _next(db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> timedelta | None:
    known = (next_due(db, sql), next_out(db, sql), next_expiry(db, sql), next_call(db, sql))
    dues = [due for due in known if due is not None]
    return duration(max(0, min(dues) - now)) if dues else None


PROMOTE = f"""
UPDATE windlass_jobs SET status = 'queued', queued_at = ?, updated_at = ?, floor = {FLOOR_AS_BEFORE}, moves = moves + 1,
    history = {APPEND}
WHERE seq IN (
    SELECT seq FROM windlass_jobs WHERE status IN ('scheduled', 'retrying') AND run_at <= ? ORDER BY run_at LIMIT ?
) RETURNING queue
"""  # noqa: S608  # APPEND is a constant


def promote(db: sqlite3.Connection, sql: Callable[[str], str], lines: list[str], n: int, now: int) -> Promoted:
    """Queue what is due, and of these lines what has room."""
    line = line_end(Happened.PROMOTED, Status.QUEUED)
    queues = Counter(queue for (queue,) in db.execute(sql(PROMOTE), (now, now, now, now, line, now, n)).fetchall())
    expired = expire(db, sql, n, now)
    unblocked = time_out(db, sql, n, now) + expired.freed + unblock(db, sql, lines, now)
    return Promoted(queues.total(), unblocked, _next(db, sql, now), queues, expired.ids)


LEVEL = """
SELECT min(priority) FROM windlass_jobs INDEXED BY windlass_jobs_claim
WHERE status = 'queued' AND queue = ? AND priority > ?
"""
_PASSED_OVER = 1000  # how many that took their turn beside those who stood there, and have not stood there themselves
AGE = f"""
UPDATE windlass_jobs SET priority = ?, updated_at = ?, floor = CASE WHEN fair_key IS NULL THEN run_at ELSE ? END,
    moves = moves + 1, history = {APPEND}
WHERE seq IN (
    SELECT seq FROM (
        SELECT seq, created_at FROM windlass_jobs INDEXED BY windlass_jobs_claim
        WHERE status = 'queued' AND queue = ? AND priority = ? AND run_at <= ? ORDER BY run_at, id LIMIT ?
    ) WHERE created_at <= ? LIMIT ?
)
"""  # noqa: S608  # APPEND is a constant
# From one queue that has something to the next by the index.
QUEUES = """
WITH RECURSIVE lines (queue) AS (
    SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued'
    UNION ALL
    SELECT (
        SELECT min(queue) FROM windlass_jobs INDEXED BY windlass_jobs_claim
        WHERE status = 'queued' AND windlass_jobs.queue > lines.queue
    ) FROM lines WHERE queue IS NOT NULL
)
SELECT queue FROM lines WHERE queue IS NOT NULL
"""


def age(db: sqlite3.Connection, sql: Callable[[str], str], before: int, to: int, n: int, now: int) -> int:
    """Raise what has stood since before an instant, one later priority after the other."""
    raised = 0
    for (queue,) in db.execute(sql(QUEUES)).fetchall():
        level = db.execute(sql(LEVEL), (queue, to)).fetchone()[0]
        while level is not None and raised < n:
            line = line_end(Happened.AGED, Status.QUEUED, note=f"priority {level} to {to}")
            left = n - raised
            told = (to, now, standing(db, sql, queue, to, now), now, line)
            raised += db.execute(sql(AGE), (*told, queue, level, before, left + _PASSED_OVER, before, left)).rowcount
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


def rescue(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int, over: int) -> Handed:
    """Hand back what was lost by then. Expiry is read under the same write lock that the change is made under."""
    rows = [(job_of(row), row[-1]) for row in db.execute(sql(LOST), (over, n)).fetchall()]
    jobs = [job for job, _ in rows]
    decided = [(job, decide(job, Lost(confirmed=confirmed == job.lease_token))) for job, confirmed in rows]
    told = [(job, one if job.cancel_requested_at is None else honour_cancel(one)) for job, one in decided]
    write(db, sql, [one for _, one in told], now, forced=True)
    ids = [job.id for job in jobs]
    tally(db, sql, ids, now)
    freed = free_slots(db, sql, ids, now)
    rescued = [Rescued(job, one.to) for job, one in told]
    return Handed(rescued, [one for _, one in told], freed)
