"""Asking: what routes are given of a request: the application, the caller with the scope that the route needs."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection

from windlass.stores.contract import Scope
from windlass.web.access.authenticating import CHALLENGE, Authenticator
from windlass.web.answers import Answers
from windlass.web.callers import Caller
from windlass.web.limits import Limiter
from windlass.web.problems import UNAUTHENTICATED, Refused

_BEARER = "A key (`windlass keys create`), or what the server was told to take in its place."


def _app(request: Request) -> Answers:
    return cast("Answers", request.app.state.windlass)


def limiter_of(request: HTTPConnection) -> Limiter:
    """What keeps anybody from asking too much."""
    return cast("Limiter", request.app.state.limiter)


# All that routes ask for are coroutines, though some wait for nothing: FastAPI hands what is none to a thread.


async def _answers(request: Request) -> Answers:
    return _app(request)


async def identified(request: Request) -> Caller:
    """Who asks, found out once for each request."""
    known = getattr(request.state, "caller", None)
    if isinstance(known, Caller):  # whatever an application around this one calls so is none
        return known
    authenticate, limiter = cast("Authenticator", request.app.state.authenticate), limiter_of(request)
    limiter.come(request)
    caller = await authenticate(request, _app(request))
    if caller is None:
        raise Refused(UNAUTHENTICATED, "give a key in the header Authorization: Bearer …", CHALLENGE)
    limiter.ask(caller)
    request.state.caller = caller
    _look_once(request)
    return caller


def _look_once(request: Request) -> None:
    """What an earlier process of this application began is gone on with, once this one is asked anything."""
    state = request.app.state
    if not getattr(state, "looked", False):
        state.looked = True
        _app(request).own.need()


class Door(SecurityBase):
    """A dependency: who asks, and refused where the scope is wanting. It makes the OpenAPI document tell so.

    One step for FastAPI to take, as every request takes it: a chain of dependencies costs as much as reading a job.
    """

    def __init__(self, scope: Scope | None = None, *, oversight: bool = False) -> None:
        self.scheme_name, self.model = "bearer", HTTPBearer(description=_BEARER)
        self._scope, self._oversight = scope, oversight

    async def __call__(self, request: Request) -> Caller:
        """The caller."""
        caller = await identified(request)
        if self._scope is not None:
            caller.check(self._scope)
        if self._oversight:
            caller.check_oversight()
        return caller


any_caller = Door()
_READ, _OPERATE = [Scope.READ], [Scope.OPERATE]
App = Annotated[Answers, Depends(_answers)]
AnyCaller = Annotated[Caller, Security(any_caller)]
Enqueuer = Annotated[Caller, Security(Door(Scope.ENQUEUE), scopes=[Scope.ENQUEUE])]
Reader = Annotated[Caller, Security(Door(Scope.READ), scopes=_READ)]
Operator = Annotated[Caller, Security(Door(Scope.OPERATE), scopes=_OPERATE)]
Overseer = Annotated[Caller, Security(Door(Scope.READ, oversight=True), scopes=_READ)]
"""reads what is not one user's: workers, queues, schedules, figures of all"""
Controller = Annotated[Caller, Security(Door(Scope.OPERATE, oversight=True), scopes=_OPERATE)]
"""operates on what is not one user's"""
Admin = Annotated[Caller, Security(Door(Scope.ADMIN), scopes=[Scope.ADMIN])]
