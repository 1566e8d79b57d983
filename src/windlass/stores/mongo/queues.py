"""Queues in MongoDB: a document each, from the first job or setting that names them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from pymongo import UpdateOne

from windlass.core.keys import check_name
from windlass.stores.contract import DEPTH_CAP, Count, Notice, QueueInfo
from windlass.stores.mongo.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc


_FIRST, _PRIORITIES = 100, 50
"""how many of each priority are looked at for the longest wait, and of how many priorities"""
_MOST_TOLD = 1000  # a notice of so many jobs wakes everybody


class MongoQueues(Room):
    """See `contract.Queues` for what each promises."""

    @guarded
    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        rows = await self.link.collection("queues").find().sort("_id", 1).to_list()
        return await asyncio.gather(*[self._one(row) for row in rows])

    @guarded
    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these."""
        checked = sorted({check_name(name, "the queue") for name in names})
        paused = [{"$set": {"paused_at": {"$ifNull": ["$paused_at", "$$NOW"]}}}]
        writes = [UpdateOne({"_id": name}, paused, upsert=True) for name in checked]
        if writes:
            await self.link.collection("queues").bulk_write(writes)

    @guarded
    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        resumed = {"_id": {"$in": list(names)}}
        waiting: Doc = {"status": "queued", "queue": {"$in": list(names)}}
        n = max(1, await self.link.count(waiting, _MOST_TOLD, hint="ready"))
        notices = [Notice.claimable(n, names[0] if len(names) == 1 else None)]
        update = {"$unset": {"paused_at": ""}, "$set": {"wake": self.link.news(notices)}}
        await self.link.surely(lambda: self.link.collection("queues").update_many(resumed, update))
        self.link.tell(notices)

    @guarded
    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Set or lift the largest depth."""
        check_name(name, "the queue")
        update: Doc = {"$unset": {"max_depth": ""}} if max_depth is None else {"$set": {"max_depth": max_depth}}
        await self.link.collection("queues").update_one({"_id": name}, update, upsert=True)
        self.link.forget_open(name)

    async def _one(self, row: Doc) -> QueueInfo:
        name = row["_id"]
        (depth, oldest), processing = await asyncio.gather(self._waiting(name), self._processing(name))
        return QueueInfo(
            name=name,
            paused_at=row.get("paused_at"),
            max_depth=row.get("max_depth"),
            depth=depth,
            processing=processing,
            oldest=oldest,
        )

    # Both name their index: finding out anew which is best takes the server longer than the walk itself.

    async def _processing(self, name: str) -> Count:
        asked = {"status": "processing", "queue": name}
        return _capped(await self.link.count(asked, DEPTH_CAP + 1, hint="status"))

    async def _waiting(self, name: str) -> tuple[Count, timedelta | None]:
        """How many wait, and for how long the first of them has."""
        asked = {"status": "queued", "queue": name}
        depth = await self.link.count(asked, DEPTH_CAP + 1, hint="ready")
        # The head of each priority: the server goes from one to the next in the index.
        pipeline: list[Doc] = [
            {"$match": asked},
            {"$sort": {"status": 1, "queue": 1, "priority": 1, "run_at": 1}},
            {"$group": {"_id": "$priority", "queued_at": {"$first": "$queued_at"}}},
            {"$limit": _PRIORITIES},
        ]
        heads = await (await self.link.jobs.aggregate(pipeline, hint="ready")).to_list() if depth else []
        if not heads:
            return _capped(depth), None
        oldest = await self._before(asked, [head["_id"] for head in heads], min(head["queued_at"] for head in heads))
        return _capped(depth), max(await self.link.now() - oldest, timedelta(0))

    async def _before(self, asked: Doc, priorities: Sequence[int], oldest: datetime) -> datetime:
        """The earliest among those that were due before: no job is queued before it is due."""
        for priority in priorities:
            due: Doc = {**asked, "priority": priority, "run_at": {"$lt": oldest}}
            walk = self.link.jobs.find(due, {"queued_at": 1}).sort("run_at", 1).hint("ready").limit(_FIRST)
            oldest = min([oldest, *[doc["queued_at"] async for doc in walk]])
        return oldest


def _capped(n: int) -> Count:
    return Count(min(n, DEPTH_CAP), n <= DEPTH_CAP)
