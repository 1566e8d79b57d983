"""The gate: what is turned away before anybody asks who it is: another host's name, another site's page.

Plain ASGI, so that an upgrade to a WebSocket goes through it like any other request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse

from windlass.web.access.origins import Origins, is_forged
from windlass.web.problems import MEDIA_TYPE, Kind, body

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from windlass.web.access.hosts import Hosts

OTHER_HOST = Kind(421, "other-host", "This server does not answer for that host")
FORGED = Kind(403, "other-site", "The request may come from another site's page")
_HOW_HOST = "add the name to WINDLASS_HTTP_HOSTS if it is this server's"
_HOW_SITE = (
    "a request with a cookie has to say that it comes from this site's own pages (Sec-Fetch-Site, Origin);"
    " a program sends a key in the header Authorization: Bearer …"
)
_CLOSED = 1008
"""what a WebSocket is closed with: against the rules"""


class Gate:
    """Around all routes. `opens` are the sites besides whose pages may open a WebSocket."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Hosts | None = None,
        origins: Origins | None = None,
        opens: frozenset[str] = frozenset(),
    ) -> None:
        self._app, self._hosts, self._origins = app, hosts, origins or Origins()
        self._opens = Origins(self._origins.named | opens, any=self._origins.any)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or turn it away."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        said = request.headers.getlist("host")
        if self._hosts is not None and not (len(said) == 1 and self._hosts.include(said[0])):
            await _turned_away(OTHER_HOST, _HOW_HOST, request, receive, send)
        elif is_forged(request, self._opens if scope["type"] == "websocket" else self._origins):
            await _turned_away(FORGED, _HOW_SITE, request, receive, send)
        else:
            await self._app(scope, receive, send)


async def _turned_away(kind: Kind, how: str, request: HTTPConnection, receive: Receive, send: Send) -> None:
    if request.scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _CLOSED, "reason": kind.title})
        return
    members = body(kind, how, str(getattr(request.state, "request_id", "")), {})
    await JSONResponse(members, kind.status, media_type=MEDIA_TYPE)(request.scope, receive, send)
