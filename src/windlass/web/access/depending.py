"""Depending: the caller for the routes of a user's own application, which ask the same as windlass's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from windlass.stores.contract import Scope
from windlass.web.access.authenticating import CHALLENGE
from windlass.web.access.gate import FORGED
from windlass.web.access.origins import is_forged
from windlass.web.callers import Caller
from windlass.web.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastapi import FastAPI


def caller_of(api: FastAPI, scope: Scope | str | None = None) -> Callable[[HTTPConnection], Awaitable[Caller]]:
    """A dependency for FastAPI: who asks, by the same keys, tokens and proxies as `api`, which `app.asgi()` gave.

    Who is nobody gets 401, who has not the scope 403; `caller.attributes` is what the application knows of the rest.
    """
    needed = None if scope is None else Scope(scope)

    async def caller(request: HTTPConnection) -> Caller:
        if is_forged(request, api.state.origins):
            raise HTTPException(FORGED.status, FORGED.title)
        try:
            found: Caller | None = await api.state.authenticate(_behind(request, api), api.state.windlass)
            if found is None:
                raise HTTPException(401, "give a key in the header Authorization: Bearer …", CHALLENGE)
            if needed is not None:
                found.check(needed)
        except Refused as error:
            raise HTTPException(error.kind.status, error.detail, error.headers) from None
        return found

    return caller


def _behind(request: HTTPConnection, api: FastAPI) -> HTTPConnection:
    """The request as `api` would have it: its proxies are the trusted ones."""
    return HTTPConnection({**request.scope, "app": api})
