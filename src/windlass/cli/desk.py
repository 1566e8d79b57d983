"""The desk: what a command has before it, which is a screen and, for most of them, an application on an open store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import typer

from windlass import settings
from windlass.app import Windlass
from windlass.cli.loading import load_app
from windlass.cli.output import UNREACHABLE, Screen, Stop
from windlass.core.redaction import redact_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    """The options that every command takes."""

    store: str | None = None
    namespace: str | None = None
    app: str | None = None
    as_json: bool = False
    quiet: bool = False
    color: bool = True
    debug: bool = False

    @property
    def screen(self) -> Screen:
        """Where to speak."""
        return Screen(self.as_json, self.quiet, self.color)


@dataclass(frozen=True, slots=True)
class Desk:
    """A screen and an application whose store is open."""

    screen: Screen
    app: Windlass
    made: bool = False
    """whether its file was not there before"""

    @property
    def place(self) -> str:
        """Where the store is, fit for screens; a file by its whole path."""
        file = _file_of(self.app)
        return redact_url(self.app.url) if file is None else f"sqlite:///{file.absolute()}"


def globals_of(ctx: typer.Context) -> Globals:
    """The global options of this call."""
    found = ctx.find_root().obj
    return found if isinstance(found, Globals) else Globals()


def the_app(given: Globals, spec: str | None = None) -> Windlass:
    """The application to look through: one that was named, else one without handlers on the store that was named."""
    spec = spec or given.app
    if spec is None and given.store is None:
        # A store set from outside wins; without one the application knows better than the default where its jobs are.
        spec = None if settings.names("url") else settings.load().app
    if spec is None:
        return Windlass(given.store, namespace=given.namespace)
    app = load_app(spec)
    app.move(given.store, given.namespace)
    return app


def at_desk(ctx: typer.Context, work: Callable[[Desk], Awaitable[T]], *, makes: bool = False) -> T:
    """Open the store, do the work, close it.

    Only commands that make a store (`makes`) may find none there, and only where somebody named it: the default one
    would stand beside the application's own, and no worker would look into it.
    """
    given = globals_of(ctx)
    app = the_app(given)
    file = _file_of(app)
    missing = file is not None and not file.exists()
    if not makes:
        refuse_missing(app)
    elif file is not None and missing and not _is_named(given):
        raise Stop(
            UNREACHABLE,
            f"no store is named, and there is no {file.absolute()}: name the application"
            " that has one with --app MODULE:APP, or the store with --store URL or WINDLASS_URL; or make this one with"
            ' "windlass migrate"',
        )

    async def run() -> T:
        async with app:
            return await work(Desk(given.screen, app, missing))

    return run_async(run())


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """The one place where the command line starts an event loop."""
    return asyncio.run(main)


def _is_named(given: Globals) -> bool:
    return given.store is not None or given.app is not None or settings.names("url") or settings.names("app")


def _file_of(app: Windlass) -> Path | None:
    """The file of an application on SQLite."""
    place = app.url.removeprefix("sqlite:///").partition("?")[0]
    return Path(unquote(place)) if app.url.startswith("sqlite:///") and place not in ("", ":memory:") else None


def refuse_missing(app: Windlass) -> None:
    """A mistyped file name must not become an empty store that answers "no jobs"."""
    file = _file_of(app)
    if file is not None and not file.exists():
        raise Stop(
            UNREACHABLE,
            f"there is no store at {redact_url(app.url)}: name another with --store or WINDLASS_STORE,"
            ' or make this one with "windlass migrate"',
        )
