"""Authenticating: from a request's credentials to the caller. Nothing is open by itself."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from windlass.stores.contract import Scope
from windlass.web.callers import EVERYBODY, Caller
from windlass.web.problems import UNAUTHENTICATED, Refused

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from windlass.stores.contract import Key
    from windlass.web.answers import Answers

KNOWN_FOR = 5.0
"""seconds that a key which let in is not looked up again: so long after it was revoked it may still let in"""
_MOST_KNOWN = 10_000
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="windlass"'}


class Authenticator(Protocol):
    """Says who asks. Give your own to `app.asgi(authenticate=…)` to use your application's sign-in."""

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The caller; None where the request says nothing, Refused where what it says is wrong."""
        ...


class ByKey:
    """By a key in the header `Authorization: Bearer wl_…`."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Key]] = {}
        self._touching: set[asyncio.Task[None]] = set()

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The key's owner."""
        given = request.headers.get("authorization")
        if given is None:
            return None
        scheme, _, secret = given.partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Refused(UNAUTHENTICATED, "expected the header Authorization: Bearer and a key", _CHALLENGE)
        key = await self._found(secret.strip(), app)
        if key is None:
            raise Refused(UNAUTHENTICATED, "this key is unknown, was revoked or has expired", _CHALLENGE)
        return Caller(name=f"key:{key.id}", owner=key.owner, scopes=key.scopes, grants=key.grants)

    async def _found(self, secret: str, app: Answers) -> Key | None:
        now = time.monotonic()
        until, known = self._known.get(secret, (0.0, None))
        if known is not None and now < until:
            return known
        key = await app.keys.find(secret)
        if key is None:
            self._known.pop(secret, None)
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[secret] = now + KNOWN_FOR, key
        task = asyncio.create_task(app.keys.touch(key.id))  # that it was used is noted beside the request
        self._touching.add(task)
        task.add_done_callback(self._touched)
        return key

    def _touched(self, task: asyncio.Task[None]) -> None:
        self._touching.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: a note that could not be written is no reason to refuse anybody


class Open:
    """Everybody is an administrator: for one's own machine only."""

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """Without a question."""
        return Caller(name="anybody", owner=EVERYBODY, scopes=frozenset(Scope))
