"""What is measured on Redis, each against its floor."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from redis import Redis

from bench import measures
from bench.figures import Figure
from bench.raw_redis import RawRedis
from tests.support.servers import start_redis
from windlass import Windlass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

RAW_BATCHES = (measures.CONCURRENCY // 2, 100)
"""sizes of the raw loop's batches; the first is compared with, the other told beside it"""
_DATABASES = 16


class RedisGround:
    """Databases of one server, emptied before use."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._known: dict[str, int] = {}
        self.folder = folder

    def url(self, name: str) -> str:
        """A database of its own; the oldest is taken again when all are used."""
        if name not in self._known:
            number = len(self._known) % _DATABASES
            self._known = {known: at for known, at in self._known.items() if at != number} | {name: number}
            driver: Any = Redis  # half of its methods have no types
            with driver.from_url(self._at(number)) as client:
                client.flushdb()
        return self._at(self._known[name])

    def _at(self, number: int) -> str:
        return urlsplit(self._url)._replace(path=f"/{number}").geturl()

    async def raw_insert(self, name: str, n: int, batch: int) -> float:
        """Insert n jobs with the driver alone."""
        raw = RawRedis(self.url(name))
        rate = await raw.insert(n, batch)
        await raw.close()
        return rate

    async def raw_run(self, name: str, n: int, batch: int) -> float:
        """Insert n jobs, then claim and complete them with the driver alone."""
        raw = RawRedis(self.url(name))
        await raw.insert(n, measures.BATCH)
        rate = await raw.run(batch)
        await raw.close()
        return rate

    async def quiet(self) -> None:
        """Wait until the server has rewritten its append-only file, which many writes make it do."""
        driver: Any = Redis  # half of its methods have no types
        with driver.from_url(self._url) as client:
            while _rewriting(client.info("persistence")):  # noqa: ASYNC110  # the server tells only who asks
                await asyncio.sleep(0.2)


def _rewriting(persistence: dict[str, Any]) -> bool:
    return any(persistence[f"aof_rewrite_{state}"] for state in ("in_progress", "scheduled"))


async def backlog(ground: RedisGround, *, n: int, least: float) -> list[Figure]:
    """The same as on every store, once the server has done what the making of the backlog set it to do."""
    return await measures.backlog(ground, n=n, least=least, quiet=ground.quiet)


async def memory(ground: RedisGround, *, n: int, most: float) -> list[Figure]:
    """What one queued job without arguments takes."""
    app = Windlass(ground.url("memory"))

    @app.job()
    async def noop() -> None: ...

    async with app:
        before = (await app.store.health())["bytes"]
        await app.enqueue_many(noop.bind() for _ in range(n))
        taken = ((await app.store.health())["bytes"] - before) / n
    return [Figure(name="memory per queued job", value=taken, unit="bytes", most=most)]


async def measure_redis(*, quick: bool, only: Sequence[str]) -> AsyncGenerator[Figure, None]:
    """Every measurement in order, or only those named, on a server of its own or on WINDLASS_TEST_REDIS_URL."""
    jobs = 10_000 if quick else 50_000
    todo: dict[str, Callable[[RedisGround], Awaitable[list[Figure]]]] = {
        "bulk": partial(measures.bulk, n=jobs, least=0.4),
        "single": partial(measures.single, n=4_000 if quick else 20_000, least=8),
        "run": partial(measures.run, n=jobs, raw_batches=RAW_BATCHES, least=15_000, least_ratio=0.4),
        "pickup": partial(measures.pickup, n=100 if quick else 400, most=3, most_p99=None if quick else 10),
        "crowd": partial(measures.crowd, n=40 if quick else 100, most=1.2),
        "rivals": partial(measures.rivals, n=4_000 if quick else 20_000, least=2_000),
        "steps": partial(measures.steps, n=100 if quick else 400, most=1.2),
        "idle": partial(measures.idle, seconds=8 if quick else 30, most_cpu=2, most_memory=60),
        "memory": partial(memory, n=jobs, most=700),
        "backlog": partial(backlog, n=50_000 if quick else 1_000_000, least=0.8),
        "import": lambda _: measures.importing(),
    }
    with start_redis() as server:
        for name, measure in todo.items():
            if not only or name in only:
                with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
                    for figure in await measure(RedisGround(server.url, Path(folder))):
                        yield figure
