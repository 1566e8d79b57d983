"""Admission of WebSockets: where their key is.

From where one may be opened the gate has asked (`access/gate.py`). A browser cannot give a header Authorization: it
offers the key as a subprotocol, or says it in the first message. It is never in the address, which is logged on its
way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

PROTOCOL = "windlass.v1"
_BEARER = "bearer."


def offered(socket: WebSocket) -> str | None:
    """The key among the subprotocols."""
    protocols: list[str] = socket.scope.get("subprotocols", [])
    return next((one.removeprefix(_BEARER) for one in protocols if one.startswith(_BEARER)), None)


def speaks(socket: WebSocket) -> str | None:
    """The subprotocol that is agreed on: never the one with the key."""
    return PROTOCOL if PROTOCOL in socket.scope.get("subprotocols", []) else None


def with_key(socket: HTTPConnection, key: str | None) -> HTTPConnection:
    """The same request, with the key where an authenticator looks for it."""
    if key is None:
        return HTTPConnection(socket.scope)
    others = [(name, value) for name, value in socket.scope["headers"] if name != b"authorization"]
    bearer = (b"authorization", b"Bearer " + key.encode("latin-1", "replace"))
    return HTTPConnection({**socket.scope, "headers": [*others, bearer]})
