"""Workers on PostgreSQL: how each last described itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windlass.stores.contract import WorkerInfo
from windlass.stores.postgres.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

BEAT = """
INSERT INTO windlass_workers (id, described, started_at, beat_at)
SELECT $1::text, $2::text::json, now, now FROM date_trunc('milliseconds', statement_timestamp()) AS now
ON CONFLICT (id) DO UPDATE SET described = excluded.described, beat_at = excluded.beat_at
"""
ALL = "SELECT described, started_at, beat_at FROM windlass_workers ORDER BY id"
FORGET = "DELETE FROM windlass_workers WHERE id = ANY ($1::text[])"


class PostgresWorkers(Room):
    """See `contract.Workers` for what each promises."""

    @guarded
    async def beat(self, worker: WorkerInfo) -> None:
        """Write how the worker is."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        await self.link.fetch(BEAT, worker.id, json.dumps(told))

    @guarded
    async def list(self) -> list[WorkerInfo]:
        """Every worker, by id."""
        return [_worker(json.loads(told), started, beat) for told, started, beat in await self.link.fetch(ALL)]

    @guarded
    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        await self.link.fetch(FORGET, list(ids))


def _worker(told: dict[str, Any], started: datetime, beat: datetime) -> WorkerInfo:
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=started, beat_at=beat)
