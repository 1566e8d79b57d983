"""`serve`: the HTTP API, by itself or with a worker beside it."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from contextlib import AsyncExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.apps.installed import SHIPPED, shipped
from windlass.cli.desk import globals_of, run_async, the_app
from windlass.cli.greeting import show_dashboard, show_first_key, show_server
from windlass.cli.lines import FormatOption, LevelOption, format_of, level_of, to_stdout
from windlass.cli.output import FAILURE, REFUSED, USAGE, Stop
from windlass.core.keys import shown
from windlass.settings import load
from windlass.web.access.hosts import ADDRESSES, LOOPBACK, host_of
from windlass.worker.shutdown import stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from fastapi import FastAPI
    from uvicorn import Server

    from windlass.app import Windlass
    from windlass.cli.output import Screen
    from windlass.worker.worker import Worker

GRACE = 30
"""seconds that requests under way have to be answered after the word to stop"""


def serve(
    ctx: typer.Context,
    app: Annotated[str | None, typer.Argument(metavar="MODULE:APP", help="The application; else only a store.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine there must be keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    worker: Annotated[bool, typer.Option("--worker", help="Run jobs in this process as well.")] = False,
    root_path: Annotated[str, typer.Option(metavar="PATH", help="Where a proxy in front has put it.")] = "",
    log_format: FormatOption = None,
    log_level: LevelOption = None,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C: then what is under way is answered, and jobs end or are handed back.

    Example: windlass serve shop.jobs:app --port 8080 --worker
    """
    given = globals_of(ctx)
    if find_spec("uvicorn") is None or find_spec("fastapi") is None:
        raise Stop(USAGE, 'the HTTP API needs the extra "web": pip install "windlass[web]"')
    root_path = _root_path(root_path)
    spec = app or given.app or load().app
    chosen = the_app(given, spec or (SHIPPED if shipped() else None))
    if worker and spec is None and not shipped():
        raise Stop(USAGE, "--worker needs an application with handlers: windlass serve MODULE:APP --worker")
    chosen.listen(to_stdout(given, format_of(given, log_format), level_of(given, log_level)))
    run_async(_serve(chosen, given.screen, host, port, root_path, with_worker=worker))


async def _serve(app: Windlass, screen: Screen, host: str, port: int, root_path: str, *, with_worker: bool) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app)
        # Before the first key: whose secret is shown must be served, too.
        listening = stack.enter_context(bound(host, port))
        await _first_key(app, screen, host)
        web = web_of(app, host)
        workers = [await stack.enter_async_context(app.worker())] if with_worker else []
        await serve_on(app, web, screen, listening, host, workers, root_path)


def web_of(app: Windlass, host: str) -> FastAPI:
    """What is served at this host. Make it before workers begin: its imports would hold them up for a second."""
    return app.asgi(hosts=_hosts(app, host))


async def serve_on(
    app: Windlass,
    web: FastAPI,
    screen: Screen,
    listening: socket.socket,
    host: str,
    workers: Sequence[Worker] = (),
    root_path: str = "",
) -> None:
    """Serve an open application there until it is told to stop, and have these workers stop with it."""
    app.own.need()  # what was begun before and has not ended goes on, also where nobody asks
    server = _server(web, root_path)
    with stopped_by_signals(_Together(web, server, workers)):
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():  # uvicorn has no event for it
            await asyncio.wait([serving], timeout=0.01)
        at = f"http://{shown_place(listening.getsockname())}"
        show_server(screen, app, at, root_path, workers)
        if web.state.dashboard is not None:
            link = web.state.dashboard.links.make() if _is_loopback(host) else None  # who reads it owns the store
            show_dashboard(screen, f"{at}{root_path}", link)
        await serving


def _root_path(given: str) -> str:
    """Where a proxy has put it, without slashes too many; empty for the root."""
    parts = [part for part in given.split("/") if part]
    if any(not re.fullmatch(r"[A-Za-z0-9._~-]+", part) or part in (".", "..") for part in parts):
        raise Stop(USAGE, f"--root-path {shown(given)}: expected a path such as /jobs")
    return "".join(f"/{part}" for part in parts)


def bound(host: str, port: int, options: str = "--host or --port") -> socket.socket:
    """A socket that listens there, or the end with what is wrong."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = error.strerror or error
        raise Stop(FAILURE, f"cannot listen at {host}, port {port}: {why}; choose another {options}") from None


def _server(web: FastAPI, root_path: str) -> Server:
    from uvicorn import Config, Server

    from windlass.web.connections import Connection
    from windlass.web.live.messages import LARGEST

    class Quiet(Server):
        """Leaves signals to us: what came is not raised again once all is ended."""

        @contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

    config = Config(
        web,
        http=Connection,  # of h11: what is below is its bound, and another parser would not know it
        root_path=root_path,
        proxy_headers=False,  # who is behind a proxy is asked of those only that are trusted
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=16 * 1024,
        ws_max_size=4 * LARGEST,  # bytes of so many characters: uvicorn would gather 16 MiB before anybody counts
        ws_per_message_deflate=False,  # else each socket has windows of its own, and a small message may be a large one
    )
    return Quiet(config)


class _Together:
    """Server and workers, told to stop together: first kindly, then at once."""

    def __init__(self, web: FastAPI, server: Server, workers: Sequence[Worker]) -> None:
        self._web, self._server, self._workers = web, server, workers

    def stop(self, *, now: bool = False) -> None:
        self._web.state.closing.set()
        self._server.should_exit, self._server.force_exit = True, now
        for worker in self._workers:
            worker.stop(now=now)


def _hosts(app: Windlass, host: str) -> tuple[str, ...]:
    """The names that are answered to: those that cannot be another's, and what was given."""
    if app.settings.http_hosts is not None:
        return app.settings.http_hosts
    if _is_loopback(host):
        return (LOOPBACK,)
    return (LOOPBACK, ADDRESSES, *(name for name in (host, socket.gethostname()) if host_of(name)))


async def _first_key(app: Windlass, screen: Screen, host: str) -> None:
    """A store without keys gets its first one, on this machine only: nobody is to be faster than its owner."""
    if await app.keys.list():
        return
    if not _is_loopback(host):
        from windlass.web.access.configured import lets_in_without_keys  # only where the extra is there

        if lets_in_without_keys(app.settings):
            return
        raise Stop(
            REFUSED,
            f"there are no keys yet, so nobody may listen at {host}: make one with"
            " \"windlass keys create NAME --owner '*' --scope admin\", serve on 127.0.0.1 first, or set who signs"
            " tokens (WINDLASS_HTTP_JWT_…) or names users (WINDLASS_HTTP_PROXY_USER)",
        )
    made = await app.keys.create("the first", owner="*", scopes=["admin"])
    show_first_key(screen, made.secret)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown_place(name: tuple[object, ...]) -> str:
    """Where a socket listens, as part of a URL."""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
