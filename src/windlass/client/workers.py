"""`app.workers`: the workers that are there, judged by the store's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import SILENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.client.client import Client
    from windlass.stores.contract import Store, WorkerInfo


class Presence(StrEnum):
    """Whether a worker is there."""

    ALIVE = "alive"
    STOPPING = "stopping"
    """alive, finishing what it runs and claiming nothing more"""
    SILENT = "silent"
    """it has not beaten for 45 seconds: it is presumed dead, and its jobs are rescued when their leases expire"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """A worker as it last described itself, and whether it is still there."""

    id: str
    presence: Presence
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    """the queues it consumes; empty is every queue"""
    types: tuple[str, ...]
    """the types it has handlers for"""
    slots: int
    running: int
    stuck: int
    """threads that went on past their timeout"""
    memory_mb: float | None
    loop_lag_ms: float | None
    started_at: datetime | None
    beat_at: datetime | None
    beat_age: timedelta | None
    """how long ago it has beaten, by the store's clock"""
    stopping: bool
    """whether it said that it is stopping, be it silent since or not"""

    @property
    def alive(self) -> bool:
        """Whether it has beaten lately."""
        return self.presence is not Presence.SILENT


class WorkersRoom:
    """Workers describe themselves with every heartbeat; what they said stays until they stop or are forgotten."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> Sequence[WorkerState]:
        """Every worker that has not been forgotten, by id."""
        return await states(await self._client.ready())

    async def forget(self, *ids: str) -> Sequence[str]:
        """Forget these silent workers, without ids every silent one; gives the ids of those that were forgotten.

        One that is alive is refused with SettingsError, and nothing is forgotten: it would be back with its next
        heartbeat. An id that nobody has is passed over.
        """
        store = await self._client.ready()
        known = await states(store)
        wanted = set(ids) or {worker.id for worker in known if not worker.alive}
        for worker in known:
            if worker.id in wanted and worker.alive:
                raise SettingsError(f"worker {shown(worker.id)} is {worker.presence}: stop it, it forgets itself then")
        gone = [worker.id for worker in known if worker.id in wanted]
        await store.workers.forget(gone)
        return gone


async def states(store: Store) -> list[WorkerState]:
    """Every worker of an open store, judged at one moment."""
    now = await store.now()
    return [_state(worker, now) for worker in await store.workers.list()]


async def live_workers(store: Store) -> list[WorkerState]:
    """The workers that have beaten lately and are not stopping."""
    return [worker for worker in await states(store) if worker.presence is Presence.ALIVE]


def _state(worker: WorkerInfo, now: datetime) -> WorkerState:
    age = None if worker.beat_at is None else max(timedelta(0), now - worker.beat_at)
    return WorkerState(
        id=worker.id,
        presence=_presence(age, stopping=worker.stopping),
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        queues=worker.queues,
        types=worker.types,
        slots=worker.slots,
        running=worker.running,
        stuck=worker.stuck,
        memory_mb=worker.memory_mb,
        loop_lag_ms=worker.loop_lag_ms,
        started_at=worker.started_at,
        beat_at=worker.beat_at,
        beat_age=age,
        stopping=worker.stopping,
    )


def _presence(age: timedelta | None, *, stopping: bool) -> Presence:
    if age is None or age >= SILENT:
        return Presence.SILENT
    return Presence.STOPPING if stopping else Presence.ALIVE
