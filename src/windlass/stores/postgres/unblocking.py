"""Unblock: jobs that waited for a limit slot or a running key go back to the queue, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres.locking import line_locks, lock
from windlass.stores.postgres.records import AT, CLOCK, append, line_end

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from windlass.stores.postgres.connection import Ask, Link


def lines_of(keys: Iterable[tuple[str | None, str | None]]) -> list[str]:
    """The lines that wait for jobs with these limit keys and running keys."""
    found: set[str] = set()
    for limit_key, running_key in keys:
        if limit_key is not None:
            found.add(f"limit:{limit_key}")
        if running_key is not None:
            found.add(f"unique:{running_key}")
    return sorted(found)


# Steps from one line to the next by the index, however many jobs stand in each, and keeps those whose way is free:
# lines that are held must not hide a free one behind them.
WAITED_FOR = """
WITH RECURSIVE lines (by) AS (
    SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked'
    UNION ALL
    SELECT (SELECT min(blocked_by) FROM windlass_jobs WHERE status = 'blocked' AND blocked_by > by)
    FROM lines WHERE by IS NOT NULL
)
SELECT by FROM lines WHERE by IS NOT NULL AND CASE
    WHEN starts_with(by, 'unique:') THEN NOT EXISTS (SELECT FROM windlass_jobs WHERE unique_key = substr(by, 8))
    ELSE (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = substr(by, 7)) < (
        SELECT limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = by ORDER BY queued_at, id LIMIT 1
    ) END
LIMIT $1
"""


async def sweep(link: Link, ask: Ask, n: int) -> int:
    """Heal what no ending freed: a way that became free otherwise, as when the next in line was cancelled."""
    return await unblock(link, ask, [by for (by,) in await ask(WAITED_FOR, n)])


# Rows that somebody else is changing are passed over: whoever cancels one of a line comes here for that line next.
UNBLOCK = f"""
WITH {CLOCK}, room AS MATERIALIZED (
    SELECT by, CASE
        WHEN starts_with(by, 'unique:')
        THEN CASE WHEN EXISTS (SELECT FROM windlass_jobs WHERE unique_key = substr(by, 8)) THEN 0 ELSE 1 END
        ELSE (
            SELECT limit_n FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = by
            ORDER BY queued_at, id LIMIT 1
        ) - (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = substr(by, 7))
    END AS n
    FROM unnest($1::text[]) AS by
), next AS MATERIALIZED (
    SELECT first.id FROM room CROSS JOIN LATERAL (
        SELECT id FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = room.by
        ORDER BY queued_at, id LIMIT greatest(room.n, 0) FOR UPDATE SKIP LOCKED
    ) AS first
)
UPDATE windlass_jobs AS j SET status = 'queued', blocked_by = NULL, updated_at = {AT}, {append("$2::text")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM next)) AND j.status = 'blocked' RETURNING j.queue
"""  # noqa: S608  # made of constants


async def unblock(link: Link, ask: Ask, lines: Collection[str]) -> int:
    """Queue as many of each line as have room now; the claim tests them again."""
    if not lines:
        return 0
    # Under the lock and after it: a claim that has just put a job aside is seen, one that would is waited for.
    await lock(ask, line_locks(link, lines))
    return len(await ask(UNBLOCK, sorted(lines), line_end(Happened.UNBLOCKED, Status.QUEUED)))
