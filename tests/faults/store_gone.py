"""The store's server is killed or stands still under load: M4 and M5 of the matrix. Each has a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from tests.faults import postgres_faults, redis_faults
from tests.faults.judging import acknowledged, found_by, heal, kind_of, resumed, slow_to_resume, spec_of, strike
from tests.faults.one_server import OneServer
from tests.support.processes import Server
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass import Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial

CARELESS = "acknowledged_too_early"
_LOAD = 40
"""jobs acknowledged before each fault"""


class MongoFaults(OneServer):
    """What may befall a replica set of one."""

    async def answers(self) -> bool:
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.server.url, timeoutMS=1000)
        async with client:
            try:
                hello = await client.admin.command("hello")
            except PyMongoError:
                return False
        return bool(hello["isWritablePrimary"])  # it takes a moment to elect itself


@dataclass(frozen=True)
class Kind:
    """How a server of one kind is started: as it should be, and as one that may forget what it acknowledged."""

    faults: Callable[[Server], OneServer]
    start: Callable[[], Server]
    forgetful: Callable[[], Server] | None = None
    careless: str = ""
    """what a URL says to have writes acknowledged too early"""


def _late_postgres() -> Server:
    # What was written without waiting for the disk must not get there by chance, or the control cannot bite.
    return start_postgres("-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=1GB", own=True)


KINDS = {
    "postgres": Kind(
        postgres_faults.Faults, lambda: start_postgres(own=True), _late_postgres, "?synchronous_commit=off"
    ),
    # The store asks for the journal with every write, whatever the URL says; so there is no careless way to use it.
    "mongo": Kind(MongoFaults, lambda: start_mongo(own=True)),
    "redis": Kind(
        redis_faults.Faults,
        lambda: start_redis("--appendfsync", "always", own=True),
        lambda: start_redis("--appendonly", "no", own=True),
    ),
}


@asynccontextmanager
async def _standing(place: Place) -> AsyncGenerator[tuple[OneServer, Place], None]:
    kind, careless = KINDS[kind_of(place)], place.control == CARELESS
    start = kind.forgetful if careless else kind.start
    assert start is not None, f"there is no such control on {kind_of(place)}"
    server = await asyncio.to_thread(start)
    faults = kind.faults(server)
    try:
        async with Windlass(server.url) as app:
            await app.store.health()  # so that the tables themselves are durable
        app.close()
        url = server.url + (kind.careless if careless else "")
        yield faults, replace(place, url=url, namespace="windlass", control="" if careless else place.control)
    finally:
        faults.thaw()
        await asyncio.to_thread(server.stop)


async def _under_load(
    name: str, place: Place, seed: int, rounds: int, harm: Callable[[OneServer], Awaitable[None]]
) -> Finding:
    control, went_on = place.control, True
    async with _standing(place) as (faults, spot), Trial(spot, spec=spec_of(spot), seed=seed) as trial:
        await trial.ready(2)
        async with trial.producing(0.1):
            for _ in range(rounds):
                await acknowledged(trial, _LOAD)
                strike(trial, name)
                await harm(faults)
                await faults.until_it_answers()
                at = heal(trial, name)
                went_on = bool(control) or (await resumed(trial, at) and went_on)
        await trial.finished(2 if control else 60)
        return await found_by(name, trial, slow_to_resume, lambda _: [] if went_on else ["a worker did not resume"])


async def killed(place: Place, seed: int, *, long: bool) -> Finding:
    """`kill -9` of the server, away for longer than a lease, and started again on the same data."""
    down = 2.0 if long else 1.2
    return await _under_load("server killed", place, seed, 2 if long else 1, lambda faults: faults.kill(down))


async def frozen(place: Place, seed: int, *, long: bool) -> Finding:
    """SIGSTOP of all its processes for longer than a lease: sockets stay open and take what is sent."""
    seconds = 30.0 if long else 3.0
    return await _under_load("server frozen", place, seed, 1, lambda faults: faults.freeze(seconds))
