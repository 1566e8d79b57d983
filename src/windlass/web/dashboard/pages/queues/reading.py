"""What is told of a queue: how it stands, how fast it goes, and who paused it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.client.figures import By, RunFigures
from windlass.client.workers import Presence
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.stats import Overview
    from windlass.client.workers import WorkerState
    from windlass.stores.contract import AuditEntry, QueueInfo
    from windlass.web.dashboard.visit import Visit

HOUR = timedelta(hours=1)
_RATE_OF = 5
"""the speed is that of so many minutes"""
_TRAIL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue as pages show it."""

    queue: QueueInfo
    slots: int
    """of the workers that take from it; they may take from others, too"""
    workers: int
    runs: RunFigures
    series: Sequence[int]
    """runs that ended, by minute"""
    scheduled: int
    """for later, or to be tried again"""
    blocked: int

    @property
    def rate(self) -> float:
        """Runs that ended in a minute, over the last five."""
        last = self.series[-_RATE_OF - 1 : -1]
        return sum(last) / len(last) if last else 0.0

    @property
    def drained_in(self) -> timedelta | None:
        """How long what waits will take at this speed; None where nothing is waiting, or nothing goes."""
        if not self.queue.depth.n or self.rate <= 0 or self.queue.paused_at is not None:
            return None
        return timedelta(minutes=self.queue.depth.n / self.rate)

    @property
    def drained(self) -> str | None:
        """Why there is no time in which it will be drained."""
        if not self.queue.depth.n:
            return "nothing is waiting"
        if self.queue.paused_at is not None:
            return "paused"
        return "not moving" if self.rate <= 0 else None


async def rows_of(visit: Visit, only: str | None = None) -> list[Row]:
    """Every queue, or one, with its last hour."""
    queues = await visit.app.queues.list(max_age=visit.age)
    seen, workers = await visit.stats.read(since=HOUR, max_age=visit.age), await visit.app.workers.list()
    runs = seen.figures(By.QUEUE)
    return [_row(queue, seen, runs, workers) for queue in queues if only in (None, queue.name)]


def _row(queue: QueueInfo, seen: Overview, runs: dict[str, RunFigures], workers: Sequence[WorkerState]) -> Row:
    here = [one for one in workers if one.presence is Presence.ALIVE and (not one.queues or queue.name in one.queues)]
    later = (Status.SCHEDULED, Status.RETRYING)
    return Row(
        queue=queue,
        slots=sum(one.slots for one in here),
        workers=len(here),
        runs=runs.get(queue.name, RunFigures()),
        series=[ended.total() for _, ended in seen.series(queue=queue.name)],
        scheduled=sum(seen.counts.of(queue=queue.name, status=status).n for status in later),
        blocked=seen.counts.of(queue=queue.name, status=Status.BLOCKED).n,
    )


async def paused_by(visit: Visit, queue: QueueInfo) -> AuditEntry | None:
    """Who paused it, as the audit trail tells; code that does it leaves no entry there."""
    if queue.paused_at is None:
        return None
    page = await visit.app.audit.list(object_=f"queue:{queue.name}", limit=_TRAIL)
    return next((one for one in page.entries if one.action == "queue.pause"), None)
