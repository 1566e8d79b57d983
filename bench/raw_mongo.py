"""The raw loop on MongoDB: one collection, batched claim and completion, nothing else. What windlass is measured by.

It makes ids and writes JSON as any queue must, keeps every finished document, waits for majority and journal, and does
one find and one update per claim and one update per completion: no history, no fencing, no limits, no views.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.write_concern import WriteConcern

WAITING = {"queue": "default", "status": "queued"}
ORDER = {"priority": 1, "run_at": 1, "_id": 1}


class RawMongo:
    """The loop's one collection, in a database of its own."""

    def __init__(self, url: str, database: str) -> None:
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url)
        durable = WriteConcern(w="majority", j=True)
        self._jobs = self._client.get_database(database).get_collection("raw_jobs", write_concern=durable)

    async def open(self) -> None:
        """Make the index of what waits."""
        keys = [("queue", 1), *ORDER.items()]
        await self._jobs.create_index(keys, name="raw_claim", partialFilterExpression={"status": "queued"})

    async def close(self) -> None:
        """Drop the database and close the connections."""
        await self._client.drop_database(self._jobs.database.name)
        await self._client.close()

    async def insert(self, n: int, batch: int) -> float:
        """Insert n jobs in batches; jobs per second."""
        begun = time.perf_counter()
        for start in range(0, n, batch):
            now = time.time_ns() // 1_000_000
            new = [
                {
                    "_id": str(uuid.uuid4()),
                    **WAITING,
                    "payload": json.dumps({"n": i}),
                    "priority": 100,
                    "run_at": now,
                    "attempts": 0,
                    "created_at": now,
                    "started_at": None,
                    "finished_at": None,
                    "result": None,
                }
                for i in range(start, min(n, start + batch))
            ]
            await self._jobs.insert_many(new, ordered=False)
        return n / (time.perf_counter() - begun)

    async def run(self, batch: int) -> float:
        """Claim and complete everything in batches; jobs per second."""
        done = 0
        begun = time.perf_counter()
        while True:
            claimed = await self._claim(batch)
            if not claimed:
                return done / (time.perf_counter() - begun)
            for job in claimed:
                json.loads(job["payload"])
            ended = {"status": "succeeded", "finished_at": time.time_ns() // 1_000_000, "result": "null"}
            mine = {"_id": {"$in": [job["_id"] for job in claimed]}, "status": "processing"}
            done += (await self._jobs.update_many(mine, {"$set": ended})).modified_count

    async def _claim(self, batch: int) -> list[dict[str, Any]]:
        found = await self._jobs.find(WAITING, sort=ORDER, limit=batch, hint="raw_claim").to_list()
        if found:
            theirs = {"_id": {"$in": [job["_id"] for job in found]}, "status": "queued"}
            begun = {"status": "processing", "started_at": time.time_ns() // 1_000_000}
            taken = await self._jobs.update_many(theirs, {"$set": begun, "$inc": {"attempts": 1}})
            if taken.modified_count < len(found):
                raise RuntimeError("somebody else claims in this collection")
        return found
