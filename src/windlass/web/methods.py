"""Methods: which of them a path knows, all routes together; a router knows its first one that is alike."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from starlette.routing import compile_path

if TYPE_CHECKING:
    import re

    from fastapi import FastAPI
    from starlette.requests import Request


class Methods:
    """Of one application's routes."""

    def __init__(self, web: FastAPI) -> None:
        self._web = web

    def of(self, request: Request) -> list[str]:
        """Those of the first path that fits the request, as the routes were declared."""
        path = request.url.path.removeprefix(str(request.scope.get("root_path", "")))
        return next((methods for shape, methods in self._known if shape.match(path)), list[str]())

    @cached_property
    def _known(self) -> list[tuple[re.Pattern[str], list[str]]]:
        paths: dict[str, dict[str, object]] = self._web.openapi()["paths"]
        named_first = sorted(paths.items(), key=lambda found: found[0].count("{"))
        return [(compile_path(path)[0], sorted(method.upper() for method in methods)) for path, methods in named_first]
