"""Rooms: what hangs pages in: a folder with templates, and the pages that are made of them.

Windlass's own are below `pages`; an application gives its own to `app.add_pages`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import Scope

if TYPE_CHECKING:
    from windlass.web.callers import Caller
    from windlass.web.dashboard.visit import Visit

Show: TypeAlias = "Callable[[Visit], Awaitable[Mapping[str, Any]]]"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_PATH = re.compile(r"/([a-z0-9_.-]+|\{[a-z_]+\})?(/([a-z0-9_.-]+|\{[a-z_]+\}))*(/\{[a-z_]+:path\})?")
_DRAWN = re.compile(r"[MmLlHhVvCcSsQqTtAaZz0-9 .,-]+")
FRAME = "frame"
"""the name of what all pages stand in, which no room may have"""


class Needs(StrEnum):
    """Who may open a page."""

    READ = "read"
    """who may read: shown are their own jobs"""
    OVERSEE = "oversee"
    """who may read, and sees the jobs of all"""
    ADMIN = "admin"

    def met_by(self, caller: Caller) -> bool:
        """Whether this caller may."""
        if self is Needs.ADMIN:
            return caller.may(Scope.ADMIN)
        return caller.may(Scope.READ) and (self is Needs.READ or caller.sees_all)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """A page's place in the rail."""

    word: str
    icon: str
    """what an SVG path draws (its `d`) in a field of 20 × 20, as a line 1.6 wide"""
    order: int
    """Overview 10, Jobs 20, Queues 30, Schedules 40, Workers 50, Failures 60, Types 70, Audit 80, Health 90; pages of
    applications from 100 on"""
    key: str | None = None
    """the letter that goes there after a `g`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    path: str
    """below the dashboard: `/`, `/queues`, `/jobs/{id}`"""
    title: str
    template: str
    """a file in the room's folder; it extends `frame/page.html`"""
    show: Show
    """what the template is given, asked of the answers as the visit's caller sees them"""
    needs: Needs = Needs.READ
    rail: Rail | None = None
    under: str | None = None
    """the path whose place in the rail is lit, where the page has none of its own"""

    def __post_init__(self) -> None:
        if not _PATH.fullmatch(self.path):
            raise SettingsError(f"the page's path is {shown(self.path)}: expected one such as /imports/{{id}}")
        if self.rail is not None and not _DRAWN.fullmatch(self.rail.icon):
            raise SettingsError(f"the icon of {self.path} is {shown(self.rail.icon)}: expected the d of an SVG path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder with the templates, scripts and sheets of some pages."""

    name: str
    """as templates and assets are named by: `imports/list.html`"""
    folder: Path
    pages: tuple[Page, ...]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == FRAME:
            raise SettingsError(f"the room is named {shown(self.name)}: expected small letters, and not {FRAME!r}")
        for page in self.pages:
            if not (self.folder / page.template).is_file():
                raise SettingsError(f"the page {page.path} has no template {page.template} in {self.folder}")
