"""Flows: a job that awaits others goes on, or is cancelled, when they have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.sqlite.records import APPEND, line_end
from windlass.stores.sqlite.turns import FLOOR_OF

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

WAITING = f"""
SELECT awaits, next_id, unique_key FROM windlass_jobs
WHERE id = ? AND status = 'blocked' AND blocked_by = '{Kind.FLOW.prefix}' || id
"""  # noqa: S608  # made of constants
LIVE = """
SELECT 1 FROM windlass_jobs
WHERE next_id = ? AND status IN ('scheduled', 'queued', 'blocked', 'processing', 'retrying') LIMIT 1
"""
WITHOUT_SUCCESS = """
SELECT id, status FROM windlass_jobs WHERE next_id = ? AND status IN ('failed', 'cancelled') ORDER BY id LIMIT 1
"""
GO_ON = f"""
UPDATE windlass_jobs SET status = 'queued', blocked_by = NULL, run_at = ?, queued_at = ?, updated_at = ?,
    floor = {FLOOR_OF}, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant
STOP = f"""
UPDATE windlass_jobs SET status = 'cancelled', blocked_by = NULL, unique_key = NULL, finished_at = ?, updated_at = ?,
    moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant


def settle(
    db: sqlite3.Connection, sql: Callable[[str], str], job_id: str, now: int, deleted: str | None = None
) -> tuple[int, set[str]]:
    """Look whether a job still has to wait: how many went on, and the lines that its own end may free.

    `deleted` is one that it awaited and that went away unfinished.
    """
    row = db.execute(sql(WAITING), (job_id,)).fetchone()
    if row is None:
        return 0, set()
    awaits, next_id, held = row
    lost = (deleted, "deleted") if deleted else db.execute(sql(WITHOUT_SUCCESS), (job_id,)).fetchone()
    if awaits == "success" and lost is not None:
        note = f"job {lost[0]}, which it awaited, was {lost[1]}" if lost[1] != "failed" else f"job {lost[0]} failed"
        line = line_end(Happened.CANCELLED, Status.CANCELLED, note=note)
        db.execute(sql(STOP), (now, now, now, line, job_id))
        return 0, set(lines(flow=next_id, unique=held))
    if db.execute(sql(LIVE), (job_id,)).fetchone() is not None:
        return 0, set()
    line = line_end(Happened.UNBLOCKED, Status.QUEUED)
    db.execute(sql(GO_ON), (now, now, now, now, now, line, job_id))
    return 1, set()
