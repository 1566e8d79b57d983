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
from windlass.cli.loading import load_app, move
from windlass.cli.output import UNREACHABLE, Screen, Stop
from windlass.stores.addresses import redact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from windlass.stores.contract import Store

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

    @property
    def store(self) -> Store:
        """The open store."""
        return self.app.store


def globals_of(ctx: typer.Context) -> Globals:
    """The global options of this call."""
    found = ctx.find_root().obj
    return found if isinstance(found, Globals) else Globals()


def the_app(given: Globals, spec: str | None = None) -> Windlass:
    """The application to look through: one that was named, else one without handlers on the store that was named."""
    spec = spec or given.app
    if spec is None and given.store is None:
        outside = settings.load()
        # A store set from outside wins; without one the application knows better than the default where its jobs are.
        spec = outside.app if outside.url == settings.DEFAULT_URL else None
    if spec is None:
        return Windlass(given.store, namespace=given.namespace)
    app = load_app(spec)
    move(app, given.store, given.namespace)
    return app


def at_desk(ctx: typer.Context, work: Callable[[Desk], Awaitable[T]], *, makes: bool = False) -> T:
    """Open the store, do the work, close it. Only commands that make a store (`makes`) may find none there."""
    given = globals_of(ctx)
    app = the_app(given)
    if not makes:
        refuse_missing(app)

    async def run() -> T:
        async with app:
            return await work(Desk(given.screen, app))

    return run_async(run())


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """The one place where the command line starts an event loop."""
    return asyncio.run(main)


def refuse_missing(app: Windlass) -> None:
    """A mistyped file name must not become an empty store that answers "no jobs"."""
    place = app.url.removeprefix("sqlite:///").partition("?")[0]
    if app.url.startswith("sqlite:///") and place not in ("", ":memory:") and not Path(unquote(place)).exists():
        raise Stop(
            UNREACHABLE,
            f"there is no store at {redact(app.url)}: name another with --store or WINDLASS_STORE,"
            ' or make this one with "windlass migrate"',
        )
