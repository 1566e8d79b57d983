"""The desk: what a command has before it, which is a screen and, for most of them, an application on an open store."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import typer

from windlass import settings
from windlass.app import Windlass
from windlass.cli.loading import load_app
from windlass.cli.output import UNREACHABLE, Screen, Stop
from windlass.core.errors import WindlassError
from windlass.core.keys import LONGEST_KEY, check_key
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
    actor: str | None = None
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
    actor: str = "operator"
    """who gives orders here"""

    @property
    def place(self) -> str:
        """Where the store is, fit for screens; a file by its whole path. With its namespace, if not the default."""
        file = file_of(self.app)
        store = redact_url(self.app.url) if file is None else f"sqlite:///{file.absolute()}"
        return (
            store if self.app.namespace == settings.Settings().namespace else f"namespace {self.app.namespace}, {store}"
        )

    async def record(self, action: str, object_: str, **details: Any) -> None:
        """Write down in the audit trail that the actor did this. What was done stands where that cannot be written."""
        told = {name: one for name, one in details.items() if one is not None}
        try:
            await self.app.audit.record(self.actor, action, object_[:LONGEST_KEY], origin=_here(), details=told or None)
        except WindlassError as error:
            self.screen.say(f"{action} {object_}: this was done, but is not in the audit trail: {error}")


def _here() -> str | None:
    """The name of this machine, as far as its name may stand in the trail."""
    name = socket.gethostname()[:LONGEST_KEY]
    return f"cli@{name}" if name.isprintable() and name else "cli"


def _account() -> str:
    """The account that is signed in here."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, as containers have
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "operator"


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
    file = file_of(app)
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

    actor = check_key(given.actor or app.settings.actor or _account(), "the actor")

    async def run() -> T:
        async with app:
            return await work(Desk(given.screen, app, missing, actor))

    return run_async(run())


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """The one place where the command line starts an event loop."""
    return asyncio.run(main)


def _is_named(given: Globals) -> bool:
    return given.store is not None or given.app is not None or settings.names("url") or settings.names("app")


def file_of(app: Windlass) -> Path | None:
    """The file of an application on SQLite."""
    place = app.url.removeprefix("sqlite:///").partition("?")[0]
    return Path(unquote(place)) if app.url.startswith("sqlite:///") and place not in ("", ":memory:") else None


def refuse_missing(app: Windlass) -> None:
    """A mistyped file name must not become an empty store that answers "no jobs"."""
    file = file_of(app)
    if file is not None and not file.exists():
        raise Stop(
            UNREACHABLE,
            f"there is no store at {redact_url(app.url)}: name another with --store or WINDLASS_STORE,"
            ' or make this one with "windlass migrate"',
        )
