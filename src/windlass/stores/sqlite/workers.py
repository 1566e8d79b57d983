"""Workers on SQLite: how each last described itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windlass.stores.contract import SILENT, Peer, WorkerInfo
from windlass.stores.sqlite.records import as_duration_ms, instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.sqlite.engine import Engine

BEAT = """
INSERT INTO windlass_workers (id, described, started_at, beat_at) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET described = excluded.described, beat_at = excluded.beat_at
"""
ALL = "SELECT described, started_at, beat_at FROM windlass_workers ORDER BY id"
PEERS = """
SELECT id, json_extract(described, '$.queues'), json_extract(described, '$.types') FROM windlass_workers
WHERE beat_at > ? AND NOT json_extract(described, '$.stopping') ORDER BY id
"""
FORGET = "DELETE FROM windlass_workers WHERE id = ?"


class SqliteWorkers:
    """See `contract.Workers` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write this worker's state and read the other workers."""
        told = asdict(worker)
        del told["started_at"], told["beat_at"]
        text = json.dumps(told)
        await self._engine.write(lambda db, now: db.execute(self._sql(BEAT), (worker.id, text, now, now)).rowcount)
        silent = as_duration_ms(SILENT)
        rows = await self._engine.read(lambda db, now: db.execute(self._sql(PEERS), (now - silent,)).fetchall())
        return [Peer(peer, tuple(json.loads(queues)), handles) for peer, queues, handles in rows]

    async def list(self) -> list[WorkerInfo]:
        """Every worker, by id."""
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(ALL)).fetchall())
        return [_worker(json.loads(told), started, beat) for told, started, beat in rows]

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove these."""
        await self._engine.write(lambda db, _: db.executemany(self._sql(FORGET), [(one,) for one in ids]).rowcount)


def _worker(told: dict[str, Any], started: int, beat: int) -> WorkerInfo:
    told["queues"], told["types"] = tuple(told["queues"]), tuple(told["types"])
    return WorkerInfo(**told, started_at=instant(started), beat_at=instant(beat))
