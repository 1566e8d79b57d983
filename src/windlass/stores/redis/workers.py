"""Workers in Redis: how each last described itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from windlass.stores.contract import WorkerInfo
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import instant, unpacked
from windlass.stores.redis.views import as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence


class RedisWorkers(Room):
    """See `contract.Workers` for what each promises."""

    @guarded
    async def beat(self, worker: WorkerInfo) -> None:
        """Write how the worker is."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        await self.link.run("beat", [worker.id, json.dumps(told)])

    @guarded
    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker, by id."""
        found = as_pairs(await self.link.command("HGETALL", self.link.key("workers")))
        return [_worker(record) for _, record in sorted(found)]

    @guarded
    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        if ids:
            await self.link.command("HDEL", self.link.key("workers"), *ids)


def _worker(record: bytes) -> WorkerInfo:
    started, beat, text = unpacked(record)
    told = json.loads(text)
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=instant(started), beat_at=instant(beat))
