"""Workers: who is there."""

from __future__ import annotations

from fastapi import APIRouter

from windlass.web.asking import App, Overseer
from windlass.web.shapes import Shape, WorkerShape, worker_shape

router = APIRouter(tags=["workers"])


class WorkersShape(Shape):
    """All workers."""

    items: list[WorkerShape]


@router.get("/workers", summary="All workers")
async def workers(app: App, _: Overseer) -> WorkersShape:
    """Every worker that has not been forgotten."""
    return WorkersShape(items=[worker_shape(one) for one in await app.workers.list()])
