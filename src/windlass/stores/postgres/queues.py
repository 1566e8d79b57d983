"""Queues on PostgreSQL: named by their first job or setting."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.keys import check_name
from windlass.stores.contract import DEPTH_CAP, Count, Notice, QueueInfo
from windlass.stores.postgres.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

PAUSE = """
INSERT INTO windlass_queue_settings AS s (name, paused_at)
SELECT DISTINCT name, date_trunc('milliseconds', statement_timestamp()) FROM unnest($1::text[]) AS name ORDER BY 1
ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(s.paused_at, excluded.paused_at)
"""
# With the number of jobs waiting there, for the workers that are to be woken.
RESUME = """
UPDATE windlass_queue_settings AS s SET paused_at = NULL WHERE s.name = ANY ($1::text[]) RETURNING s.name, (
    SELECT count(*) FROM (
        SELECT FROM windlass_jobs AS j WHERE j.status = 'queued' AND j.queue = s.name LIMIT $2::int
    ) AS waiting
)
"""
_WOKEN = 1000  # more workers than so many need not be woken at once
LIMIT_DEPTH = """
INSERT INTO windlass_queue_settings (name, max_depth) VALUES ($1::text, $2::int)
ON CONFLICT (name) DO UPDATE SET max_depth = excluded.max_depth
"""
# Each count walks one index, and stops at the cap; the longest wait is looked for among the first of each priority, and
# the priorities are found one after another.
ALL = """
WITH RECURSIVE names AS MATERIALIZED (
    SELECT name FROM windlass_queues UNION SELECT name FROM windlass_queue_settings
), running AS MATERIALIZED (
    SELECT queue, count(*) AS n FROM windlass_jobs WHERE status = 'processing' GROUP BY queue
), lines (name, priority, nth) AS (
    SELECT n.name, (
        SELECT j.priority FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = n.name ORDER BY j.priority LIMIT 1
    ), 1 FROM names AS n
    UNION ALL
    SELECT l.name, (
        SELECT j.priority FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = l.name AND j.priority > l.priority ORDER BY j.priority LIMIT 1
    ), l.nth + 1 FROM lines AS l WHERE l.priority IS NOT NULL AND l.nth < 50
), oldest AS MATERIALIZED (
    SELECT l.name, min(head.queued_at) AS at FROM lines AS l CROSS JOIN LATERAL (
        SELECT j.queued_at FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = l.name AND j.priority = l.priority ORDER BY j.run_at LIMIT 100
    ) AS head GROUP BY l.name
)
SELECT names.name, s.paused_at, s.max_depth,
    (SELECT count(*) FROM (
        SELECT FROM windlass_jobs AS j WHERE j.status = 'queued' AND j.queue = names.name LIMIT $1::int
    ) AS waiting),
    coalesce(running.n, 0),
    date_trunc('milliseconds', statement_timestamp()) - oldest.at
FROM names
LEFT JOIN windlass_queue_settings AS s ON s.name = names.name
LEFT JOIN running ON running.queue = names.name
LEFT JOIN oldest ON oldest.name = names.name
ORDER BY names.name
"""


class PostgresQueues(Room):
    """See `contract.Queues` for what each promises."""

    @guarded
    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        return [
            QueueInfo(
                name=name,
                paused_at=paused_at,
                max_depth=max_depth,
                depth=_capped(waiting),
                processing=Count(running, exact=True),
                oldest=None if oldest is None else max(oldest, timedelta(0)),
            )
            for name, paused_at, max_depth, waiting, running, oldest in await self.link.fetch(ALL, DEPTH_CAP + 1)
        ]

    @guarded
    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these."""
        await self.link.fetch(PAUSE, [check_name(name, "the queue") for name in names])

    @guarded
    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        rows = await self.link.fetch(RESUME, list(names), _WOKEN)
        self.link.changed(*[Notice.claimable(n, name) for name, n in rows if n])

    @guarded
    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Set or lift the largest depth."""
        await self.link.fetch(LIMIT_DEPTH, check_name(name, "the queue"), max_depth)


def _capped(n: int) -> Count:
    return Count(min(n, DEPTH_CAP), n <= DEPTH_CAP)
