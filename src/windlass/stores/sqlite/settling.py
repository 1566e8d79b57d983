"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.blocked import lines
from windlass.core.history import Happened
from windlass.core.spread import spread_of, sum_of, unpacked
from windlass.core.status import Status
from windlass.core.transition import honour_cancel, refuse
from windlass.stores.contract import Extended, Lease, Report, Verdict
from windlass.stores.sqlite.keeping import gone_on, is_gathering
from windlass.stores.sqlite.news import News
from windlass.stores.sqlite.records import (
    APPEND,
    STATUSES,
    as_duration_ms,
    line_end,
)
from windlass.stores.sqlite.turns import FLOOR_AS_BEFORE
from windlass.stores.sqlite.unblocking import free_slots, unblock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from windlass.core.transition import Transition

EXTEND = """
UPDATE windlass_jobs SET lease_expires_at = ?, confirmed = lease_token
WHERE id = ? AND status = 'processing' AND lease_token = ? AND worker_id = ?
"""
HELD = """
SELECT id, lease_token, cancel_requested_at FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(?)) AND status = 'processing' AND worker_id = ?
"""


def extend(
    db: sqlite3.Connection, sql: Callable[[str], str], worker_id: str, leases: Sequence[Lease], until: int
) -> Extended:
    """Renew what is still the worker's and say what is not."""
    db.executemany(sql(EXTEND), [(until, one.id, one.token, worker_id) for one in leases])
    held = {
        (job_id, token): cancel
        for job_id, token, cancel in db.execute(sql(HELD), (json.dumps([one.id for one in leases]), worker_id))
    }
    return Extended(
        lost=frozenset(one.id for one in leases if (one.id, one.token) not in held),
        cancels=frozenset(one.id for one in leases if held.get((one.id, one.token)) is not None),
    )


CANCELS = """
SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_cancels
WHERE status = 'processing' AND worker_id = ? AND cancel_requested_at IS NOT NULL
"""


def cancels(db: sqlite3.Connection, sql: Callable[[str], str], worker_id: str) -> frozenset[str]:
    """What this worker should stop."""
    return frozenset(job_id for (job_id,) in db.execute(sql(CANCELS), (worker_id,)))


PROGRESS = """
UPDATE windlass_jobs SET progress = ?, updated_at = ? WHERE id = ? AND status = 'processing' AND lease_token = ?
"""
EXISTS = "SELECT 1 FROM windlass_jobs WHERE id = ?"


def report(db: sqlite3.Connection, sql: Callable[[str], str], reports: Sequence[Report], now: int) -> list[Verdict]:
    """Write progress, one verdict each."""
    verdicts: list[Verdict] = []
    for one in reports:
        lease = one.lease
        done = db.execute(sql(PROGRESS), (one.progress.text(), now, lease.id, lease.token)).rowcount
        there = done or db.execute(sql(EXISTS), (lease.id,)).fetchone()
        verdicts.append(Verdict.APPLIED if done else Verdict.STALE if there else Verdict.MISSING)
    return verdicts


FINISH = f"""
UPDATE windlass_jobs SET status = ?, result = ?, error = ?, finished_at = ?, updated_at = ?,
    duration_ms = ? - started_at, attempts = attempts - ?, crashes = crashes + ?, lease_token = lease_token + ?,
    charged = CASE WHEN ? THEN lease_token ELSE charged END, lease_expires_at = NULL, unique_key = NULL,
    moves = moves + 1, history = {APPEND} || lease_token || '}}'
WHERE id = ? AND status = 'processing' AND lease_token = ?
"""  # noqa: S608  # APPEND is a constant
REQUEUE = f"""
UPDATE windlass_jobs SET status = ?, run_at = coalesce(?, run_at),
    queued_at = coalesce(?, CASE WHEN ? THEN queued_at END), blocked_by = ?, error = coalesce(?, error),
    awaits = CASE WHEN ? THEN 'end' ELSE awaits END,
    updated_at = ?, duration_ms = ? - started_at, attempts = attempts - ?, crashes = crashes + ?,
    lease_token = lease_token + ?, charged = CASE WHEN ? THEN lease_token ELSE charged END, lease_expires_at = NULL,
    worker_id = NULL, floor = {FLOOR_AS_BEFORE}, moves = moves + 1,
    history = {APPEND} || lease_token || '}}'
WHERE id = ? AND status = 'processing' AND lease_token = ?
"""  # noqa: S608  # APPEND is a constant
# The common end, for a whole batch in one step: tokens and results as the members of one JSON object.
SUCCEED = f"""
UPDATE windlass_jobs INDEXED BY windlass_jobs_id SET status = 'succeeded',
    result = json_extract(told.value, '$[1]'), error = NULL, finished_at = ?,
    updated_at = ?, duration_ms = ? - started_at, lease_expires_at = NULL, unique_key = NULL, moves = moves + 1,
    history = {APPEND} || lease_token || '}}'
FROM json_each(?) AS told
WHERE windlass_jobs.id = told.key AND status = 'processing' AND lease_token = json_extract(told.value, '$[0]')
"""  # noqa: S608  # APPEND is a constant
ASKED_TO_CANCEL = """
SELECT id FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(?)) AND status = 'processing' AND cancel_requested_at IS NOT NULL
"""

STANDING = """
SELECT (
    SELECT count(*) FROM json_each(?) AS told CROSS JOIN windlass_jobs INDEXED BY windlass_jobs_id
    WHERE windlass_jobs.id = told.key AND status = 'processing' AND lease_token = told.value
), EXISTS (SELECT 1 FROM windlass_jobs WHERE status = 'blocked')
"""


class Applied(NamedTuple):
    """One verdict for each transition, and how many jobs went on that had waited for them."""

    verdicts: list[Verdict]
    freed: int


def apply(db: sqlite3.Connection, sql: Callable[[str], str], transitions: Sequence[Transition], now: int) -> Applied:
    """Write every transition whose token still is its job's; one verdict each, in order."""
    if all(one.to is Status.SUCCEEDED for one in transitions):
        applied = _succeed(db, sql, transitions, now)
        if applied is not None:
            return applied
    again, asked = [one.id for one in transitions if not one.to.finished], set[str]()
    if again:
        asked = {job_id for (job_id,) in db.execute(sql(ASKED_TO_CANCEL), (json.dumps(again),))}
        transitions = [honour_cancel(one) if one.id in asked else one for one in transitions]
        transitions = gone_on(db, sql, transitions)
    tokens = json.dumps({one.id: one.token for one in transitions})
    held, blocked = db.execute(sql(STANDING), (tokens,)).fetchone()
    if held == len(transitions):
        write(db, sql, transitions, now, forced=False)
        ended = [one.id for one in transitions]
        verdicts = [Verdict.APPLIED] * len(transitions)
    else:
        # Rare: some lease was lost, or some end written before. Only one by one can it be told which.
        ended = [one.id for one in transitions if write(db, sql, [one], now, forced=False)]
        verdicts = _examine(db, sql, transitions, now)
    if ended:
        tally(db, sql, ended, now)
    verdicts = [
        Verdict.CANCELLED if verdict is Verdict.APPLIED and one.id in asked else verdict
        for one, verdict in zip(transitions, verdicts, strict=True)
    ]
    freed = free_slots(db, sql, ended, now) if blocked else 0
    # Its children may all have ended by now.
    for one in transitions:
        if is_gathering(one) and one.id in ended:
            freed += unblock(db, sql, lines(flow=one.id), now)
    return Applied(verdicts, freed)


# Whether all leases stand, and how long their runs took and had waited: the rows are looked up once for both.
FIGURES = """
SELECT queue, windlass_jobs.type, json_group_array(? - started_at), json_group_array(coalesce(wait_ms, 0)), count(*),
    EXISTS (SELECT 1 FROM windlass_jobs WHERE status = 'blocked')
FROM json_each(?) AS told CROSS JOIN windlass_jobs INDEXED BY windlass_jobs_id
WHERE windlass_jobs.id = told.key AND status = 'processing' AND lease_token = told.value
GROUP BY queue, windlass_jobs.type
"""


def _succeed(
    db: sqlite3.Connection, sql: Callable[[str], str], transitions: Sequence[Transition], now: int
) -> Applied | None:
    """Write successes whose leases all stand, in few steps; None if they do not, and nothing is written."""
    tokens = json.dumps({one.id: one.token for one in transitions})
    kinds = db.execute(sql(FIGURES), (now, tokens)).fetchall()
    if sum(n for *_, n, _blocked in kinds) < len(transitions):
        return None
    write(db, sql, transitions, now, forced=False)
    for queue, type_, took, waited, _n, _blocked in kinds:
        _count(db, sql, (_minute(now), queue, type_, Status.SUCCEEDED.value), took, waited)
    blocked = kinds[0][-1]
    freed = free_slots(db, sql, [one.id for one in transitions], now) if blocked else 0
    return Applied([Verdict.APPLIED] * len(transitions), freed)


def _minute(now: int) -> int:
    return now // 60_000 * 60_000


def news_of(transitions: Iterable[Transition], freed: int) -> News:
    """What others hear of these."""
    again = [one for one in transitions if not one.to.finished]
    queued = sum(one.to is Status.QUEUED for one in again)
    due = sum(one.to is not Status.BLOCKED or one.delay is not None for one in again) - queued
    return News(queued + freed, due=due, changed=1)


def write(
    db: sqlite3.Connection, sql: Callable[[str], str], transitions: Sequence[Transition], now: int, *, forced: bool
) -> int:
    """Write transitions fenced by their tokens and return how many took; a forced release moves the token on."""
    succeeded = {one.id: (one.token, one.result_json) for one in transitions if one.to is Status.SUCCEEDED}
    finish = [_finish_row(one, now, forced) for one in transitions if one.to in _ENDED_OTHERWISE]
    requeue = [_requeue_row(one, now, forced) for one in transitions if not one.to.finished]
    done = 0
    if succeeded:
        line = f'{line_end(Happened.SUCCEEDED, Status.SUCCEEDED)[:-1]},"token":'
        done += db.execute(sql(SUCCEED), (now, now, now, now, line, json.dumps(succeeded, ensure_ascii=False))).rowcount
    if finish:
        done += db.executemany(sql(FINISH), finish).rowcount
    if requeue:
        done += db.executemany(sql(REQUEUE), requeue).rowcount
    return done


_ENDED_OTHERWISE = (Status.FAILED, Status.CANCELLED)


def _line(one: Transition) -> str:
    return f'{line_end(one.happened, one.to, note=one.note)[:-1]},"token":'


def _finish_row(one: Transition, now: int, forced: bool) -> tuple[Any, ...]:  # noqa: FBT001  # one row of a batch
    return (
        one.to.value,
        one.result_json,
        one.error.text() if one.error else None,
        now,
        now,
        now,
        one.give_back,
        one.crashed,
        forced,
        forced and one.crashed,
        now,
        _line(one),
        one.id,
        one.token,
    )


def _requeue_row(one: Transition, now: int, forced: bool) -> tuple[Any, ...]:  # noqa: FBT001  # one row of a batch
    return (
        one.to.value,
        None if one.delay is None else now + as_duration_ms(one.delay),
        now if one.to is Status.QUEUED else None,
        one.to is Status.BLOCKED,
        one.blocked_by,
        one.error.text() if one.error else None,
        is_gathering(one),
        now,
        now,
        one.give_back,
        one.crashed,
        forced,
        forced and one.crashed,
        now,
        now,
        _line(one),
        one.id,
        one.token,
    )


FOUND = "SELECT id, status, lease_token, charged FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?))"
REFUSED = f"""
UPDATE windlass_jobs SET moves = moves + 1, history = {APPEND}, crashes = crashes - ?,
    charged = CASE WHEN ? THEN NULL ELSE charged END
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant


def _examine(
    db: sqlite3.Connection, sql: Callable[[str], str], transitions: Sequence[Transition], now: int
) -> list[Verdict]:
    rows = db.execute(sql(FOUND), (json.dumps([one.id for one in transitions]),)).fetchall()
    found = {job_id: (STATUSES[status], token, charged) for job_id, status, token, charged in rows}
    verdicts: list[Verdict] = []
    for one in transitions:
        if one.id not in found:
            verdicts.append(Verdict.MISSING)
            continue
        status, token, charged = found[one.id]
        # Only the holder of a token can end its attempt, so the same token on a job that has moved on means that
        # this very ending was written before, by a call whose answer was lost.
        if token == one.token and status is not Status.PROCESSING:
            verdicts.append(Verdict.APPLIED)
            continue
        refusal = refuse(one, token, charged)
        line = line_end(Happened.REFUSED, status, token=one.token, note=refusal.note)
        db.execute(sql(REFUSED), (now, line, refusal.acquits, refusal.acquits, one.id))
        if refusal.acquits:
            found[one.id] = (status, token, None)
        verdicts.append(Verdict.STALE)
    return verdicts


ENDED = """
SELECT queue, type, status, json_group_array(duration_ms), json_group_array(coalesce(wait_ms, 0))
FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?)) AND updated_at = ? GROUP BY queue, type, status
"""


def tally(db: sqlite3.Connection, sql: Callable[[str], str], ids: Sequence[str], now: int) -> None:
    """Count what ended just now in its minute."""
    for queue, type_, status, took, waited in db.execute(sql(ENDED), (json.dumps(ids), now)).fetchall():
        _count(db, sql, (_minute(now), queue, type_, status), took, waited)


COUNTED = """
SELECT spreads FROM windlass_minutes WHERE minute = ? AND queue = ? AND type = ? AND status = ? AND bucket = -1
"""
COUNT = """
INSERT OR REPLACE INTO windlass_minutes (minute, queue, type, status, bucket, n, duration_ms, wait_ms, spreads)
VALUES (?, ?, ?, ?, -1, ?, ?, ?, ?)
"""


def _count(
    db: sqlite3.Connection, sql: Callable[[str], str], of: tuple[int, str, str, str], took: str, waited: str
) -> None:
    """Add runs that took so long, and had waited so long, to what is counted; both are lists in JSON."""
    run, wait = spread_of(json.loads(took)), spread_of(json.loads(waited))
    before = db.execute(sql(COUNTED), of).fetchone()
    if before is not None:
        run, wait = (
            sum_of((unpacked(one), more)) for one, more in zip(json.loads(before[0]), (run, wait), strict=True)
        )
    spreads = json.dumps([run.packed(), wait.packed()], separators=(",", ":"))
    db.execute(sql(COUNT), (*of, run.n, run.total_ms, wait.total_ms, spreads))
