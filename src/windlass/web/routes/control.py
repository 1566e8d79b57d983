"""Control: dead letters, queues, workers, figures; what concerns more than one job."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, cast

from fastapi import APIRouter, Query

from windlass.client.searching import DeadSearch
from windlass.core.errors import SettingsError
from windlass.web.asking import App, Operator, Overseer, Reader
from windlass.web.shapes import (
    Asked,
    BulkShape,
    DeadLettersShape,
    QueueShape,
    Shape,
    WorkerShape,
    dead_letters_shape,
    queue_shape,
    worker_shape,
)

router = APIRouter()


class QueuesShape(Shape):
    """All queues."""

    items: list[QueueShape]


class WorkersShape(Shape):
    """All workers."""

    items: list[WorkerShape]


class StatusShape(Shape):
    """How many jobs of a queue stand in a status."""

    queue: str
    status: str
    count: int
    exact: bool


class RunsShape(Shape):
    """How the jobs of a type did."""

    type: str
    runs: int
    error_rate: float
    average_run_ms: float | None
    average_wait_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class StatsShape(Shape):
    """Figures: how many stand where, and how those that ended lately did."""

    counts: list[StatusShape]
    types: list[RunsShape]
    failed: int
    since_seconds: float


class Replay(Asked):
    """Which failed jobs are to run again, and how fast."""

    type: str | None = None
    queue: str | None = None
    fingerprint: str | None = None
    rate: Annotated[float | None, Query(gt=0)] = None
    """jobs a second"""
    limit: Annotated[int | None, Query(ge=1, le=1000)] = None
    dry_run: bool = False


@router.get("/queue/dead-letter", tags=["dead letters"], summary="Failed jobs by fingerprint")
async def dead_letters(app: App, caller: Reader, type: str | None = None, queue: str | None = None) -> DeadLettersShape:
    """What went wrong, grouped by what is alike in it."""
    words = {name: value for name, value in (("type", type), ("queue", queue)) if value is not None}
    return dead_letters_shape(await caller.dead_letters(app).groups(**cast("DeadSearch", words)))


@router.post("/queue/dead-letter/replay", tags=["dead letters"], summary="Run failed jobs again")
async def replay(body: Replay, app: App, caller: Operator) -> BulkShape:
    """Enqueue the work of failed jobs again as new jobs, at most a thousand at once; `dryRun` only counts."""
    given = {"type": body.type, "queue": body.queue, "fingerprint": body.fingerprint}
    words = {name: value for name, value in given.items() if value is not None}
    if not words:
        raise SettingsError("no filter was given: say which by type, queue or fingerprint")
    room = caller.dead_letters(app)
    done = await room.replay_all(
        rate=body.rate,
        dry_run=body.dry_run,
        limit=body.limit or 1000,
        actor=caller.name,
        **cast("DeadSearch", words),
    )
    left = done.matched - done.replayed
    return BulkShape(matched=done.matched, done=done.replayed, left=left, dry_run=done.dry_run, ids=list(done.ids))


@router.get("/queues", tags=["control"], summary="All queues")
async def queues(app: App, _: Overseer) -> QueuesShape:
    """Every queue with its depth, at most a second old."""
    return QueuesShape(items=[queue_shape(one) for one in await app.queues.list(max_age=1)])


@router.post("/queues/{name}/pause", status_code=204, tags=["control"], summary="Pause a queue")
async def pause(name: str, app: App, caller: Operator) -> None:
    """Let nothing more be claimed from it; what runs goes on."""
    caller.check_oversight()
    await app.queues.pause(name)
    await app.audit.record(caller.name, "queue.pause", f"queue:{name}")


@router.post("/queues/{name}/resume", status_code=204, tags=["control"], summary="Resume a queue")
async def resume(name: str, app: App, caller: Operator) -> None:
    """Let it be claimed again."""
    caller.check_oversight()
    await app.queues.resume(name)
    await app.audit.record(caller.name, "queue.resume", f"queue:{name}")


@router.get("/workers", tags=["control"], summary="All workers")
async def workers(app: App, _: Overseer) -> WorkersShape:
    """Every worker that has not been forgotten."""
    return WorkersShape(items=[worker_shape(one) for one in await app.workers.list()])


@router.get("/queue/stats", tags=["control"], summary="Figures")
async def stats(app: App, _: Overseer, since: Annotated[float, Query(gt=0, le=2_592_000)] = 3600) -> StatsShape:
    """How many jobs stand where, and how those that ended in the last `since` seconds did."""
    seen = await app.stats.read(since=since)
    counts = [
        StatusShape(queue=one.queue, status=one.status.value, count=one.count.n, exact=one.count.exact)
        for one in seen.counts.by
    ]
    types = [
        RunsShape(
            type=type_,
            runs=runs.runs,
            error_rate=runs.error_rate,
            average_run_ms=_ms(runs.average_run),
            average_wait_ms=_ms(runs.average_wait),
            p50_ms=_ms(runs.percentile(0.5)),
            p95_ms=_ms(runs.percentile(0.95)),
            p99_ms=_ms(runs.percentile(0.99)),
        )
        for type_, runs in seen.figures().items()
    ]
    return StatsShape(counts=counts, types=types, failed=seen.failed(), since_seconds=since)


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1000
