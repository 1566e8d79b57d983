"""Unblock: jobs that waited for a limit slot, a running key, a rate or other jobs go on, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres import flows, rates
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.locking import LOCK, line_locks
from windlass.stores.postgres.records import AT, CLOCK, append, line_end

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.stores.postgres.connection import Ask, Link, Rows, Steps

ROOM = f"""CASE
    WHEN starts_with(by, 'unique:')
    THEN CASE WHEN (SELECT true FROM windlass_jobs WHERE unique_key = substr(by, 8) LIMIT 1) THEN 0 ELSE 1 END
    WHEN starts_with(by, 'rate:') THEN {rates.ROOM}
    ELSE (
        SELECT limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = by ORDER BY queued_at, id LIMIT 1
    ) - (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = substr(by, 7))
END"""  # noqa: S608  # made of constants
"""How many of the line `by` may go on. Those that await others are no such line: see `flows`."""

# Steps from one line to the next by the index, however many jobs stand in each, and keeps those whose way is free:
# lines that are held must not hide a free one behind them.
WAITED_FOR = f"""
WITH RECURSIVE {CLOCK}, lines (by) AS (
    SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by >= 'flow;'
    UNION ALL
    SELECT (SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by > by)
    FROM lines WHERE by IS NOT NULL
)
SELECT by FROM lines WHERE by IS NOT NULL AND {ROOM} > 0
LIMIT $1
"""  # noqa: S608  # made of constants


async def sweep(link: Link, ask: Ask, n: int, rounds: flows.Rounds) -> int:
    """Heal what no ending freed: a way that became free otherwise, as when the next in line was cancelled."""
    lines = [by for (by,) in await ask(WAITED_FOR, n)]
    return await unblock(link, ask, lines + await rounds.look(ask, n))


# Rows that somebody else is changing are passed over: whoever cancels one of a line comes here for that line next.
# One of a rate stays known as called from its line, so that the claim lets it pass those who still stand there.
UNBLOCK = f"""
WITH {CLOCK}, room AS MATERIALIZED (
    SELECT by, {ROOM} AS n FROM unnest($1::text[]) AS by
), next AS MATERIALIZED (
    SELECT first.id FROM room CROSS JOIN LATERAL (
        SELECT id FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = room.by
        ORDER BY queued_at, id LIMIT greatest(room.n, 0) FOR UPDATE SKIP LOCKED
    ) AS first
)
UPDATE windlass_jobs AS j SET status = 'queued', updated_at = {AT}, {append("$2::text")},
    blocked_by = CASE WHEN starts_with(j.blocked_by, 'rate:') THEN j.blocked_by END
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM next)) AND j.status = 'blocked' RETURNING j.queue
"""  # noqa: S608  # made of constants


async def unblock(link: Link, ask: Ask, lines: Collection[str], deleted: Mapping[str, str] | None = None) -> int:
    """Queue as many of each line as have room now; the claim tests them again."""
    return await carry(ask, unblocking(link, lines, deleted))


def unblocking(link: Link, lines: Collection[str], deleted: Mapping[str, str] | None = None) -> Steps[int]:
    """The same as steps that any driver can carry. `deleted`: of jobs that wait, one that went away unfinished."""
    if not lines:
        return 0
    waiting = {line.removeprefix("flow:") for line in lines if line.startswith("flow:")}
    others = {line for line in lines if not line.startswith("flow:")}
    gone, locked, done = deleted or {}, set(lines), 0
    if waiting:
        locked |= yield from flows.falling(waiting, gone)
    # Under the lock and after it: a claim that has just put a job aside is seen, one that would is waited for.
    yield LOCK, (sorted(line_locks(link, locked)),)
    if waiting:
        done, freed = yield from flows.settling(link, waiting, gone, locked)
        others |= freed
    if others:
        rows: Rows = yield UNBLOCK, (sorted(others), line_end(Happened.UNBLOCKED, Status.QUEUED))
        done += len(rows)
    return done
