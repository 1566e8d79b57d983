"""Workers: how each last described itself, what it runs, and what is to be noticed about them together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.workers import Presence
from windlass.core.status import Status
from windlass.web.dashboard.room import Needs, Page, Rail, Room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

ROWS = 50
_LOOKED_THROUGH = 500
"""running jobs, to tell which worker has which"""
SLOW_LOOP_MS = 200.0
"""so late a worker's loop makes all of its jobs late"""
_ORDER = {Presence.ALIVE: 0, Presence.STOPPING: 1, Presence.SILENT: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One worker as the page shows it."""

    worker: WorkerState
    jobs: Sequence[Job]
    """what it runs, as far as was looked"""
    running: int
    """how many; as it told itself where not all were looked at"""
    other_version: bool
    """it runs another version of windlass than most that are there"""

    @property
    def host(self) -> str:
        """The machine with its process."""
        return f"{self.worker.host}/{self.worker.pid}" if self.worker.pid else self.worker.host

    @property
    def slow(self) -> bool:
        """Whether something holds up its loop."""
        return _slow(self.worker)


def _slow(worker: WorkerState) -> bool:
    return (worker.loop_lag_ms or 0.0) > SLOW_LOOP_MS


async def show(visit: Visit) -> dict[str, Any]:
    """All workers, those that are there first."""
    found = sorted(await visit.app.workers.list(), key=lambda one: (_ORDER[one.presence], one.host, one.pid, one.id))
    page = min(max(int(asked), 1), 1_000) if (asked := visit.asked("page", "1")).isdecimal() else 1
    shown = found[(page - 1) * ROWS : page * ROWS]
    there = [one for one in found if one.alive]
    versions = _by_version(there)
    usual = max(versions, key=lambda version: len(versions[version]), default="")
    jobs, complete = await _running(visit)
    running = {one.id: len(jobs.get(one.id, ())) if complete and one.alive else one.running for one in found}
    return {
        "cards": [
            Card(
                worker=one,
                jobs=jobs.get(one.id, ()),
                running=running[one.id],
                other_version=one.alive and one.version != usual,
            )
            for one in shown
        ],
        "total": len(found),
        "there": len(there),
        "slots": sum(one.slots for one in there),
        "used": sum(running[one.id] for one in there),
        "stuck": sum(one.stuck for one in there),
        "lag": max((one.loop_lag_ms for one in there if one.loop_lag_ms is not None), default=None),
        "slow": any(_slow(one) for one in there),
        "silent": [one for one in found if not one.alive],
        "versions": {version: len(some) for version, some in sorted(versions.items(), reverse=True)},
        "before": visit.here(page=page - 1) if page > 1 else None,
        "after": visit.here(page=page + 1) if page * ROWS < len(found) else None,
        "Presence": Presence,
    }


def _by_version(workers: Sequence[WorkerState]) -> Mapping[str, Sequence[WorkerState]]:
    versions: defaultdict[str, list[WorkerState]] = defaultdict(list)
    for one in workers:
        versions[one.version].append(one)
    return versions


async def _running(visit: Visit) -> tuple[Mapping[str, Sequence[Job]], bool]:
    """What runs, by worker, longest first; whether that is all."""
    jobs: defaultdict[str, list[Job]] = defaultdict(list)
    after: str | None = None
    for _ in range(_LOOKED_THROUGH // 100):
        found = await visit.jobs.find(status=Status.PROCESSING, limit=100, after=after)
        for job in found.jobs:
            if job.worker_id is not None:
                jobs[job.worker_id].append(job)
        after = found.next
        if after is None:
            break
    for some in jobs.values():
        some.sort(key=lambda job: job.started_at or job.created_at)
    return jobs, after is None


ROOM = Room(
    name="workers",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/workers",
            title="Workers",
            template="workers.html",
            show=show,
            needs=Needs.OVERSEE,
            rail=Rail(
                word="Workers",
                icon="M4 4h12v5H4zM4 11h12v5H4zM7 6.5h.1M7 13.5h.1M10 6.5h3M10 13.5h3",
                order=50,
                key="w",
            ),
        ),
    ),
)
