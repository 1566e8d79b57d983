"""Keys and sessions that windlass made itself, and how long one that let in is remembered."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING

from windlass.stores.contract import KeyKind
from windlass.web.access.authenticating import bearer_of, refused
from windlass.web.callers import Caller

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.responses import Response

    from windlass.client.keys import CreatedKey
    from windlass.stores.contract import Key
    from windlass.web.answers import Answers

KNOWN_FOR = 1.0
"""seconds that a key which let in is not looked up again: so long after it was revoked it may still let in"""
COOKIE = "windlass_session"
_BEGINS = "wl_"
_MOST_KNOWN = 10_000
_WRONG = "this key is unknown, was revoked or has expired"


class Known:
    """Keys that let in a moment ago. Of their secrets only hashes are remembered."""

    def __init__(self, known_for: float | None = None) -> None:
        self._known_for = known_for
        self._known: dict[bytes, tuple[float, Key]] = {}
        self._touching: set[asyncio.Task[None]] = set()

    async def find(self, secret: str, app: Answers) -> Key | None:
        """The key with this secret, if it lets in, or did a moment ago."""
        now, hash_ = time.monotonic(), hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
        until, known = self._known.get(hash_, (0.0, None))
        if known is not None and now < until:
            return known
        key = await app.keys.find(secret)
        if key is None:
            self._known.pop(hash_, None)
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[hash_] = now + (KNOWN_FOR if self._known_for is None else self._known_for), key
        task = asyncio.create_task(app.keys.touch(key.id))  # that it was used is noted beside the request
        self._touching.add(task)
        task.add_done_callback(self._touched)
        return key

    def _touched(self, task: asyncio.Task[None]) -> None:
        self._touching.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: a note that could not be written is no reason to refuse anybody


class ByKey:
    """By a key in the header `Authorization: Bearer wl_…`."""

    def __init__(self, known_for: float | None = None) -> None:
        self._known = Known(known_for)

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The key's owner."""
        secret = bearer_of(request)
        if secret is None or not secret.startswith(_BEGINS):
            return None
        key = await self._known.find(secret, app)
        if key is None or key.kind is not KeyKind.KEY:
            raise refused(_WRONG)
        return Caller(name=f"key:{key.id}", owner=key.owner, scopes=key.scopes, grants=key.grants)


class BySession:
    """By the session in a cookie: a key of the kind `session`, made at a sign-in and revoked at its end."""

    def __init__(self, known_for: float | None = None) -> None:
        self._known = Known(known_for)

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The session's owner."""
        secret = request.cookies.get(COOKIE)
        if secret is None:
            return None
        key = await self._known.find(secret, app)
        if key is None or key.kind is not KeyKind.SESSION:
            raise refused("this session is unknown or over: sign in again")
        return Caller(name=f"session:{key.id}", owner=key.owner, scopes=key.scopes, grants=key.grants)


def begin_session(response: Response, made: CreatedKey, *, secure: bool) -> None:
    """Give the browser the session that was just made. No script can read it, and no other site send it along."""
    response.set_cookie(COOKIE, made.secret, secure=secure, httponly=True, samesite="lax", expires=made.key.expires_at)


def end_session(response: Response, *, secure: bool) -> None:
    """Take it from the browser; that it lets in no more is `app.keys.revoke`."""
    response.delete_cookie(COOKIE, secure=secure, httponly=True, samesite="lax")
