"""Sweep: promote what is due, raise what waited long."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.blocked import Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Promoted
from windlass.stores.postgres import rates
from windlass.stores.postgres.expiring import EXPIRES, NOTHING, expire
from windlass.stores.postgres.keeping import WAITS, time_out
from windlass.stores.postgres.notices import claimable
from windlass.stores.postgres.records import AT, CLOCK, IS_BLOCKED, append, line_end, marked, whole
from windlass.stores.postgres.unblocking import sweep

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.stores.contract import Notice
    from windlass.stores.postgres.connection import Link
    from windlass.stores.postgres.unblocking import Rounds

# Those that wait for signals stand in no line that becomes free: they are stepped over, before them and behind.
_IN_LINES = " OR ".join(
    f"EXISTS (SELECT FROM windlass_jobs WHERE {IS_BLOCKED} AND blocked_by {beside})"  # made of constants
    for beside in (f"< '{Kind.SIGNAL.prefix}'", f">= '{Kind.SIGNAL.end}'")
)
# min() over each status by itself: the index on run_at serves both.
LOOK = f"""
WITH {CLOCK}
SELECT (SELECT now FROM clock), {_IN_LINES},
    (SELECT min(run_at) FROM windlass_jobs WHERE status IN ('scheduled', 'retrying')),
    (SELECT min(run_at) FROM windlass_jobs WHERE {WAITS}),
    (SELECT min(expires_at) FROM windlass_jobs WHERE {EXPIRES})
"""  # noqa: S608  # made of constants
PROMOTE = f"""
WITH {CLOCK}, due AS MATERIALIZED (
    SELECT id FROM windlass_jobs WHERE status IN ('scheduled', 'retrying') AND run_at <= (SELECT now FROM clock)
    ORDER BY run_at LIMIT $1::int FOR UPDATE SKIP LOCKED
)
UPDATE windlass_jobs AS j SET status = 'queued', queued_at = {AT}, updated_at = {AT}, {marked()},
    {append("$2::text")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM due)) AND j.status IN ('scheduled', 'retrying') RETURNING j.queue
"""  # noqa: S608  # made of constants


class _Look(NamedTuple):
    """What a promotion would find."""

    now: datetime
    blocked: bool
    """some stand in lines"""
    due: datetime | None
    late: datetime | None
    """when the time of the first that waits for a signal is up"""
    over: datetime | None
    """when the time of the first that no worker has taken is"""

    def is_past(self, instant: datetime | None) -> bool:
        """Whether it has come."""
        return instant is not None and instant <= self.now

    @property
    def waits(self) -> list[timedelta]:
        """How long until each of them."""
        instants = (self.due, self.late, self.over)
        return [max(instant - self.now, timedelta(0)) for instant in instants if instant is not None]


async def promote(link: Link, n: int, rounds: Rounds) -> tuple[Promoted, list[Notice]]:
    """Queue what is due, cancel what has expired; also says what is to be told of it."""
    look = await _look(link)
    queues: list[str] = []
    unblocked: list[str] = []
    expired = NOTHING
    if look.is_past(look.due):
        rows = await link.fetch(PROMOTE, n, line_end(Happened.PROMOTED, Status.QUEUED))
        queues = [queue for (queue,) in rows]
    if look.is_past(look.over):
        expired = await expire(link, n)
    if look.is_past(look.late):
        unblocked += await time_out(link, n)
    room = None
    if look.blocked:
        unblocked += await link.transaction(lambda ask: sweep(link, ask, n, rounds))
        room = await rates.next_room(link.fetch)
    if any(map(look.is_past, (look.due, look.late, look.over))):
        look = await _look(link)
    waits = look.waits if room is None else [*look.waits, room]
    soonest = min(waits, default=None)
    promoted = Promoted(len(queues), len(unblocked) + len(expired.freed), soonest, Counter(queues), expired.ids)
    return promoted, [*claimable(queues + unblocked), *expired.notices]


async def _look(link: Link) -> _Look:
    [row] = await link.fetch(LOOK)
    return _Look(*row)


# The priorities of each queue where anything waits are found one after the other by the index of what waits, and in
# each that is later the longest there. One that took its turn beside those who stood there has not stood there itself:
# so many of them are passed over.
_PASSED_OVER = 1000
_AGED = "$4::text || ',\"note\":\"priority ' || j.priority || ' to ' || $2::int || '\"}'"
AGE = f"""
WITH RECURSIVE {CLOCK}, levels (queue, priority) AS (
    (SELECT queue, priority FROM windlass_jobs WHERE status = 'queued' ORDER BY queue, priority LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority FROM levels AS l CROSS JOIN LATERAL (
        SELECT j.queue, j.priority FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND (j.queue, j.priority) > (l.queue, l.priority)
        ORDER BY j.queue, j.priority LIMIT 1
    ) AS next
), old AS MATERIALIZED (
    SELECT first.id FROM levels AS l CROSS JOIN LATERAL (
        SELECT j.id FROM windlass_jobs AS j WHERE j.status || '' = 'queued' AND j.id = ANY (ARRAY(
            SELECT stood.id FROM (
                SELECT s.id, s.created_at FROM windlass_jobs AS s
                WHERE s.status = 'queued' AND s.queue = l.queue AND s.priority = l.priority
                    AND s.run_at <= (SELECT now FROM clock) - $1::interval
                ORDER BY s.run_at, s.id LIMIT $3::int + {_PASSED_OVER}
            ) AS stood WHERE stood.created_at <= (SELECT now FROM clock) - $1::interval LIMIT $3::int
        )) FOR UPDATE SKIP LOCKED
    ) AS first WHERE l.priority > $2::int LIMIT $3::int
)
UPDATE windlass_jobs AS j SET priority = $2::int, updated_at = {AT},
    {append(_AGED)}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM old)) AND j.status || '' = 'queued' RETURNING 1
"""  # noqa: S608  # made of constants


async def age(link: Link, after: timedelta, to: int, n: int) -> int:
    """Raise what has stood so long, passing over what is being claimed."""
    line = line_end(Happened.AGED, Status.QUEUED)[:-1]
    return len(await link.fetch(AGE, whole(after), to, n, line))
