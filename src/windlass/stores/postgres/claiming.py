"""Claim: queued jobs become leased ones; what may not run yet becomes blocked.

One statement finds the first jobs of every queue asked for, locks them, passing over what others have locked, and
leases them. It stops before the first job that needs a slot, a running key or room in a rate. Those are taken in a
transaction of their own, in which the locks of their lines are held, so that nobody else counts or takes the same.

While some old snapshot keeps all that was claimed since from being cleared away, every look has to step over it. Once
that is seen to be slow, claims look from where the last one ended (`Marks`), and only now and then from the beginning.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres.locking import key_locks, line_locks, try_locks
from windlass.stores.postgres.marks import Marks
from windlass.stores.postgres.rates import Rates, book
from windlass.stores.postgres.records import (
    AT,
    CLOCK,
    COLUMNS,
    NAMES,
    append,
    between,
    job_of,
    line_end,
    token_end,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.postgres.connection import Ask, Link

_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has
_PAGE = 100  # jobs looked at once while some of them are put aside
_WIDEST = 64  # how many times more jobs are looked at than wanted, while rivals are at the same ones
_LOWEST = -(2**31)  # sorts before every priority
_LOOK_AGAIN = 0.02  # seconds between looks from the marks while one from the beginning is put off
_TRIES = 20  # how often a claim that rivals left with too little looks again

GATED = """(
    j.limit_key IS NOT NULL OR j.rate_key IS NOT NULL
    OR (j.unique_running IS NOT NULL AND j.unique_running IS DISTINCT FROM j.unique_key)
)"""
# The queues asked for that are not paused: those named with their allowances, or every one there is.
WANTED = """
wanted AS MATERIALIZED (
    SELECT name, most FROM (
        SELECT name, most FROM unnest($1::text[], $2::int[]) AS named (name, most)
        UNION SELECT name, $4::int FROM windlass_queues WHERE $1::text[] IS NULL
    ) AS asked
    WHERE NOT EXISTS (
        SELECT FROM windlass_queue_settings AS s WHERE s.name = asked.name AND s.paused_at IS NOT NULL
    )
)
"""
LEASE = f"""
    status = 'processing', worker_id = $6::text, lease_token = j.lease_token + 1,
    lease_expires_at = {AT} + $7::interval,
    attempts = j.attempts + 1, started_at = {AT}, updated_at = {AT}, wait_ms = {between(AT, "j.queued_at")},
    progress = NULL, unique_key = j.unique_running, blocked_by = NULL,
    {append("$8::text || (j.lease_token + 1) || '}'")}
"""
# Rows are reached by where they lie, not by id once more. One that was changed since it was seen lies elsewhere and is
# passed over. The status is tested in words that no index is made for, so that none looks like a better way.
CLAIM = f"""
WITH {CLOCK}, {WANTED}, marks AS MATERIALIZED (
    SELECT wanted.name, wanted.most, coalesce(mark.priority, {_LOWEST}) AS priority,
        coalesce(mark.run_at, '-infinity') AS run_at, coalesce(mark.id, '') AS id
    FROM wanted LEFT JOIN unnest($9::text[], $10::int[], $11::timestamptz[], $12::text[])
        AS mark (name, priority, run_at, id) ON mark.name = wanted.name
), seen AS MATERIALIZED (
    SELECT first.at FROM marks CROSS JOIN LATERAL (
        SELECT j.ctid AS at, j.priority, j.run_at, j.id FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = marks.name AND j.type = ANY ($3::text[])
            AND (j.priority, j.run_at, j.id) > (marks.priority, marks.run_at, marks.id)
        ORDER BY j.priority, j.run_at, j.id LIMIT least(marks.most, $4::int) * $5::int
    ) AS first
    ORDER BY first.priority, first.run_at, first.id LIMIT $4::int * $5::int
), looked AS MATERIALIZED (
    SELECT array_agg(at) AS them, count(*) AS n,
        extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS seconds FROM seen
), locked AS MATERIALIZED (
    SELECT j.ctid AS at, j.queue, j.priority, j.run_at, j.id, {GATED} AS gated FROM windlass_jobs AS j
    WHERE j.ctid = ANY ((SELECT them FROM looked)::tid[]) AND j.status || '' = 'queued'
    ORDER BY j.priority, j.run_at, j.id LIMIT $4::int FOR UPDATE SKIP LOCKED
), ranked AS MATERIALIZED (
    SELECT at, most, row_number() OVER (PARTITION BY queue ORDER BY priority, run_at, id) AS place,
        bool_or(gated) OVER (ORDER BY priority, run_at, id) AS behind
    FROM locked JOIN wanted ON wanted.name = locked.queue
), leased AS (
    UPDATE windlass_jobs AS j SET {LEASE}
    FROM clock AS c
    WHERE j.ctid = ANY (ARRAY(SELECT at FROM ranked WHERE place <= most AND NOT behind)) AND j.status || '' = 'queued'
    RETURNING {COLUMNS}
), found AS (
    SELECT count(*) AS locked, coalesce(bool_or(gated), false) AS gated FROM locked
)
SELECT looked.n, looked.seconds, found.locked, found.gated, leased.*
FROM looked CROSS JOIN found LEFT JOIN leased ON true
"""  # noqa: S608  # made of constants
_FOUND = 4  # columns before the job's own
_ORDER = tuple(NAMES.index(name) for name in ("priority", "run_at", "id"))


_FROM_THE_BEGINNING: tuple[Any, ...] = ([], [], [], [])


class Claiming:
    """What the claims of one store remember from one to the next: only hints."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._wide = 1
        self._marks = Marks()
        self._again = 0.0

    async def claim(self, want: Want) -> list[Job]:
        """At most `want.n` jobs, first by priority, then time, then id."""
        one = _Claim(want)
        while due := self._marks.due(want.types):
            await self._look(one, whole_way=False)
            if one.room <= 0:
                break
            if one.taken:
                self._look_again_in(due)
                break
            # That there is nothing is only said after a look from the beginning.
            await asyncio.sleep(min(due, _LOOK_AGAIN))
        else:
            for _ in range(_TRIES):
                if await self._look(one, whole_way=True):
                    break
        return sorted(one.taken, key=_in_order)

    def _look_again_in(self, seconds: float) -> None:
        """Maybe that was not all there is: whoever wants more is woken when it can be known."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._again:
            self._again = loop.time() + seconds
            loop.call_later(seconds, self._link.look_again)

    async def _look(self, one: _Claim, *, whole_way: bool) -> bool:
        """Take what one statement finds; returns whether that is all there is, or enough."""
        marks = _FROM_THE_BEGINNING if whole_way else self._marks.asked()
        rows = await self._link.once(CLAIM, *one.asked(self._wide), *_lease(one.want), *marks)
        seen, seconds, locked, gated = rows[0][:_FOUND]
        jobs = [job_of(row[_FOUND:]) for row in rows if row[_FOUND] is not None]
        one.take(jobs)
        if whole_way:
            self._marks.looked(seconds)
        self._marks.passed(jobs)
        if gated and one.room > 0:
            self._marks.forget()  # those before the marks may have been left for want of a slot
            gate = await self._claim_gated(one)
            if gate.blocked >= _MOST_BLOCKED or one.room <= 0:
                return True
            if gate.busy:
                await asyncio.sleep(random.uniform(0, 0.01))
            return False
        if one.room <= 0 or locked >= min(seen, one.asked_for):
            self._wide = max(1, self._wide // 2)
            return True
        self._wide = min(self._wide * 4, _WIDEST)
        await asyncio.sleep(random.uniform(0, 0.005))
        return False

    async def _claim_gated(self, one: _Claim) -> _Gate:
        """Take what needs a slot, a key or room in a rate."""

        async def work(ask: Ask) -> _Gate:
            gate = _Gate(self._link, ask, one)
            await gate.walk()
            return gate

        gate = await self._link.transaction(work, again=False)
        one.take(gate.taken)
        return gate


def _lease(want: Want) -> tuple[Any, ...]:
    return (
        want.worker_id,
        whole(want.lease),
        token_end(Happened.CLAIMED, Status.PROCESSING, want.worker_id),
    )


def _in_order(job: Job) -> tuple[Any, ...]:
    return job.priority, job.run_at, job.id


class _Claim:
    """One claim in the making."""

    def __init__(self, want: Want) -> None:
        self.want = want
        self.room = self.asked_for = want.n
        self.taken: list[Job] = []
        self._used: dict[str, int] = defaultdict(int)

    def asked(self, wide: int) -> tuple[Any, ...]:
        """The first values of a statement that looks for what is still wanted."""
        self.asked_for = self.room
        if self.want.queues is None:
            return None, None, sorted(self.want.types), self.room, wide
        allowed = {name: self.allowance(name) for name in self.want.queues}
        names = [name for name, most in allowed.items() if most > 0]
        return names, [min(allowed[name], self.want.n) for name in names], sorted(self.want.types), self.room, wide

    def allowance(self, queue: str) -> int:
        """How many more may come from this queue."""
        most = self.want.n if self.want.queues is None else self.want.queues.get(queue, 0)
        return most - self._used[queue]

    def take(self, jobs: Any) -> None:
        """Count these as claimed."""
        for job in jobs:
            self.taken.append(job)
            self._used[job.queue] += 1
            self.room -= 1


CANDIDATES = f"""
WITH {WANTED}, seen AS MATERIALIZED (
    SELECT first.id, first.priority, first.run_at FROM wanted CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at FROM windlass_jobs AS j
        WHERE j.status = 'queued' AND j.queue = wanted.name AND j.type = ANY ($3::text[]) AND j.id <> ALL ($5::text[])
        ORDER BY j.priority, j.run_at, j.id LIMIT $4::int FOR UPDATE SKIP LOCKED
    ) AS first
)
SELECT j.id, j.queue, j.limit_key, coalesce(j.limit_n, 1),
    CASE WHEN j.unique_running IS DISTINCT FROM j.unique_key THEN j.unique_running END,
    j.rate_key, j.rate_n, j.rate_ms, j.blocked_by IS NOT NULL
FROM seen JOIN windlass_jobs AS j ON j.id = seen.id
ORDER BY seen.priority, seen.run_at, seen.id LIMIT $4::int
"""  # noqa: S608  # made of constants
SLOTS = """
SELECT key, (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = key)
FROM unnest($1::text[]) AS key
"""
HOLDERS = "SELECT unique_key FROM windlass_jobs WHERE unique_key = ANY ($1::text[])"
BLOCK = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'blocked', blocked_by = told.by, updated_at = {AT}, {append("told.line")}
FROM clock AS c, unnest($1::text[], $2::text[], $3::text[]) AS told (id, by, line)
WHERE j.id = told.id AND j.status = 'queued'
"""  # noqa: S608  # made of constants
LEASE_THESE = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET {LEASE.replace("$6", "$2").replace("$7", "$3").replace("$8", "$4")}
FROM clock AS c WHERE j.id = ANY ($1::text[]) AND j.status = 'queued' RETURNING {COLUMNS}
"""  # noqa: S608  # made of constants


class _Candidate(NamedTuple):
    """A queued job whose row is held."""

    id: str
    queue: str
    limit_key: str | None
    limit: int
    running_key: str | None
    rate_key: str | None
    rate_n: int
    rate_ms: int
    called: bool
    """from the line of its rate"""

    def lines(self) -> list[str]:
        """What it takes a place in."""
        kinds = {"limit": self.limit_key, "unique": self.running_key, "rate": self.rate_key}
        return [f"{kind}:{key}" for kind, key in kinds.items() if key is not None]

    def locks(self, link: Link) -> list[str]:
        """The locks that whoever lets it run or wait must have."""
        return line_locks(link, self.lines()) + key_locks(link, [] if self.running_key is None else [self.running_key])


class _Gate:
    """Limits, running keys and rates, counting what this very claim has already let through."""

    def __init__(self, link: Link, ask: Ask, one: _Claim) -> None:
        self._link, self._ask, self._one = link, ask, one
        self._room = one.room
        self._left: dict[str, int] = {}
        self.taken: list[Job] = []
        self._admitted: list[str] = []
        self.blocked = 0
        self.passed_over: set[str] = set()
        """jobs whose line a rival held, or whose queue has no more room: left as they are"""
        self._full: set[str] = set()
        self._slots: dict[str, int] = {}
        self._held: set[str] = set()
        self._rates = Rates()
        self._locks: set[str] = set()

    @property
    def busy(self) -> bool:
        """Whether rivals held what was wanted."""
        return bool(self.passed_over) or not (self.taken or self.blocked)

    async def walk(self) -> None:
        """Look at page after page until there is no more room or no more to look at."""
        while self._room > 0 and self.blocked < _MOST_BLOCKED:
            page = max(self._room, _PAGE)
            names, mosts, types, _, _ = self._one.asked(1)
            left = sorted(self.passed_over | self._full | set(self._admitted))
            rows = [_Candidate(*row) for row in await self._ask(CANDIDATES, names, mosts, types, page, left)]
            if not rows:
                break
            await self._learn(rows)
            blocks = self._admit(rows)
            if blocks:
                told = [line_end(Happened.BLOCKED, Status.BLOCKED, note=by) for by in blocks.values()]
                await self._ask(BLOCK, list(blocks), list(blocks.values()), told)
        if self._admitted:
            leased = await self._ask(LEASE_THESE, self._admitted, *_lease(self._one.want))
            self.taken = [job_of(row) for row in leased]
            await book(self._ask, self.taken)

    async def _learn(self, rows: Sequence[_Candidate]) -> None:
        """Take the locks of lines not met before, and count their slots, holders and starts under them."""
        limits = {row.limit_key for row in rows if row.limit_key is not None} - self._slots.keys()
        keys = {row.running_key for row in rows if row.running_key is not None}
        rates = {(row.rate_key, row.rate_n, row.rate_ms) for row in rows if row.rate_key is not None}
        lines = [f"limit:{key}" for key in limits] + [f"unique:{key}" for key in keys]
        lines += [f"rate:{key}" for key, _, _ in rates]
        wanted = line_locks(self._link, lines) + key_locks(self._link, keys)
        self._locks |= await try_locks(self._ask, set(wanted) - self._locks)
        counted = sorted(limits)
        if counted:
            self._slots |= dict(await self._ask(SLOTS, counted))
        if keys:
            self._held |= {key for (key,) in await self._ask(HOLDERS, sorted(keys))}
        ours = [rate for rate in rates if self._locks.issuperset(line_locks(self._link, [f"rate:{rate[0]}"]))]
        await self._rates.learn(self._ask, ours)

    def _admit(self, rows: Sequence[_Candidate]) -> dict[str, str]:
        """Walk these in order; returns who is put aside, and what for."""
        blocks: dict[str, str] = {}
        for row in rows:
            if self._room <= 0 or self.blocked >= _MOST_BLOCKED:
                break
            if self._left.setdefault(row.queue, self._one.allowance(row.queue)) <= 0:
                self._full.add(row.id)
            elif not self._locks.issuperset(row.locks(self._link)):
                self.passed_over.add(row.id)
            elif by := self._stopped_by(row):
                blocks[row.id] = by
                self.blocked += 1
            else:
                self._let_through(row)
        return blocks

    def _stopped_by(self, row: _Candidate) -> str | None:
        """What it has to wait for. The rate comes last: who stops elsewhere must not spend it."""
        if row.limit_key is not None and self._slots[row.limit_key] >= row.limit:
            return f"limit:{row.limit_key}"
        if row.running_key is not None and row.running_key in self._held:
            return f"unique:{row.running_key}"
        if row.rate_key is not None and not self._rates.lets_through(
            row.rate_key, row.rate_n, row.rate_ms, called=row.called
        ):
            return f"rate:{row.rate_key}"
        return None

    def _let_through(self, row: _Candidate) -> None:
        self._admitted.append(row.id)
        self._left[row.queue] -= 1
        self._room -= 1
        if row.limit_key is not None:
            self._slots[row.limit_key] += 1
        if row.running_key is not None:
            self._held.add(row.running_key)
