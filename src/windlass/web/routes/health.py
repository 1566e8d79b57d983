"""Health: alive, ready."""

from __future__ import annotations

from fastapi import APIRouter, Response

from windlass.web.asking import App
from windlass.web.shapes import Shape

router = APIRouter(tags=["health"])
FRESH = 0.5
"""seconds for which an answer of the store is good for all who ask: anybody may, and as often as they like"""


class HealthShape(Shape):
    """Whether it is well."""

    status: str


@router.get("/healthz", summary="Whether this process is alive")
async def healthz() -> HealthShape:
    """Answers while the process does; asks nothing of the store."""
    return HealthShape(status="alive")


@router.get(
    "/readyz",
    summary="Whether it can be asked",
    responses={503: {"model": HealthShape, "description": "Not now"}},
)
async def readyz(response: Response, app: App) -> HealthShape:
    """Whether the store answers and its schema fits; 503 where not. What exactly is wrong is in the log."""
    ready = await app.health.ready(within=2, max_age=FRESH)
    response.status_code = 200 if ready else 503
    return HealthShape(status="ready" if ready else "not ready")
