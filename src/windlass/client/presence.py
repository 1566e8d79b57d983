"""Who is there: which workers have said lately that they live."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.stores.contract import SILENT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.contract import Store, WorkerInfo


def is_alive(worker: WorkerInfo, now: datetime) -> bool:
    """Whether it has beaten lately."""
    quiet = silence(worker, now)
    return quiet is not None and quiet < SILENT


def silence(worker: WorkerInfo, now: datetime) -> timedelta | None:
    """How long it has not beaten."""
    return None if worker.beat_at is None else max(timedelta(0), now - worker.beat_at)


async def live_workers(store: Store) -> Sequence[WorkerInfo]:
    """The workers that have beaten lately and are not stopping."""
    now = await store.now()
    return [one for one in await store.workers.list() if is_alive(one, now) and not one.stopping]
