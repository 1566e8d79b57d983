"""A TCP proxy in front of a server, which delays, swallows, cuts and loses what passes: the faults of a network.

It runs in a thread and loop of its own, so that a caller's blocked loop does not hold it up. Everything it does to a
connection looks from both ends as a network's fault would: silence without a close, a reset, or an answer that is lost
after the request was carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType
    from typing import Any

_CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a reset instead of an end


class Sieve(Protocol):
    """Takes messages out of what a server sends on one connection."""

    def feed(self, data: bytes) -> bytes:
        """What is to be passed on of these bytes."""
        ...


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    sieve: Sieve | None
    deaf: bool = False
    """answers are swallowed from now on"""
    silent: bool = False
    """nothing passes either way any more, and nothing is closed"""
    marked: bool = False
    """one of its requests had one of the proxy's marks"""
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])


class Proxy:
    """Stands between clients and one server; whole until told otherwise.

    `marks` are words in requests by which one kind of traffic is told from the rest.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        seed: int = 0,
        sieve: Callable[[], Sieve] | None = None,
        marks: tuple[bytes, ...] = (),
    ) -> None:
        self._target = (host, port)
        self._sieve, self._marks = sieve, marks
        self._chance = random.Random(seed)  # faults are to be repeatable, not secret
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="windlass-chaos-proxy", daemon=True)
        self._listening: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._delay = 0.0
        self._loss = 0.0
        self._refusing = False
        self._silent = self._muting = False
        self.sieving = False
        """whether what the sieve finds is taken out"""
        self.port = 0
        self.lost = 0
        """how many answers were lost after their requests had been forwarded"""

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._do(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connections(self) -> int:
        """How many pass through it now."""
        return len(self._connections)

    def delay(self, seconds: float) -> None:
        """Let everything take so much longer, each way."""
        self._delay = seconds

    def lose_answers(self, share: float) -> None:
        """Forward every request, but for this share of them swallow the answer and reset the connection.

        The fault that leaves a client not knowing whether its write was done.
        """
        self._loss = share

    def silence(self) -> None:
        """Let nothing pass on any connection, old or new, and close none: a cable that was pulled."""
        self._silent = True
        self._do(self._silence_all())

    def silence_marked(self, *, standing: bool = True) -> None:
        """The same from now on for each connection that carries a mark.

        `standing`: also for those that have carried one before. They may be used for something else by now, where
        clients have no connection of its own for what is marked.
        """
        self._muting = True
        if standing:
            self._do(self._silence_all(only_marked=True))

    def half_open(self) -> None:
        """Close what stands towards the server and let the clients believe that they are still connected."""
        self._do(self._half_open())

    def reset(self) -> None:
        """Reset every connection."""
        self._do(self._reset())

    def refuse(self) -> None:
        """Reset every connection, and every new one at once: a server that is not there."""
        self._refusing = True
        self._do(self._reset())

    def lead_to(self, host: str, port: int) -> None:
        """Reset every connection, and lead new ones to another server: an address that follows a failover."""
        self._target = (host, port)
        self._do(self._reset())

    def heal(self) -> None:
        """Pass everything again. Connections that were silenced are reset, as those of a mended cable soon are."""
        self._delay = self._loss = 0.0
        self._refusing = self._silent = self._muting = self.sieving = False
        self._do(self._reset(only_silent=True))

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> int:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def _close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._reset()
        # What accepted a connection ends with it.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            _abort(writer)
            return
        try:
            answers, requests = await asyncio.open_connection(*self._target)
        except OSError:
            _abort(writer)
            return
        one = _Connection(writer, requests, self._sieve() if self._sieve else None, silent=self._silent)
        self._connections.add(one)
        one.tasks = [
            asyncio.create_task(self._carry_requests(one, reader)),
            asyncio.create_task(self._carry_answers(one, answers)),
        ]
        await asyncio.wait(one.tasks, return_when=asyncio.FIRST_COMPLETED)
        if not one.silent:
            self._drop(one)

    async def _carry_requests(self, one: _Connection, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                marked = any(mark in data for mark in self._marks)
                one.marked = one.marked or marked
                one.silent = one.silent or (marked and self._muting)
                await self._hold(one)
                if not one.deaf and self._loss and self._chance.random() < self._loss:
                    one.deaf = True
                one.server.write(data)
                await one.server.drain()

    async def _carry_answers(self, one: _Connection, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._hold(one)
                if one.deaf:
                    # The server has answered, so the request was carried out; the client will never know.
                    self.lost += 1
                    self._drop(one)
                    return
                if one.sieve is not None:
                    found = one.sieve.feed(data)
                    data = found if self.sieving else data
                one.client.write(data)
                await one.client.drain()

    async def _hold(self, one: _Connection) -> None:
        if self._delay:
            await asyncio.sleep(self._delay)
        if one.silent:
            await asyncio.Event().wait()  # until the connection is dropped

    async def _silence_all(self, *, only_marked: bool = False) -> None:
        for one in self._connections:
            one.silent = one.silent or one.marked or not only_marked

    async def _half_open(self) -> None:
        for one in self._connections:
            one.silent = True
            _abort(one.server)

    async def _reset(self, *, only_silent: bool = False) -> None:
        for one in list(self._connections):
            if one.silent or not only_silent:
                self._drop(one)

    def _drop(self, one: _Connection) -> None:
        self._connections.discard(one)
        for writer in (one.client, one.server):
            _abort(writer)
        for task in one.tasks:
            if task is not asyncio.current_task():
                task.cancel()


def _abort(writer: asyncio.StreamWriter) -> None:
    found: socket.socket | None = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class PostgresNotices:
    """Takes notifications out of what PostgreSQL sends: registered, never told, as behind a transaction pooler."""

    _HEADER = 5

    def __init__(self) -> None:
        self._rest = b""
        self._greeted = False

    def feed(self, data: bytes) -> bytes:
        """The same bytes without NotificationResponse messages."""
        if not self._greeted:
            self._greeted = True
            if data in (b"N", b"S"):  # the answer to a question for encryption is no message
                self._greeted = False
                return data
        passed, self._rest = b"", self._rest + data
        while len(self._rest) >= self._HEADER:
            size = 1 + int.from_bytes(self._rest[1 : self._HEADER], "big")
            if len(self._rest) < size:
                break
            message, self._rest = self._rest[:size], self._rest[size:]
            if not message.startswith(b"A"):
                passed += message
        return passed


class RedisMessages:
    """Takes published messages out of what Redis sends to a subscriber."""

    def feed(self, data: bytes) -> bytes:
        """The same bytes, or none of them where they are a published message."""
        return b"" if data.startswith((b"*3\r\n$7\r\nmessage", b">3\r\n$7\r\nmessage")) else data
