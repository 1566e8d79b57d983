"""What live streams of one web application share: the hub, the room there is for them, and who may go on."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windlass.stores.contract import Scope
from windlass.web.live.hub import Hub
from windlass.web.problems import TOO_MANY, Refused

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.requests import HTTPConnection

    from windlass.web.access.authenticating import Authenticator
    from windlass.web.answers import Answers
    from windlass.web.callers import Caller
    from windlass.web.live.pace import Pace


class Live:
    """The live part of a web application."""

    def __init__(self, app: Answers, authenticate: Authenticator, pace: Pace, closing: asyncio.Event) -> None:
        self.app, self.pace = app, pace
        self.hub = Hub(app, pace, closing)
        self._authenticate = authenticate
        self._streams: Counter[str] = Counter()

    @property
    def streams(self) -> int:
        """How many streams and WebSockets there are."""
        return self._streams.total()

    @contextmanager
    def place(self, name: str) -> Generator[None, None, None]:
        """Room for one more of this caller; refused where there are enough."""
        if self._streams[name] >= self.pace.per_caller:
            raise Refused(TOO_MANY, f"you have {self.pace.per_caller} live streams: end one, or watch more in one")
        if self.streams >= self.pace.per_process:
            raise Refused(TOO_MANY, "there are as many live streams here as there may be: come again")
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1
            if not self._streams[name]:
                del self._streams[name]

    async def caller(self, connection: HTTPConnection) -> Caller | None:
        """Who asks."""
        return await self._authenticate(connection, self.app)

    async def still_may(self, connection: HTTPConnection, caller: Caller) -> bool:
        """Whether the same request would be let in now, as the same caller; not where that cannot be found out."""
        try:
            now = await self._authenticate(connection, self.app)
        except Exception:  # noqa: BLE001  # an authenticator may be anybody's: whatever it raises lets nobody in
            return False
        if now is None or not now.may(Scope.READ):
            return False
        return (now.name, now.owner, now.sees_all) == (caller.name, caller.owner, caller.sees_all)


class Clock:
    """When a stream is to say that it is there, and when its caller is to be asked for again."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._said = time.monotonic()
        self._asked = self._said + pace.reauthorise * random.uniform(-0.1, 0.0)  # not all at the same moment

    @property
    def left(self) -> float:
        """Seconds until one of both is due."""
        return max(0.0, min(self._said + self._pace.comment, self._asked + self._pace.reauthorise) - time.monotonic())

    def said(self) -> None:
        """Something was sent."""
        self._said = time.monotonic()

    @property
    def silent(self) -> bool:
        """Whether nothing was sent for so long that a comment is due."""
        return time.monotonic() >= self._said + self._pace.comment

    def asks(self) -> bool:
        """Whether it is time to ask for the caller again; then the time begins anew."""
        due = time.monotonic() >= self._asked + self._pace.reauthorise
        if due:
            self._asked = time.monotonic()
        return due
