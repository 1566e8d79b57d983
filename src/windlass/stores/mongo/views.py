"""Looking at jobs in MongoDB: keyset pages, capped counts, history and figures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.core.spread import Spread
from windlass.core.status import Status
from windlass.stores.contract import (
    COUNT_CAP,
    MOST_COUNTED,
    MOST_LOOKED_AT,
    Count,
    Figures,
    Filter,
    Looked,
    Minute,
    Page,
    Ran,
    Stats,
    StatusCount,
    together,
)
from windlass.stores.contract.paging import ANY_WAY, Walk, cut, page_of, walk_of
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.records import NO_HISTORY, STATUSES, entries_of, job_of, ran, waited, whole
from windlass.stores.mongo.searching import searched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from pymongo.asynchronous.cursor import AsyncCursor

    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.mongo.connection import Doc

_NEAR = 4
"""times as many as a page has are looked at first, where jobs are tested one by one"""


_RAN = dict.fromkeys(("queue", "type", "status", "queued_at", "started_at", "finished_at", "duration_ms", "wait_ms"), 1)


class MongoViews(Room):
    """See `contract.Views` for what each promises."""

    @guarded
    async def get(self, ids: Sequence[str], user: str | None = None) -> list[Job | None]:
        """The jobs of these ids, in order."""
        asked = {"_id": {"$in": list(set(ids))}, **_of(user)}
        docs = await self.link.jobs.find(asked, NO_HISTORY).to_list()
        found = {doc["_id"]: job_of(doc) for doc in docs}
        return [found.get(job_id) for job_id in ids]

    @guarded
    async def blocked(self, lines: Sequence[str], n: int, after: Job | None = None) -> list[Job]:
        """The first of each line, or those behind a job."""

        async def first(line: str) -> list[Doc]:
            asked: Doc = {"blocked_by": line}
            if after is not None:
                at = after.queued_at
                asked["$or"] = [{"queued_at": {"$gt": at}}, {"queued_at": at, "_id": {"$gt": after.id}}]
                asked["queued_at"] = {"$gte": at}
            standing = self.link.jobs.find(asked, NO_HISTORY).hint("blocked")
            return await standing.sort([("queued_at", 1), ("_id", 1)]).limit(n).to_list()

        docs = await asyncio.gather(*map(first, lines))
        return [job_of(doc) for some in docs for doc in some]

    @guarded
    async def find(self, filter_: Filter, limit: int, after: str | None = None, *, oldest_first: bool = False) -> Page:
        """In the order asked for, from the cursor on."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        walk = walk_of(after, oldest_first=oldest_first)
        index, tests = searched(filter_, walk)
        if not tests:
            docs = await self._walked(index, walk, NO_HISTORY).limit(limit + 1).to_list()
            return page_of([job_of(doc) for doc in docs], limit, walk)
        docs = await self._tested(index, tests, walk, limit + 1)
        stop = await self._stop(index, walk) if len(docs) <= limit else None
        return page_of(cut([job_of(doc) for doc in docs], walk, stop), limit, walk, stop)

    def _walked(self, index: Doc, walk: Walk, fields: Doc) -> AsyncCursor[Doc]:
        return self.link.jobs.find(index, fields).sort("_id", -1 if walk.descending else 1)

    async def _tested(self, index: Doc, tests: Doc, walk: Walk, most: int) -> list[Doc]:
        # The server reads megabytes ahead of the tests, however little is taken: a page that most jobs match is full
        # long before.
        docs = await self._tested_of(index, tests, walk, most, min(_NEAR * most, MOST_LOOKED_AT))
        return docs if len(docs) >= most else await self._tested_of(index, tests, walk, most, MOST_LOOKED_AT)

    async def _tested_of(self, index: Doc, tests: Doc, walk: Walk, most: int, bound: int) -> list[Doc]:
        pipeline: list[Doc] = [
            {"$match": index},
            {"$sort": {"_id": -1 if walk.descending else 1}},
            # Keeps the tests out of the choice of an index, and bounds the walk.
            {"$limit": bound},
            {"$match": tests},
            {"$limit": most},
            {"$project": NO_HISTORY},
        ]
        return await (await self.link.jobs.aggregate(pipeline)).to_list()

    async def _stop(self, index: Doc, walk: Walk) -> str | None:
        """The last id that was looked at, if the walk did not come to its end."""
        docs = await self._walked(index, walk, {"_id": 1}).skip(MOST_LOOKED_AT - 1).limit(1).to_list()
        return docs[0]["_id"] if docs else None

    @guarded
    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        index, tests = searched(filter_, ANY_WAY)
        if not tests:
            n = await self.link.count(index, cap + 1)
            return Count(min(n, cap), n <= cap)
        pipeline: list[Doc] = [
            {"$match": index},
            {"$limit": cap + 1},
            {"$facet": {"looked": [{"$count": "n"}], "fit": [{"$match": tests}, {"$count": "n"}]}},
        ]
        [row] = await (await self.link.jobs.aggregate(pipeline)).to_list()
        looked, fit = (row[name][0]["n"] if row[name] else 0 for name in ("looked", "fit"))
        return Count(min(fit, cap), looked <= cap)

    @guarded
    async def look(self, job_id: str, user: str | None = None) -> Looked | None:
        """The whole document."""
        doc = await self.link.jobs.find_one({"_id": job_id, **_of(user)})
        return Looked(job_of(doc), entries_of(doc)) if doc else None

    @guarded
    async def history(self, job_id: str, user: str | None = None) -> list[Entry]:
        """The job's moves, oldest first."""
        doc = await self.link.jobs.find_one({"_id": job_id, **_of(user)}, {"history": 1, "moves": 1})
        return entries_of(doc) if doc else []

    @guarded
    async def ran(self, user: str, limit: int, after: str | None = None) -> Sequence[Ran]:
        """Their newest, or those before a job."""
        asked: Doc = {"user_id": user} if after is None else {"user_id": user, "_id": {"$lt": after}}
        docs = await self.link.jobs.find(asked, _RAN).sort("_id", -1).limit(limit).to_list()
        return [_ran(doc) for doc in docs]

    @guarded
    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        now = await self.link.now()
        return Stats(now, tuple(await self._counts(frozenset(Status), COUNT_CAP)), await self._minutes(since, now))

    @guarded
    async def figures(self, since: timedelta) -> Figures:
        """The minutes since, and what was kept."""
        now = await self.link.now()
        minutes, kept = await asyncio.gather(
            self._minutes(since, now), self.link.collection("meta").find_one({"_id": "figures"})
        )
        return Figures(now, minutes, kept["text"] if kept else None)

    @guarded
    async def ended(self, first: datetime, until: datetime) -> Sequence[Minute]:
        """The minutes from the one until before the other."""
        return await self._ended({"$gte": first, "$lt": until})

    @guarded
    async def first_minute(self) -> datetime | None:
        """The oldest minute."""
        row = await self.link.collection("minutes").find_one({}, {"minute": 1}, sort=[("minute", 1)])
        return row["minute"] if row else None

    @guarded
    async def recount(self, statuses: frozenset[Status], most: int = MOST_COUNTED) -> Sequence[StatusCount]:
        """By queue and status."""
        return await self._counts(statuses, most)

    @guarded
    async def keep(self, text: str) -> None:
        """In place of what was kept before."""
        kept = {"$set": {"text": text}}
        await self.link.surely(lambda: self.link.collection("meta").update_one({"_id": "figures"}, kept, upsert=True))

    async def _minutes(self, since: timedelta, now: datetime) -> tuple[Minute, ...]:
        return await self._ended({"$gte": (now - whole(since)).replace(second=0, microsecond=0)})

    async def _ended(self, minutes: Doc) -> tuple[Minute, ...]:
        rows = await self.link.collection("minutes").find({"minute": minutes}).to_list()
        return together(map(_minute, rows))

    async def _counts(self, statuses: frozenset[Status], most: int) -> list[StatusCount]:
        first, *others = [_by_queue(status, most) for status in sorted(statuses)]
        unions = [{"$unionWith": {"coll": self.link.name("jobs"), "pipeline": other}} for other in others]
        rows = await (await self.link.jobs.aggregate([*first, *unions])).to_list()
        found: list[StatusCount] = []
        for status in sorted(statuses):
            mine = [row for row in rows if row["status"] == status.value]
            exact = sum(row["n"] for row in mine) <= most
            mine.sort(key=lambda row: str(row["_id"]))
            found += [StatusCount(row["_id"], status, Count(row["n"], exact)) for row in mine]
        return found


def _ran(doc: Doc) -> Ran:
    status, finished_at = STATUSES[doc["status"]], doc.get("finished_at")
    return Ran(doc["_id"], doc["queue"], doc["type"], status, finished_at, ran(doc), waited(doc))


def _of(user: str | None) -> Doc:
    return {} if user is None else {"user_id": user}


def _by_queue(status: Status, most: int) -> list[Doc]:
    return [
        {"$match": {"status": status.value}},
        {"$limit": most + 1},
        {"$project": {"_id": 0, "queue": 1}},
        {"$group": {"_id": "$queue", "n": {"$sum": 1}}},
        {"$set": {"status": status.value}},
    ]


def _minute(row: Doc) -> Minute:
    of = row["_id"]
    key = row["minute"], of["queue"], of["type"], STATUSES[of["status"]]
    if of["bucket"] >= 0:
        return Minute.of_power(key, of["bucket"], row["n"], row["duration_ms"], row["wait_ms"])
    return Minute(*key, _spread(row, "run", "duration_ms"), _spread(row, "wait", "wait_ms"))


def _spread(row: Doc, name: str, total: str) -> Spread:
    buckets = {int(bucket): n for bucket, n in row[name].items()}
    return Spread(row["n"], row[total], row[f"least_{name}"], row[f"most_{name}"], buckets)
