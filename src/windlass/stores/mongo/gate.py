"""The gate: a job that needs a slot, a running key or room in a rate is let through, or put aside as blocked.

What is taken is looked at before; whether it still was free shows when the lease is written, as slots and running keys
are unique indexes. Starts of jobs with a rate are booked before that, as many as there is room for, and what was not
used is given back.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

from pymongo import UpdateMany

from windlass.core.admission import Candidate, InUse, admit
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.mongo.connection import BY_ID
from windlass.stores.mongo.rates import Rates
from windlass.stores.mongo.records import change, latest, line
from windlass.stores.mongo.unblocking import unblock

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

_ALL_SLOTS = 256  # of a larger limit not all slots are looked at
_SLOTS_EACH = 8  # but so many for each job that wants one
_LARGE_LIMITS = 8  # of how many limits at once


def is_plain(doc: Doc) -> bool:
    """Whether a job needs nothing but a worker, or has held its running key since before."""
    return "rate_key" not in doc and "limit_key" not in doc and not takes_running(doc)


def takes_running(doc: Doc) -> bool:
    """Whether a job is to hold a running key that it does not hold yet."""
    running = doc.get("unique_running")
    return running is not None and running != doc.get("unique_key")


class Gate:
    """Limits, running keys and rates of what a claim reads, counting what it has let through and put aside itself."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._slots: dict[str, set[int]] = {}
        """of each limit: those that are taken, all of them"""
        self._free: dict[str, list[int]] = {}
        """of each large limit: some that are free, in any order and as many as may be wanted"""
        self._held: set[str] = set()
        self._rates = Rates(link)
        self._blocks: dict[BlockedBy, list[Doc]] = {}
        self.blocked = 0
        """how many were put aside in all"""

    def counts(self, doc: Doc) -> bool:
        """Whether all slots of a job's limit were looked at, so that a rival may well have the one chosen for it."""
        return doc.get("limit_key", "") in self._slots

    async def look(self, rows: Sequence[Doc]) -> None:
        """Which slots and running keys of these jobs are taken now, and what of their rates is spent."""
        self._blocks = {}
        await self._rates.look(rows)
        keys = {row["unique_running"] for row in rows if takes_running(row)}
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
                random.shuffle(free)  # rivals that look at the same ones rarely choose the same
                self._free[key] = free

    def lets_through(self, doc: Doc, now: datetime) -> bool:
        """Whether a job may run now; its slot, key and start then count as taken. If not, it is put aside."""
        by = admit(_candidate(doc), self._in_use(doc, now))
        if by is None:
            self._take(doc)
            return True
        self.put_aside(doc, by)
        if by.kind is Kind.RATE:
            self._rates.put_aside(by.key)
        return False

    def _in_use(self, doc: Doc, now: datetime) -> InUse:
        # Of a large limit only free slots are known, more than are wanted.
        slots = len(self._slots.get(doc.get("limit_key", ""), ()))
        starts, in_line = self._rates.met(doc, now) if "rate_key" in doc else (0, 0)
        return InUse(slots, doc.get("unique_running") in self._held, starts, in_line)

    def _take(self, doc: Doc) -> None:
        key = doc.get("limit_key")
        if key in self._free:
            doc["slot"] = self._free[key].pop()
        elif key is not None:
            doc["slot"] = _any_free(self._slots[key], doc.get("limit_n") or 1)
            self._slots[key].add(doc["slot"])
        if "unique_running" in doc:
            self._held.add(doc["unique_running"])
        if "rate_key" in doc:
            self._rates.start(doc["rate_key"])

    def put_aside(self, doc: Doc, by: BlockedBy) -> None:
        """Have a job blocked when the rest is written."""
        self._blocks.setdefault(by, []).append(doc)
        self.blocked += 1

    async def book(self, picked: Sequence[Doc]) -> tuple[datetime, list[Doc]]:
        """Book the starts of those with a rate.

        Returns the instant of the booking, which is that of the start, too, and those that found no room after all.
        """
        now = latest(await self._link.now(), picked)
        refused = await self._rates.book(picked, now)
        for doc in refused:
            self.put_aside(doc, BlockedBy(Kind.RATE, doc["rate_key"]))
            self._held.discard(doc.get("unique_running", ""))
        return now, refused

    async def give_back(self, started: Collection[str]) -> None:
        """Take back the bookings of those that did not start after all."""
        await self._rates.give_back(started)

    async def close(self, now: datetime) -> None:
        """Write down what was put aside."""
        alike: dict[tuple[str, int], list[Doc]] = defaultdict(list)
        for by, docs in self._blocks.items():
            for doc in docs:
                alike[by.text, doc["moves"]].append(doc)
        writes = [_aside(by, moves, docs, now) for (by, moves), docs in alike.items()]
        if writes:
            await self._link.surely(lambda: self._link.jobs.bulk_write(writes, ordered=False))
        await self._rates.look_again([docs[0] for by, docs in self._blocks.items() if by.kind is Kind.RATE], now)
        # Who stood in the way may have ended just before these were put aside, and freed nobody. Time frees a rate.
        await unblock(self._link, [by.text for by in self._blocks if by.kind is not Kind.RATE])


def _candidate(doc: Doc) -> Candidate:
    return Candidate(
        limit_key=doc.get("limit_key"),
        limit=doc.get("limit_n") or 1,
        running_key=doc["unique_running"] if takes_running(doc) else None,
        rate_key=doc.get("rate_key"),
        rate_n=doc.get("rate_n", 0),
        called="called" in doc,
    )


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
    """One that is free, anywhere: rivals that all began with the first would meet there."""
    start = random.randrange(limit)
    return next(n % limit for n in range(start, start + limit) if n % limit not in slots)


def _aside(by: str, moves: int, docs: list[Doc], now: datetime) -> UpdateMany:
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "queued", "moves": moves}
    told = line(latest(now, docs), Happened.BLOCKED, Status.BLOCKED, note=by)
    return UpdateMany(found, change(told, {"blocked_by": by, "called": None}), hint=BY_ID)
