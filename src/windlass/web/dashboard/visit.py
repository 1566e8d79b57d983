"""A visit: one request to a page, with the answers as its caller sees them. Pages know of requests what is here."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlencode

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import Scope

if TYPE_CHECKING:
    from starlette.requests import Request

    from windlass.client.dead_letters import DeadLettersRoom
    from windlass.client.jobs import JobsRoom
    from windlass.client.operations import OperationsRoom
    from windlass.client.own_stats import OwnStats
    from windlass.client.stats import StatsRoom
    from windlass.web.answers import Answers
    from windlass.web.callers import Caller
    from windlass.web.dashboard.room import Page
    from windlass.web.live.live import Live

PREFIX = "/dashboard"
API = "/api/v1"
REGIONS = "X-Windlass-Regions"
"""the header of who asks for the live regions of a page alone"""
TOLD = "X-Windlass-Told"
"""the header with the id of the event that somebody was told last: what they are shown is not to be older"""
OWN = "own"
"""said in it: not what was rendered for others a moment ago"""
THEMES = ("system", "light", "dark")
TIMES = ("ago", "local", "utc")
_AGE, _TOLD_AGE = 1.0, 0.9
"""seconds: who was told of a change is not given what is older than the change while others ask anew"""


class Visit:
    """What a page is told of who asks for it, and where."""

    def __init__(self, request: Request, app: Answers, caller: Caller, page: Page) -> None:
        self.request, self.app, self.caller, self.page = request, app, caller, page

    # The answers, as the caller sees them.

    @cached_property
    def jobs(self) -> JobsRoom:
        """The jobs that the caller sees."""
        return self.caller.jobs(self.app)

    @cached_property
    def dead_letters(self) -> DeadLettersRoom:
        """The failed ones among them."""
        return self.caller.dead_letters(self.app)

    @cached_property
    def stats(self) -> StatsRoom | OwnStats:
        """Figures of them."""
        return self.caller.stats(self.app)

    @cached_property
    def operations(self) -> OperationsRoom:
        """Orders for many of them."""
        return self.caller.operations(self.app)

    @property
    def sees_all(self) -> bool:
        """Whether the caller sees the jobs of all."""
        return self.caller.sees_all

    def may(self, scope: Scope | str) -> bool:
        """Whether the caller was given a scope: says which buttons there are. Routes check it again."""
        return self.caller.may(Scope(scope))

    @cached_property
    def operates(self) -> bool:
        """Whether the caller may change what concerns all: queues, schedules, workers."""
        return self.may(Scope.OPERATE) and self.sees_all

    # What was asked.

    def part(self, name: str) -> str:
        """A part of the path: of `/jobs/{id}` the `id`."""
        return str(self.request.path_params[name])

    def asked(self, name: str, usual: str = "") -> str:
        """A parameter of the query, the last where there are several."""
        return str(self.request.query_params.get(name, usual))

    def asked_all(self, name: str) -> list[str]:
        """All values of a parameter."""
        return list(self.request.query_params.getlist(name))

    def asked_one_of(self, name: str, known: tuple[str, ...]) -> str:
        """A parameter that is one of these; the first where it is not given. Another is a mistake."""
        given = self.asked(name, known[0])
        if given not in known:
            raise SettingsError(f"{name} is {shown(given)}: expected one of {', '.join(known)}")
        return given

    @cached_property
    def again(self) -> bool:
        """Whether the page is there, and its live regions alone are asked for."""
        return REGIONS in self.request.headers

    @property
    def age(self) -> float:
        """How old answers may be, in seconds: nothing for who has just done something, and is to see it.

        For who was told of a change they are not older than the look that found it: many who were told share them.
        """
        if self.request.headers.get(REGIONS) == OWN:
            return 0.0
        live = cast("Live", self.request.app.state.live)
        return min(_TOLD_AGE, live.hub.age_of(self.told)) if self.told else _AGE

    @cached_property
    def told(self) -> str:
        """The event that the caller was told last; nothing where there was none."""
        return self.request.headers.get(TOLD, "")

    # Addresses, wherever the dashboard is mounted.

    @cached_property
    def base(self) -> str:
        """What stands before `/dashboard` and `/api/v1`."""
        return base_of(self.request)

    def url(self, path: str = "/", /, **query: object) -> str:
        """Where a page is: `visit.url("/jobs", q="status:failed")`. What is None is left out."""
        return f"{self.base}{PREFIX}{quote(path)}{_query(query)}"

    def api(self, path: str, /, **query: object) -> str:
        """Where a route of the API is: `visit.api("queues", name, "pause")` is `url`'s sister for scripts."""
        return f"{self.base}{API}/{path.lstrip('/')}{_query(query)}"

    def here(self, **query: object) -> str:
        """The same page with some parameters changed; None takes one away."""
        kept = [(name, value) for name, value in self.request.query_params.multi_items() if name not in query]
        more = [(name, str(value)) for name, value in query.items() if value is not None]
        words = urlencode([*kept, *more])
        return f"{self.base}{quote(self._path)}{'?' if words else ''}{words}"

    @property
    def _path(self) -> str:
        return self.request.url.path.removeprefix(self.base)

    # What the viewer has chosen.

    @cached_property
    def theme(self) -> str:
        """Light, dark, or as the system has it."""
        return _chosen(self.request, "windlass_theme", THEMES)

    @cached_property
    def time(self) -> str:
        """How times are shown: how long ago, by the viewer's clock, or in UTC."""
        return _chosen(self.request, "windlass_time", TIMES)


def base_of(request: Request) -> str:
    """What stands before the application's own paths: where it is mounted, and where a proxy has put it."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def quoted(part: str) -> str:
    """One part of a path, whatever is in it: a queue may be called `a/b`."""
    return quote(part, safe="")


def _query(query: dict[str, object]) -> str:
    pairs = [(name, str(value)) for name, value in query.items() if value is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _chosen(request: Request, cookie: str, known: tuple[str, ...]) -> str:
    given = request.cookies.get(cookie, known[0])
    return given if given in known else known[0]
