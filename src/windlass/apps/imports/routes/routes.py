"""All routes of imports."""

from __future__ import annotations

from fastapi import APIRouter

from windlass.apps.imports.imports import Imports
from windlass.apps.imports.routes.seeing import see
from windlass.apps.imports.routes.starting import BASE, send, start
from windlass.apps.uploads.receiving import AROUND
from windlass.web import (
    Repeatable,
    Routes,
    Upload,
    Uploading,
)


def routes(imports: Imports) -> Routes:
    """All of them."""
    router = APIRouter(route_class=Repeatable, tags=["imports"])
    files = APIRouter(route_class=Uploading, tags=["imports"])
    start(router, imports)
    send(files, imports)
    see(router, imports)
    router.include_router(files)
    upload = Upload(largest=imports.settings.largest + AROUND)
    told = "Spreadsheets whose rows are checked and upserted; every bad cell is named."
    uploads = {f"{BASE}/xlsx/upload": upload, f"{BASE}/files": upload}
    return Routes(router=router, uploads=uploads, tags={"imports": told})
