"""Workers on PostgreSQL: how each last described itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windlass.stores.contract import SILENT, Peer, WorkerInfo
from windlass.stores.postgres.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

BEAT = """
INSERT INTO windlass_workers (id, described, started_at, beat_at)
SELECT $1::text, $2::text::json, now, now FROM date_trunc('milliseconds', statement_timestamp()) AS now
ON CONFLICT (id) DO UPDATE SET described = excluded.described, beat_at = excluded.beat_at
"""
# In one round trip with the beat, whose own row is not seen by it.
BEAT_AND_LOOK = f"""
WITH beat AS ({BEAT} RETURNING id, described)
SELECT id, described -> 'queues', md5(described ->> 'types') FROM (
    SELECT id, described FROM beat
    UNION ALL
    SELECT id, described FROM windlass_workers
    WHERE id <> $1::text AND beat_at > statement_timestamp() - $3::interval
) AS lately
WHERE NOT coalesce((described ->> 'stopping')::boolean, false) ORDER BY id
"""  # noqa: S608  # made of constants
ALL = "SELECT described, started_at, beat_at FROM windlass_workers ORDER BY id"
FORGET = "DELETE FROM windlass_workers WHERE id = ANY ($1::text[])"


class PostgresWorkers(Room):
    """See `contract.Workers` for what each promises."""

    @guarded
    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write this worker's state; returns the workers with a recent heartbeat."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        rows = await self.link.fetch(BEAT_AND_LOOK, worker.id, json.dumps(told), SILENT)
        return [Peer(id_, tuple(json.loads(queues)), handles) for id_, queues, handles in rows]

    @guarded
    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker, by id."""
        return [_worker(json.loads(told), started, beat) for told, started, beat in await self.link.fetch(ALL)]

    @guarded
    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        await self.link.fetch(FORGET, list(ids))


def _worker(told: dict[str, Any], started: datetime, beat: datetime) -> WorkerInfo:
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=started, beat_at=beat)
