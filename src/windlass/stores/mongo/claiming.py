"""Claim: queued jobs become leased ones; what may not run yet becomes blocked.

One aggregation reads the first jobs of every queue and the server's clock. One command leases what may run, each job
only if it has not moved since it was read; the next claim of the same store reads meanwhile, behind these. Slots of
limits and running keys are unique indexes, so the update that makes a job run is the one that takes them, and whoever
comes second is refused by the server. Starts of jobs with a rate are booked before, as many as there is room for, and
what was not used is given back.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from bson import ObjectId
from pymongo import UpdateMany
from pymongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.weights import first_turn
from windlass.stores.contract import Claimed
from windlass.stores.mongo.connection import BY_ID, DUPLICATE_KEY, QUICK, beside, in_parts
from windlass.stores.mongo.doubts import Doubt, Doubts
from windlass.stores.mongo.rates import Rates
from windlass.stores.mongo.records import as_pipeline, change, in_utc, job_of, latest, line, marked, waited, whole
from windlass.stores.mongo.unblocking import unblock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.mongo.connection import Doc, Link

_LATER_PAGE = 100  # jobs read at once after a first page that was not enough
_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has
_TRIES = 8  # how often a claim that rivals left with nothing looks again
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_WAVES = 200  # how often one claim reads at most
_QUEUES_READ = 16  # of how many queues the first look of a claim reads the first jobs,
_MOST_QUEUES_READ = 256  # and its later ones at most: a pipeline has at most a thousand stages
_WARY = 8  # for how many looks a claim keeps away from where rivals came first
_ALL_SLOTS = 256  # of a larger limit not all slots are looked at
_SLOTS_EACH = 8  # but so many for each job that wants one
_LARGE_LIMITS = 8  # of how many limits at once
_SPREAD = 8  # among how many batches a claim chooses after rivals came first


class Claiming:
    """What the claims of one store remember from one to the next: only hints."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._heads: dict[str, int] = {}
        """of each queue where something waited the last time: the first priority"""
        self._contested = 0
        """how many looks more go beside the first jobs, where rivals are"""
        self._reading = asyncio.Lock()
        self._writing: set[str] = set()
        """what claims under way have read and are about to lease"""
        self._doubts = Doubts(link)

    async def claim(self, want: Want) -> Claimed:
        """At most `want.n` jobs, or those that an earlier claim of the worker leased without learning of it."""
        adopted = await self._doubts.adopt(want)
        if adopted:
            return Claimed(adopted, more=len(adopted) < want.n)
        one = _Claim(self._link, want)
        try:
            more = await self._fill(one, want)
        except PyMongoError:
            self._contested = _WARY  # after a failover everybody reaches for the same jobs at the same moment
            self._doubts.add(want.worker_id, one.doubt)
            if not one.taken:
                raise
            more = True  # what is leased already must run; the next claim tells of the trouble, if it lasts
        except BaseException:  # its caller has gone away, and learns of nothing
            one.forget_answers()
            self._doubts.add(want.worker_id, one.doubt)
            raise
        return Claimed(one.in_order(), more=more and len(one.taken) < want.n)

    async def _fill(self, one: _Claim, want: Want) -> bool:
        """Take what there is; returns whether another claim at once may bring more."""
        page, tries = max(1, want.n), 0
        for _ in range(_WAVES):
            if one.room < 1 or one.blocked >= _MOST_BLOCKED:
                break
            skip = random.randrange(_SPREAD) * want.n if self._contested else 0
            more, lost = await self._wave(one, want, page, skip)
            self._contested = _WARY if lost else max(0, self._contested - 1)
            page = max(_LATER_PAGE, want.n)
            if lost and not one.taken and tries < _TRIES:
                tries += 1
            elif not more:
                return lost > 0  # rivals were at these, and may leave some
        return True

    async def _wave(self, one: _Claim, want: Want, page: int, skip: int) -> tuple[bool, int]:
        """Take what can be taken of a page; returns whether there may be more, and how many rivals took first.

        Claims of this store read one after the other, each behind what those before it are writing.
        """
        async with self._reading:
            read = await self._read(one, want, page, skip)
            now = await self._link.now()
            more = await one.pick(read, now) or skip > 0
            if not one.plain:
                # Whether slots, keys and rates are free shows only when this is written: nobody looks before.
                return more, await one.take(now)
            mine = one.ids
            self._writing |= mine
        try:
            return more, await one.take(now)
        finally:
            self._writing -= mine

    async def _read(self, one: _Claim, want: Want, page: int, skip: int) -> _Read:
        """The first jobs of the queues that come first, after those skipped."""
        named = None if want.queues is None else [name for name, most in want.queues.items() if most > 0]
        if named is not None and len(named) <= _QUEUES_READ:
            heads, rows = await self._ask(want, named, page, skip, told=True)
            return _Read(rows, [name for name in named if name in heads], _share(named, page), None)
        if one.heads is not None:
            return await self._read_on(one, one.heads, want, page, skip)
        tries = 0
        asked = _foremost({name: first for name, first in self._heads.items() if one.may_give(name)}, _QUEUES_READ)
        while True:
            heads, rows = await self._ask(want, asked, page, skip, told=False)
            open_ = {name: first for name, first in heads.items() if one.may_give(name)}
            self._heads = one.heads = heads
            behind = [first for name, first in open_.items() if name not in asked]
            before = [open_[name] for name in asked if name in open_]
            tries += 1
            # What was not read may not stand before what was; a queue that has just come to be is asked for.
            read_enough = len(before) >= _QUEUES_READ and min(behind, default=0) >= max(before)
            if not behind or read_enough or tries > _TRIES:
                return one.learn(asked, open_, rows, _share(asked, page), skip)
            asked = _foremost(open_, _QUEUES_READ)

    async def _read_on(self, one: _Claim, heads: dict[str, int], want: Want, page: int, skip: int) -> _Read:
        """The same for a claim that has not enough yet and knows where anything waits: of more queues each time."""
        open_ = {name: first for name, first in heads.items() if one.may_give(name)}
        one.width = min(one.width * 4, _MOST_QUEUES_READ)
        asked = _foremost(open_, one.width)
        found, rows = await self._ask(want, asked, page, skip, told=True)
        for name in {*asked} - found.keys():  # paused since
            del open_[name]
        return one.learn(asked, open_, rows, _share(asked, page), skip)

    async def _ask(
        self, want: Want, names: Sequence[str], page: int, skip: int, *, told: bool
    ) -> tuple[dict[str, int], list[Doc]]:
        """The first priority of each queue where anything waits that is not paused, and the first jobs of some.

        If the queues are told already, only which of them are not paused.
        """
        coll, others = self._link.name("jobs"), sorted(self._writing)
        pipelines = [] if told else [_HEADS]
        pipelines += [_first_of(name, want, _share(names, page), skip, others) for name in names]
        stages: list[Doc] = [{"$match": {"paused_at": {"$exists": True}}}, {"$project": {"paused": "$_id"}}]
        stages += [{"$unionWith": {"coll": coll, "pipeline": pipeline}} for pipeline in pipelines]
        source = self._link.collection("queues").with_options(codec_options=QUICK)
        answers = await (await source.aggregate(stages, batchSize=10_000)).to_list()
        paused = {row["paused"] for row in answers if "paused" in row}
        heads = dict.fromkeys(names, 0) if told else {row["_id"]: row["first"] for row in answers if "first" in row}
        rows = [in_utc(row) for row in answers if "type" in row]
        return {name: first for name, first in heads.items() if name not in paused}, rows


class _Read(NamedTuple):
    """What a claim read: the first jobs of some queues."""

    rows: list[Doc]
    names: list[str]
    """the queues that were read and may be claimed from"""
    share: int
    """how many of each, where there were so many"""
    next: int | None
    """the first priority of what waits in others"""


# An entry of the index for each queue where anything waits, and none for the others.
_HEADS: list[Doc] = [
    {"$match": {"status": "queued"}},
    {"$sort": {"status": 1, "queue": 1, "priority": 1, "run_at": 1, "_id": 1}},
    {"$group": {"_id": "$queue", "first": {"$first": "$priority"}}},
]


def _foremost(heads: dict[str, int], n: int) -> list[str]:
    """The queues that come first, at most so many; of equal ones any."""
    if len(heads) <= n:
        return list(heads)
    return sorted(heads, key=lambda name: (heads[name], random.random()))[:n]


def _share(names: Sequence[str], page: int) -> int:
    return max(1, -(-page // len(names))) if len(names) > 2 else page


def _first_of(queue: str, want: Want, page: int, skip: int, others: list[str]) -> list[Doc]:
    types = sorted(want.types)
    found: Doc = {"status": "queued", "queue": queue, "type": types[0] if len(types) == 1 else {"$in": types}}
    if others:
        found["_id"] = {"$nin": others}
    return [
        {"$match": found},
        {"$sort": {"priority": 1, "run_at": 1, "_id": 1}},
        *([{"$skip": skip}] if skip else []),
        {"$limit": page},
        {"$project": {"history": 0}},
    ]


class _Claim:
    """One claim in the making."""

    def __init__(self, link: Link, want: Want) -> None:
        self._link, self._want = link, want
        self._mark = ObjectId()
        self.room = want.n
        self.blocked = 0
        self.taken: list[Job] = []
        self._used: dict[str, int] = defaultdict(int)
        self._slots: dict[str, set[int]] = {}
        """of each limit: those that are taken, all of them"""
        self._free: dict[str, list[int]] = {}
        """of each large limit: some that are free, in any order and as many as may be wanted"""
        self._held: set[str] = set()
        self._rates = Rates(link)
        self._blocks: dict[str, list[Doc]] = {}
        self._picked: list[Doc] = []
        self._places: dict[str, int] = {}
        """in which order jobs were chosen"""
        self._turns: deque[str] = deque()
        """queues in the order of their turns, the first at its turn"""
        self._left = 0
        """how many jobs more that turn takes"""
        self.barren: set[str] = set()
        """queues that had nothing for this claim"""
        self.heads: dict[str, int] | None = None
        """where anything waited when it looked first: the first priority of each queue that is not paused"""
        self.width = _QUEUES_READ
        self._in_doubt: dict[str, int] = {}
        self._void_after = _LONG_AGO
        self.plain = True
        """whether what was chosen needs no slot, key or start of a rate"""

    def learn(self, asked: Sequence[str], open_: dict[str, int], rows: list[Doc], share: int, skip: int) -> _Read:
        """What was read of the queues asked, and that some of them have nothing for it."""
        if not skip:
            self.barren |= {*asked}.difference(row["queue"] for row in rows)
            if self.heads is not None:  # what it took was before these
                self.heads |= {row["queue"]: row["priority"] for row in reversed(rows) if row["queue"] in self.heads}
        behind = [first for name, first in open_.items() if name not in asked]
        return _Read(rows, [name for name in asked if name in open_], share, min(behind, default=None))

    @property
    def ids(self) -> set[str]:
        """What was chosen last."""
        return {doc["_id"] for doc in self._picked}

    @property
    def doubt(self) -> Doubt:
        """What may have been leased without an answer that tells."""
        return Doubt(self._mark, dict(self._in_doubt), self._void_after)

    def forget_answers(self) -> None:
        """Nobody will learn of what was taken either."""
        self._in_doubt |= {job.id: job.lease_token for job in self.taken}

    def in_order(self) -> list[Job]:
        """What was taken, as it was chosen."""
        return sorted(self.taken, key=lambda job: self._places[job.id])

    def may_give(self, queue: str) -> bool:
        """Whether the claim may still get something from a queue."""
        return queue not in self.barren and self._allowance(queue) > 0

    async def pick(self, read: _Read, now: datetime) -> bool:
        """Choose among these what can be taken; returns whether there may be more."""
        rows = read.rows
        lines: dict[str, deque[Doc]] = {name: deque() for name in read.names}
        # A cursor may show a document twice, as others move it while it reads; one claim leases a job once.
        taken = {job.id for job in self.taken}
        for row in {row["_id"]: row for row in rows}.values():
            if row["queue"] in lines and row["_id"] not in taken:
                lines[row["queue"]].append(row)
        self._picked, self._blocks, self.plain = [], {}, True
        await self._look_at_gates(rows)
        unread = {name for name, first in lines.items() if len(first) >= read.share}
        more = self._walk(lines, unread, read.next, now)
        return (more and bool(rows)) or (read.next is not None and self.room > 0)

    async def take(self, now: datetime) -> int:
        """Write what was chosen; returns how many rivals took first."""
        lost = await self._take(now)
        await self._write_blocks(now)
        return lost

    async def _look_at_gates(self, rows: list[Doc]) -> None:
        """Which slots and running keys of these jobs are taken now, and what of their rates is spent."""
        await self._rates.look(rows)
        keys = {row["unique_running"] for row in rows if "unique_running" in row and _takes_key(row)}
        self._slots, self._free = {}, {}
        limits: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            if "limit_key" in row:
                limits[row["limit_key"]].append(row.get("limit_n") or 1)
        if limits:
            await self._look_at_limits(limits)
        if keys:
            held = self._link.jobs.find({"unique_key": {"$in": sorted(keys)}}, {"_id": 0, "unique_key": 1})
            self._held.update([doc["unique_key"] for doc in await held.to_list()])

    async def _look_at_limits(self, limits: dict[str, list[int]]) -> None:
        """Which slots are taken; of limits with many, which of some are free, so that a look reads only these."""
        large = {key: of[0] for key, of in limits.items() if _is_large(of)}
        await self._look_at_some({key: (large[key], len(limits[key])) for key in [*large][:_LARGE_LIMITS]})
        rest = sorted(limits.keys() - self._free.keys())
        self._slots = {key: set() for key in rest}
        if rest:
            stages: list[Doc] = [
                {"$match": {"limit_key": {"$in": rest}, "slot": {"$gte": 0}}},
                {"$group": {"_id": "$limit_key", "slots": {"$push": "$slot"}}},
            ]
            for taken in await (await self._link.jobs.aggregate(stages, hint="slots")).to_list():
                self._slots[taken["_id"]].update(taken["slots"])

    async def _look_at_some(self, large: dict[str, tuple[int, int]]) -> None:
        """Find free slots of these limits, for as many jobs as each is told with; where they are few, none."""
        windows: dict[str, range] = {}
        for key, (limit, n) in large.items():
            start = random.randrange(limit - n * _SLOTS_EACH)
            windows[key] = range(start, start + n * _SLOTS_EACH)
        looks = [look for key, (limit, _) in large.items() for look in _slots_of(key, windows[key], limit)]
        if not looks:
            return
        others = [{"$unionWith": {"coll": self._link.name("jobs"), "pipeline": look}} for look in looks[1:]]
        taken: dict[str, set[int]] = defaultdict(set)
        for row in await (await self._link.jobs.aggregate([*looks[0], *others], batchSize=10_000)).to_list():
            taken[row["limit_key"]].add(row["slot"])
        for key, (limit, n) in large.items():
            free = [slot for slot in windows[key] if slot not in taken[key]]
            # One beyond the limit is of a time when it was larger, and counts as well: then all must be counted.
            if len(free) >= n and max(taken[key], default=0) < limit:
                random.shuffle(free)  # rivals who look at the same ones rarely choose the same
                self._free[key] = free

    def _walk(self, lines: dict[str, deque[Doc]], unread: set[str], others: int | None, now: datetime) -> bool:
        while self.room > 0 and self.blocked < _MOST_BLOCKED:
            able = [name for name in lines if self._allowance(name) > 0]
            if any(not lines[name] and name in unread for name in able):
                return True  # what comes next in that queue is not known yet, and may come before the others'
            waiting = [name for name in able if lines[name]]
            if not waiting:
                return False
            name = self._at_turn(lines, waiting) if len(waiting) > 1 else waiting[0]
            if others is not None and lines[name][0]["priority"] > others:
                return True  # others that were not read come before
            doc = lines[name].popleft()
            if not _is_plain(doc):
                self.plain = False
                by = self._barred(doc, now)
                if by is not None:
                    self._put_aside(doc, by)
                    continue
            self._places[doc["_id"]] = len(self._places)
            self._picked.append(doc)
            self._used[name] += 1
            self._left -= 1
            self.room -= 1
        return True

    def _at_turn(self, lines: dict[str, deque[Doc]], waiting: list[str]) -> str:
        """The queue to take from next: those whose first jobs have the best priority take turns."""
        best = min(lines[name][0]["priority"] for name in waiting)
        level = {name for name in waiting if lines[name][0]["priority"] == best}
        new = list(level.difference(self._turns))
        random.shuffle(new)
        if not self._turns:
            weights = [self._weight(name) for name in new]
            first, self._left = first_turn(weights, random.randrange(sum(weights)))
            new = new[first:] + new[:first]
        self._turns.extend(new)
        while self._left < 1 or self._turns[0] not in level:
            self._turns.rotate(-1)
            self._left = self._weight(self._turns[0])
        return self._turns[0]

    def _weight(self, queue: str) -> int:
        return self._want.weights.get(queue, 1)

    def _allowance(self, queue: str) -> int:
        most = self._want.n if self._want.queues is None else self._want.queues.get(queue, 0)
        return most - self._used[queue]

    def _barred(self, doc: Doc, now: datetime) -> str | None:
        """What stands in this job's way; if nothing does, its slot, key and start are counted as taken from now on."""
        limit_key, running = doc.get("limit_key"), doc.get("unique_running")
        slots, limit = self._slots.get(limit_key or "", set()), doc.get("limit_n") or 1
        if limit_key is not None and limit_key not in self._free and len(slots) >= limit:
            return BlockedBy(Kind.LIMIT, limit_key).text
        if running is not None and running != doc.get("unique_key") and running in self._held:
            return BlockedBy(Kind.UNIQUE, running).text
        if "rate_key" in doc and not self._rates.lets_through(doc, now):
            return BlockedBy(Kind.RATE, doc["rate_key"]).text
        if limit_key is not None:
            doc["slot"] = self._free[limit_key].pop() if limit_key in self._free else _any_free(slots, limit)
            slots.add(doc["slot"])
        if running is not None:
            self._held.add(running)
        return None

    async def _take(self, now: datetime) -> int:
        """Lease what was picked; returns how many of them rivals took or barred."""
        now = max(now, await self._link.now())  # not before those ended whose slots and keys were found free
        rated = any("rate_key" in doc for doc in self._picked)
        if rated:
            now = await self._book()
        lost: list[int] = await in_parts(self._picked, lambda docs: self._take_part(docs, now))
        if rated:
            await self._rates.give_back({job.id for job in self.taken})
        return sum(lost)

    async def _book(self) -> datetime:
        """Book the starts of those with a rate; returns the instant of the booking, which is that of the start, too."""
        now = latest(await self._link.now(), self._picked)
        refused = await self._rates.book(self._picked, now)
        for doc in refused:
            self._put_aside(doc, BlockedBy(Kind.RATE, doc["rate_key"]).text)
            self._let_go(doc)
            self._held.discard(doc.get("unique_running", ""))
        aside = {doc["_id"] for doc in refused}
        self._picked = [doc for doc in self._picked if doc["_id"] not in aside]
        return now

    def _let_go(self, doc: Doc) -> None:
        self._used[doc["queue"]] -= 1
        self.room += 1

    async def _take_part(self, picked: Sequence[Doc], now: datetime) -> int:
        alike: dict[tuple[Any, ...], list[Doc]] = defaultdict(list)
        for doc in picked:
            # One that takes a slot or key of its own can be refused by itself, so it is an update by itself; but where
            # a limit has many slots that hardly ever happens.
            apart = len(alike) if _takes_running(doc) or doc.get("limit_key", "") in self._slots else None
            plain = doc["moves"], doc["lease_token"], _gives_key_up(doc), "called" in doc
            alike[*plain, "limit_key" in doc, apart].append(doc)
        groups = list(alike.values())
        now = latest(now, picked)
        self._void_after = now + timedelta(seconds=self._link.place.timeout)
        self._in_doubt |= {doc["_id"]: doc["lease_token"] + 1 for doc in picked}
        writes = [self._lease(docs, now) for docs in groups]
        # What they will be is made ready before it is known which of them rivals took: hardly ever any.
        (done, refused), leased = await beside(self._write(writes), lambda: self._leased(picked, now))
        for at in refused:
            if refused[at] == "unique":
                [doc] = groups[at]
                self._put_aside(doc, BlockedBy(Kind.UNIQUE, doc["unique_running"]).text)
        # An update that met a rival's slot ended there: those before it are leased.
        partly = any(len(groups[at]) > 1 for at in refused)
        ours = {doc["_id"] for at, docs in enumerate(groups) if at not in refused or len(docs) > 1 for doc in docs}
        if partly or done != len(ours):
            ours = await marked(self._link, ours, self._mark)
        for doc, job in leased:
            del self._in_doubt[job.id]
            if job.id in ours:
                self._link.hold(doc)
                self.taken.append(job)
            else:
                self._let_go(doc)
        return len(picked) - len(ours)

    async def _write(self, writes: list[tuple[Doc, Doc | list[Doc]]]) -> tuple[int, dict[int, str]]:
        """Returns how many were changed, and of those that met a rival's slot or key, which it was."""
        if len(writes) == 1:
            try:
                return await self._link.update_many(*writes[0]), {}
            except DuplicateKeyError as error:
                return 0, {0: _gate(dict(error.details or {}))}
        many = [UpdateMany(*one, hint=BY_ID) for one in writes]
        try:
            result = await self._link.surely(lambda: self._link.jobs.bulk_write(many, ordered=False))
        except BulkWriteError as error:
            errors: list[Doc] = error.details["writeErrors"]
            unsure = error.details["writeConcernErrors"]
            if not errors or unsure or any(one["code"] != DUPLICATE_KEY for one in errors):
                raise
            return error.details["nModified"], {one["index"]: _gate(one) for one in errors}
        return result.modified_count, {}

    def _lease(self, docs: list[Doc], now: datetime) -> tuple[Doc, Doc | list[Doc]]:
        first, worker_id = docs[0], self._want.worker_id
        token = first["lease_token"] + 1
        told = line(now, Happened.CLAIMED, Status.PROCESSING, by=worker_id, token=token, mark=self._mark)
        values: Doc = {
            "worker_id": worker_id,
            "lease_token": token,
            "lease_expires_at": now + whole(self._want.lease),
            "started_at": now,
            "progress": None,
            "wait_ms": None,
        }
        if "called" in first:
            values["called"] = None
        if _takes_running(first) or _gives_key_up(first):
            values["unique_key"] = first.get("unique_running")
        if "limit_key" in first and len(docs) == 1:
            values["slot"] = first["slot"]
        found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "queued", "moves": first["moves"]}
        # A server that stood still carries this out when it goes on, though whoever sent it has given up long ago.
        found["$expr"] = {"$lte": ["$$NOW", self._void_after]}
        update = change(told, values, more={"attempts": 1}, of=docs)
        if len(docs) == 1 or "limit_key" not in first:
            return found, update
        place = {"$indexOfArray": [[doc["_id"] for doc in docs], "$_id"]}
        return found, as_pipeline(update, {"slot": {"$arrayElemAt": [[doc["slot"] for doc in docs], place]}})

    def _leased(self, picked: Sequence[Doc], now: datetime) -> list[tuple[Doc, Job]]:
        """As they are then: read and written under one version, which is known without reading them again."""
        until = now + whole(self._want.lease)
        found: list[tuple[Doc, Job]] = []
        for doc in picked:
            leased: Doc = {
                **doc,
                "status": Status.PROCESSING.value,
                "worker_id": self._want.worker_id,
                "attempts": doc["attempts"] + 1,
                "lease_token": doc["lease_token"] + 1,
                "moves": doc["moves"] + 1,
                "lease_expires_at": until,
                "started_at": now,
                "updated_at": now,
            }
            if "unique_running" in doc:
                leased["unique_key"] = doc["unique_running"]
            elif "unique_key" in doc:
                del leased["unique_key"]
            for name in ("called", "progress", "wait_ms"):
                if name in doc:
                    del leased[name]
            leased["wait_ms"] = waited(leased)
            found.append((leased, job_of(leased)))
        return found

    def _put_aside(self, doc: Doc, by: str) -> None:
        self._blocks.setdefault(by, []).append(doc)
        self.blocked += 1

    async def _write_blocks(self, now: datetime) -> None:
        alike: dict[tuple[str, int], list[Doc]] = defaultdict(list)
        for by, docs in self._blocks.items():
            for doc in docs:
                alike[by, doc["moves"]].append(doc)
        writes = [_aside(by, moves, docs, now) for (by, moves), docs in alike.items()]
        if writes:
            await self._link.surely(lambda: self._link.jobs.bulk_write(writes, ordered=False))
        await self._rates.look_again([docs[0] for by, docs in self._blocks.items() if Kind.RATE.blocks(by)], now)
        # Who stood in the way may have ended just before these were put aside, and freed nobody. Time frees a rate.
        await unblock(self._link, [by for by in self._blocks if not Kind.RATE.blocks(by)])


def _is_large(limits: list[int]) -> bool:
    """Whether jobs of these limits, all of one key, find a slot without a look at all there are."""
    return min(limits) == max(limits) > max(_ALL_SLOTS, len(limits) * _SLOTS_EACH)


def _slots_of(key: str, window: range, limit: int) -> list[list[Doc]]:
    """Looks at which of these slots are taken, and at one beyond the limit, if there is any."""
    shown: Doc = {"$project": {"_id": 0, "limit_key": 1, "slot": 1}}
    return [
        [{"$match": {"limit_key": key, "slot": {"$gte": window.start, "$lt": window.stop}}}, shown],
        [{"$match": {"limit_key": key, "slot": {"$gte": limit}}}, {"$limit": 1}, shown],
    ]


def _any_free(slots: set[int], limit: int) -> int:
    """One that is free, anywhere: rivals who all began with the first would meet there."""
    start = random.randrange(limit)
    return next(n % limit for n in range(start, start + limit) if n % limit not in slots)


def _aside(by: str, moves: int, docs: list[Doc], now: datetime) -> UpdateMany:
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "queued", "moves": moves}
    told = line(latest(now, docs), Happened.BLOCKED, Status.BLOCKED, note=by)
    return UpdateMany(found, change(told, {"blocked_by": by, "called": None}), hint=BY_ID)


def _gate(error: Doc) -> str:
    return "limit" if "slot" in error.get("keyPattern", {}) else "unique"


def _gives_key_up(doc: Doc) -> bool:
    return "unique_key" in doc and "unique_running" not in doc


def _takes_key(doc: dict[str, Any]) -> bool:
    return "limit_key" in doc or _takes_running(doc)


def _takes_running(doc: dict[str, Any]) -> bool:
    running = doc.get("unique_running")
    return running is not None and running != doc.get("unique_key")


def _is_plain(doc: dict[str, Any]) -> bool:
    return "rate_key" not in doc and not _takes_key(doc)
