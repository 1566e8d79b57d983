"""Requests that name a trace: what they enqueue goes on with it, where they are trusted so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from windlass.core.spans import Spans


class Continued:
    """Around the routes, inside what bounds a request."""

    def __init__(self, app: ASGIApp, spans: Callable[[], Spans | None]) -> None:
        self._app, self._spans = app, spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        spans = self._spans()
        if spans is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with spans.received(scope["headers"]):
            await self._app(scope, receive, send)
