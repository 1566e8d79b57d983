"""Claim: queued jobs become leased ones.

One statement finds the first jobs of the queues asked for, locks them, passing over what others have locked, and leases
them. It stops before the first job that needs a slot, a running key or room in a rate, or whose time to begin is over:
for those see `gate`.

While some old snapshot keeps all that was claimed since from being cleared away, every look has to step over it. Once
that is seen to be slow, claims look from where the last one ended (`Marks`), and only now and then from the beginning.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from windlass.stores.contract import Claimed
from windlass.stores.postgres.gate import pass_gate
from windlass.stores.postgres.marks import Marks
from windlass.stores.postgres.records import CLOCK, COLUMNS, IS_EXPIRED, job_of
from windlass.stores.postgres.walked import Walked
from windlass.stores.postgres.wanting import EVERYWHERE, FROM_THE_BEGINNING, LEASE, NAMED, Claim

if TYPE_CHECKING:
    from windlass.stores.contract import Want
    from windlass.stores.postgres.connection import Link, Rows

_WIDEST = 64  # how many times more jobs are looked at than wanted, while rivals are at the same ones
_LOOK_AGAIN = 0.02  # seconds between looks from the marks while one from the beginning is put off
_TRIES = 20  # how often a claim that rivals left with too little looks again

GATED = f"""(
    j.limit_key IS NOT NULL OR j.rate_key IS NOT NULL
    OR (j.unique_running IS NOT NULL AND j.unique_running IS DISTINCT FROM j.unique_key) OR {IS_EXPIRED}
)"""
# Rows are reached by where they lie, not by id once more. One that was changed since it was seen lies elsewhere and is
# passed over. The status is tested in words that no index is made for, so that none looks like a better way. Each queue
# is read in the order of its index, so that its jobs are numbered without sorting them; what is found lies in arrays,
# whose length does not mislead the planner, and which are not copied for every row that is locked.
_TAKE = f"""
seen AS MATERIALIZED (
    SELECT first.*, wanted.draw, wanted.most, (first.nth - 1) / wanted.weight AS turn
    FROM wanted CROSS JOIN LATERAL (
        SELECT j.ctid AS at, j.priority, {GATED} AS gated,
            row_number() OVER (PARTITION BY j.priority ORDER BY j.run_at, j.id) AS nth
        FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = wanted.name AND j.type = ANY ($3::text[])
            AND (j.priority, j.run_at, j.id) >= (wanted.priority, wanted.run_at, wanted.id)
        ORDER BY j.priority, j.run_at, j.id LIMIT least(wanted.most, $4::int) * $5::int
    ) AS first
), looked AS MATERIALIZED (
    SELECT array_agg(at ORDER BY priority, turn, draw, nth) AS them,
        array_agg(most ORDER BY priority, turn, draw, nth) AS most,
        array_position(array_agg(gated ORDER BY priority, turn, draw, nth), true) AS gate,
        count(*) AS n, extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS seconds
    FROM (SELECT * FROM seen ORDER BY priority, turn, draw, nth LIMIT $4::int * $5::int) AS first
), locked AS MATERIALIZED (
    SELECT j.ctid AS at, j.queue, told.most, told.place
    FROM unnest(
        (SELECT them[:coalesce(gate - 1, n)::int] FROM looked), (SELECT most[:coalesce(gate - 1, n)::int] FROM looked)
    ) WITH ORDINALITY AS told (at, most, place)
        JOIN windlass_jobs AS j ON j.ctid = told.at
    WHERE j.status || '' = 'queued' ORDER BY told.place LIMIT $4::int FOR UPDATE OF j SKIP LOCKED
), ranked AS MATERIALIZED (
    SELECT at, place, most, row_number() OVER (PARTITION BY queue ORDER BY place) AS nth FROM locked
), leased AS (
    UPDATE windlass_jobs AS j SET {LEASE}
    FROM clock AS c, ranked WHERE j.ctid = ranked.at AND ranked.nth <= ranked.most AND j.status || '' = 'queued'
    RETURNING ranked.place, {COLUMNS}
)
SELECT coalesce(looked.gate - 1, looked.n), looked.seconds, (SELECT count(*) FROM locked), looked.gate IS NOT NULL,
    leased.*
FROM looked LEFT JOIN leased ON true ORDER BY leased.place
"""  # noqa: S608  # made of constants
CLAIM = f"WITH {CLOCK}, {NAMED}, {_TAKE}"
CLAIM_EVERYWHERE = f"WITH RECURSIVE {CLOCK}, {EVERYWHERE}, {_TAKE}"
_FOUND = 5  # columns before the job's own


class Claiming:
    """What the claims of one store remember from one to the next: only hints."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._wide = 1
        self._marks = Marks()
        self._walked = Walked()
        self._again = 0.0
        self._gated = False
        """the last claim met nothing but jobs that need a slot, a key or room in a rate"""

    async def claim(self, want: Want) -> Claimed:
        """At most `want.n` jobs, in the order of the contract."""
        claim = Claim(want)
        if self._gated:
            await self._pass_gate(claim)
        else:
            await self._claim(claim)
        return Claimed(claim.taken, more=claim.more)

    async def _claim(self, claim: Claim) -> None:
        while due := self._marks.due(claim.want.types):
            gated = await self._look(claim, whole_way=False) and claim.gated
            if claim.room <= 0 or gated:
                return
            if claim.taken:
                self._look_again_in(due)
                return
            # That there is nothing is only said after a look from the beginning.
            await asyncio.sleep(min(due, _LOOK_AGAIN))
        for _ in range(_TRIES):
            if await self._look(claim, whole_way=True):
                return
        claim.more = True  # rivals are at what is left

    def _look_again_in(self, seconds: float) -> None:
        """Maybe that was not all there is: waiting workers are woken when it can be known."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._again:
            self._again = loop.time() + seconds
            loop.call_later(seconds, self._link.look_again)

    async def _look(self, claim: Claim, *, whole_way: bool) -> bool:
        """Take what one statement finds; returns whether that is all there is, or enough."""
        asked_for = claim.room
        rows = await self._ask(claim, whole_way=whole_way)
        seen, seconds, locked, claim.gated = rows[0][: _FOUND - 1]
        jobs = [job_of(row[_FOUND:]) for row in rows if row[_FOUND] is not None]
        claim.take(jobs)
        if whole_way:
            self._marks.looked(seconds)
        self._marks.passed(jobs)
        if claim.gated and claim.room > 0:
            self._marks.forget()  # those before the marks may have been left for want of a slot
            await self._pass_gate(claim)
            return True
        if claim.room <= 0 or locked >= min(seen, asked_for):
            self._wide = max(1, self._wide // 2)
            return True
        self._wide = min(self._wide * 4, _WIDEST)
        await asyncio.sleep(random.uniform(0, 0.005))
        return False

    async def _ask(self, claim: Claim, *, whole_way: bool) -> Rows:
        if whole_way and not claim.named:
            return await self._link.once(CLAIM_EVERYWHERE, *claim.everywhere(self._wide, claim.room))
        marks = FROM_THE_BEGINNING if whole_way else self._marks.asked()
        return await self._link.once(CLAIM, *claim.by_name(self._wide, marks))

    async def _pass_gate(self, claim: Claim) -> None:
        before = len(claim.taken)
        plain = await pass_gate(self._link, claim, self._walked)
        self._gated = before == plain == 0 and bool(claim.taken or claim.more)
