"""Claim: queued jobs become leased ones.

One aggregation reads the first jobs of every queue and the server's clock; see `wanting`. One command leases what may
run, each job only if it has not moved since it was read; the next claim of the same store reads meanwhile, behind
these. What needs a slot, a running key or room in a rate has to pass the gate before; see `gate`. Slots and running
keys are unique indexes, so the update that makes a job run is the one that takes them, and the second one is
refused by the server.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bson import ObjectId
from pymongo import UpdateMany
from pymongo.errors import BulkWriteError, DuplicateKeyError, PyMongoError

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.weights import first_turn
from windlass.stores.contract import Claimed
from windlass.stores.mongo.connection import BY_ID, DUPLICATE_KEY, beside, in_parts
from windlass.stores.mongo.doubts import Doubt, Doubts
from windlass.stores.mongo.gate import Gate, is_plain, takes_running
from windlass.stores.mongo.records import as_pipeline, change, job_of, latest, line, marked, waited, whole
from windlass.stores.mongo.wanting import Read, ask, foremost, share

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
_BEFORE = timedelta(milliseconds=1)
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

    async def _ask(
        self, want: Want, names: Sequence[str], page: int, skip: int, others: set[str], *, told: bool
    ) -> tuple[dict[str, int], list[Doc]]:
        return await ask(self._link, want, names, page, skip, sorted(others | self._writing), told=told)

    async def _read(self, one: _Claim, want: Want, page: int, skip: int) -> Read:
        """The first jobs of the queues that come first, after those skipped."""
        named = None if want.queues is None else [name for name, most in want.queues.items() if most > 0]
        if named is not None and len(named) <= _QUEUES_READ:
            heads, rows = await self._ask(want, named, page, skip, one.expired, told=True)
            return Read(rows, [name for name in named if name in heads], share(named, page), None)
        if one.heads is not None:
            return await self._read_on(one, one.heads, want, page, skip)
        tries = 0
        asked = foremost({name: first for name, first in self._heads.items() if one.may_give(name)}, _QUEUES_READ)
        while True:
            heads, rows = await self._ask(want, asked, page, skip, one.expired, told=False)
            open_ = {name: first for name, first in heads.items() if one.may_give(name)}
            self._heads = one.heads = heads
            behind = [first for name, first in open_.items() if name not in asked]
            before = [open_[name] for name in asked if name in open_]
            tries += 1
            # What was not read may not stand before what was; a queue that has just come to be is asked for.
            read_enough = len(before) >= _QUEUES_READ and min(behind, default=0) >= max(before)
            if not behind or read_enough or tries > _TRIES:
                return one.learn(asked, open_, rows, share(asked, page), skip)
            asked = foremost(open_, _QUEUES_READ)

    async def _read_on(self, one: _Claim, heads: dict[str, int], want: Want, page: int, skip: int) -> Read:
        """The same for a claim that has not enough yet and knows where anything waits: of more queues each time."""
        open_ = {name: first for name, first in heads.items() if one.may_give(name)}
        one.width = min(one.width * 4, _MOST_QUEUES_READ)
        asked = foremost(open_, one.width)
        found, rows = await self._ask(want, asked, page, skip, one.expired, told=True)
        for name in {*asked} - found.keys():  # paused since
            del open_[name]
        return one.learn(asked, open_, rows, share(asked, page), skip)


class _Claim:
    """One claim in the making."""

    def __init__(self, link: Link, want: Want) -> None:
        self._link, self._want = link, want
        self._mark = ObjectId()
        self.room = want.n
        self.taken: list[Job] = []
        self._used: dict[str, int] = defaultdict(int)
        self._gate = Gate(link)
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
        self.expired: set[str] = set()
        """jobs whose time to begin is over, which it passes over: a promotion cancels them"""
        self._in_doubt: dict[str, int] = {}
        self._void_after = _LONG_AGO
        self.plain = True
        """whether what was chosen needs no slot, key or start of a rate"""

    @property
    def blocked(self) -> int:
        """How many it has put aside, or passed over."""
        return self._gate.blocked + len(self.expired)

    def learn(self, asked: Sequence[str], open_: dict[str, int], rows: list[Doc], share: int, skip: int) -> Read:
        """What was read of the queues asked, and that some of them have nothing for it."""
        if not skip:
            self.barren |= {*asked}.difference(row["queue"] for row in rows)
            if self.heads is not None:  # what it took was before these
                self.heads |= {row["queue"]: row["priority"] for row in reversed(rows) if row["queue"] in self.heads}
        behind = [first for name, first in open_.items() if name not in asked]
        return Read(rows, [name for name in asked if name in open_], share, min(behind, default=None))

    @property
    def ids(self) -> set[str]:
        """What was chosen last."""
        return {doc["_id"] for doc in self._picked}

    @property
    def doubt(self) -> Doubt:
        """What may have been leased without an answer that tells."""
        return Doubt(self._mark, dict(self._in_doubt), self._void_after)

    def forget_answers(self) -> None:
        """Nor will any worker learn of what was taken."""
        self._in_doubt |= {job.id: job.lease_token for job in self.taken}

    def in_order(self) -> list[Job]:
        """What was taken, as it was chosen."""
        return sorted(self.taken, key=lambda job: self._places[job.id])

    def may_give(self, queue: str) -> bool:
        """Whether the claim may still get something from a queue."""
        return queue not in self.barren and self._allowance(queue) > 0

    async def pick(self, read: Read, now: datetime) -> bool:
        """Choose among these what can be taken; returns whether there may be more."""
        rows = read.rows
        lines: dict[str, deque[Doc]] = {name: deque() for name in read.names}
        # A cursor may show a document twice, as others move it while it reads; one claim leases a job once.
        taken = {job.id for job in self.taken}
        for row in {row["_id"]: row for row in rows}.values():
            if row["queue"] in lines and row["_id"] not in taken:
                lines[row["queue"]].append(row)
        self._picked, self.plain = [], True
        await self._gate.look(rows)
        unread = {name for name, first in lines.items() if len(first) >= read.share}
        more = self._walk(lines, unread, read.next, now)
        return (more and bool(rows)) or (read.next is not None and self.room > 0)

    async def take(self, now: datetime) -> int:
        """Write what was chosen; returns how many rivals took first."""
        lost = await self._take(now)
        await self._gate.close(now)
        return lost

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
            if "begin_by" in doc and doc["begin_by"] <= now:
                self.expired.add(doc["_id"])
                continue
            if not is_plain(doc):
                self.plain = False
                if not self._gate.lets_through(doc, now):
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

    async def _take(self, now: datetime) -> int:
        """Lease what was picked; returns how many of them rivals took or barred."""
        now = max(now, await self._link.now())  # not before those ended whose slots and keys were found free
        rated = any("rate_key" in doc for doc in self._picked)
        if rated:
            now = await self._book()
        lost: list[int] = await in_parts(self._picked, lambda docs: self._take_part(docs, now))
        if rated:
            await self._gate.give_back({job.id for job in self.taken})
        return sum(lost)

    async def _book(self) -> datetime:
        """Book the starts of those with a rate, and let go of those without room; returns the instant of all starts."""
        now, refused = await self._gate.book(self._picked)
        for doc in refused:
            self._let_go(doc)
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
            apart = len(alike) if takes_running(doc) or self._gate.counts(doc) else None
            plain = doc["moves"], doc["lease_token"], _gives_key_up(doc), "called" in doc
            alike[*plain, "limit_key" in doc, "begin_by" in doc, apart].append(doc)
        groups = list(alike.values())
        now = latest(now, picked)
        self._void_after = now + timedelta(seconds=self._link.place.timeout)
        self._in_doubt |= {doc["_id"]: doc["lease_token"] + 1 for doc in picked}
        writes = [self._lease(docs, now) for docs in groups]
        # What they will be is made ready before it is known which of them rivals took: hardly ever any.
        (done, refused), leased = await beside(self._write(writes), lambda: self._leased(picked, now))
        for at in refused:
            if refused[at] is Kind.UNIQUE:
                [doc] = groups[at]
                self._gate.put_aside(doc, BlockedBy(Kind.UNIQUE, doc["unique_running"]))
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

    async def _write(self, writes: list[tuple[Doc, Doc | list[Doc]]]) -> tuple[int, dict[int, Kind]]:
        """Returns how many were changed, and of those that met a rival's slot or key, which it was."""
        if len(writes) == 1:
            try:
                return await self._link.update_many(*writes[0]), {}
            except DuplicateKeyError as error:
                return 0, {0: _met(dict(error.details or {}))}
        many = [UpdateMany(*one, hint=BY_ID) for one in writes]
        try:
            result = await self._link.surely(lambda: self._link.jobs.bulk_write(many, ordered=False))
        except BulkWriteError as error:
            errors: list[Doc] = error.details["writeErrors"]
            unsure = error.details["writeConcernErrors"]
            if not errors or unsure or any(one["code"] != DUPLICATE_KEY for one in errors):
                raise
            return error.details["nModified"], {one["index"]: _met(one) for one in errors}
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
        if "begin_by" in first:
            values["begin_by"] = None
        if takes_running(first) or _gives_key_up(first):
            values["unique_key"] = first.get("unique_running")
        if "limit_key" in first and len(docs) == 1:
            values["slot"] = first["slot"]
        found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "queued", "moves": first["moves"]}
        # A server that stood still carries this out when it goes on, though its sender gave up long ago.
        # What expires meanwhile is not leased either.
        expiries = [doc["begin_by"] - _BEFORE for doc in docs] if "begin_by" in first else []
        found["$expr"] = {"$lte": ["$$NOW", min([self._void_after, *expiries])]}
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
            for name in ("called", "progress", "wait_ms", "begin_by"):
                if name in doc:
                    del leased[name]
            leased["wait_ms"] = waited(leased)
            found.append((leased, job_of(leased)))
        return found


def _met(error: Doc) -> Kind:
    return Kind.LIMIT if "slot" in error.get("keyPattern", {}) else Kind.UNIQUE


def _gives_key_up(doc: Doc) -> bool:
    return "unique_key" in doc and "unique_running" not in doc
