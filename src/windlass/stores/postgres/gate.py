"""The gate: what needs a slot, a running key or room in a rate is claimed here, or put aside.

A walk reads page after page of what waits, in the order of the claim, and locks nothing it reads. The locks of the
lines are tried, and a line that somebody else has is passed over as a whole: the next page leaves its jobs out. Under
the locks slots, holders and starts are counted; what was let through is leased at the end, all at once, and what has to
wait is blocked, passing over rows that somebody else is at.

If all there is stands in lines that others have, the gate waits a moment for the first of these, while it has nothing
that anybody could wait for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from asyncpg import exceptions as pg

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres.locking import key_locks, line_locks, try_locks
from windlass.stores.postgres.rates import REOPEN, Rates, book
from windlass.stores.postgres.records import AT, CLOCK, COLUMNS, append, job_of, line_end
from windlass.stores.postgres.wanting import EVERYWHERE, FROM_THE_BEGINNING, LEASE, NAMED, Claim, lease

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.core.job import Job
    from windlass.stores.postgres.connection import Ask, Link

MOST_BLOCKED = 1000
"""how many jobs one claim puts aside before it makes do with what it has"""
_PAGES = 25  # how many pages it reads,
_FIRST, _LARGEST = 50, 500  # each of so many jobs of a queue, larger ones while much is put aside
_QUEUES = 64  # queues looked into beside as many as jobs are wanted
_PATIENCE = 100  # milliseconds to wait for a line

# What a job needs, beside itself.
_NEEDS = """
    j.id, j.queue, j.priority, j.run_at, j.limit_key, coalesce(j.limit_n, 1) AS limit_n,
    CASE WHEN j.unique_running IS DISTINCT FROM j.unique_key THEN j.unique_running END AS running_key,
    j.rate_key, j.rate_n, j.rate_ms, j.blocked_by IS NOT NULL AS called
"""
# $5 is how many of each queue. The values of the lease are not used yet, but have to be told their types all the same.
_PAGE = f"""
SELECT wanted.most, wanted.weight, wanted.draw, first.* FROM wanted CROSS JOIN LATERAL (
    SELECT {_NEEDS} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.queue = wanted.name AND j.type = ANY ($3::text[])
        AND (j.priority, j.run_at, j.id) >= (wanted.priority, wanted.run_at, wanted.id)
    ORDER BY j.priority, j.run_at, j.id LIMIT $5::int
) AS first
WHERE ($4::int, $6::text, $7::interval, $8::text) IS NOT NULL
"""  # noqa: S608  # made of constants
PAGE = f"WITH {NAMED} {_PAGE}"
PAGE_EVERYWHERE = f"WITH RECURSIVE {EVERYWHERE} {_PAGE}"
NEXT_PAGE = f"""
SELECT first.* FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::text[]) AS mark (name, priority, run_at, id)
CROSS JOIN LATERAL (
    SELECT {_NEEDS} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.queue = mark.name AND j.type = ANY ($5::text[])
        AND (j.priority, j.run_at, j.id) > (mark.priority, mark.run_at, mark.id)
        AND (j.limit_key IS NULL OR j.limit_key <> ALL ($7::text[]))
        AND (j.unique_running IS NULL OR j.unique_running <> ALL ($8::text[]))
        AND (j.rate_key IS NULL OR j.rate_key <> ALL ($9::text[]))
    ORDER BY j.priority, j.run_at, j.id LIMIT $6::int
) AS first
"""  # noqa: S608  # made of constants
WAIT = "SELECT set_config('lock_timeout', $2::text, true), pg_advisory_xact_lock(hashtextextended($1::text, 0))"
SLOTS = """
SELECT key, (SELECT count(*) FROM windlass_jobs WHERE status = 'processing' AND limit_key = key)
FROM unnest($1::text[]) AS key
"""
HOLDERS = "SELECT unique_key FROM windlass_jobs WHERE unique_key = ANY ($1::text[])"
# Who has lines must not wait for rows.
_FREE = """
free AS MATERIALIZED (
    SELECT id FROM windlass_jobs WHERE id = ANY ($1::text[]) AND status || '' = 'queued' FOR UPDATE SKIP LOCKED
)
"""
BLOCK = f"""
WITH {CLOCK}, {_FREE}, told AS MATERIALIZED (
    SELECT told.* FROM unnest($1::text[], $2::text[], $3::text[]) AS told (id, by, line)
    WHERE told.id IN (SELECT id FROM free)
)
UPDATE windlass_jobs AS j SET status = 'blocked', blocked_by = told.by, updated_at = {AT}, {append("told.line")}
FROM clock AS c, told WHERE j.id = told.id
"""  # noqa: S608  # made of constants
LEASE_THESE = f"""
WITH {CLOCK}, {_FREE}
UPDATE windlass_jobs AS j SET {LEASE.replace("$6", "$2").replace("$7", "$3").replace("$8", "$4")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM free)) RETURNING {COLUMNS}
"""  # noqa: S608  # made of constants


async def pass_gate(link: Link, claim: Claim) -> int:
    """Take what may run and put aside what may not; returns how many of those taken needed nothing."""

    async def work(ask: Ask) -> _Gate:
        gate = _Gate(link, ask, claim)
        await gate.walk()
        if gate.held_up:
            await ask(WAIT, gate.first_held, f"{_PATIENCE}ms")
            gate = _Gate(link, ask, claim)
            await gate.walk()
        await gate.write()
        return gate

    try:
        gate = await link.transaction(work, again=False)
    except pg.LockNotAvailableError:
        claim.more = True
        return 0
    claim.take(gate.taken)
    claim.more = claim.room > 0 and gate.more
    return gate.plain


class _Candidate(NamedTuple):
    """A queued job as it was read."""

    id: str
    queue: str
    priority: int
    run_at: datetime
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


def _locks(link: Link, line: str) -> list[str]:
    """The locks that whoever lets somebody of this line run or wait must have."""
    kind, _, key = line.partition(":")
    return line_locks(link, [line]) + (key_locks(link, [key]) if kind == "unique" else [])


class _Queue:
    """One queue's part of a walk."""

    def __init__(self, most: int, weight: int, draw: float) -> None:
        self.left, self._weight, self._draw = most, weight, draw
        self.waiting: deque[_Candidate] = deque()
        self.mark: tuple[int, datetime, str] = (0, datetime.min.replace(tzinfo=UTC), "")
        self.ended = False
        """there is no more to read, or none may be taken"""
        self._taken: dict[int, int] = defaultdict(int)

    @property
    def place(self) -> tuple[int, int, float]:
        """Where its first stands among those of other queues: queues of one priority take turns."""
        priority = self.waiting[0].priority
        return priority, self._taken[priority] // self._weight, self._draw

    def take(self, candidate: _Candidate) -> None:
        """Count one that may run."""
        self.left -= 1
        self._taken[candidate.priority] += 1
        if self.left <= 0:
            self.waiting.clear()
            self.ended = True


class _Gate:
    """Limits, running keys and rates, counting what this very claim has already let through."""

    def __init__(self, link: Link, ask: Ask, claim: Claim) -> None:
        self._link, self._ask, self._claim = link, ask, claim
        self._room, self._size = claim.room, max(claim.room, _FIRST)
        self._queues: dict[str, _Queue] = {}
        self._pages = 0
        self._admitted: list[_Candidate] = []
        self._blocks: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._held: set[str] = set()
        self._rates = Rates()
        self._locks: set[str] = set()
        self._passed: dict[str, str] = {}
        """lines that somebody else has, each with a lock that is missing"""
        self.taken: list[Job] = []
        self.plain = 0

    @property
    def held_up(self) -> bool:
        """Whether it found only what others have, and has nothing itself that they could wait for."""
        return bool(self._passed) and not self._admitted and not self._blocks and not self._locks

    @property
    def first_held(self) -> str:
        """The lock of the first line that somebody else has."""
        return next(iter(self._passed.values()))

    @property
    def more(self) -> bool:
        """Whether it stopped early, or others have the rest."""
        enough = len(self._blocks) >= MOST_BLOCKED or self._pages >= _PAGES
        return enough or bool(self._passed) or len(self.taken) < len(self._admitted)

    async def walk(self) -> None:
        """Go on until there is no more room, or no more to look at, or enough was looked at."""
        await self._read_first()
        while self._room > 0 and len(self._blocks) < MOST_BLOCKED:
            empty = [name for name, queue in self._queues.items() if not queue.waiting and not queue.ended]
            if empty:
                if self._pages >= _PAGES:
                    return
                await self._read(empty)
                continue
            lined_up = [queue for queue in self._queues.values() if queue.waiting]
            if not lined_up:
                return
            first = min(lined_up, key=lambda queue: queue.place)
            self._judge(first, first.waiting.popleft())

    async def _read_first(self) -> None:
        claim, size = self._claim, self._size
        if claim.named:
            rows = await self._ask(PAGE, *claim.by_name(size, FROM_THE_BEGINNING))
        else:
            rows = await self._ask(PAGE_EVERYWHERE, *claim.everywhere(size, claim.room + _QUEUES))
        for most, weight, draw, _, name, *_ in rows:
            self._queues.setdefault(name, _Queue(most, weight, draw))
        await self._add([_Candidate(*row[3:]) for row in rows], self._queues)

    async def _read(self, names: Sequence[str]) -> None:
        self._size = max(self._size, min(self._size * 2, _LARGEST))
        marks = [self._queues[name].mark for name in names]
        passed: dict[str, list[str]] = {"limit": [], "unique": [], "rate": []}
        for line in self._passed:
            kind, _, key = line.partition(":")
            passed[kind].append(key)
        places: list[list[Any]] = [[mark[part] for mark in marks] for part in range(3)]
        rows = await self._ask(NEXT_PAGE, names, *places, self._claim.types, self._size, *passed.values())
        await self._add([_Candidate(*row) for row in rows], names)

    async def _add(self, rows: Sequence[_Candidate], names: Iterable[str]) -> None:
        """Line up what was read, but for what stands in lines that others have."""
        self._pages += 1
        await self._learn(rows)
        counts: dict[str, int] = defaultdict(int)
        for row in rows:
            queue = self._queues[row.queue]
            counts[row.queue] += 1
            queue.mark = (row.priority, row.run_at, row.id)
            missing = {line: lock for line in row.lines() for lock in _locks(self._link, line)}
            missing = {line: lock for line, lock in missing.items() if not self._ours(line)}
            if missing:
                self._passed |= missing
            else:
                queue.waiting.append(row)
        for name in names:
            self._queues[name].ended = counts[name] < self._size

    def _ours(self, line: str) -> bool:
        return self._locks.issuperset(_locks(self._link, line))

    async def _learn(self, rows: Sequence[_Candidate]) -> None:
        """Take the locks of lines not met before, and count their slots, holders and starts under them."""
        limits = {row.limit_key for row in rows if row.limit_key is not None} - self._slots.keys()
        keys = {row.running_key for row in rows if row.running_key is not None}
        rates = {(row.rate_key, row.rate_n, row.rate_ms) for row in rows if row.rate_key is not None}
        lines = [f"limit:{key}" for key in limits] + [f"unique:{key}" for key in keys]
        lines += [f"rate:{key}" for key, _, _ in rates]
        wanted = {lock for line in lines if line not in self._passed for lock in _locks(self._link, line)}
        self._locks |= await try_locks(self._ask, wanted - self._locks)
        counted = sorted(key for key in limits if self._ours(f"limit:{key}"))
        if counted:
            self._slots |= dict(await self._ask(SLOTS, counted))
        if keys:
            self._held |= {key for (key,) in await self._ask(HOLDERS, sorted(keys))}
        await self._rates.learn(self._ask, [rate for rate in rates if self._ours(f"rate:{rate[0]}")])

    def _judge(self, queue: _Queue, row: _Candidate) -> None:
        if by := self._stopped_by(row):
            self._blocks[row.id] = by
            return
        queue.take(row)
        self._admitted.append(row)
        self._room -= 1
        if row.limit_key is not None:
            self._slots[row.limit_key] += 1
        if row.running_key is not None:
            self._held.add(row.running_key)

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

    async def write(self) -> None:
        """Lease what was let through and block what was not, as far as nobody else is at it."""
        if self._blocks:
            lines = [line_end(Happened.BLOCKED, Status.BLOCKED, note=by) for by in self._blocks.values()]
            await self._ask(BLOCK, list(self._blocks), list(self._blocks.values()), lines)
        if self._admitted:
            order = {row.id: place for place, row in enumerate(self._admitted)}
            leased = await self._ask(LEASE_THESE, list(order), *lease(self._claim.want))
            self.taken = sorted((job_of(row) for row in leased), key=lambda job: order[job.id])
            await book(self._ask, self.taken)
            self.plain = sum(not row.lines() for row in self._admitted)
        waited = sorted({by.removeprefix("rate:") for by in self._blocks.values() if by.startswith("rate:")})
        if waited:
            await self._ask(REOPEN, waited)
