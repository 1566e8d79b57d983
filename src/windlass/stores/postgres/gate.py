"""The gate: what needs a slot, a running key or room in a rate is claimed here, or put aside.

A walk reads page after page of what waits, in the order of the claim, and locks nothing it reads. The locks of the
lines are tried, not too many of them, and a line that somebody else has is passed over as a whole: the next page leaves
its jobs out. Under the locks slots, holders and starts are counted; what was let through is leased at the end, all at
once, and what has to wait is blocked, passing over rows that somebody else is at.

One walk passes over a bounded number of jobs. Where that was not all, or took long, the next one goes on behind them
(`Walked`).

What has expired is passed over as well, and counts as walked: `promote` cancels it.

If all there is stands in lines that others have, the gate waits a moment for the first of these, while it has nothing
that anybody could wait for.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from asyncpg import exceptions as pg

from windlass.core.admission import Candidate, InUse, admit
from windlass.core.blocked import BlockedBy, Kind, lines
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.postgres.locking import key_locks, line_locks, try_locks
from windlass.stores.postgres.rates import REOPEN, Rates, book
from windlass.stores.postgres.records import AT, CLOCK, COLUMNS, IS_EXPIRED, append, job_of, line_end, slots_of
from windlass.stores.postgres.walked import Place, Walked
from windlass.stores.postgres.wanting import EVERYWHERE, LEASE, NAMED, Claim, lease

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.stores.postgres.connection import Ask, Link

MOST_BLOCKED = 1000
"""how many jobs one claim puts aside before it makes do with what it has"""
_PAGES = 25  # how many pages it reads,
_FIRST, _LARGEST = 50, 500  # each of so many jobs of a queue, larger ones while much is put aside
_WALKED = 10_000  # how many jobs it walks over in all, behind the first pages,
_QUEUES = 64  # queues looked into beside as many as jobs are wanted
_LOCKS = 400  # locks taken: the server has room for some thousands, of all transactions together
_PATIENCE = 100  # milliseconds to wait for a line

# What a job needs, beside itself.
_NEEDS = f"""
    j.id, j.queue, j.priority, j.run_at, j.limit_key, coalesce(j.limit_n, 1) AS limit_n,
    CASE WHEN j.unique_running IS DISTINCT FROM j.unique_key THEN j.unique_running END AS running_key,
    j.rate_key, j.rate_n, j.rate_ms, j.blocked_by IS NOT NULL AS called, {IS_EXPIRED} AS expired
"""
# $5 is how many of each queue. The values of the lease are not used yet, but have to be told their types all the same.
# A queue of which nothing is left to read is told as well, by a row without a job.
_PAGE = f"""
SELECT wanted.most, wanted.weight, wanted.draw, wanted.name, first.* FROM wanted LEFT JOIN LATERAL (
    SELECT {_NEEDS} FROM windlass_jobs AS j
    WHERE j.status = 'queued' AND j.queue = wanted.name AND j.type = ANY ($3::text[])
        AND (j.priority, j.run_at, j.id) >= (wanted.priority, wanted.run_at, wanted.id)
    ORDER BY j.priority, j.run_at, j.id LIMIT $5::int
) AS first ON true
WHERE ($4::int, $6::text, $7::interval, $8::text) IS NOT NULL
"""  # noqa: S608  # made of constants
_FROM_MARKS = """
marked AS MATERIALIZED (
    SELECT wanted.name, wanted.most, wanted.weight, wanted.draw, coalesce(mark.priority, wanted.priority) AS priority,
        coalesce(mark.run_at, wanted.run_at) AS run_at, coalesce(mark.id, wanted.id) AS id
    FROM wanted LEFT JOIN unnest($10::text[], $11::int[], $12::timestamptz[], $13::text[])
        AS mark (name, priority, run_at, id) ON mark.name = wanted.name
)
"""
PAGE = f"WITH {NAMED} {_PAGE}"
PAGE_EVERYWHERE = f"WITH RECURSIVE {EVERYWHERE}, {_FROM_MARKS} {_PAGE.replace('wanted', 'marked')}"
# At most $10 of each queue are walked over. Those that stand in lines of others are left out, but for the last: it
# tells how far the walk came.
NEXT_PAGE = f"""
SELECT first.* FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::text[]) AS mark (name, priority, run_at, id)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT walked.*, row_number() OVER way AS nth, lead(walked.id) OVER way IS NULL AS last FROM (
            SELECT {_NEEDS}, coalesce(j.limit_key = ANY ($7::text[]), false)
                OR coalesce(j.unique_running = ANY ($8::text[]), false)
                OR coalesce(j.rate_key = ANY ($9::text[]), false) AS passed
            FROM windlass_jobs AS j
            WHERE j.status = 'queued' AND j.queue = mark.name AND j.type = ANY ($5::text[])
                AND (j.priority, j.run_at, j.id) > (mark.priority, mark.run_at, mark.id)
            ORDER BY j.priority, j.run_at, j.id LIMIT $10::int
        ) AS walked WINDOW way AS (ORDER BY priority, run_at, id)
    ) AS numbered WHERE last OR NOT passed ORDER BY priority, run_at, id LIMIT $6::int
) AS first
"""  # noqa: S608  # made of constants
WAIT = "SELECT set_config('lock_timeout', $2::text, true), pg_advisory_xact_lock(hashtextextended($1::text, 0))"
SLOTS = f"SELECT key, {slots_of('key')} FROM unnest($1::text[]) AS key"  # noqa: S608  # made of constants
HOLDERS = "SELECT unique_key FROM windlass_jobs WHERE unique_key = ANY ($1::text[])"
# A transaction that holds lines must not wait for rows.
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
WITH {CLOCK}, {_FREE.replace("FOR UPDATE", f"AND NOT {IS_EXPIRED} FOR UPDATE")}
UPDATE windlass_jobs AS j SET {LEASE.replace("$6", "$2").replace("$7", "$3").replace("$8", "$4")}
FROM clock AS c WHERE j.id = ANY (ARRAY(SELECT id FROM free)) RETURNING {COLUMNS}
"""  # noqa: S608  # made of constants


async def pass_gate(link: Link, claim: Claim, walked: Walked) -> int:
    """Take what may run and put aside what may not; returns how many of those taken needed nothing."""

    async def work(ask: Ask) -> _Gate:
        walked.begin(claim.want.types)
        gate = _Gate(link, ask, claim, walked)
        await gate.walk()
        if gate.held_up:
            gate.remember()
            await ask(WAIT, gate.first_held, f"{_PATIENCE}ms")
            walked.begin_anew()
            gate = _Gate(link, ask, claim, walked)
            await gate.walk()
        await gate.write()
        return gate

    try:
        gate = await link.transaction(work, again=False)
    except pg.LockNotAvailableError:
        claim.more = True
        return 0
    gate.remember()
    claim.take(gate.taken)
    claim.more = claim.room > 0 and gate.more
    return gate.plain


class _Queued(NamedTuple):
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
    expired: bool
    """its time to begin is over: it is left to `promote`"""

    @property
    def place(self) -> Place:
        """Where it stands in its queue."""
        return self.priority, self.run_at, self.id

    @property
    def rate(self) -> tuple[str, int, int] | None:
        """The key, number and window of its rate."""
        return None if self.rate_key is None else (self.rate_key, self.rate_n, self.rate_ms)

    def asks(self) -> Candidate:
        """What it needs in order to start."""
        return Candidate(self.limit_key, self.limit, self.running_key, self.rate_key, self.rate_n, self.called)

    def lines(self) -> list[str]:
        """What it takes a place in."""
        return lines(limit=self.limit_key, unique=self.running_key, rate=self.rate_key)


def _locks(link: Link, line: str) -> list[str]:
    """The locks that must be held to let a job of this line run or wait."""
    by = BlockedBy.of(line)
    return line_locks(link, [line]) + (key_locks(link, [by.key]) if by.kind is Kind.UNIQUE else [])


class _Queue:
    """One queue's part of a walk."""

    def __init__(self, most: int, weight: int, draw: float) -> None:
        self.left, self._weight, self._draw = most, weight, draw
        self.waiting: deque[_Queued] = deque()
        self.mark: Place | None = None
        """the last that was read"""
        self.ended = False
        """there is no more to read, or none may be taken"""
        self.has_passed = False
        """some of its jobs stand in lines that others have, or have expired"""
        self._taken: dict[int, int] = defaultdict(int)

    @property
    def place(self) -> tuple[int, int, float]:
        """Where its first stands among those of other queues: queues of one priority take turns."""
        return self.place_of(self.waiting[0].priority, 0)

    def place_of(self, priority: int, nth: int) -> tuple[int, int, float]:
        """Where one of its jobs stands that so many of the same priority are before."""
        return priority, (self._taken[priority] + nth) // self._weight, self._draw

    @property
    def reached(self) -> Place | None:
        """What lies before this was passed over or is settled; None if nothing was read."""
        return self.waiting[0].place if self.waiting else self.mark

    def take(self, candidate: _Queued) -> None:
        """Count one that may run."""
        self.left -= 1
        self._taken[candidate.priority] += 1
        if self.left <= 0:
            self.waiting.clear()
            self.ended = True
            self.mark = candidate.place


class _Gate:
    """Limits, running keys and rates, counting what this very claim has already let through."""

    def __init__(self, link: Link, ask: Ask, claim: Claim, walked: Walked) -> None:
        self._link, self._ask, self._claim, self._walked = link, ask, claim, walked
        self._room, self._size = claim.room, max(claim.room, _FIRST)
        self._queues: dict[str, _Queue] = {}
        self._pages, self._left = 0, _WALKED
        self._all_queues = True
        self._admitted: list[_Queued] = []
        self._blocks: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._held: set[str] = set()
        self._rates = Rates()
        self._locks: set[str] = set()
        self._passed = dict(walked.passed)
        """lines that somebody else has, each with a lock that is missing"""
        self._untried: set[str] = set()
        """lines whose locks would have been too many: the walk ends before the first of these"""
        self._expired = False
        """it passed over jobs whose time to begin is over"""
        self.taken: list[Job] = []
        self.plain = 0

    @property
    def held_up(self) -> bool:
        """Whether it found only what others have, and has nothing itself that they could wait for."""
        through = not self._untried and not self._tired
        return bool(self._passed) and through and not self._admitted and not self._blocks and not self._locks

    @property
    def first_held(self) -> str:
        """The lock of the first line that somebody else has."""
        return next(iter(self._passed.values()))

    @property
    def _tired(self) -> bool:
        return self._pages >= _PAGES or self._left <= 0

    @property
    def more(self) -> bool:
        """Whether it stopped early, or others have the rest."""
        enough = len(self._blocks) >= MOST_BLOCKED or self._tired or bool(self._untried) or not self._all_queues
        return enough or bool(self._passed) or len(self.taken) < len(self._admitted)

    async def walk(self) -> None:
        """Go on until there is no more room, or no more to look at, or enough was looked at."""
        await self._read_first()
        while self._room > 0 and len(self._blocks) < MOST_BLOCKED:
            empty = [name for name, queue in self._queues.items() if not queue.waiting and not queue.ended]
            if empty:
                if self._tired or self._untried:
                    return
                await self._read(empty)
                continue
            lined_up = [queue for queue in self._queues.values() if queue.waiting]
            if not lined_up:
                return
            first = min(lined_up, key=lambda queue: queue.place)
            if not self._untried.isdisjoint(first.waiting[0].lines()):
                return
            self._judge(first, first.waiting.popleft())

    async def _read_first(self) -> None:
        claim, size, marks = self._claim, self._size, self._walked.asked()
        if claim.named:
            rows = await self._ask(PAGE, *claim.by_name(size, marks))
        else:
            most = claim.room + _QUEUES
            rows = await self._ask(PAGE_EVERYWHERE, *claim.everywhere(size, most), *marks)
        for most_of_it, weight, draw, name, *_ in rows:
            self._queues.setdefault(name, _Queue(most_of_it, weight, draw)).has_passed = name in marks[0]
        self._all_queues = claim.named or len(self._queues) < claim.room + _QUEUES
        found = [_Queued(*row[4:]) for row in rows if row[4] is not None]
        counts = Counter(row.queue for row in found)
        await self._add(found)
        for name, queue in self._queues.items():
            queue.ended = counts[name] < size

    async def _read(self, names: Sequence[str]) -> None:
        self._size = max(self._size, min(self._size * 2, _LARGEST))
        marks = [mark for name in names if (mark := self._queues[name].mark) is not None]
        passed: dict[Kind, list[str]] = {Kind.LIMIT: [], Kind.UNIQUE: [], Kind.RATE: []}
        for kind, key in map(BlockedBy.of, self._passed):
            passed[kind].append(key)
        places: list[list[Any]] = [[mark[part] for mark in marks] for part in range(3)]
        most = max(1, self._left // len(names))
        values = (names, *places, self._claim.types, self._size, *passed.values(), most)
        rows = await self._ask(NEXT_PAGE, *values)
        await self._add([_Queued(*row[:-3]) for row in rows if not row[-3]])
        ends = {row[1]: row for row in rows}  # the last row of each queue
        counts = Counter(row[1] for row in rows if not row[-3])
        for name in names:
            queue, end = self._queues[name], ends.get(name)
            if end is None:
                queue.ended = True
                continue
            *_, nth, is_last = end
            queue.mark = _Queued(*end[:-3]).place
            queue.has_passed |= nth > counts[name]
            queue.ended = is_last and nth < most
            self._left -= nth

    async def _add(self, rows: Sequence[_Queued]) -> None:
        """Line up what was read, but for what stands in lines that others have, or has expired."""
        self._pages += 1
        await self._learn([row for row in rows if not row.expired])
        for row in rows:
            queue = self._queues[row.queue]
            queue.mark = row.place
            if row.expired:
                self._expired = queue.has_passed = True
                continue
            missing = {line: lock for line in row.lines() for lock in _locks(self._link, line)}
            missing = {line: lock for line, lock in missing.items() if not self._ours(line)}
            held = {line: lock for line, lock in missing.items() if line not in self._untried}
            if held:
                self._passed |= held
                queue.has_passed = True
            else:
                queue.waiting.append(row)

    def _ours(self, line: str) -> bool:
        return self._locks.issuperset(_locks(self._link, line))

    async def _learn(self, rows: Sequence[_Queued]) -> None:
        """Take the locks of lines not met before, and count their slots, holders and starts under them."""
        limits = {row.limit_key for row in rows if row.limit_key is not None} - self._slots.keys()
        keys = {row.running_key for row in rows if row.running_key is not None}
        rates = {row.rate for row in rows if row.rate is not None}
        self._locks |= await try_locks(self._ask, self._affordable(rows))
        counted = sorted(key for key in limits if self._ours(BlockedBy(Kind.LIMIT, key).text))
        if counted:
            self._slots |= dict(await self._ask(SLOTS, counted))
        if keys:
            self._held |= {key for (key,) in await self._ask(HOLDERS, sorted(keys))}
        await self._rates.learn(self._ask, [rate for rate in rates if self._ours(BlockedBy(Kind.RATE, rate[0]).text)])

    def _affordable(self, rows: Sequence[_Queued]) -> set[str]:
        """The locks to try for these: of the first in the order of the claim, if those of all are too many."""
        known = self._passed.keys() | self._untried
        met = dict.fromkeys(line for row in rows for line in row.lines())
        locks = {line: set(_locks(self._link, line)) - self._locks for line in met if line not in known}
        wanted = set[str]().union(*locks.values())
        if len(self._locks) + len(wanted) <= _LOCKS:
            return wanted
        wanted = set[str]()
        for line in dict.fromkeys(line for row in self._in_order(rows) for line in row.lines() if line in locks):
            if len(self._locks) + len(wanted | locks[line]) > _LOCKS:
                self._untried.add(line)
            else:
                wanted |= locks[line]
        return wanted

    def _in_order(self, rows: Sequence[_Queued]) -> list[_Queued]:
        """In the order in which they would be judged, if none of them had to wait."""
        before: Counter[tuple[str, int]] = Counter()
        places: list[tuple[tuple[int, int, float], int]] = []
        for at, row in enumerate(rows):
            nth = before[row.queue, row.priority]
            before[row.queue, row.priority] += 1
            places.append((self._queues[row.queue].place_of(row.priority, nth), at))
        return [rows[at] for _, at in sorted(places)]

    def _judge(self, queue: _Queue, row: _Queued) -> None:
        by = admit(row.asks(), self._in_use(row))
        if by is not None:
            self._blocks[row.id] = by.text
            if by.kind is Kind.RATE:
                self._rates.put_aside(by.key)
            return
        queue.take(row)
        self._admitted.append(row)
        self._room -= 1
        if row.limit_key is not None:
            self._slots[row.limit_key] += 1
        if row.running_key is not None:
            self._held.add(row.running_key)
        if row.rate_key is not None:
            self._rates.start(row.rate_key)

    def _in_use(self, row: _Queued) -> InUse:
        slots = 0 if row.limit_key is None else self._slots[row.limit_key]
        starts, in_line = (0, 0) if row.rate is None else self._rates.met(row.rate)
        return InUse(slots, row.running_key in self._held, starts, in_line)

    async def write(self) -> None:
        """Lease what was let through and block what was not, except jobs that somebody else has locked."""
        if self._blocks:
            told = [line_end(Happened.BLOCKED, Status.BLOCKED, note=by) for by in self._blocks.values()]
            await self._ask(BLOCK, list(self._blocks), list(self._blocks.values()), told)
        if self._admitted:
            order = {row.id: place for place, row in enumerate(self._admitted)}
            leased = await self._ask(LEASE_THESE, list(order), *lease(self._claim.want))
            self.taken = sorted((job_of(row) for row in leased), key=lambda job: order[job.id])
            await book(self._ask, self.taken)
            self.plain = sum(not row.lines() for row in self._admitted)
        waited = sorted({by.removeprefix(Kind.RATE.prefix) for by in self._blocks.values() if Kind.RATE.blocks(by)})
        if waited:
            await self._ask(REOPEN, waited)

    def remember(self) -> None:
        """Tell the next walk how far this one came, if all it let through was leased."""
        if (self._passed or self._expired) and len(self.taken) == len(self._admitted):
            reached = {name: queue.reached for name, queue in self._queues.items() if queue.has_passed}
            places = {name: place for name, place in reached.items() if place is not None}
            self._walked.came(places, self._passed, _WALKED - self._left, through=not self._tired)
        else:
            self._walked.forget()
