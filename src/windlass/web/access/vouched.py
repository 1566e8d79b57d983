"""Vouched for: a proxy in front has signed the user in, and says in a header who it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.contract import Scope
from windlass.web.access.addresses import is_from_proxy
from windlass.web.access.authenticating import refused, scopes_among, user_named
from windlass.web.callers import Caller

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import HTTPConnection

    from windlass.web.answers import Answers

USUAL = frozenset({Scope.ENQUEUE, Scope.READ})
"""what a user may whose proxy does not say"""


class ByProxy:
    """By a header of a proxy, taken from the trusted addresses of `app.asgi(proxies=…)` and from nowhere else."""

    def __init__(self, user: str, *, scopes: str | None = None, usual: Collection[Scope | str] = USUAL) -> None:
        self._user, self._scopes, self._usual = user, scopes, scopes_among(usual)

    async def __call__(self, request: HTTPConnection, app: Answers, /) -> Caller | None:
        """The user that is named, with the scopes named in the other header, or with the usual ones."""
        named = request.headers.getlist(self._user)
        if not named or not is_from_proxy(request):
            return None
        if len(named) > 1:
            raise refused(f"the header {self._user} is there more than once")
        user = user_named(_text(named[0]))
        scopes = self._usual
        if self._scopes is not None:
            scopes = scopes_among(",".join(request.headers.getlist(self._scopes)).replace(",", " ").split())
        return Caller(name=f"user:{user}", owner=user, scopes=scopes)


def _text(header: str) -> str | None:
    """What proxies send is UTF-8, what a server makes of it is Latin-1."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return None
