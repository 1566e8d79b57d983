"""The raw loop on Redis: a hash per job and a sorted set of what waits, nothing else. What windlass is measured by.

It makes ids and writes JSON as any queue must, keeps every finished job, and runs one script per insert, claim and
completion, the completion of one batch while the next is claimed: no history, no fencing, no limits, no views.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

from redis.asyncio import Redis

INSERT = """
local at = redis.call('TIME')[1]
local waiting = {}
for n = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1] .. ARGV[n], 'payload', ARGV[n + 1], 'status', 'queued', 'created_at', at)
  waiting[n], waiting[n + 1] = at, ARGV[n]
end
redis.call('ZADD', KEYS[1] .. 'waiting', unpack(waiting))
"""
CLAIM = """
local at = redis.call('TIME')[1]
local popped, told = redis.call('ZPOPMIN', KEYS[1] .. 'waiting', ARGV[1]), {}
for n = 1, #popped, 2 do
  local key = KEYS[1] .. popped[n]
  redis.call('HSET', key, 'status', 'processing', 'started_at', at)
  told[n], told[n + 1] = popped[n], redis.call('HGET', key, 'payload')
end
return told
"""
COMPLETE = """
local at = redis.call('TIME')[1]
local done = {}
for n = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1] .. ARGV[n], 'status', 'succeeded', 'finished_at', at, 'result', ARGV[n + 1])
  done[n], done[n + 1] = at, ARGV[n]
end
redis.call('ZADD', KEYS[1] .. 'finished', unpack(done))
"""


class RawRedis:
    """The loop's keys, in a database of its own."""

    def __init__(self, url: str) -> None:
        driver: Any = Redis  # half of its methods have no types
        self._client = driver.from_url(url)

    async def close(self) -> None:
        """Empty the database and close the connections."""
        await self._client.flushdb()
        await self._client.aclose()

    async def insert(self, n: int, batch: int) -> float:
        """Insert n jobs in batches; jobs per second."""
        script = self._client.register_script(INSERT)
        begun = time.perf_counter()
        for start in range(0, n, batch):
            values: list[str] = []
            for number in range(start, min(n, start + batch)):
                values += [str(uuid.uuid4()), json.dumps({"n": number})]
            await script(keys=["raw:"], args=values)
        return n / (time.perf_counter() - begun)

    async def run(self, batch: int) -> float:
        """Claim and complete everything in batches, overlapped; jobs per second."""
        claim, complete = self._client.register_script(CLAIM), self._client.register_script(COMPLETE)
        done = 0
        begun = time.perf_counter()
        ended: list[Any] = []
        while True:
            settle = complete(keys=["raw:"], args=ended) if ended else asyncio.sleep(0)
            claimed, _ = await asyncio.gather(claim(keys=["raw:"], args=[batch]), settle)
            if not claimed:
                return done / (time.perf_counter() - begun)
            ended = []
            for at in range(0, len(claimed), 2):
                json.loads(claimed[at + 1])
                ended += [claimed[at], "null"]
            done += len(claimed) // 2
