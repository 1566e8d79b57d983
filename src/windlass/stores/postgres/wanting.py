"""What a claim wants: of which queues and types, how many, in which order, and under which lease.

Queues are found by the index of what waits, stepping from one to the next, so that one that has nothing costs nothing.
No more of them are looked into than jobs are wanted, those with the best priorities: the first job of any other comes
behind the first of each of these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres.records import AT, NEXT_TOKEN, append, between, token_end, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.core.job import Job
    from windlass.stores.contract import Want

_LOWEST = -(2**31)  # sorts before every priority
_NAMED = 64  # queues that are looked into one by one, whether they have something or not
FROM_THE_BEGINNING: tuple[Any, ...] = ([], [], [], [])
"""no marks"""

_OPEN = "NOT EXISTS (SELECT FROM windlass_queue_settings AS s WHERE s.name = asked.name AND s.paused_at IS NOT NULL)"
# A turn takes as many as the queue's weight, and a greater weight makes an earlier turn more likely.
_TURN = "weight, -ln(1 - random()) / weight AS draw"
# The queues that were named with their allowances, or those that have a mark, each from its mark on. Queues without one
# are found by the next look from the beginning, which is never far.
NAMED = f"""
wanted AS MATERIALIZED (
    SELECT asked.name, asked.most, asked.{_TURN}, coalesce(mark.priority, {_LOWEST}) AS priority,
        coalesce(mark.run_at, '-infinity') AS run_at, coalesce(mark.id, '') AS id
    FROM (
        SELECT name, most, coalesce(($13::text::jsonb ->> name)::int, 1) AS weight FROM (
            SELECT name, most FROM unnest($1::text[], $2::int[]) AS named (name, most)
            UNION SELECT name, $4::int FROM unnest($9::text[]) AS marked (name) WHERE $1::text[] IS NULL
        ) AS named
    ) AS asked LEFT JOIN unnest($9::text[], $10::int[], $11::timestamptz[], $12::text[])
        AS mark (name, priority, run_at, id) ON mark.name = asked.name
    WHERE {_OPEN}
)
"""  # noqa: S608  # made of constants
# The queues that have something: those with the first priorities, at most so many. Allowances and weights are JSON
# objects, in which a name is found without a look at every other. Each queue is read from its first job on, so that
# what is dead before it is stepped over once.
EVERYWHERE = f"""
heads (name, priority, run_at, id) AS (
    (
        SELECT j.queue, j.priority, j.run_at, j.id FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.type = ANY ($3::text[])
        ORDER BY j.queue, j.priority, j.run_at, j.id LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.priority, next.run_at, next.id FROM heads CROSS JOIN LATERAL (
        SELECT j.queue, j.priority, j.run_at, j.id FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue > heads.name AND j.type = ANY ($3::text[])
        ORDER BY j.queue, j.priority, j.run_at, j.id LIMIT 1
    ) AS next
), wanted AS MATERIALIZED (
    SELECT asked.name, asked.most, asked.{_TURN}, asked.priority, asked.run_at, asked.id
    FROM (
        SELECT heads.*, CASE WHEN $1::text IS NULL THEN $4::int ELSE ($1::text::jsonb ->> name)::int END AS most,
            coalesce(($2::text::jsonb ->> name)::int, 1) AS weight
        FROM heads
    ) AS asked
    WHERE asked.most > 0 AND {_OPEN}
    ORDER BY asked.priority, draw LIMIT $9::int
)
"""  # noqa: S608  # made of constants
LEASE = f"""
    status = 'processing', worker_id = $6::text, lease_token = {NEXT_TOKEN},
    lease_expires_at = {AT} + $7::interval,
    attempts = j.attempts + 1, started_at = {AT}, updated_at = {AT}, wait_ms = {between(AT, "j.queued_at")},
    progress = NULL, unique_key = j.unique_running, blocked_by = NULL,
    {append(f"$8::text || {NEXT_TOKEN} || '}}'")}
"""


def lease(want: Want) -> tuple[Any, ...]:
    """The values of LEASE."""
    return want.worker_id, whole(want.lease), token_end(Happened.CLAIMED, Status.PROCESSING, want.worker_id)


class Claim:
    """One claim in the making."""

    def __init__(self, want: Want) -> None:
        self.want = want
        self.room = want.n
        self.taken: list[Job] = []
        self.types = sorted(want.types)
        self.weights = json.dumps({name: max(1, weight) for name, weight in want.weights.items()})
        self.more = False
        """another claim at once may bring more"""
        self.gated = False
        """the last look met a job that needs a slot, a key or room in a rate"""
        self._used: dict[str, int] = defaultdict(int)

    @property
    def named(self) -> bool:
        """Whether so few queues are asked for that each is looked into."""
        return self.want.queues is not None and len(self.want.queues) <= _NAMED

    def allowed(self) -> dict[str, int] | None:
        """How many more may come from each queue that was named; None: any number from every one."""
        if self.want.queues is None:
            return None
        allowed = {name: most - self._used[name] for name, most in self.want.queues.items()}
        return {name: min(most, self.want.n) for name, most in allowed.items() if most > 0}

    def take(self, jobs: Iterable[Job]) -> None:
        """Count these as claimed."""
        for job in jobs:
            self.taken.append(job)
            self._used[job.queue] += 1
            self.room -= 1

    def by_name(self, wide: int, marks: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a statement that begins with NAMED."""
        allowed = self.allowed()
        names = (None, None) if allowed is None else (list(allowed), list(allowed.values()))
        return (*names, self.types, self.room, wide, *lease(self.want), *marks, self.weights)

    def everywhere(self, wide: int, most: int) -> tuple[Any, ...]:
        """The values of a statement that begins with EVERYWHERE and looks into at most so many queues."""
        allowed = self.allowed()
        told = None if allowed is None else json.dumps(allowed)
        return (told, self.weights, self.types, self.room, wide, *lease(self.want), most)
