"""Queues: looking at them, pausing and resuming them, bounding their depth."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from windlass.web.asking import App, Controller, Overseer
from windlass.web.auditing import Audit
from windlass.web.given import INTEGRAL, Asked, Name
from windlass.web.routing import Repeatable
from windlass.web.shapes import QueueShape, Shape, queue_shape, rfc3339

router = APIRouter(route_class=Repeatable, tags=["queues"])


class QueuesShape(Shape):
    """All queues."""

    items: list[QueueShape]


class Depth(Asked):
    """How many jobs may wait in a queue; null lifts the bound."""

    max_depth: Annotated[int, Field(ge=0, lt=2**31), INTEGRAL] | None


@router.get("/queues", summary="All queues")
async def queues(app: App, _: Overseer) -> QueuesShape:
    """Every queue with its depth, at most a second old."""
    return QueuesShape(items=[queue_shape(one) for one in await app.queues.list(max_age=1)])


@router.post("/queues/{name:path}/pause", status_code=204, summary="Pause a queue")
async def pause(name: Name, app: App, caller: Controller, audit: Audit) -> None:
    """Let nothing more be claimed from it; what runs goes on."""
    caller.check_queue(name)
    before = await _state(app, name)
    await app.queues.pause(name)
    await audit.record("queue.pause", f"queue:{name}", before=before, after=await _state(app, name))


@router.post("/queues/{name:path}/resume", status_code=204, summary="Resume a queue")
async def resume(name: Name, app: App, caller: Controller, audit: Audit) -> None:
    """Let it be claimed again."""
    caller.check_queue(name)
    before = await _state(app, name)
    await app.queues.resume(name)
    await audit.record("queue.resume", f"queue:{name}", before=before, after=await _state(app, name))


@router.put("/queues/{name:path}/max-depth", status_code=204, summary="Bound the depth of a queue")
async def limit_depth(name: Name, body: Depth, app: App, caller: Controller, audit: Audit) -> None:
    """Refuse enqueues while so many jobs wait in it; `{"maxDepth": null}` lifts that."""
    caller.check_queue(name)
    before = await _state(app, name)
    await app.queues.limit_depth(name, body.max_depth)
    await audit.record("queue.limit", f"queue:{name}", before=before, after=await _state(app, name))


async def _state(app: App, name: str) -> dict[str, str | int | None]:
    """What an operator can change of it, as the audit trail has it."""
    found = next((one for one in await app.queues.list() if one.name == name), None)
    paused = None if found is None else found.paused_at
    return {
        "pausedAt": None if paused is None else rfc3339(paused),
        "maxDepth": None if found is None else found.max_depth,
    }
