"""The port of a worker's metrics: a thread with a loop of its own, so that no handler keeps it from answering.

It answers GET /metrics and nothing else. Every client that reaches it may read: beyond loopback it needs a token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.observability.prometheus import Page

PATH = "/metrics"
_LARGEST = 16 * 1024
_SLOWEST = 10.0  # seconds for a request to come in, and for its answer to be taken
_MOST = 32  # connections at once
_FAREWELL = 5.0


class Scraped(Protocol):
    """What is served."""

    async def page(self, accept: str = "") -> Page: ...


class Refused(Exception):
    """Why there are no metrics for this request."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class MetricsPort:
    """Answers at a socket until closed."""

    def __init__(
        self, listening: socket.socket, scraped: Scraped, end: Callable[[], Awaitable[None]], token: str | None = None
    ) -> None:
        self._socket, self._scraped, self._end, self._token = listening, scraped, end, token
        self._thread = threading.Thread(target=self._serve, name="windlass-metrics", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._room = asyncio.Semaphore(_MOST)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_FAREWELL)
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._meet, sock=self._socket, limit=_LARGEST)
        async with server:
            await self._closing.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                await self._end()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Beyond so many connections at once a new one is closed unheard: a scrape is a moment's work.
        if self._room.locked():
            writer.transport.abort()
            return
        async with self._room:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(_SLOWEST):
                    writer.write(await self._answer(reader))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            method, accept = self._let_in(await reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            return _said("431 Request Header Fields Too Large", "the headers are too large")
        except asyncio.IncompleteReadError:
            return b""
        except Refused as refusal:
            return _said(refusal.status, str(refusal))
        page = await self._scraped.page(accept)
        return _response("200 OK", page.content_type, page.body, bare=method == "HEAD")

    def _let_in(self, head: bytes) -> tuple[str, str]:
        """The method and what is accepted, of a request that may be answered."""
        request, *lines = head.decode("latin-1").split("\r\n")
        words = request.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise Refused("400 Bad Request", "this is no request of HTTP/1.1")
        pairs = [line.partition(":") for line in lines if line]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        method, path = words[0], words[1].partition("?")[0]
        if path != PATH:
            raise Refused("404 Not Found", f"there is only {PATH} here")
        if method not in ("GET", "HEAD"):
            raise Refused("405 Method Not Allowed", "metrics are only read: GET")
        self._check(headers)
        return method, headers.get("accept", "")

    def _check(self, headers: dict[str, str]) -> None:
        if self._token is not None:
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise Refused("401 Unauthorized", "give WINDLASS_METRICS_TOKEN in the header Authorization: Bearer …")
        elif not _is_bare(headers.get("host", "")):
            # A page in a browser on this machine may have its own name lead here.
            raise Refused("421 Misdirected Request", "ask for localhost or an address, not for a name")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_bare(host: str) -> bool:
    """Whether no name server gives it away: an address or localhost, with a port or without."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _said(status: str, why: str) -> bytes:
    return _response(status, "text/plain; charset=utf-8", f"{why}\n".encode())


def _response(status: str, content_type: str, body: bytes, *, bare: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n"
    )
    head += "WWW-Authenticate: Bearer\r\n" if status.startswith("401") else ""
    return head.encode() + b"\r\n" + (b"" if bare else body)
