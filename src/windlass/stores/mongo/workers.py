"""Workers in MongoDB: how each last described itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from windlass.stores.contract import SILENT, Peer, WorkerInfo
from windlass.stores.mongo.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.mongo.connection import Doc


SEP = "\x1f"


class MongoWorkers(Room):
    """See `contract.Workers` for what each promises."""

    @guarded
    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write this worker's state and, at the same time, read the other workers."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        stamped = {
            "described": {"$literal": json.dumps(told)},
            "started_at": {"$ifNull": ["$started_at", "$$NOW"]},
            "beat_at": "$$NOW",
        }
        workers, now = self.link.collection("workers"), await self.link.now()
        others: Doc = {"_id": {"$ne": worker.id}, "beat_at": {"$gt": now - SILENT}}
        _, rows = await asyncio.gather(
            workers.update_one({"_id": worker.id}, [{"$set": stamped}], upsert=True), workers.find(others).to_list()
        )
        there = [info for info in [worker, *map(_worker, rows)] if not info.stopping]
        return [Peer(info.id, info.queues, SEP.join(info.types)) for info in sorted(there, key=lambda info: info.id)]

    @guarded
    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker, by id."""
        return [_worker(row) for row in await self.link.collection("workers").find().sort("_id", 1).to_list()]

    @guarded
    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        gone: Doc = {"_id": {"$in": list(ids)}}
        await self.link.surely(lambda: self.link.collection("workers").delete_many(gone))


def _worker(row: Doc) -> WorkerInfo:
    told: Doc = json.loads(row["described"])
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=row["started_at"], beat_at=row["beat_at"])
