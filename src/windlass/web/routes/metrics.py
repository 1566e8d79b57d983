"""Metrics: what Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from windlass.core.errors import SettingsError
from windlass.web.asking import App, Overseer
from windlass.web.problems import Kind, Refused

NOT_THERE = Kind(501, "not-installed", "This server has no metrics")
router = APIRouter(tags=["statistics"])


@router.get(
    "/metrics",
    include_in_schema=False,  # its form is Prometheus's, and no client of the API asks for it
)
async def read(request: Request, app: App, _: Overseer) -> Response:
    """What this process has counted since it was first asked, and how the store stands: see docs/metrics.md.

    The store is asked at most every few seconds, however many ask here.
    """
    try:
        metrics = app.metrics()
    except SettingsError as error:  # the extra is not there
        raise Refused(NOT_THERE, str(error)) from None
    page = await metrics.page(request.headers.get("accept", ""))
    return Response(page.body, headers={"Content-Type": page.content_type})
