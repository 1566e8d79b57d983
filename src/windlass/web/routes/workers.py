"""Workers: who is there, and forgetting who is not."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from windlass.web.asking import App, Controller, Overseer
from windlass.web.auditing import Audit
from windlass.web.given import Asked, Key
from windlass.web.routing import Repeatable
from windlass.web.shapes import Shape, WorkerShape, worker_shape

router = APIRouter(route_class=Repeatable, tags=["workers"])


class WorkersShape(Shape):
    """All workers."""

    items: list[WorkerShape]


class Silent(Asked):
    """Which silent workers; without ids every one."""

    ids: Annotated[list[Key], Field(max_length=1000)] = Field(default_factory=list[str])


class ForgottenShape(Shape):
    """The workers that were forgotten."""

    ids: list[str]


@router.get("/workers", summary="All workers")
async def workers(app: App, _: Overseer) -> WorkersShape:
    """Every worker that has not been forgotten."""
    return WorkersShape(items=[worker_shape(one) for one in await app.workers.list()])


@router.post("/workers/forget", summary="Forget silent workers")
async def forget(app: App, _: Controller, audit: Audit, body: Silent | None = None) -> ForgottenShape:
    """Forget these, or every silent one. One that is alive is refused, and then none is forgotten."""
    gone = [*await app.workers.forget(*(() if body is None else body.ids))]
    await audit.record("workers.forget", "workers", before={"ids": gone[:_MOST_NAMED]}, count=len(gone))
    return ForgottenShape(ids=gone)


_MOST_NAMED = 50  # workers in an entry of the audit trail
