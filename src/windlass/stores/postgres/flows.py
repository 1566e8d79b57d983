"""Flows: a job that awaits others goes on, or is cancelled, when they have ended.

Two that end at the same moment, each the other's last, do not see each other's end: the second one must look once
the first is done. So the line of a job that waits is locked before anybody looks, and after the ends were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.status import LIVE as LIVE_STATUSES
from windlass.core.status import Status
from windlass.stores.postgres.locking import LOCK, line_locks
from windlass.stores.postgres.records import AT, CLOCK, IS_BLOCKED, append, line_end, marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.stores.postgres.connection import Ask, Link, Rows, Steps

_MOST = 1000  # how many lines one step cancels one behind the other
_SWEPT = 100  # and how many one look of `promote` goes through

# One job alone stands in each of these lines, and is found by its own id: that it waits is said by what blocks it.
# Asked for one row and not whether there are any, as that might be answered by reading the whole table once.
LIVE = f"""(
    SELECT true FROM windlass_jobs AS e WHERE e.next_id = w.id
        AND e.status || '' IN ({", ".join(f"'{status.value}'" for status in sorted(LIVE_STATUSES))}) LIMIT 1
) IS NOT NULL"""  # noqa: S608  # made of constants
WITHOUT_SUCCESS = "FROM windlass_jobs AS e WHERE e.next_id = w.id AND e.status || '' IN ('failed', 'cancelled')"
LOST = f"(SELECT true {WITHOUT_SUCCESS} LIMIT 1) IS NOT NULL"

# Those behind it that fall with it.
CHAIN = f"""
WITH RECURSIVE chain (next_id, unique_key) AS (
    SELECT w.next_id, w.unique_key FROM windlass_jobs AS w
    WHERE w.id = ANY ($1::text[]) AND w.blocked_by = '{Kind.FLOW.prefix}' || w.id AND w.awaits = 'success'
        AND (w.id = ANY ($2::text[]) OR {LOST})
    UNION ALL
    SELECT w.next_id, w.unique_key FROM chain JOIN windlass_jobs AS w ON w.id = chain.next_id
    WHERE w.blocked_by = '{Kind.FLOW.prefix}' || w.id AND w.awaits = 'success'
)
SELECT next_id, unique_key FROM chain LIMIT $3::int
"""  # noqa: S608  # made of constants
# Rows that somebody else is changing are passed over, as this must not wait for rows while it has lines: who cancels
# one comes here for those behind it, and one that was given another payload meanwhile is found by `promote`.
_LINE = "CASE WHEN judged.lost IS NULL THEN $3::text ELSE $4::text || ',\"note\":' || to_json(judged.lost) || '}' END"
SETTLE = f"""
WITH {CLOCK}, waiting AS MATERIALIZED (
    SELECT w.id, w.awaits, w.unique_key, told.deleted
    FROM unnest($1::text[], $2::text[]) AS told (id, deleted) JOIN windlass_jobs AS w ON w.id = told.id
    WHERE w.blocked_by = '{Kind.FLOW.prefix}' || w.id ORDER BY w.id FOR UPDATE OF w SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT w.id, w.unique_key, {LIVE} AS live, CASE WHEN w.awaits = 'success' THEN coalesce(
        'job ' || w.deleted || ', which it awaited, was deleted', (
            SELECT 'job ' || e.id
                || CASE e.status WHEN 'failed' THEN ' failed' ELSE ', which it awaited, was cancelled' END
            {WITHOUT_SUCCESS} ORDER BY e.id LIMIT 1
        )
    ) END AS lost FROM waiting AS w
)
UPDATE windlass_jobs AS j SET
    status = CASE WHEN judged.lost IS NULL THEN 'queued' ELSE 'cancelled' END, blocked_by = NULL,
    run_at = CASE WHEN judged.lost IS NULL THEN {AT} ELSE j.run_at END,
    queued_at = CASE WHEN judged.lost IS NULL THEN {AT} ELSE j.queued_at END,
    finished_at = CASE WHEN judged.lost IS NOT NULL THEN {AT} END,
    unique_key = CASE WHEN judged.lost IS NULL THEN j.unique_key END, updated_at = {AT},
    {marked("judged.lost IS NULL")},
    {append(_LINE)}
FROM clock AS c, judged WHERE j.id = judged.id AND (judged.lost IS NOT NULL OR NOT judged.live)
RETURNING j.status, j.queue, j.next_id, judged.unique_key
"""  # noqa: S608  # made of constants
_GOES_ON = line_end(Happened.UNBLOCKED, Status.QUEUED)
_STOPS = line_end(Happened.CANCELLED, Status.CANCELLED)[:-1]


def falling(waiting: Iterable[str], deleted: Mapping[str, str]) -> Steps[set[str]]:
    """The lines that the ends of these would free in turn: all are locked at once, and so in order."""
    found: Rows = yield CHAIN, (sorted(waiting), sorted(deleted), _MOST)
    return {line for next_id, unique_key in found for line in lines(flow=next_id, unique=unique_key)}


def settling(
    link: Link, waiting: Iterable[str], deleted: Mapping[str, str], locked: set[str]
) -> Steps[tuple[list[str], set[str]]]:
    """Look whether jobs still have to wait: the queues of those that went on, and other lines that may be free now.

    `deleted` names, of each, one that it awaited and that went away unfinished; `locked` are the lines that are held.
    """
    look, gone_on, cancelled, freed = sorted(waiting), list[str](), 0, set[str]()
    while look and cancelled < _MOST:
        rows: Rows = yield SETTLE, (look, [deleted.get(id_) for id_ in look], _GOES_ON, _STOPS)
        ends = [row[2:] for row in rows if row[0] == Status.CANCELLED.value]
        gone_on += [row[1] for row in rows if row[0] != Status.CANCELLED.value]
        cancelled += len(ends)
        ended = {line for next_id, unique_key in ends for line in lines(flow=next_id, unique=unique_key)}
        if ended - locked:  # inserted since
            yield LOCK, (sorted(line_locks(link, ended - locked)),)
            locked |= ended
        look = sorted(line.removeprefix(Kind.FLOW.prefix) for line in ended if Kind.FLOW.blocks(line))
        freed |= {line for line in ended if not Kind.FLOW.blocks(line)}
    return gone_on, freed


LOOK = f"""
SELECT w.blocked_by, NOT ({LIVE}) OR (w.awaits = 'success' AND {LOST}) FROM (
    SELECT id, awaits, blocked_by FROM windlass_jobs
    WHERE {IS_BLOCKED} AND blocked_by > $1::text AND blocked_by < '{Kind.FLOW.end}'
    ORDER BY blocked_by LIMIT $2::int
) AS w
"""  # noqa: S608  # made of constants


class Rounds:
    """Goes round among all that wait for others, some at a time: there may be very many."""

    def __init__(self) -> None:
        self._after = Kind.FLOW.prefix

    async def look(self, ask: Ask, n: int) -> list[str]:
        """At most `n` lines whose way is free."""
        rows = await ask(LOOK, self._after, _SWEPT)
        free = [by for by, is_free in rows if is_free]
        if len(free) > n:
            self._after = free[n - 1]
        else:
            self._after = rows[-1][0] if len(rows) == _SWEPT else Kind.FLOW.prefix
        return free[:n]
