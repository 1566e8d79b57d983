"""Unblock: jobs that waited for a limit slot, a running key, a rate or other jobs go on, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres import flows, rates
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.locking import LOCK, line_locks
from windlass.stores.postgres.records import AT, CLOCK, IS_BLOCKED, append, line_end, marked, slots_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.stores.postgres.connection import Ask, Link, Rows, Steps


def _key(kind: Kind) -> str:
    return f"substr(by, {len(kind.prefix) + 1})"


ROOM = f"""CASE
    WHEN starts_with(by, '{Kind.UNIQUE.prefix}')
    THEN CASE WHEN (SELECT true FROM windlass_jobs WHERE unique_key = {_key(Kind.UNIQUE)} LIMIT 1) THEN 0 ELSE 1 END
    WHEN starts_with(by, '{Kind.RATE.prefix}') THEN {rates.ROOM}
    WHEN starts_with(by, '{Kind.LIMIT.prefix}') THEN (
        SELECT limit_n FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by = by ORDER BY queued_at, id LIMIT 1
    ) - {slots_of(_key(Kind.LIMIT))}
END"""  # noqa: S608  # made of constants
"""How many of the line `by` may go on. Those that await others are no such line: see `flows`."""


def _next_line(after: str) -> str:
    return f"""(
        SELECT blocked_by FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by > {after} ORDER BY blocked_by LIMIT 1
    )"""  # noqa: S608  # made of constants


_LAST = f"CASE WHEN starts_with(by, '{Kind.SIGNAL.prefix}') THEN '{Kind.SIGNAL.end}' ELSE by END"
# Steps from one line to the next by the index, however many jobs stand in each. Of those that wait for signals none is
# freed here, and there may be as many lines as jobs: they are stepped over all at once.
WAITED_FOR = f"""
WITH RECURSIVE {CLOCK}, lines (by, place) AS (
    SELECT {_next_line("$1::text")}, 1
    UNION ALL
    SELECT {_next_line(_LAST)}, place + 1
    FROM lines WHERE by IS NOT NULL AND place < $2::int
)
SELECT by, {ROOM} > 0 FROM lines WHERE by IS NOT NULL ORDER BY place
"""  # noqa: S608  # made of constants
_FIRST = Kind.FLOW.end  # behind all that await others
_MOST = 100  # lines that one look goes through


class Rounds:
    """Goes round among all lines, some at a time: an end frees its own line, so there is seldom anything to find."""

    def __init__(self) -> None:
        self._flows = flows.Rounds()
        self._after = _FIRST

    async def look(self, ask: Ask, n: int) -> list[str]:
        """At most `n` lines whose way is free."""
        rows = await ask(WAITED_FOR, self._after, _MOST)
        free = [by for by, is_free in rows if is_free]
        if len(free) > n:
            self._after = free[n - 1]
        else:
            self._after = rows[-1][0] if len(rows) == _MOST else _FIRST
        return free[:n] + await self._flows.look(ask, n)


async def sweep(link: Link, ask: Ask, n: int, rounds: Rounds) -> list[str]:
    """Release jobs whose rate has room by now, and those whose way became free without an ending."""
    lines = await rates.opened(ask, n)
    return await unblock(link, ask, {*lines, *await rounds.look(ask, n)})


# Rows that another transaction is changing are passed over: it comes here for the same line when it is done.
# One of a rate stays known as called from its line, so that the claim lets it pass those who still stand there.
UNBLOCK = f"""
WITH {CLOCK}, room AS MATERIALIZED (
    SELECT by, {ROOM} AS n FROM unnest($1::text[]) AS by
), next AS MATERIALIZED (
    SELECT first.id FROM room CROSS JOIN LATERAL (
        SELECT id FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by = room.by
        ORDER BY queued_at, id LIMIT greatest(room.n, 0) FOR UPDATE SKIP LOCKED
    ) AS first
)
UPDATE windlass_jobs AS j SET status = 'queued', updated_at = {AT}, {append("$2::text")},
    blocked_by = CASE WHEN starts_with(j.blocked_by, '{Kind.RATE.prefix}') THEN j.blocked_by END,
    {marked()}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM next)) AND j.status = 'blocked' RETURNING j.queue
"""  # noqa: S608  # made of constants


async def unblock(link: Link, ask: Ask, lines: Collection[str], deleted: Mapping[str, str] | None = None) -> list[str]:
    """Queue as many of each line as have room now, and name the queue of each; the claim tests them again."""
    return await carry(ask, unblocking(link, lines, deleted))


def unblocking(link: Link, lines: Collection[str], deleted: Mapping[str, str] | None = None) -> Steps[list[str]]:
    """The same as steps that any driver can carry. `deleted`: of jobs that wait, one that went away unfinished."""
    if not lines:
        return []
    waiting = {line.removeprefix(Kind.FLOW.prefix) for line in lines if Kind.FLOW.blocks(line)}
    others = {line for line in lines if not Kind.FLOW.blocks(line)}
    gone, locked, queues = deleted or {}, set(lines), list[str]()
    if waiting:
        locked |= yield from flows.falling(waiting, gone)
    # Under the lock and after it: a claim that has just put a job aside is seen, one that would is waited for.
    yield LOCK, (sorted(line_locks(link, locked)),)
    if waiting:
        queues, freed = yield from flows.settling(link, waiting, gone, locked)
        others |= freed
    if others:
        rows: Rows = yield UNBLOCK, (sorted(others), line_end(Happened.UNBLOCKED, Status.QUEUED))
        queues += [queue for (queue,) in rows]
        looked_at = sorted(line.removeprefix(Kind.RATE.prefix) for line in others if Kind.RATE.blocks(line))
        if looked_at:
            yield rates.REOPEN, (looked_at,)
    return queues
