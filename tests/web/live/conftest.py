"""The API on a real server on the loopback, whose streams are read as a client reads them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from tests.contract.places import Place
from tests.support.counting import Calls
from tests.support.until import until
from tests.web.conftest import declare
from windlass import Windlass
from windlass.stores.addresses import store_at
from windlass.stores.contract import Store
from windlass.web.live.live import Live
from windlass.web.live.pace import Pace

QUICK = Pace(gap=0.02, view_gap=0.02, floor=0.05)


class Event(NamedTuple):
    """One event as it came."""

    event: str
    data: Any
    id: str | None


class Stream:
    """A stream of events on the client's side, which keeps the last id as a browser does."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.last: str | None = None
        self.comments = 0
        self.retries: list[int] = []
        self._lines = answer.aiter_lines()

    async def next(self, within: float = 10.0) -> Event | None:
        """The next event; None at the end."""
        async with asyncio.timeout(within):
            return await self._read()

    async def _read(self) -> Event | None:
        given: dict[str, str] = {}
        async for line in self._lines:
            if not line and "data" in given:
                self.last = given.get("id", self.last)
                return Event(given["event"], json.loads(given["data"]), given.get("id"))
            if line.startswith(":"):
                self.comments += 1
            name, _, value = line.partition(": ")
            if name == "retry":
                self.retries.append(int(value))
            given[name] = value
        return None

    async def until(self, wanted: Callable[[Event], bool]) -> Event:
        """The first event that is so."""
        while (event := await self.next()) is not None:
            if wanted(event):
                return event
        raise AssertionError("the stream ended before it came")

    async def rest(self) -> list[Event]:
        """All events to the end."""
        events: list[Event] = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events


@dataclass
class Served:
    """A server with the application behind it."""

    app: Windlass
    web: FastAPI
    server: uvicorn.Server
    port: int
    calls: Calls
    keys: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def live(self) -> Live:
        live: Live = self.web.state.live
        return live

    async def key(self, owner: str = "ann", scopes: tuple[str, ...] = ("enqueue", "read", "operate")) -> str:
        """A key of this owner."""
        if owner not in self.keys:
            self.keys[owner] = (await self.app.keys.create("a test", owner=owner, scopes=scopes)).secret
        return self.keys[owner]

    @asynccontextmanager
    async def client(self, owner: str = "ann") -> AsyncGenerator[httpx.AsyncClient]:
        headers = {"Authorization": f"Bearer {await self.key(owner)}"}
        limits = httpx.Limits(max_connections=None)
        url = f"http://127.0.0.1:{self.port}/api/v1"
        async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=10) as client:
            yield client

    @asynccontextmanager
    async def stream(self, path: str, owner: str = "ann", last: str | None = None) -> AsyncGenerator[Stream]:
        """An open stream."""
        headers = [] if last is None else [(b"Last-Event-ID", last.encode("latin-1"))]
        async with self.client(owner) as client, client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield Stream(answer)

    def nobody(self) -> bool:
        """Whether nothing is left of any stream."""
        names = {task.get_name() for task in asyncio.all_tasks()}
        return self.live.streams == 0 and not names & {"windlass-live", "windlass-live-client"}


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Any:
        yield


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@asynccontextmanager
async def served(app: Windlass, calls: Calls, pace: Pace = QUICK, **how: Any) -> AsyncGenerator[Served]:
    """Serve it while inside."""
    web = app.asgi(live=pace, **how)
    server = _Quiet(uvicorn.Config(web, log_level="error", lifespan="off", timeout_graceful_shutdown=5))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)  # so that a slow client is noticed soon
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await until(lambda: server.started, "the server to start")
    made = Served(app, web, server, listening.getsockname()[1], calls)
    try:
        yield made
    finally:
        server.should_exit = True
        web.state.closing.set()
        await serving
        listening.close()
    await until(made.nobody, "every stream to leave nothing behind")


@asynccontextmanager
async def counted(store: Store) -> AsyncGenerator[tuple[Windlass, Calls]]:
    """An application on this store, and the calls that are made of it."""
    calls = Calls()
    app = Windlass(store=calls.on(store))
    declare(app)
    async with app:
        yield app, calls
    app.close()


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves the application of the web tests, on SQLite, at a pace."""

    @asynccontextmanager
    async def serving(pace: Pace = QUICK, **how: Any) -> AsyncGenerator[Served]:
        async with (
            counted(store_at(f"sqlite:///{tmp_path / 'live.db'}")) as (app, calls),
            served(app, calls, pace, **how) as made,
        ):
            yield made

    return serving


@pytest.fixture
async def at(place: Place) -> AsyncGenerator[Served]:
    """The same on each store."""
    async with counted(place.store()) as (app, calls), served(app, calls) as made:
        yield made
