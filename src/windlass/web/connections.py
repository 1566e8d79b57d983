"""Connections of a server of our own: answers go out at once, and who sends no whole request in time is hung up on.

uvicorn waits for the first request of a connection, and for the rest of one that has begun, as long as the client
likes: who sends a letter now and then could hold as many connections as there may be. The body is `envelope.py`'s.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

SLOWEST_HEAD = 10.0
"""seconds from the first byte of a request, or the beginning of a connection, to the end of its headers"""


class Connection(H11Protocol):
    """One with a bound for the headers of each request; their size is bounded by uvicorn's own setting for it."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        # Head and body are two writes. Else the second waits until the first is acknowledged, which clients put off for
        # 40 ms; asyncio does this itself, but not where the listening socket does not name its protocol.
        connection = cast("socket.socket", transport.get_extra_info("socket"))
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start_or_stop_timer()

    def data_received(self, data: bytes) -> None:
        """Take some more of a request."""
        super().data_received(data)
        self._start_or_stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._stop_timer()

    def _start_or_stop_timer(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # uvicorn has None in it at first
        under_way = cycle is not None and not cycle.response_complete
        if under_way or self.transport.get_protocol() is not self:  # a WebSocket by now
            self._stop_timer()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(SLOWEST_HEAD, self.transport.close)

    def _stop_timer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
