"""Queues in MongoDB: a document each, from the first job or setting that names them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pymongo import UpdateOne

from windlass.core.keys import check_name
from windlass.stores.contract import COUNT_CAP, Count, Notice, QueueInfo
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.records import duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.mongo.connection import Doc


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
        return _capped(await self.link.count(asked, COUNT_CAP + 1, hint="status"))

    async def _waiting(self, name: str) -> tuple[Count, timedelta | None]:
        """How many wait, and for how long the first of them has."""
        pipeline: list[Doc] = [
            {"$match": {"status": "queued", "queue": name}},
            {"$limit": COUNT_CAP + 1},
            {"$group": {"_id": None, "n": {"$sum": 1}, "first": {"$min": "$queued_at"}}},
            {"$set": {"waited": {"$subtract": ["$$NOW", "$first"]}}},
        ]
        rows = await (await self.link.jobs.aggregate(pipeline, hint="ready")).to_list()
        if not rows:
            return Count(0, exact=True), None
        [row] = rows
        return _capped(row["n"]), None if row["waited"] is None else duration(max(0, row["waited"]))


def _capped(n: int) -> Count:
    return Count(min(n, COUNT_CAP), n <= COUNT_CAP)
