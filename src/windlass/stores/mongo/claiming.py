"""Claim: queued jobs become leased ones; what may not run yet becomes blocked.

One aggregation reads the first jobs of every queue and the server's clock. Jobs without a limit and without a running
key to take are leased by one update of many, each only if it has not moved since it was read. The others are taken one
by one, in order: the slot or key is a unique index, so the update that makes a job run is the one that takes it.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.mongo.records import appended, change, in_ms, job_of, latest, line, marked, whole
from windlass.stores.mongo.unblocking import slots_taken, unblock

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.mongo.connection import Doc, Link

_LATER_PAGE = 100  # jobs read at once after a first page that was not enough
_MOST_BLOCKED = 1000  # how many jobs that may not run yet one claim puts aside before it makes do with what it has
_TRIES = 8  # how often a claim that rivals left with nothing looks again
_SPREAD = 4  # among how many batches a claim chooses after rivals came first


class Claiming:
    """What the claims of one store remember from one to the next: only hints."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._names: list[str] = []
        self._contested = False

    async def claim(self, want: Want) -> list[Job]:
        """At most `want.n` jobs, first by priority, then time, then id."""
        one = _Claim(self._link, want)
        page, tries = max(1, want.n), 0
        while one.room > 0 and one.blocked < _MOST_BLOCKED:
            skip = random.randrange(_SPREAD) * page if self._contested else 0
            rows, names = await self._read(want, page, skip)
            if skip and not any("type" in row for row in rows):
                self._contested = False
                continue
            more, lost = await one.wave(rows, names, page)
            self._contested = lost > 0
            page = max(_LATER_PAGE, want.n)
            if lost and not one.taken and tries < _TRIES:
                tries += 1
            elif not more:
                break
        return [job_of(doc) for doc in sorted(one.taken, key=_order)]

    async def _read(self, want: Want, page: int, skip: int) -> tuple[list[Doc], list[str]]:
        """The first jobs of each queue after those skipped, with the queues' own documents, in one round trip."""
        asked = self._names if want.queues is None else [name for name, most in want.queues.items() if most > 0]
        rows = await self._ask(want, asked, page, skip)
        if want.queues is None:
            found = [row["_id"] for row in rows if "type" not in row]
            if set(found) - set(self._names):
                self._names = found
                rows = await self._ask(want, found, page, skip)
        return rows, [row["_id"] for row in rows if "type" not in row and "paused_at" not in row]

    async def _ask(self, want: Want, names: list[str], page: int, skip: int) -> list[Doc]:
        first: Doc = {} if want.queues is None else {"_id": {"$in": names}}
        share = max(1, -(-page // max(1, len(names)))) if len(names) > 2 else page
        jobs = self._link.name("jobs")
        unions = [{"$unionWith": {"coll": jobs, "pipeline": _first_of(name, want, share, skip)}} for name in names]
        stages: list[Doc] = [{"$match": first}, {"$project": {"paused_at": 1}}, *unions, {"$set": {"now": "$$NOW"}}]
        rows = await (await self._link.collection("queues").aggregate(stages, batchSize=10_000)).to_list()
        if rows:
            self._link.clock.see(rows[0]["now"])
        return rows


def _first_of(queue: str, want: Want, page: int, skip: int) -> list[Doc]:
    types = sorted(want.types)
    return [
        {"$match": {"status": "queued", "queue": queue, "type": types[0] if len(types) == 1 else {"$in": types}}},
        {"$sort": {"priority": 1, "run_at": 1, "_id": 1}},
        *([{"$skip": skip}] if skip else []),
        {"$limit": page},
        {"$project": {"history": 0}},
    ]


def _order(doc: Doc) -> tuple[int, datetime, str]:
    return doc["priority"], doc["run_at"], doc["_id"]


class _Claim:
    """One claim in the making."""

    def __init__(self, link: Link, want: Want) -> None:
        self._link, self._want = link, want
        self._mark = ObjectId()
        self.room = want.n
        self.blocked = 0
        self.taken: list[Doc] = []
        self._used: dict[str, int] = defaultdict(int)
        self._slots: dict[str, set[int]] = {}
        self._held: set[str] = set()
        self._blocks: dict[str, list[Doc]] = {}
        self._plain: list[Doc] = []

    async def wave(self, rows: list[Doc], names: list[str], page: int) -> tuple[bool, int]:
        """Take what can be taken of these; returns whether there may be more, and how many rivals took first."""
        lines: dict[str, deque[Doc]] = {name: deque() for name in names}
        for row in rows:
            if "type" in row and row["queue"] in lines:
                lines[row["queue"]].append(row)
        now = rows[0].pop("now") if rows else await self._link.now()
        share = {name: len(line_) for name, line_ in lines.items()}
        self._plain, self._blocks = [], {}
        before = len(self.taken)
        more = await self._walk(lines, share, now)
        walked = len(self.taken) - before + len(self._plain)
        await self._lease_plain(now)
        lost = walked - (len(self.taken) - before)
        self.room += lost
        await self._write_blocks(now)
        return more and bool(rows), lost

    async def _walk(self, lines: dict[str, deque[Doc]], share: dict[str, int], now: datetime) -> bool:
        while self.room > 0 and self.blocked < _MOST_BLOCKED:
            able = [name for name in lines if self._allowance(name) > 0]
            if any(not lines[name] and share[name] for name in able):
                return True  # what comes next in that queue is not known yet, and may come before the others'
            waiting = [name for name in able if lines[name]]
            if not waiting:
                return False
            name = min(waiting, key=lambda one: _order(lines[one][0])) if len(waiting) > 1 else waiting[0]
            doc = lines[name].popleft()
            if _is_plain(doc):
                self._plain.append(doc)
            elif not await self._admit(doc, now):
                continue
            self._used[name] += 1
            self.room -= 1
        return True

    def _allowance(self, queue: str) -> int:
        most = self._want.n if self._want.queues is None else self._want.queues.get(queue, 0)
        return most - self._used[queue]

    async def _lease_plain(self, now: datetime) -> None:
        alike: dict[tuple[int, int], list[Doc]] = defaultdict(list)
        for doc in self._plain:
            alike[doc["moves"], doc["lease_token"]].append(doc)
        for (moves, token), docs in alike.items():
            at = latest(now, docs)
            ids = [doc["_id"] for doc in docs]
            update = self._lease_pipeline(at, moves, token)
            found = {"_id": {"$in": ids}, "status": "queued", "moves": moves}
            done = await self._link.update_many(found, update)
            ours = set(ids) if done == len(ids) else await marked(self._link, ids, self._mark)
            for doc in docs:
                if doc["_id"] in ours:
                    self.taken.append(self._leased(doc, at))
                else:
                    self._used[doc["queue"]] -= 1

    def _lease_pipeline(self, now: datetime, moves: int, token: int) -> list[Doc]:
        told = self._told(now, token)
        return [
            {
                "$set": {
                    "status": Status.PROCESSING.value,
                    "worker_id": {"$literal": self._want.worker_id},
                    "lease_token": token + 1,
                    "lease_expires_at": now + whole(self._want.lease),
                    "attempts": {"$add": ["$attempts", 1]},
                    "started_at": now,
                    "updated_at": now,
                    "wait_ms": {"$subtract": [now, "$queued_at"]},
                    "unique_key": {"$ifNull": ["$unique_running", "$$REMOVE"]},
                    "progress": "$$REMOVE",
                    "moves": moves + 1,
                    "history": appended(told),
                }
            }
        ]

    def _told(self, now: datetime, token: int) -> Doc:
        return line(now, Happened.CLAIMED, Status.PROCESSING, by=self._want.worker_id, token=token + 1, mark=self._mark)

    async def _admit(self, doc: Doc, now: datetime) -> bool:
        """Take one that needs a slot or a key, or put it aside."""
        limit_key, running = doc.get("limit_key"), doc.get("unique_running")
        now = latest(now, [doc])
        while True:
            slot: int | None = None
            if limit_key is not None:
                if limit_key not in self._slots:
                    self._slots[limit_key] = await slots_taken(self._link, limit_key)
                slots, limit = self._slots[limit_key], doc.get("limit_n") or 1
                if len(slots) >= limit:
                    return self._put_aside(doc, f"limit:{limit_key}")
                slot = next(n for n in range(limit) if n not in slots)
            if running is not None and running in self._held and running != doc.get("unique_key"):
                return self._put_aside(doc, f"unique:{running}")
            try:
                done = await self._take(doc, now, slot)
            except DuplicateKeyError as error:
                if "slot" in (error.details or {}).get("keyPattern", {}):
                    del self._slots[str(limit_key)]  # a rival was faster: which are taken now?
                    continue
                self._held.add(str(running))
                continue
            if done and limit_key is not None and slot is not None:
                self._slots[limit_key].add(slot)
            if running is not None:
                self._held.add(running)
            return done

    async def _take(self, doc: Doc, now: datetime, slot: int | None) -> bool:
        values: Doc = {
            "worker_id": self._want.worker_id,
            "lease_expires_at": now + whole(self._want.lease),
            "started_at": now,
            "wait_ms": None if "queued_at" not in doc else in_ms(now - doc["queued_at"]),
            "unique_key": doc.get("unique_running"),
            "slot": slot,
            "progress": None,
        }
        update = change(self._told(now, doc["lease_token"]), values, {"lease_token": 1, "attempts": 1})
        found = {"_id": doc["_id"], "status": "queued", "moves": doc["moves"]}
        done = await self._link.jobs.update_one(found, update)
        if done.modified_count:
            self.taken.append(self._leased(doc, now))
        return bool(done.modified_count)

    def _leased(self, doc: Doc, now: datetime) -> Doc:
        # Read and written under one version, so what the job is now is known without reading it again.
        doc["status"], doc["worker_id"] = Status.PROCESSING.value, self._want.worker_id
        doc["attempts"] += 1
        doc["lease_token"] += 1
        doc["lease_expires_at"] = now + whole(self._want.lease)
        doc["started_at"] = doc["updated_at"] = now
        doc["wait_ms"] = None if "queued_at" not in doc else in_ms(now - doc["queued_at"])
        doc["unique_key"] = doc.get("unique_running")
        doc["progress"] = None
        return doc

    def _put_aside(self, doc: Doc, by: str) -> bool:
        self._blocks.setdefault(by, []).append(doc)
        self.blocked += 1
        return False

    async def _write_blocks(self, now: datetime) -> None:
        for by, docs in self._blocks.items():
            alike: dict[int, list[Doc]] = defaultdict(list)
            for doc in docs:
                alike[doc["moves"]].append(doc)
            for moves, some in alike.items():
                found: Doc = {"_id": {"$in": [doc["_id"] for doc in some]}, "status": "queued", "moves": moves}
                told = line(latest(now, some), Happened.BLOCKED, Status.BLOCKED, note=by)
                update = change(told, {"blocked_by": by})
                await self._link.update_many(found, update)
        # Who stood in the way may have ended just before these were put aside, and freed nobody.
        await unblock(self._link, list(self._blocks))


def _is_plain(doc: dict[str, Any]) -> bool:
    running = doc.get("unique_running")
    return "limit_key" not in doc and (running is None or running == doc.get("unique_key"))
