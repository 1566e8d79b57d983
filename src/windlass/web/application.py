"""The application: routes, limits and problems put together, to be served by itself or mounted in another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from windlass.core.errors import WindlassError
from windlass.web.access.gate import Gate
from windlass.web.continued import Continued
from windlass.web.envelope import Envelope
from windlass.web.extending import Uploads, include
from windlass.web.failing import Failures
from windlass.web.limits import Limiter, Limits
from windlass.web.live.live import Live
from windlass.web.live.pace import Pace
from windlass.web.methods import Methods
from windlass.web.mistakes import place_of_mistake
from windlass.web.openapi import document_of, operation_id
from windlass.web.problems import INVALID, MEDIA_TYPE, NOT_FOUND, UNREADABLE, Kind, Refused, body, problem_of
from windlass.web.routes import (
    audit,
    bulk,
    checks,
    dead_letters,
    document,
    enqueueing,
    exporting,
    health,
    jobs,
    keys,
    live,
    many,
    metrics,
    queues,
    schedules,
    stats,
    types,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.core.spans import Spans
    from windlass.web.access.configured import WhoMay
    from windlass.web.answers import Answers
    from windlass.web.dashboard.dashboard import Dashboard
    from windlass.web.extending import Routes

PREFIX = "/api/v1"
ROOMS = (
    *(enqueueing, jobs, many, bulk, dead_letters, stats, live, exporting),
    *(queues, schedules, workers, types, keys, audit, checks),
)
"""the routes, what is asked most first: they are tried one after the other"""
BARE = (enqueueing, jobs, bulk, dead_letters, stats, many, exporting)
"""those that clients which put them at the root find there, too; they are the same routes, and told of once"""
_MOST_TOLD = 5  # mistakes in one request that are told
_METHOD = Kind(405, "method-not-allowed", "That cannot be done here")


class Api(FastAPI):
    """Whose document is ours."""

    def openapi(self) -> dict[str, Any]:
        """Of the routes; `routes/document.py` adds the types of jobs."""
        return document_of(self)


def build(
    app: Answers,
    *,
    version: str,
    who_may: WhoMay,
    pace: Pace | None = None,
    limits: Limits | None = None,
    spans: Callable[[], Spans | None] | None = None,
    dashboard: Dashboard | None = None,
    own: Sequence[Routes] = (),
) -> FastAPI:
    """The HTTP API of an application, its own routes among it, and its dashboard where there is to be one."""
    web = Api(
        title="windlass",
        version=version,
        description="Durable background jobs: every job a resource.",
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
        openapi_url=None,  # ours is closed, and tells of types of jobs, too
        docs_url=None,  # their pages load programs from elsewhere
        redoc_url=None,
    )
    web.state.windlass = app
    web.state.limiter = Limiter(limits or Limits())
    web.state.authenticate = web.state.limiter.guarding(who_may.authenticate)
    web.state.proxies = who_may.proxies
    web.state.origins = who_may.origins
    web.state.closing = asyncio.Event()  # set before the server waits for what is under way: streams end then
    pace = pace or Pace()
    pace = replace(pace, origins=pace.origins | who_may.origins.named)
    web.state.live = Live(app, web.state.authenticate, pace, web.state.closing)
    web.state.failures = Failures()
    web.state.documents = document.Documents()
    web.state.methods = Methods(web)
    for room in ROOMS:
        web.include_router(room.router, prefix=PREFIX)
    for alone in (health, metrics, document):
        web.include_router(alone.router)
    for room in BARE:
        web.include_router(room.router, include_in_schema=False)
    include(web, own)
    web.state.tags = {tag: text for routes in own for tag, text in routes.tags.items()}
    web.state.dashboard = dashboard
    if dashboard is not None:
        dashboard.mount(web)
    # The last one stands before the others.
    if spans is not None:
        web.add_middleware(Continued, spans)
    if who_may.origins:
        web.add_middleware(CORSMiddleware, **who_may.origins.cors())
    web.add_middleware(Gate, who_may.hosts, who_may.origins, pace.origins)
    web.add_middleware(Envelope, forms=frozenset() if dashboard is None else dashboard.forms, uploads=Uploads(own))
    web.exception_handler(Refused)(_refused)
    web.exception_handler(WindlassError)(_refused)
    web.exception_handler(RequestValidationError)(_invalid)
    web.exception_handler(HTTPException)(_http)
    web.exception_handler(Exception)(_refused)
    return web


async def _refused(request: Request, error: Exception) -> JSONResponse:
    request_id = _request_id(request)
    kind, members, headers = problem_of(error, request_id)
    if kind.status >= 500:
        request.app.state.failures.tell(error, request_id, request.method, request.url.path)
    return _answer(kind, members, headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    found = cast("RequestValidationError", error).errors()
    unreadable = any(one["type"] == "json_invalid" for one in found)
    kind = UNREADABLE if unreadable else INVALID
    mistakes = [_mistake(one) for one in found[:_MOST_TOLD]]
    detail = "; ".join(f"{one['at']}: {one['message']}" for one in mistakes)
    members = body(kind, detail, _request_id(request), {})
    return _answer(kind, {**members, "errors": mistakes}, {})


def _mistake(found: dict[str, Any]) -> dict[str, str]:
    """Where and what, without what was sent: that may be a secret."""
    return {"at": place_of_mistake(found["loc"]), "message": str(found["msg"]).removeprefix("Value error, ")[:300]}


async def _http(request: Request, error: Exception) -> JSONResponse:
    refusal = cast("HTTPException", error)
    other = Kind(refusal.status_code, "refused", "The request was refused")
    kind = {404: NOT_FOUND, 405: _METHOD}.get(refusal.status_code, other)
    members = body(kind, kind.title, _request_id(request), {})
    headers = dict(refusal.headers or {})
    if kind is _METHOD:
        headers["Allow"] = ", ".join(request.app.state.methods.of(request)) or headers.get("Allow", "")
    return _answer(kind, members, headers)


def _answer(kind: Kind, members: dict[str, Any], headers: dict[str, str]) -> JSONResponse:
    return JSONResponse(members, kind.status, headers, media_type=MEDIA_TYPE)


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))
