"""Operate: what operators ask of jobs, recorded in the job's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.kept import Received
from windlass.core.status import WAITING, Status
from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.sqlite.keeping import take_signal
from windlass.stores.sqlite.records import APPEND, STATUSES, line_end
from windlass.stores.sqlite.turns import FLOOR_OF
from windlass.stores.sqlite.unblocking import ANY_BLOCKED, unblock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

FOUND = """
SELECT status, unique_queued, limit_key, unique_running, rate_key, next_id, blocked_by FROM windlass_jobs
WHERE id = ?1 AND (?2 IS NULL OR user_id = ?2)
"""


class Carried(NamedTuple):
    """One answer per order, and how many jobs were queued by them."""

    answers: list[Answer]
    queued: int


def operate(db: sqlite3.Connection, sql: Callable[[str], str], orders: Sequence[Order], now: int) -> Carried:
    """Carry out each, in order."""
    carried = [_operate_one(db, sql, order, now) for order in orders]
    return Carried([answer for answer, _ in carried], sum(queued for _, queued in carried))


def _operate_one(db: sqlite3.Connection, sql: Callable[[str], str], order: Order, now: int) -> tuple[Answer, int]:
    row = db.execute(sql(FOUND), (order.id, order.user)).fetchone()
    if row is None:
        return Answer(Operated.MISSING), 0
    status, unique_queued, limit_key, running_key, rate_key, next_id, blocked_by = row
    found = STATUSES[status]
    if not order.allows(found):
        return Answer(Operated.REFUSED, found), 0
    if order.action is Action.CANCEL:
        answer = _cancel(db, sql, order, found, now)
    elif order.action is Action.SIGNAL and order.signal is not None:
        received = take_signal(db, sql, order, order.signal, now)
        return Answer(Operated(received.value), found), int(received is Received.DONE)
    elif order.action is Action.RETRY:
        parked = Kind.PAYLOAD.blocks(blocked_by)
        answer = _retry(db, sql, order, found, unique_queued, now, parked=parked)
    else:
        answer = _delete(db, sql, order, found)
    if answer.verdict is not Operated.DONE:
        return answer, 0
    queued = int(order.action is Action.RETRY)
    if db.execute(sql(ANY_BLOCKED)).fetchone():
        # The one that went may have been next in line: those behind it must not wait for its end.
        queued += unblock(db, sql, lines(limit=limit_key, unique=running_key, rate=rate_key), now)
        if next_id is not None:
            unfinished = order.action is Action.DELETE and not found.finished
            queued += unblock(db, sql, lines(flow=next_id), now, order.id if unfinished else None)
    return answer, queued


CANCEL = f"""
UPDATE windlass_jobs SET status = 'cancelled', finished_at = ?, updated_at = ?, cancel_requested_at = ?,
    unique_key = NULL, blocked_by = NULL, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant
REQUEST = f"""
UPDATE windlass_jobs SET cancel_requested_at = coalesce(cancel_requested_at, ?), updated_at = ?, moves = moves + 1,
    history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant


def _cancel(db: sqlite3.Connection, sql: Callable[[str], str], order: Order, found: Status, now: int) -> Answer:
    if found in WAITING:
        line = line_end(Happened.CANCELLED, Status.CANCELLED, order.actor, note=order.reason)
        db.execute(sql(CANCEL), (now, now, now, now, line, order.id))
        return Answer(Operated.DONE, found)
    if found is Status.PROCESSING:
        line = line_end(Happened.CANCEL_REQUESTED, found, order.actor, note=order.reason)
        db.execute(sql(REQUEST), (now, now, now, line, order.id))
        return Answer(Operated.REQUESTED, found)
    return Answer(Operated.REFUSED, found)


HOLDER = "SELECT id FROM windlass_jobs WHERE unique_key = ? AND id <> ?"
RESTART = f"""
UPDATE windlass_jobs SET status = 'queued', run_at = ?, queued_at = ?, updated_at = ?, floor = {FLOOR_OF},
    attempts = 0, crashes = 0,
    result = NULL, error = NULL, progress = NULL, finished_at = NULL, started_at = NULL, duration_ms = NULL,
    wait_ms = NULL, worker_id = NULL, cancel_requested_at = NULL, charged = NULL, expires_at = NULL,
    unique_key = unique_queued, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant
HURRY = f"""
UPDATE windlass_jobs SET status = 'queued', run_at = ?, queued_at = ?, updated_at = ?, floor = {FLOOR_OF},
    blocked_by = NULL, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant


def _retry(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    order: Order,
    found: Status,
    key: str | None,
    now: int,
    *,
    parked: bool,
) -> Answer:
    line = line_end(Happened.RETRIED, Status.QUEUED, order.actor, note=order.reason)
    if found in (Status.SCHEDULED, Status.RETRYING) or parked:
        db.execute(sql(HURRY), (now, now, now, now, now, line, order.id))
        return Answer(Operated.DONE, found)
    if not found.finished:
        return Answer(Operated.REFUSED, found)
    holder = db.execute(sql(HOLDER), (key, order.id)).fetchone() if key is not None else None
    if holder is not None:
        return Answer(Operated.DUPLICATE, found, holder[0])
    db.execute(sql(RESTART), (now, now, now, now, now, line, order.id))
    return Answer(Operated.DONE, found)


DELETE = "DELETE FROM windlass_jobs WHERE id = ?"


def _delete(db: sqlite3.Connection, sql: Callable[[str], str], order: Order, found: Status) -> Answer:
    if found is Status.PROCESSING:
        return Answer(Operated.REFUSED, found)
    key = db.execute(sql("SELECT idempotency_key FROM windlass_jobs WHERE id = ?"), (order.id,)).fetchone()[0]
    if key is not None:
        db.execute(sql("DELETE FROM windlass_idempotency WHERE key = ? AND job_id = ?"), (key, order.id))
    db.execute(sql(DELETE), (order.id,))
    return Answer(Operated.DONE, found)
