"""The envelope of every request and answer: its id, its bounds while it comes in, the headers of what goes out.

Plain ASGI: what comes in is counted before anything reads it, and what goes out is not held back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import time
from typing import TYPE_CHECKING, Any

from windlass.observability.lines import Line
from windlass.observability.logs import LOGGER, write
from windlass.web.problems import MEDIA_TYPE, TOO_LARGE, UNREADABLE, WRONG_TYPE, Kind, body

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from windlass.web.extending import Uploads

LARGEST_HEADERS, MOST_HEADERS = 16 * 1024, 100
"""bytes of all names and values, and how many there may be"""
LONGEST_ADDRESS = 8 * 1024
"""bytes of path and query"""
LARGEST_BODY = 1024 * 1024
"""bytes"""
SLOWEST = 10.0
"""seconds that the next part of a body may take to come, and that a whole one may take beside its length"""
SLOWEST_RATE = 1024
"""bytes of a body that have to come in each second besides"""
LONGEST = 500
"""characters of a path in a line of the log"""
_LINGERING = 1.0
"""seconds for which the rest of a refused body is taken in"""
SLOW = Kind(408, "too-slow", "The request came too slowly")
_HEAVY = Kind(431, "headers-too-large", "The headers are too large")
LONG = Kind(414, "address-too-long", "The address is too long")
_BODIES = frozenset({"POST", "PUT", "PATCH"})
_JSON = frozenset({"application/json"})
_FORMS = _JSON | {"application/x-www-form-urlencoded"}
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


# Ids are to differ, not to be secret: to ask the system for each costs as much as reading a job.
_IDS = random.Random()
os.register_at_fork(after_in_child=_IDS.seed)
_ACCESS = logging.getLogger(f"{LOGGER}.access")


class _Ended(Exception):
    """The request was answered while it still came in."""


class Envelope:
    """Around the whole application. Paths take JSON alone, but for `forms`, which a page sends, and `uploads`."""

    def __init__(
        self,
        app: ASGIApp,
        largest: int = LARGEST_BODY,
        slowest: float = SLOWEST,
        forms: frozenset[str] = frozenset(),
        uploads: Uploads | None = None,
    ) -> None:
        self._app, self._largest, self._slowest, self._forms, self._uploads = app, largest, slowest, forms, uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, largest = _path(scope), self._largest
        kinds = _FORMS if path in self._forms else _JSON
        upload = None if self._uploads is None else self._uploads.at(path)
        if upload is not None:
            kinds, largest = _JSON | upload.kinds, upload.largest
        await _Passage(self._app, scope, receive, send, largest, self._slowest, kinds).go()


def _path(scope: Scope) -> str:
    """The path below where the application is mounted."""
    return str(scope.get("path", "")).removeprefix(str(scope.get("root_path", "")))


class _Passage:
    """One request on its way."""

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        receive: Receive,
        send: Send,
        largest: int,
        slowest: float,
        kinds: frozenset[str],
    ) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._largest, self._slowest, self._kinds = largest, slowest, kinds
        self._id = f"{_IDS.getrandbits(64):016x}"
        self._headers = dict(reversed(scope["headers"]))
        self._came = 0
        self._began = 0.0
        self._answered = self._read = False
        self._status = 0
        """of the answer; 0 while there is none"""

    async def go(self) -> None:
        if not _ACCESS.isEnabledFor(logging.INFO):
            await self._pass()
            return
        began = time.perf_counter()
        try:
            await self._pass()
        finally:
            write(_ACCESS, self._line(time.perf_counter() - began))

    def _line(self, seconds: float) -> Line:
        scope, status = self._scope, self._status
        # Without what is asked behind the path: that may be a token, or somebody's name.
        method, path, ms = str(scope["method"]), str(scope["path"]), round(seconds * 1000, 1)
        caller, client = scope["state"].get("caller"), scope.get("client")
        facts: dict[str, Any] = {"request": self._id, "method": method, "path": path[:LONGEST], "status": status}
        facts |= {"duration_ms": ms, "client": client[0] if client else None, "caller": getattr(caller, "name", None)}
        text = f"{method[:LONGEST]} {path[:LONGEST]} {status or 'no answer'} {ms:g} ms {self._id}"
        return Line(logging.INFO, "http.request", "request", facts, text)

    async def _pass(self) -> None:
        self._scope.setdefault("state", {})["request_id"] = self._id
        refusal = self._refusal()
        if refusal is not None:
            await self._refuse(*refusal)
            return
        try:
            await self._app(self._scope, self._counted, self._told)
        except _Ended:
            return

    def _refusal(self) -> tuple[Kind, str] | None:
        if (told := self._oversized()) is not None:
            return told
        length, names = self._headers.get(b"content-length"), [name for name, _ in self._scope["headers"]]
        if b"content-encoding" in names:
            return WRONG_TYPE, "a compressed body is not taken: send it as it is"
        if names.count(b"content-length") > 1 or (length is not None and b"transfer-encoding" in names):
            return UNREADABLE, "the length of the body is told twice"
        if length is not None and not (length.isdigit() and length.isascii()):
            return UNREADABLE, "the length of the body is no number"
        if length is not None and int(length[:20]) > self._largest:
            return TOO_LARGE, self._at_most()
        has_body = self._scope["method"] in _BODIES and (b"transfer-encoding" in names or length not in (None, b"0"))
        kind = self._headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if has_body and kind.decode("latin-1") not in self._kinds:
            return WRONG_TYPE, f"expected the header Content-Type: {' or '.join(sorted(self._kinds))}"
        return None

    def _oversized(self) -> tuple[Kind, str] | None:
        headers, scope = self._scope["headers"], self._scope
        if len(headers) > MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
            return _HEAVY, f"there may be {MOST_HEADERS} headers of {LARGEST_HEADERS:,} bytes together"
        path = scope.get("raw_path") or b""
        if len(path) + len(scope.get("query_string", b"")) > LONGEST_ADDRESS:
            return LONG, f"path and query may have {LONGEST_ADDRESS:,} bytes together"
        return None

    def _at_most(self) -> str:
        return f"a body has at most {self._largest:,} bytes: store large data elsewhere and send a reference to it"

    async def _counted(self) -> Message:
        if self._read:
            return await self._receive()  # only that the client has gone can come now
        now = asyncio.get_running_loop().time()
        self._began = self._began or now
        left = self._began + self._slowest + self._came / SLOWEST_RATE - now
        try:
            async with asyncio.timeout(min(self._slowest, left)):
                message = await self._receive()
        except TimeoutError:
            slow = f"for {self._slowest:g} seconds no more than {self._came:,} bytes of the body came"
            await self._refuse(SLOW, f"{slow}: send it by at least {SLOWEST_RATE:,} a second")
            raise _Ended from None
        if message["type"] == "http.request":
            self._came += len(message.get("body", b""))
            self._read = not message.get("more_body", False)
            if self._came > self._largest:
                await self._refuse(TOO_LARGE, self._at_most())
                raise _Ended
        return message

    async def _told(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._answered, self._status = True, message["status"]
            given = {name.lower() for name, _ in message["headers"]}
            more = [pair for pair in _HEADERS if pair[0] not in given]
            message = {**message, "headers": [*message["headers"], *more, (b"x-request-id", self._id.encode())]}
        await self._send(message)

    async def _drain(self) -> None:
        """Take in the rest of a body that is refused, a bounded part: closing before it would undo the answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_LINGERING, self._slowest)):
                while not self._read and self._came <= 2 * self._largest:
                    message = await self._receive()
                    self._came += len(message.get("body", b""))
                    self._read = not message.get("more_body", False)

    async def _refuse(self, kind: Kind, detail: str) -> None:
        if self._answered:
            return
        await self._drain()
        text = json.dumps(body(kind, detail, self._id, {})).encode()
        headers: list[tuple[bytes, Any]] = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(text)).encode()),
            (b"connection", b"close"),  # what is left of the request is not read
        ]
        await self._told({"type": "http.response.start", "status": kind.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": text})
