"""Asking: what routes are given of a request: the application, the caller with the scope that the route needs."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from windlass.stores.contract import Scope
from windlass.web.access.authenticating import CHALLENGE, Authenticator
from windlass.web.answers import Answers
from windlass.web.callers import Caller
from windlass.web.limits import Limiter
from windlass.web.problems import UNAUTHENTICATED, Refused

BEARER = HTTPBearer(
    scheme_name="bearer",
    description="A key (`windlass keys create`), or what the server was told to take in its place.",
    auto_error=False,
)
"""makes the OpenAPI document tell that a route is closed; who asks is for the authenticator to say"""


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


async def any_caller(request: Request, _: Annotated[object, Security(BEARER)]) -> Caller:
    """Who asks, whatever they may."""
    return await identified(request)


App = Annotated[Answers, Depends(_answers)]
AnyCaller = Annotated[Caller, Depends(any_caller)]


async def _enqueuer(caller: Annotated[Caller, Security(any_caller, scopes=[Scope.ENQUEUE])]) -> Caller:
    caller.check(Scope.ENQUEUE)
    return caller


async def _reader(caller: Annotated[Caller, Security(any_caller, scopes=[Scope.READ])]) -> Caller:
    caller.check(Scope.READ)
    return caller


async def _operator(caller: Annotated[Caller, Security(any_caller, scopes=[Scope.OPERATE])]) -> Caller:
    caller.check(Scope.OPERATE)
    return caller


async def _overseer(caller: Annotated[Caller, Depends(_reader)]) -> Caller:
    caller.check_oversight()
    return caller


async def _controller(caller: Annotated[Caller, Depends(_operator)]) -> Caller:
    caller.check_oversight()
    return caller


async def _admin(caller: Annotated[Caller, Security(any_caller, scopes=[Scope.ADMIN])]) -> Caller:
    caller.check(Scope.ADMIN)
    return caller


Enqueuer = Annotated[Caller, Depends(_enqueuer)]
Reader = Annotated[Caller, Depends(_reader)]
Operator = Annotated[Caller, Depends(_operator)]
Overseer = Annotated[Caller, Depends(_overseer)]
"""reads what is not one user's: workers, queues, schedules, figures of all"""
Controller = Annotated[Caller, Depends(_controller)]
"""operates on what is not one user's"""
Admin = Annotated[Caller, Depends(_admin)]
