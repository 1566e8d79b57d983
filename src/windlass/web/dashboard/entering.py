"""Entering: a session for a browser, in exchange for a key or for a link that is good once; and leaving again."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs

from starlette.responses import RedirectResponse

from windlass.client.keys import begun_with
from windlass.stores.contract import KeyKind, Scope
from windlass.web.access.addresses import is_from_proxy
from windlass.web.access.keys import COOKIE, begin_session, end_session
from windlass.web.asking import limiter_of
from windlass.web.auditing import Auditing
from windlass.web.callers import EVERYBODY, Caller
from windlass.web.dashboard.visit import PREFIX, base_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from windlass.client.keys import CreatedKey
    from windlass.stores.contract import Key
    from windlass.web.answers import Answers

LASTS = timedelta(hours=12)
"""a session; after that one signs in again"""
LINK_LASTS = 15 * 60.0
"""seconds"""
SIGN_IN, SIGN_OUT, OPEN = f"{PREFIX}/sign-in", f"{PREFIX}/sign-out", f"{PREFIX}/open"
_MOST_LINKS = 100
_LONGEST_FORM = 4_096


class Links:
    """Links that let in once, of this process. Of their tokens only hashes are remembered."""

    def __init__(self, lasts: float = LINK_LASTS) -> None:
        self._lasts = lasts
        self._good: dict[bytes, float] = {}

    def make(self) -> str:
        """The path of a new one, below where the dashboard is mounted: its first visitor is an administrator."""
        token = secrets.token_urlsafe(32)
        while len(self._good) >= _MOST_LINKS:
            del self._good[next(iter(self._good))]
        self._good[_hashed(token)] = time.monotonic() + self._lasts
        return f"{OPEN}?token={token}"

    def use(self, token: str) -> bool:
        """Whether this one lets in, which it then does no more."""
        return time.monotonic() < self._good.pop(_hashed(token), 0.0)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name."""
    body = await request.body()
    if len(body) > _LONGEST_FORM:
        return {}
    fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    return {name: values[-1] for name, values in fields.items()}


async def by_key(request: Request, app: Answers, secret: str) -> Response | None:
    """Sign in with a key: the session may what the key may, and lasts no longer. None where the key is not good.

    It is called as the key's own requests are in the audit trail, and ends when the key is revoked.
    """
    limiter = limiter_of(request)
    limiter.come(request)
    limiter.check_guesses(request)
    key = await app.keys.find(secret.strip())
    if key is None or key.kind is not KeyKind.KEY:
        limiter.note_guess(request)
        return None
    made = await app.keys.create(
        begun_with(key.id),
        owner=key.owner,
        scopes=sorted(key.scopes),
        queues=key.grants.queues,
        types=key.grants.types,
        attributes=key.grants.attributes,
        lasts=_lasts(key),
        kind=KeyKind.SESSION,
    )
    return await _begin(request, app, made, "session.begin")


async def by_link(request: Request, app: Answers, links: Links) -> Response | None:
    """Sign in with a link that is good once. None where it is not good."""
    limiter = limiter_of(request)
    limiter.come(request)
    if not links.use(request.query_params.get("token", "")):
        return None
    made = await app.keys.create(
        "one-time link", owner=EVERYBODY, scopes=[Scope.ADMIN], lasts=LASTS, kind=KeyKind.SESSION
    )
    return await _begin(request, app, made, "session.begin")


async def leave(request: Request, app: Answers) -> Response:
    """Sign out: the session lets in no more."""
    caller = cast("Caller", request.state.caller)
    answer = RedirectResponse(f"{base_of(request)}{SIGN_IN}", 303)
    kind, _, id_ = caller.name.partition(":")
    if kind == "session":
        await app.keys.revoke(id_)
        await Auditing(request).record("session.end", f"session:{id_}")
        end_session(answer, secure=came_by_tls(request))
    return answer


def forget(request: Request, answer: Response) -> None:
    """Take from the browser a session that is no good any more."""
    if COOKIE in request.cookies:
        end_session(answer, secure=came_by_tls(request))


async def _begin(request: Request, app: Answers, made: CreatedKey, action: str) -> Response:
    """A new session takes the place of the one that this browser had."""
    old = request.cookies.get(COOKIE)
    before = await app.keys.find(old) if old else None
    if before is not None and before.kind is KeyKind.SESSION:
        await app.keys.revoke(before.id)
    key = made.key
    request.state.caller = Caller(f"session:{key.id}", key.owner, key.scopes, key.grants)
    await Auditing(request).record(action, f"session:{key.id}", by=key.name)
    # The path asked for begins behind our own prefix: it leads to no other site.
    answer = RedirectResponse(f"{base_of(request)}{PREFIX}{_inside(request)}", 303)
    begin_session(answer, made, secure=came_by_tls(request))
    return answer


def _inside(request: Request) -> str:
    asked = request.query_params.get("next", "/")
    return asked if asked.startswith("/") and asked.isprintable() and asked.isascii() else "/"


def _lasts(key: Key) -> timedelta:
    """No longer than the key itself, by whichever clock."""
    if key.expires_at is None:
        return LASTS
    return min(LASTS, max(key.expires_at - datetime.now(UTC) - timedelta(seconds=1), timedelta(milliseconds=1)))


def came_by_tls(request: Request) -> bool:
    """Whether the browser came by TLS, as far as is known: to this server, or to a proxy that is trusted."""
    if request.url.scheme == "https":
        return True
    return is_from_proxy(request) and request.headers.get("x-forwarded-proto", "").lower() == "https"


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
