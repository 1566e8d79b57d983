"""Prune: finished jobs leave when they have been kept long enough, and with them what else has expired."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.status import FINISHED
from windlass.stores.contract import Pruned
from windlass.stores.postgres import rates
from windlass.stores.postgres.records import CLOCK, as_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from windlass.stores.contract import Retention
    from windlass.stores.postgres.connection import Link

_PASSED = 1000  # how many that live jobs await one call passes in each ending of a queue, beside those that go

# A job that has not ended must find all the jobs that it awaited.
_AWAITED = "(SELECT w.finished_at IS NULL FROM windlass_jobs AS w WHERE w.id = j.next_id) IS TRUE"
# Steps from one queue and ending to the next by the index of what has finished, and in each takes the longest there,
# from where the last call stopped. Of those that have to stay only the last is told, if there may be more behind it.
PRUNE = f"""
WITH RECURSIVE {CLOCK}, endings (queue, status) AS (
    (SELECT queue, status FROM windlass_jobs WHERE finished_at IS NOT NULL ORDER BY queue, status, finished_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.status FROM endings AS e CROSS JOIN LATERAL (
        SELECT j.queue, j.status FROM windlass_jobs AS j
        WHERE j.finished_at IS NOT NULL AND (j.queue, j.status) > (e.queue, e.status)
        ORDER BY j.queue, j.status, j.finished_at LIMIT 1
    ) AS next
), seen AS MATERIALIZED (
    SELECT e.queue, e.status, few.* FROM endings AS e
    LEFT JOIN unnest($4::text[], $5::text[], $6::timestamptz[], $7::bigint[]) AS place (queue, status, since, skip)
        ON place.queue = e.queue AND place.status = e.status
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT few.*, row_number() OVER (ORDER BY finished_at) = $3::int + {_PASSED} AS last,
                count(*) FILTER (WHERE awaited) OVER (PARTITION BY finished_at ROWS UNBOUNDED PRECEDING)
                    + CASE WHEN finished_at = place.since THEN place.skip ELSE 0 END AS skip
            FROM (
                SELECT j.id, j.finished_at, {_AWAITED} AS awaited FROM windlass_jobs AS j
                WHERE j.queue = e.queue AND j.status = e.status
                    AND j.finished_at >= coalesce(place.since, '-infinity') AND j.finished_at <= (SELECT now FROM clock)
                    - coalesce($2::text::jsonb #>> ARRAY[e.queue, e.status], $1::text::jsonb ->> e.status)::bigint
                    * interval '1 millisecond'
                ORDER BY j.finished_at OFFSET coalesce(place.skip, 0) LIMIT $3::int + {_PASSED}
            ) AS few
        ) AS walked WHERE last OR NOT awaited LIMIT $3::int
    ) AS few LIMIT $3::int
), old AS MATERIALIZED (
    SELECT j.id FROM windlass_jobs AS j
    WHERE j.id = ANY (ARRAY(SELECT id FROM seen WHERE NOT awaited)) AND j.finished_at IS NOT NULL
    FOR UPDATE OF j SKIP LOCKED
), gone AS (
    DELETE FROM windlass_jobs WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM seen), stop.queue, stop.status, stop.finished_at, stop.skip
FROM (SELECT) AS told LEFT JOIN seen AS stop ON stop.last
"""  # noqa: S608  # made of constants
# The newest so many of an ending stay: these are counted, so the work grows with them. The status as a range of one
# value, and in the order: so that the index of statuses is the only one that gives it.
PRUNE_BEYOND = f"""
DELETE FROM windlass_jobs WHERE id = ANY (ARRAY(
    SELECT id FROM windlass_jobs AS j
    WHERE NOT {_AWAITED} AND status BETWEEN $1::text AND $1::text AND status <> 'processing'
        AND CASE WHEN $4::text IS NULL THEN queue <> ALL ($3::text[]) ELSE queue = $4::text END
        AND id <= (
            SELECT id FROM windlass_jobs
            WHERE status BETWEEN $1::text AND $1::text AND status <> 'processing'
                AND CASE WHEN $4::text IS NULL THEN queue <> ALL ($3::text[]) ELSE queue = $4::text END
            ORDER BY status DESC, id DESC LIMIT 1 OFFSET $2::bigint
        )
    ORDER BY status, id LIMIT $5::int FOR UPDATE SKIP LOCKED
)) RETURNING 1
"""  # noqa: S608  # made of constants
FORGET = """
WITH old_keys AS (DELETE FROM windlass_idempotency WHERE expires_at <= statement_timestamp()),
    old_minutes AS (DELETE FROM windlass_minutes WHERE minute < statement_timestamp() - interval '30 days'),
    old_series AS (DELETE FROM windlass_series WHERE at < statement_timestamp() - interval '30 days'),
    old_workers AS (DELETE FROM windlass_workers WHERE beat_at < statement_timestamp() - interval '1 day')
DELETE FROM windlass_locks WHERE expires_at < statement_timestamp() - interval '1 day'
"""


class Passed:
    """Where the next call goes on, in the endings of queues in which very many had to stay."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], tuple[datetime, int]] = {}

    def asked(self) -> tuple[Any, ...]:
        """The places, as values of a statement."""
        places = [(*ending, *place) for ending, place in self._places.items()]
        return tuple([place[part] for place in places] for part in range(4))

    def came(self, stops: Iterable[Sequence[Any]], *, through: bool) -> None:
        """A call stopped here. Unless it had room for all it found, the next one looks there again."""
        if through:
            self._places = {(queue, status): (since, skip) for queue, status, since, skip in stops}


async def prune(link: Link, retention: Retention, n: int, passed: Passed) -> Pruned:
    """Delete finished jobs past their time, and keys, figures, workers and locks that have expired."""
    own = {queue: _times(kept) for queue, kept in retention.queues.items()}
    rows = await link.fetch(PRUNE, json.dumps(_times(retention)), json.dumps(own), n, *passed.asked())
    removed, seen = map(int, rows[0][:2])
    passed.came([stop for _, _, *stop in rows if stop[0] is not None], through=removed < n)
    for queue, kept in ((None, retention), *retention.queues.items()):
        for status in sorted(FINISHED):
            if removed < n and kept.most is not None:
                values = (status.value, kept.most, sorted(own), queue, n - removed)
                removed += len(await link.fetch(PRUNE_BEYOND, *values))
    await link.fetch(FORGET)
    await link.fetch(rates.FORGET)
    return Pruned(removed, more=max(removed, seen) >= n)


def _times(retention: Retention) -> dict[str, int]:
    return {status.value: as_ms(retention.of(status)) for status in FINISHED}
