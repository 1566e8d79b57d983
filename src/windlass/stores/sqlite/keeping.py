"""Keeping: what jobs remember is written under their lease; signals come in, and their time runs out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.kept import NULL, Received, Signal, read_kept, receive, signal_name
from windlass.core.status import Status
from windlass.core.transition import go_on
from windlass.stores.contract import Keep, Verdict
from windlass.stores.sqlite.records import APPEND, STATUSES, line_end
from windlass.stores.sqlite.turns import FLOOR_AS_BEFORE, FLOOR_OF

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from windlass.core.transition import Transition
    from windlass.stores.contract import Order

# Every value is a JSON string here, so the patch never merges two of them.
_ADDED = "json_patch(coalesce(kept, '{}'), json_object(?, ?))"
KEEP = f"""
UPDATE windlass_jobs SET kept = {_ADDED}, updated_at = ? WHERE id = ? AND status = 'processing' AND lease_token = ?
"""  # noqa: S608  # made of constants
EXISTS = "SELECT 1 FROM windlass_jobs WHERE id = ?"


def keep(db: sqlite3.Connection, sql: Callable[[str], str], keeps: Sequence[Keep], now: int) -> list[Verdict]:
    """Write each value under its lease, one verdict each."""
    verdicts: list[Verdict] = []
    for one in keeps:
        done = db.execute(sql(KEEP), (one.name, one.json, now, one.lease.id, one.lease.token)).rowcount
        there = done or db.execute(sql(EXISTS), (one.lease.id,)).fetchone()
        verdicts.append(Verdict.APPLIED if done else Verdict.STALE if there else Verdict.MISSING)
    return verdicts


KEPT_BY = "SELECT id, kept FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?)) AND kept IS NOT NULL"


def gone_on(db: sqlite3.Connection, sql: Callable[[str], str], transitions: Sequence[Transition]) -> list[Transition]:
    """The transitions to write: a job that would wait for a signal that is already there goes on."""
    waits = [one.id for one in transitions if Kind.SIGNAL.blocks(one.blocked_by)]
    if not waits:
        return list(transitions)
    kept = {job_id: read_kept(text) for job_id, text in db.execute(sql(KEPT_BY), (json.dumps(waits),))}
    return [go_on(one) if one.blocked_by in kept.get(one.id, ()) else one for one in transitions]


STANDS = "SELECT status, blocked_by, kept FROM windlass_jobs WHERE id = ?"
FREE = f"""
UPDATE windlass_jobs SET status = 'queued', run_at = ?, queued_at = ?, updated_at = ?, floor = {FLOOR_OF},
    blocked_by = NULL, kept = {_ADDED}, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # made of constants
TAKE_EARLY = f"""
UPDATE windlass_jobs SET kept = {_ADDED}, updated_at = ?, moves = moves + 1, history = {APPEND} WHERE id = ?
"""  # noqa: S608  # made of constants


def take_signal(db: sqlite3.Connection, sql: Callable[[str], str], order: Order, signal: Signal, now: int) -> Received:
    """Give a job that is there its signal."""
    status, blocked_by, kept = db.execute(sql(STANDS), (order.id,)).fetchone()
    stands = STATUSES[status]
    received = receive(stands, blocked_by, read_kept(kept), signal)
    told = (signal_name(signal.name), signal.json)
    if received is Received.DONE:
        line = line_end(Happened.SIGNALLED, Status.QUEUED, order.actor, note=signal.name)
        db.execute(sql(FREE), (now, now, now, now, *told, now, line, order.id))
    elif received is Received.KEPT:
        line = line_end(Happened.SIGNALLED, stands, order.actor, note=signal.name)
        db.execute(sql(TAKE_EARLY), (*told, now, now, line, order.id))
    return received


_WAITS = f"status = 'blocked' AND blocked_by >= '{Kind.SIGNAL.prefix}' AND blocked_by < '{Kind.SIGNAL.end}'"
_NAME = f"substr(blocked_by, {len(Kind.SIGNAL.prefix) + 1})"
# What it is blocked by is also the name that the signal is kept under.
TIME_OUT = f"""
UPDATE windlass_jobs SET status = 'queued', queued_at = ?, updated_at = ?, floor = {FLOOR_AS_BEFORE},
    kept = json_patch(coalesce(kept, '{{}}'), json_object(blocked_by, '{NULL}')), blocked_by = NULL, moves = moves + 1,
    history = {APPEND} || json_quote('the signal ' || {_NAME} || ' did not come in time') || '}}'
WHERE seq IN (
    SELECT seq FROM windlass_jobs INDEXED BY windlass_jobs_signals
    WHERE {_WAITS} AND run_at <= ? ORDER BY run_at LIMIT ?
)
"""  # noqa: S608  # made of constants
NEXT_OUT = f"SELECT min(run_at) FROM windlass_jobs INDEXED BY windlass_jobs_signals WHERE {_WAITS}"  # noqa: S608  # the same


def time_out(db: sqlite3.Connection, sql: Callable[[str], str], n: int, now: int) -> int:
    """Let go on at most `n` jobs whose signal has not come in time."""
    line = f'{line_end(Happened.UNBLOCKED, Status.QUEUED)[:-1]},"note":'
    return db.execute(sql(TIME_OUT), (now, now, now, now, line, now, n)).rowcount


def next_out(db: sqlite3.Connection, sql: Callable[[str], str]) -> int | None:
    """When the time of the first job that waits for a signal is up."""
    at: int | None = db.execute(sql(NEXT_OUT)).fetchone()[0]
    return at


def is_gathering(transition: Transition) -> bool:
    """Whether the job goes on to wait for its children."""
    return transition.blocked_by == BlockedBy(Kind.FLOW, transition.id).text
