"""Queues: how much waits in each, for how long, how fast it goes, and whether it is held back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.figures import By, RunFigures
from windlass.client.workers import Presence
from windlass.web.dashboard.room import Needs, Page, Rail, Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.workers import WorkerState
    from windlass.stores.contract import QueueInfo
    from windlass.web.dashboard.visit import Visit

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue as the page shows it."""

    queue: QueueInfo
    slots: int
    """of the workers that take from it; they may take from others, too"""
    runs: RunFigures
    series: Sequence[int]
    """runs that ended, by minute"""

    @property
    def rate(self) -> float:
        """Runs that ended in a minute, over the last five."""
        last = self.series[-6:-1]
        return sum(last) / len(last) if last else 0.0


async def show(visit: Visit) -> dict[str, Any]:
    """Every queue, with its last hour."""
    queues = await visit.app.queues.list(max_age=1)
    seen, workers = await visit.stats.read(since=HOUR), await visit.app.workers.list()
    runs = seen.figures(By.QUEUE)
    rows = [
        Row(
            queue=queue,
            slots=_slots(workers, queue.name),
            runs=runs.get(queue.name, RunFigures()),
            series=[ended.total() for _, ended in seen.series(queue=queue.name)],
        )
        for queue in queues
    ]
    return {"rows": rows, "paused": sum(row.queue.paused_at is not None for row in rows)}


def _slots(workers: Sequence[WorkerState], queue: str) -> int:
    here = [worker for worker in workers if worker.presence is Presence.ALIVE]
    return sum(worker.slots for worker in here if not worker.queues or queue in worker.queues)


ROOM = Room(
    name="queues",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/queues",
            title="Queues",
            template="queues.html",
            show=show,
            needs=Needs.OVERSEE,
            rail=Rail(word="Queues", icon="M3 5h14M3 10h14M3 15h9", order=30, key="q"),
        ),
    ),
)
