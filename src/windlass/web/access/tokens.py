"""Tokens: signed by somebody who knows the user (JWT, RFC 7519). What they may be signed with is ours to say."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import jwt

from windlass.core.errors import SettingsError, WindlassError
from windlass.core.grants import ANYTHING, Grants
from windlass.core.keys import shown
from windlass.web.access.authenticating import bearer_of, refused, scopes_among, user_named
from windlass.web.access.signers import Signers
from windlass.web.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import HTTPConnection

    from windlass.stores.contract import Scope
    from windlass.web.answers import Answers

LOG = logging.getLogger("windlass.web")
BY_SECRET, BY_SIGNERS = ("HS256",), ("RS256", "ES256")
SHORTEST = 32
"""bytes of a secret: as many as HS256 gives"""
_LONGEST = 8192  # characters of a token
_WRONG = "this token is not good here: it has expired, is meant for others, or is signed by nobody who is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Which tokens are good, and what is read from them. Give a secret, or a JWKS: a path or an https:// URL."""

    secret: str | None = field(default=None, repr=False)
    jwks: str | None = None
    algorithms: tuple[str, ...] = ()
    """HS256 with a secret; RS256, ES256 or both with a JWKS, which is so where nothing is said"""
    issuer: str | None = None
    audience: str | None = None
    """without one, tokens that name an audience are refused: they are meant for somebody else"""
    leeway: float = 10.0
    """seconds that clocks may differ by"""
    user: str = "sub"
    """the claim that names the user"""
    scopes: str = "scope"
    """the claim with the scopes: a list, or words with spaces between"""
    usual: frozenset[Scope] = frozenset()
    """the scopes of tokens without that claim"""
    attributes: tuple[str, ...] = ()
    """the claims that the application reads as `caller.attributes`"""

    def __post_init__(self) -> None:
        """Refuse what could let in whom it should not."""
        if (self.secret is None) == (self.jwks is None):
            raise SettingsError("tokens need a secret or a JWKS, one of the two")
        if self.secret is not None and len(self.secret.encode()) < SHORTEST:
            raise SettingsError(f"the secret of tokens is too short: expected at least {SHORTEST} bytes")
        fitting = BY_SIGNERS if self.secret is None else BY_SECRET
        if not set(self.algorithms) <= set(fitting):
            given = "a JWKS" if self.secret is None else "a secret"
            raise SettingsError(
                f"the algorithms of tokens are {shown(', '.join(self.algorithms))}: with {given} there can be"
                f" {' and '.join(fitting)}"
            )
        object.__setattr__(self, "algorithms", self.algorithms or fitting)


class ByToken:
    """By a signed token in the header `Authorization: Bearer …`."""

    def __init__(self, tokens: Tokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._signers = None if tokens.jwks is None else Signers(tokens.jwks, tokens.algorithms, clock)

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The user that the token names."""
        token = bearer_of(request)
        if token is None or token.count(".") != 2:  # a head, claims and a signature
            return None
        claims = await self._claims(token)
        user = user_named(_claim(claims, self._tokens.user))
        words = _claim(claims, self._tokens.scopes)
        scopes = self._tokens.usual if words is None else scopes_among(_words(words))
        return Caller(name=f"user:{user}", owner=user, scopes=scopes, grants=self._grants(claims))

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > _LONGEST:
            raise refused(_WRONG)
        try:
            head = jwt.get_unverified_header(token)
            algorithm = next((one for one in self._tokens.algorithms if one == head.get("alg")), None)
            if algorithm is None or "crit" in head:
                raise refused(_WRONG)
            signer = await self._signer(head.get("kid"), algorithm)
            if signer is None:
                raise refused(_WRONG)
            return jwt.decode(
                token,
                signer,
                algorithms=[algorithm],
                issuer=self._tokens.issuer,
                audience=self._tokens.audience,
                leeway=self._tokens.leeway,
                options={"require": ["exp"], "verify_sub": False, "verify_jti": False},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            LOG.info("a token was refused: %s", type(error).__name__)
            raise refused(_WRONG) from None

    async def _signer(self, key_id: str | None, algorithm: str) -> str | jwt.PyJWK | None:
        if self._signers is None:
            return self._tokens.secret
        return await self._signers.find(key_id, algorithm)

    def _grants(self, claims: dict[str, Any]) -> Grants:
        found = {name: _claim(claims, name) for name in self._tokens.attributes}
        found = {name: value for name, value in found.items() if value is not None}
        try:
            return Grants.made(attributes=found) if found else ANYTHING
        except WindlassError:
            LOG.info("a token was refused: its attributes are too large")
            raise refused(_WRONG) from None


def _claim(claims: dict[str, Any], name: str) -> object:
    """A claim by its name; one inside another by a path, such as `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = cast("dict[str, object]", found).get(part) if isinstance(found, dict) else None
    return found


def _words(scopes: object) -> list[object]:
    if isinstance(scopes, str):
        return [*scopes.split()]
    some = cast("list[object]", scopes) if isinstance(scopes, list) else []
    return [word for word in some if isinstance(word, str)]
