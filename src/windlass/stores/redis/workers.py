"""Workers in Redis: how each last described itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import blake2s
from typing import TYPE_CHECKING

from windlass.stores.contract import SILENT, Peer, WorkerInfo
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import PART, SEP, as_duration_ms, instant, unpacked
from windlass.stores.redis.views import as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.redis.connection import Value


class RedisWorkers(Room):
    """See `contract.Workers` for what each promises."""

    @guarded
    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write this worker's state and read the other workers."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        handles = blake2s(SEP.join(worker.types).encode(), digest_size=8).hexdigest()
        consumes = PART.join([SEP.join(worker.queues), handles])
        values: list[Value] = [worker.id, json.dumps(told), consumes, int(worker.stopping), as_duration_ms(SILENT)]
        peers, consumed = await self.link.run("beat", values)
        return sorted(map(_peer, peers, consumed), key=lambda peer: peer.id)

    @guarded
    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker, by id."""
        found = as_pairs(await self.link.command("HGETALL", self.link.key("workers")))
        return [_worker(record) for _, record in sorted(found)]

    @guarded
    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        if ids:
            await self.link.run("forget", list(ids))


def _peer(worker_id: bytes, consumes: bytes) -> Peer:
    queues, _, handles = consumes.decode().partition(PART)
    return Peer(worker_id.decode(), tuple(queues.split(SEP)) if queues else (), handles)


def _worker(record: bytes) -> WorkerInfo:
    started, beat, text = unpacked(record)
    told = json.loads(text)
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=instant(started), beat_at=instant(beat))
