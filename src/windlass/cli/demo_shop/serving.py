"""`demo --serve`: the shop's workers, what comes in, and the dashboard on it, until Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from windlass.cli.demo_sheet import can_import, install
from windlass.cli.desk import file_of
from windlass.cli.output import USAGE, Stop
from windlass.cli.serving import bound, serve_on, web_of
from windlass.cli.words import span
from windlass.observability.forms import TextFormatter

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from windlass.app import Windlass
    from windlass.apps.imports.imports import Imports
    from windlass.cli.output import Screen

HOST, PORT = "127.0.0.1", 8000
_QUICK, _SLOW = {"mail": 4, "payments": 5, "media": 3, "stock": 3}, {"orders": 4, "reports": 3, "imports": 2}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What was asked for."""

    screen: Screen
    url: str
    namespace: str
    hours: float
    """of past, on a new SQLite file"""
    port: int | None
    directory: Path
    """where its spreadsheet lies"""


def check_extras() -> None:
    """Refuse to begin without what the shop needs."""
    missing = [name for name in ("uvicorn", "fastapi", "jinja2", "cryptography") if find_spec(name) is None]
    if missing:
        raise Stop(USAGE, f'demo --serve needs {", ".join(missing)}: pip install "windlass[web,secrets]"')


async def serve_shop(shown: Shown) -> None:
    """Show the shop until it is told to stop."""
    from windlass.cli.demo_shop import past
    from windlass.cli.demo_shop.jobs import app

    app.move(shown.url, shown.namespace)
    file = file_of(app)
    if file is not None and not file.exists() and shown.hours > 0:
        began = time.perf_counter()
        made = await past.live_through(file, shown.namespace, shown.hours)
        took = time.perf_counter() - began
        shown.screen.say(f"the shop's last {shown.hours:g} hours: {made:,} jobs, gone through in {span(took)}")
    # Behind the past, in which no file was imported.
    imports = install(app, shown.directory) if can_import() else None
    async with app:
        await _open(app, shown, imports)
    app.close()


async def _open(app: Windlass, shown: Shown, imports: Imports | None) -> None:
    from windlass.cli.demo_shop import traffic
    from windlass.cli.demo_shop.jobs import closing

    tell_what_fails()
    await traffic.prepare()
    shown.screen.say("jobs keep coming while you look; Ctrl-C ends it", "bold")
    store = "…" if file_of(app) is None else shown.url
    shown.screen.say(f"in another terminal: windlass top --store {store} --namespace {shown.namespace}")
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(_listen(shown.port))
        web = web_of(app, HOST)
        workers = [await stack.enter_async_context(app.worker(queues=queues, grace=1)) for queues in (_QUICK, _SLOW)]
        coming = asyncio.create_task(traffic.keep_coming(imports), name="windlass-demo-traffic")
        try:
            await serve_on(app, web, shown.screen, listening, HOST, workers)
        finally:
            closing.set()
            coming.cancel()
            await asyncio.wait([coming])
            if not coming.cancelled():
                coming.result()


def tell_what_fails() -> None:
    """Have failed requests told with their reason; the jobs of the shop fail on purpose, and its pages tell of them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(TextFormatter())
    logging.getLogger("windlass.web").addHandler(handler)


def _listen(port: int | None) -> socket.socket:
    """At the port that was asked for; else at the usual one, or at any where that is taken."""
    if port is not None:
        return bound(HOST, port)
    with suppress(Stop):
        return bound(HOST, PORT)
    return bound(HOST, 0)
