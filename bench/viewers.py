"""Viewers of the dashboard, as `frame/live.js` has them: a stream each, which says when to ask for the regions anew.

One selector serves all of them, and answers are hardly looked at: they share the machine with what is measured, and
browsers are elsewhere in truth.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.web.access.keys import COOKIE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EVERY = 5.0
_PAGES = ("/", "/queues")
_COMES = 2.0
"""so long it takes until all are there"""


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(port: int, sessions: Sequence[str], seconds: float) -> dict[str, int]:
    """Look for so long, each with a session of its own; gives what was asked, unchanged, told, and how many bytes."""
    told: Counter[str] = Counter()
    buffer = bytearray(2**20)
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        viewers = [_Viewer(port, session, _PAGES[k % 2], told, ready) for k, session in enumerate(sessions)]
        while (now := time.monotonic()) < until:
            for viewer in viewers:
                if viewer.stream is None and viewer.comes <= now:
                    viewer.come()
                if viewer.due <= now:
                    viewer.ask()
            for found, _ in ready.select(0.02):
                connection = found.fileobj
                if not isinstance(connection, socket.socket):
                    raise TypeError(connection)
                try:
                    got = connection.recv_into(buffer)
                except ConnectionResetError:
                    got = 0
                told["bytes"] += got
                if not got:
                    ready.unregister(connection)
                    connection.close()
                found.data(bytes(buffer[:got]))
    return {**told, "viewers' CPU, ms": round(time.process_time() * 1000)}


class _Viewer:
    """One page that is looked at."""

    def __init__(self, port: int, session: str, page: str, told: Counter[str], ready: selectors.BaseSelector) -> None:
        self._port, self._page, self._told, self._ready = port, page, told, ready
        self._cookie = f"Cookie: {COOKIE}={session}\r\n"
        self.comes = time.monotonic() + random.uniform(0, _COMES)
        self.due = float("inf")
        """when it asks next"""
        self.stream: socket.socket | None = None
        self._line: socket.socket | None = None
        self._tag, self._last, self._pace, self._fresh = "", "", 1.0, time.monotonic()
        self._busy, self._wanted = False, False
        self._answer = b""

    def come(self) -> None:
        """Open the stream."""
        self.stream = self._open(self._hear)
        self.stream.sendall(f"GET /api/v1/live?limit=1 HTTP/1.1\r\nHost: x\r\n{self._cookie}\r\n".encode())
        self.due = time.monotonic() + _EVERY

    def _open(self, take: Callable[[bytes], None]) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port))
        self._ready.register(connection, selectors.EVENT_READ, take)
        return connection

    def ask(self) -> None:
        """Ask for the regions."""
        self._busy, self._wanted, self.due = True, False, float("inf")
        known = f"If-None-Match: {self._tag}\r\n" if self._tag else ""
        since = f"X-Windlass-Told: {self._last}\r\n" if self._last else ""
        if self._line is None:
            self._line = self._open(self._take)
        head = f"GET /dashboard{self._page} HTTP/1.1\r\nHost: x\r\nX-Windlass-Regions: shared\r\n"
        self._line.sendall(f"{head}{self._cookie}{known}{since}\r\n".encode())

    def _hear(self, came: bytes) -> None:
        if not came:
            raise RuntimeError("the server has closed a stream")
        if b"event: view" not in came:
            return
        self._told["told"] += 1
        at = came.rfind(b"id: ")
        if at >= 0:
            self._last = came[at + 4 :].partition(b"\n")[0].decode()
        if not self._wanted:
            self._wanted = True
            if not self._busy:
                self.due = max(time.monotonic(), self._fresh + self._pace)

    def _take(self, came: bytes) -> None:
        if not came:  # it was idle for so long that the server closed it
            self._line, self._answer = None, b""
            if self._busy:
                self.due = time.monotonic()
            return
        self._answer += came
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end:
            return
        lines = [line.partition(": ") for line in head.decode().lower().split("\r\n")[1:]]
        headers = {name: value for name, _, value in lines}
        if len(body) < int(headers.get("content-length", "0")) and head[9:12] != b"304":
            return
        if head[9:12] not in (b"200", b"304"):
            raise RuntimeError(head.decode())
        self._told["asked"] += 1
        self._told["unchanged"] += head[9:12] == b"304"
        self._answer, self._busy, self._fresh = b"", False, time.monotonic()
        self._tag, self._pace = headers["etag"], float(headers["x-windlass-pace"])
        self.due = self._fresh + (self._pace if self._wanted else max(_EVERY, self._pace))
