"""Queues: looking at them, pausing and resuming them."""

from __future__ import annotations

from fastapi import APIRouter

from windlass.web.asking import App, Operator, Overseer
from windlass.web.shapes import QueueShape, Shape, queue_shape

router = APIRouter(tags=["queues"])


class QueuesShape(Shape):
    """All queues."""

    items: list[QueueShape]


@router.get("/queues", summary="All queues")
async def queues(app: App, _: Overseer) -> QueuesShape:
    """Every queue with its depth, at most a second old."""
    return QueuesShape(items=[queue_shape(one) for one in await app.queues.list(max_age=1)])


@router.post("/queues/{name}/pause", status_code=204, summary="Pause a queue")
async def pause(name: str, app: App, caller: Operator) -> None:
    """Let nothing more be claimed from it; what runs goes on."""
    caller.check_oversight()
    await app.queues.pause(name)
    await app.audit.record(caller.name, "queue.pause", f"queue:{name}")


@router.post("/queues/{name}/resume", status_code=204, summary="Resume a queue")
async def resume(name: str, app: App, caller: Operator) -> None:
    """Let it be claimed again."""
    caller.check_oversight()
    await app.queues.resume(name)
    await app.audit.record(caller.name, "queue.resume", f"queue:{name}")
