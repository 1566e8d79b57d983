"""The dashboard: its pages and assets as routes of the application that the API is.

A page that is asked for with the header `X-Windlass-Regions` is answered with its live regions alone. What is rendered
for one viewer serves all who see the same for a second, so that neither the store nor this process works more for many.
"""

from __future__ import annotations

import hashlib
import logging
import random
from datetime import timedelta
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from windlass.client.sharing import SharedByQuestion
from windlass.core.errors import SettingsError
from windlass.core.grants import ANYTHING
from windlass.core.keys import shown
from windlass.core.redaction import redact
from windlass.web.access.authenticating import Several
from windlass.web.access.keys import BySession
from windlass.web.access.signers import is_here
from windlass.web.asking import identified
from windlass.web.dashboard.assets import Assets
from windlass.web.dashboard.entering import (
    OPEN,
    SIGN_IN,
    SIGN_OUT,
    Links,
    by_key,
    by_link,
    came_by_tls,
    forget,
    form_of,
    leave,
)
from windlass.web.dashboard.pages import own_rooms
from windlass.web.dashboard.policy import HEADERS
from windlass.web.dashboard.rendering import FOLDER, Templates
from windlass.web.dashboard.room import FRAME, Needs, Page, Room
from windlass.web.dashboard.visit import OWN, PREFIX, REGIONS, Visit, base_of
from windlass.web.problems import FORBIDDEN, NOT_FOUND, UNAUTHENTICATED, Refused, problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request

    from windlass.web.access.authenticating import Authenticator
    from windlass.web.answers import Answers
    from windlass.web.live.live import Live

LOG = logging.getLogger("windlass.web")
_SHARED = timedelta(seconds=1)
"""so long a region that was rendered for one viewer is shown to others"""
_VIEWERS_PER_SECOND = 40
"""so many viewers may ask for their regions in a second; where there are more, each asks more seldom"""
_SLOWEST = 10.0


class _Regions(NamedTuple):
    """Live regions as they were rendered."""

    text: str
    tag: str


class Dashboard:
    """All pages of one application."""

    forms = frozenset({SIGN_IN, SIGN_OUT})
    """the paths that a form without a script may be sent to"""

    def __init__(self, authenticate: Authenticator, rooms: Sequence[Room] = ()) -> None:
        self.rooms = _checked([*own_rooms(), *rooms])
        self.links = Links()
        self.templates = Templates(self.rooms)
        self.assets = Assets({FRAME: FOLDER, **{room.name: room.folder for room in self.rooms}})
        self._has_sessions = isinstance(authenticate, Several) and any(
            isinstance(one, BySession) for one in authenticate
        )
        self._shared = SharedByQuestion()
        pages = [page for room in self.rooms for page in room.pages]
        self._rail = sorted((page for page in pages if page.rail), key=lambda page: (_order(page), page.path))
        self._paths = frozenset(page.path for page in pages)

    def mount(self, web: FastAPI) -> None:
        """Put all of it under `/dashboard`."""
        self._add(web, f"{PREFIX}/assets/{{mark}}/{{room}}/{{file}}", self.assets.serve)
        if self._has_sessions:
            self._add(web, SIGN_IN, self._sign_in, "GET", "POST")
            self._add(web, OPEN, self._open)
        self._add(web, SIGN_OUT, self._sign_out, "POST")
        for room in self.rooms:
            for page in room.pages:
                self._add(web, f"{PREFIX}{page.path}", partial(self._page, room, page))
        self._add(web, PREFIX, self._home)
        self._add(web, "/", self._home)
        self._add(web, f"{PREFIX}/{{rest:path}}", self._nothing)

    def _add(self, web: FastAPI, path: str, answer: Callable[[Request], Awaitable[Response]], *methods: str) -> None:
        web.add_route(path, partial(self._guarded, answer), methods=[*(methods or ("GET",))], include_in_schema=False)

    async def _guarded(self, answer: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
        """The answer, with what a browser is to be told; of an error, a page about it."""
        try:
            found = await answer(request)
        except Exception as error:  # noqa: BLE001  # whatever it was, a person is to read what to do
            found = self._failed(request, error)
        for name, value in HEADERS.items():
            found.headers.setdefault(name, value)
        return found

    # Pages.

    async def _page(self, room: Room, page: Page, request: Request) -> Response:
        caller = await identified(request)
        if not page.needs.met_by(caller):
            raise Refused(FORBIDDEN, _WHY[page.needs])
        visit = Visit(request, _app(request), caller, page)
        name = f"{room.name}/{page.template}"
        if REGIONS in request.headers:
            return await self._regions(name, visit)
        return HTMLResponse(self.templates.page(name, await self._context(room, visit)))

    async def _context(self, room: Room, visit: Visit) -> dict[str, Any]:
        assets = f"{visit.base}{PREFIX}/assets/{self.assets.mark}"
        own = [f"{room.name}/{room.name}"]
        return {
            **self._usual(visit),
            "assets": assets,
            "rail": [page for page in self._rail if page.needs.met_by(visit.caller)],
            "sheets": [f"{assets}/{one}.css" for one in own if self.assets.has(f"{one}.css")],
            "scripts": [f"{assets}/{one}.js" for one in own if self.assets.has(f"{one}.js")],
            "signs_out": visit.caller.name.startswith("session:"),
            "readable": not came_by_tls(visit.request) and not is_here(visit.request.url.hostname or ""),
            **await visit.page.show(visit),
        }

    def _usual(self, visit: Visit) -> dict[str, Any]:
        """What every template knows, unless its page says otherwise."""
        return {
            "visit": visit,
            "title": visit.page.title,
            "url": visit.url,
            "api": visit.api,
            "here": visit.here,
            "query": "",
            "has_page": self._paths.__contains__,
            "stream": "live?limit=1",
            "every": 5,
        }

    async def _regions(self, name: str, visit: Visit) -> Response:
        caller, request = visit.caller, visit.request
        who = (
            "*" if caller.sees_all else caller.owner,
            caller.scopes,
            None if caller.grants == ANYTHING else caller.name,
        )
        # Told of the same change, they share what was rendered after it.
        question = name, visit.base, request.url.path, request.url.query, who, visit.told
        # Who has just done something is to see it.
        age = timedelta(0) if request.headers[REGIONS] == OWN else _SHARED
        found = await self._shared.get(question, partial(self._render, name, visit), age)
        live = cast("Live", request.app.state.live)
        pace = min(live.streams / _VIEWERS_PER_SECOND, _SLOWEST)
        # Many were told at the same moment: they are not to ask at the same moment again and again.
        pace = pace * random.uniform(0.8, 1.2) if pace > 1 else 1.0
        headers = {"ETag": found.tag, "X-Windlass-Pace": f"{pace:.1f}"}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        return HTMLResponse(found.text, headers=headers)

    async def _render(self, name: str, visit: Visit) -> _Regions:
        text = self.templates.regions(name, {**self._usual(visit), **await visit.page.show(visit)})
        return _Regions(text, f'"{hashlib.sha256(text.encode(errors="replace")).hexdigest()[:20]}"')

    async def _home(self, request: Request) -> Response:
        return RedirectResponse(f"{base_of(request)}{PREFIX}/", 307)

    async def _nothing(self, request: Request) -> Response:
        await identified(request)
        raise Refused(NOT_FOUND, "this page is not there: it may have had another name")

    # Coming in and going out.

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            return self._signing_in(request)
        found = await by_key(request, _app(request), (await form_of(request)).get("key", ""))
        if found is None:
            return self._signing_in(request, "This key is unknown, was revoked or has expired.", 401)
        return found

    async def _open(self, request: Request) -> Response:
        found = await by_link(request, _app(request), self.links)
        if found is None:
            why = "This link was used before, or is too old. Sign in with a key, or start the server anew for another."
            return self._signing_in(request, why, 401)
        found.headers["Referrer-Policy"] = "no-referrer"  # the address has the token, used up though it is
        return found

    async def _sign_out(self, request: Request) -> Response:
        await identified(request)
        return await leave(request, _app(request))

    def _signing_in(self, request: Request, why: str = "", status: int = 200) -> Response:
        query = request.url.query if request.url.path.endswith(SIGN_IN) else ""
        context = {**self._bare(request), "why": why, "action": f"{base_of(request)}{SIGN_IN}{query and '?'}{query}"}
        answer = HTMLResponse(self.templates.page(f"{FRAME}/sign_in.html", context), status)
        answer.headers["Referrer-Policy"] = "same-origin" if not why else "no-referrer"
        if status == 200:
            forget(request, answer)
        return answer

    def _failed(self, request: Request, error: Exception) -> Response:
        regions = REGIONS in request.headers
        if isinstance(error, Refused) and error.kind is UNAUTHENTICATED and self._has_sessions and not regions:
            inside = request.url.path.removeprefix(f"{base_of(request)}{PREFIX}") or "/"
            back = f"{inside}?{request.url.query}" if request.url.query else inside
            words = "" if back == "/" or request.method != "GET" else f"?{urlencode({'next': back}, quote_via=quote)}"
            answer: Response = RedirectResponse(f"{base_of(request)}{SIGN_IN}{words}", 303)
            forget(request, answer)
            return answer
        request_id = str(getattr(request.state, "request_id", ""))
        kind, members, headers = problem_of(error, request_id)
        if kind.status >= 500:
            told = redact("".join(format_exception(error)))  # a driver may quote where it connects to
            LOG.error("request %s: %s %s failed: %s", request_id, request.method, request.url.path, told)
        context = {**self._bare(request), "problem": members}
        return HTMLResponse(self.templates.page(f"{FRAME}/error.html", context), kind.status, headers)

    def _bare(self, request: Request) -> dict[str, Any]:
        base = base_of(request)
        theme = request.cookies.get("windlass_theme", "system")
        return {
            "assets": f"{base}{PREFIX}/assets/{self.assets.mark}",
            "home": f"{base}{PREFIX}/",
            "theme": theme if theme in ("light", "dark") else "system",
        }


_WHY = {
    Needs.READ: "this page needs the scope read",
    Needs.OVERSEE: "this page is about the jobs of all users: your key is one user's",
    Needs.ADMIN: "this page is for administrators",
}


def _checked(rooms: list[Room]) -> tuple[Room, ...]:
    for what, found in (
        ("rooms are named", [room.name for room in rooms]),
        ("pages have the path", [page.path for room in rooms for page in room.pages]),
    ):
        twice = next((one for one in found if found.count(one) > 1), None)
        if twice is not None:
            raise SettingsError(f"two {what} {shown(twice)}: give one of them another")
    return tuple(rooms)


def _order(page: Page) -> int:
    return 0 if page.rail is None else page.rail.order


def _app(request: Request) -> Answers:
    return cast("Answers", request.app.state.windlass)
