"""Rescue: what was lost is handed back.

All that runs is looked at: there are never many, and an index on the expiry would be written by every heartbeat. But
while some old snapshot keeps all that ran since from being cleared away, such a look has to step over it. Once that is
seen to be slow, looks go to what ran at the last one, and to what was claimed since.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.outcome import Lost
from windlass.core.status import Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Rescued
from windlass.stores.postgres.records import CLOCK, COLUMNS, job_of
from windlass.stores.postgres.settling import end_and_unblock, written

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.stores.postgres.connection import Ask, Link

_SLOW = timedelta(milliseconds=5)  # a look takes a tenth of it unless there is much to step over
_SHARE = 100  # how many times longer than it took, the next look at all is put off,
_LONGEST = 600.0  # but never longer than so many seconds

# $1 is how many are wanted, $2 how long a look takes that is slow: only then it is told what runs.
_LOOKED = """
looked AS MATERIALIZED (
    SELECT array_agg(id) AS ids, clock_timestamp() - statement_timestamp() AS took,
        array_agg(id ORDER BY lease_expires_at) FILTER (WHERE lease_expires_at <= (SELECT now FROM clock)) AS lost
    FROM running
)
SELECT coalesce(lost[:$1::int], '{}'), took, now, CASE WHEN took > $2::interval THEN coalesce(ids, '{}') END
FROM looked, clock
"""
LOOK = f"""
WITH {CLOCK}, running AS MATERIALIZED (
    SELECT id, lease_expires_at FROM windlass_jobs WHERE status = 'processing'
), {_LOOKED}
"""  # noqa: S608  # made of constants
LOOK_AGAIN = f"""
WITH {CLOCK}, running AS MATERIALIZED (
    SELECT id, lease_expires_at FROM windlass_jobs WHERE id = ANY ($3::text[]) AND lease_expires_at IS NOT NULL
    UNION
    SELECT id, lease_expires_at FROM windlass_jobs WHERE status = 'processing' AND started_at >= $4::timestamptz
), {_LOOKED}
"""  # noqa: S608  # made of constants
LOST = f"""
WITH {CLOCK}
SELECT coalesce(j.confirmed = j.lease_token, false), {COLUMNS} FROM windlass_jobs AS j, clock AS c
WHERE j.id = ANY ($1::text[]) AND j.lease_expires_at <= c.now
ORDER BY j.lease_expires_at FOR UPDATE OF j SKIP LOCKED
"""  # noqa: S608  # made of constants


class Watch:
    """What ran at the last look; kept only while looking at all that runs is slow."""

    def __init__(self) -> None:
        self._ids: list[str] | None = None
        self._since: datetime | None = None
        self._due = 0.0

    async def look(self, link: Link, n: int) -> list[str]:
        """At most `n` whose lease seems to be over."""
        if self._ids is None or time.monotonic() >= self._due:
            [(lost, took, now, self._ids)] = await link.fetch(LOOK, n, _SLOW)
            self._due = time.monotonic() + min(took.total_seconds() * _SHARE, _LONGEST)
        else:
            [(lost, _, now, self._ids)] = await link.fetch(LOOK_AGAIN, n, timedelta(0), self._ids, self._since)
        # What is being claimed is not seen yet, and its instant is that of its beginning.
        self._since = now - 2 * timedelta(seconds=link.place.timeout)
        found: list[str] = lost
        return found


async def rescue(link: Link, n: int, watch: Watch) -> tuple[list[Rescued], list[str]]:
    """Hand back what was lost; also names the queue of each job that was queued.

    The expiry is read under a row lock that is held until the change is made.
    """
    lost = await watch.look(link, n)
    return await link.transaction(lambda ask: _rescue(link, ask, lost)) if lost else ([], [])


async def _rescue(link: Link, ask: Ask, lost: list[str]) -> tuple[list[Rescued], list[str]]:
    rows = await ask(LOST, lost)
    if not rows:
        return [], []
    leases = [(job_of(row[1:]), Lost(confirmed=row[0])) for row in rows]
    decided = [(job, decide(job, lease)) for job, lease in leases]
    told = [(job, one if job.cancel_requested_at is None else honour_cancel(one)) for job, one in decided]
    statement, values, _ = written([one for _, one in told], forced=True)
    _, _, freed = await end_and_unblock(link, ask, statement, values)
    queued = [job.queue for job, one in told if one.to is Status.QUEUED]
    return [Rescued(job, one.to) for job, one in told], queued + freed
