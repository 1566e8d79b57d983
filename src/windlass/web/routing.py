"""Routing: what every route does with a request before its own line: JSON read strictly, and done once where asked.

A router takes part by its class: with `APIRouter(route_class=Repeatable)` each of its POSTs takes an `Idempotency-Key`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.requests import Request

from windlass.client.requests import LONGEST_KEY, Attempt, check_request_key
from windlass.core.errors import SettingsError
from windlass.stores.contract import Answered, UnderWay
from windlass.web.asking import identified
from windlass.web.problems import OTHER_BODY, TOO_MANY, UNDER_WAY, UNREADABLE, Kind, Refused
from windlass.web.reading import strict
from windlass.web.replayed import again, kept

if TYPE_CHECKING:
    from windlass.web.answers import Answers

Handle = Callable[[Request], Coroutine[Any, Any, Response]]
HEADER = "Idempotency-Key"
_BODIES = frozenset({"POST", "PUT", "PATCH"})
_OK, _CONFLICT, _OURS = 400, 409, 500
_SOONEST, _LATEST = 1, 2  # seconds: what is under way mostly ends in milliseconds
_NOT_HERE = Kind(400, "not-repeatable", "This takes no Idempotency-Key")
_SPOKEN = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Sent again with the same key and body, a request is carried out once and answered alike.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
}


class _Read(Request):
    """A request whose body was read already."""

    value: Any = None

    async def json(self) -> Any:
        """The body, as it was read strictly."""
        return self.value


class Route(APIRoute):
    """One whose JSON is read strictly, once it is known who asks."""

    repeatable = False

    def get_route_handler(self) -> Handle:
        """The route's own handler, with that around it."""
        carry_out = super().get_route_handler()
        methods = self.methods or set[str]()
        if not methods & _BODIES:
            return carry_out

        async def handle(request: Request) -> Response:
            await identified(request)
            given = request.headers.getlist(HEADER)
            key = _key(given) if given and "POST" in methods else None
            if key is not None and not self.repeatable:
                raise Refused(_NOT_HERE, f"leave the header {HEADER} out: what this answers is kept nowhere")
            read = _Read(request.scope, request.receive)
            body = await read.body()
            if body:
                read.value = strict(body)
            return await (carry_out(read) if key is None else _once(key, read, body, carry_out))

        return handle


class Repeatable(Route):
    """One whose POSTs take an `Idempotency-Key`: asked again, they are not carried out again."""

    repeatable = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        if "POST" in (more.get("methods") or ()):
            extra: dict[str, Any] = more.get("openapi_extra") or {}
            parameters: list[dict[str, Any]] = extra.get("parameters", [])
            others = [one for one in parameters if one.get("name") != HEADER]
            more["openapi_extra"] = {**extra, "parameters": [*others, _SPOKEN]}
        super().__init__(path, endpoint, **more)


class Uploading(APIRoute):
    """One that is sent a file: it is read once it is known who asks. Its path is declared in `Routes.uploads`."""

    def get_route_handler(self) -> Handle:
        """The route's own handler, after who asks."""
        carry_out = super().get_route_handler()

        async def handle(request: Request) -> Response:
            await identified(request)
            return await carry_out(request)

        return handle


def attempt_of(request: Request) -> Attempt | None:
    """The attempt that this request is; None without a key. Jobs made by it take their ids from it."""
    return getattr(request.state, "attempt", None)


def id_of(request: Request) -> str | None:
    """The id of the one job that a request makes, where it is to be the same at every attempt."""
    attempt = attempt_of(request)
    return None if attempt is None else attempt.ids(1)[0]


def _key(given: list[str]) -> str:
    if len(given) > 1:
        raise Refused(UNREADABLE, f"the header {HEADER} is given more than once")
    try:
        return check_request_key(given[0])
    except SettingsError as error:
        raise Refused(UNREADABLE, f"{HEADER}: {error}") from None


async def _once(key: str, request: Request, body: bytes, carry_out: Handle) -> Response:
    app, caller = cast("Answers", request.app.state.windlass), request.state.caller
    # With what they may: who may less by now does not see what was answered before.
    by = (caller.owner, caller.name, *sorted(caller.scopes))
    standing = await app.requests.begin(key, _asked(request, body), by=by)
    if isinstance(standing, Answered):
        return again(standing.answer)
    if isinstance(standing, UnderWay):
        wait = min(max(math.ceil(standing.left.total_seconds()), _SOONEST), _LATEST)
        detail = "a request with this key is being carried out: ask again"
        raise Refused(UNDER_WAY, detail, {"Retry-After": str(wait)})
    if not isinstance(standing, Attempt):
        raise Refused(OTHER_BODY, "it was given with another method, path or body: use a new key for a new request")
    request.state.attempt = standing
    try:
        answer = await _answered(request, carry_out)
    except BaseException:
        await asyncio.shield(standing.release())
        raise
    # The caller may be gone by now; what was done is still to be kept.
    await asyncio.shield(_end(standing, answer))
    return answer


def _asked(request: Request, body: bytes) -> bytes:
    """What tells one request from another, wherever the API is mounted."""
    route = cast("APIRoute", request.scope["route"])
    named = json.dumps([request.method, route.path_format, sorted(request.path_params.items()), request.url.query])
    return named.encode() + b"\n" + body


async def _answered(request: Request, carry_out: Handle) -> Response:
    """The answer; an error's, too."""
    try:
        return await carry_out(request)
    except Exception as error:
        handlers = request.app.exception_handlers
        handler = next((handlers[kind] for kind in type(error).__mro__ if kind in handlers), None)
        if handler is None:
            raise
        return cast("Response", await handler(request, error))


async def _end(attempt: Attempt, answer: Response) -> None:
    """Keep what says that it was done or cannot be; an error of ours may be tried again, another is forgotten."""
    if answer.status_code >= _OURS or answer.status_code == TOO_MANY.status:
        await attempt.release()
    elif answer.status_code < _OK or answer.status_code == _CONFLICT:
        await attempt.finish(kept(answer))
    else:
        await attempt.forget()
