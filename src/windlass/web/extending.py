"""Extending: routes of an application's own beside windlass's, behind the same door and in the same document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import Depends
from fastapi.openapi.utils import get_openapi
from starlette.routing import Match, compile_path

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.web.asking import any_caller

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

    from fastapi import APIRouter, FastAPI

MULTIPART = "multipart/form-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What a path takes beside JSON: a file, which may be larger than other bodies."""

    largest: int
    """bytes of the whole body; what is beyond is refused while it comes in"""
    kinds: frozenset[str] = frozenset({MULTIPART})


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Routes of an application. Their paths begin where the API is mounted: `/api/v1/orders`, `/shop/{name}`."""

    router: APIRouter
    uploads: Mapping[str, Upload] = field(default_factory=dict[str, Upload])
    """by path, as the router has it; every other path takes JSON of up to 1 MiB"""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """what the document says of the tags of these routes"""


def include(web: FastAPI, own: Iterable[Routes]) -> None:
    """Add them. The caller is known before any of them runs: without a key they answer 401."""
    for routes in own:
        known = get_openapi(title="", version="", routes=routes.router.routes)["paths"]
        for path, methods in known.items():
            if any(_is_taken(web, path, method.upper()) for method in methods):
                raise SettingsError(f"the route {shown(path)} is there already: give yours another path")
        for path in sorted(routes.uploads.keys() - known.keys()):
            raise SettingsError(f"an upload is declared for {shown(path)}, which is none of the router's paths")
        web.include_router(routes.router, dependencies=[Depends(any_caller)])


def _is_taken(web: FastAPI, path: str, method: str) -> bool:
    """Whether one of the routes before would answer in its place."""
    asked: dict[str, Any] = {"type": "http", "path": path, "root_path": "", "method": method, "headers": []}
    return any(route.matches(asked)[0] is Match.FULL for route in web.routes)


class Uploads:
    """Which paths take what beside JSON."""

    def __init__(self, own: Iterable[Routes]) -> None:
        uploads = ((path, upload) for routes in own for path, upload in routes.uploads.items())
        self._known: Sequence[tuple[re.Pattern[str], Upload]] = [(compile_path(path)[0], one) for path, one in uploads]

    def at(self, path: str) -> Upload | None:
        """What this path takes, if it is one of them."""
        return next((upload for shape, upload in self._known if shape.match(path)), None)
