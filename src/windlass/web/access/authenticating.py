"""Authenticating: from a request's credentials to the caller. Nothing is open by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from windlass.core.errors import SettingsError
from windlass.core.keys import LONGEST_KEY, check_key
from windlass.stores.contract import Scope
from windlass.web.callers import EVERYBODY, Caller
from windlass.web.problems import UNAUTHENTICATED, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.requests import HTTPConnection

    from windlass.web.answers import Answers

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="windlass"'}
_LONGEST_USER = LONGEST_KEY - 12  # characters: with a word before it, it is still a name in the audit trail


class Authenticator(Protocol):
    """Says who asks. Give your own to `app.asgi(authenticate=…)` to use your application's sign-in."""

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The caller; None where the request says nothing to this one, Refused where what it says is wrong."""
        ...


class Several:
    """Asks them in turn: the first that says something decides."""

    def __init__(self, authenticators: Iterable[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    def __iter__(self) -> Iterator[Authenticator]:
        """Each of them, in turn."""
        return iter(self._authenticators)

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The caller that one of them names."""
        for authenticate in self._authenticators:
            caller = await authenticate(request, app)
            if caller is not None:
                return caller
        return None


class Open:
    """Everybody is an administrator: for one's own machine only."""

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """Without a question."""
        return Caller(name="anybody", owner=EVERYBODY, scopes=frozenset(Scope))


def refused(detail: str) -> Refused:
    """What is said is wrong. Which part of it is not told: who guesses is to learn nothing."""
    return Refused(UNAUTHENTICATED, detail, CHALLENGE)


def bearer_of(request: HTTPConnection) -> str | None:
    """What the header `Authorization: Bearer …` holds; None where there is no such header."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


def user_named(name: object) -> str:
    """A user whom somebody else than windlass has named, who is never everybody."""
    try:
        user = check_key(str(name) if isinstance(name, int) and not isinstance(name, bool) else name, "the user")
    except SettingsError:
        raise refused("the user is not named as one can be") from None
    if user == EVERYBODY or len(user) > _LONGEST_USER:
        raise refused("the user is not named as one can be")
    return user


def scopes_among(words: Iterable[object]) -> frozenset[Scope]:
    """The scopes among other words, which may be meant for others."""
    return frozenset(scope for scope in Scope if scope.value in set(words))
