"""What is measured on MongoDB, each against its floor."""

from __future__ import annotations

import copy
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pymongo import AsyncMongoClient

from bench import measures
from bench.figures import Figure
from bench.raw_mongo import RawMongo
from tests.support.servers import start_mongo
from windlass import Windlass
from windlass.core.draft import make_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

RAW_BATCHES = (measures.CONCURRENCY // 2, 100, 500)
"""sizes of the raw loop's batches; the first, a worker's own, is compared with, the others are told beside it"""


class MongoGround:
    """Databases of one server, which are dropped in the end."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._mark = f"bench{time.time_ns() // 1_000_000}"
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(url)
        self.folder = folder

    def url(self, name: str) -> str:
        """A database of its own."""
        return urlsplit(self._url)._replace(path=f"/{self.database(name)}").geturl()

    def database(self, name: str) -> str:
        """What that database is called."""
        return f"{self._mark}_{name}"

    async def raw_insert(self, name: str, n: int, batch: int) -> float:
        """Insert n documents with the driver alone."""
        raw = RawMongo(self._url, self.database(name))
        await raw.open()
        rate = await raw.insert(n, batch)
        await raw.close()
        return rate

    async def raw_run(self, name: str, n: int, batch: int) -> float:
        """Insert n documents, then claim and complete them with the driver alone."""
        raw = RawMongo(self._url, self.database(name))
        await raw.open()
        await raw.insert(n, measures.BATCH)
        rate = await raw.run(batch)
        await raw.close()
        return rate

    async def settle(self) -> None:
        """Let the server write out now what earlier measurements left in its cache, and not during the next."""
        await self._client.admin.command("fsync")

    async def server_cpu(self) -> float:
        """The seconds of processor that the server has used, as it says itself."""
        found = (await self._client.admin.command("serverStatus"))["extra_info"]
        return float(found["user_time_us"] + found["system_time_us"]) / 1e6

    async def multiply(self, name: str, n: int) -> None:
        """Copy the one finished job of a place n times, every document of it: a long history in little time."""
        database = self._client[self.database(name)]
        for collection in await database.list_collection_names():
            if collection.endswith("jobs"):
                [model] = await database[collection].find().to_list()
                for start in range(0, n, measures.BATCH):
                    many = [copy.copy(model) for _ in range(measures.BATCH)]
                    for number, one in enumerate(many, start):
                        one["_id"] = make_id(1_600_000_000_000 + number, number)
                    await database[collection].insert_many(many, ordered=False)

    async def close(self) -> None:
        """Drop every database that was made here."""
        for name in await self._client.list_database_names():
            if name.startswith(self._mark):
                await self._client.drop_database(name)
        await self._client.close()


async def history(ground: MongoGround, *, n: int, least: float) -> list[Figure]:
    """The rate of ten thousand jobs beside n finished ones, against none."""
    rates: dict[int, list[float]] = {0: [], n: []}
    for number in range(2):
        for size, found in rates.items():
            name = f"history{size}-{number}"
            if size:
                await measures.work_through(Windlass(ground.url(name)), 1, 1)
                await ground.multiply(name, size)
            found.append(await measures.first_off(Windlass(ground.url(name)), 10_000, 10_000))
    none, many = max(rates[0]), max(rates[n])
    told = {"none": none, f"{n:,}": many}
    return [Figure(name=f"history of {n:,} / none", value=many / none, unit="", least=least, told=told)]


async def measure_mongo(*, quick: bool, only: Sequence[str]) -> AsyncGenerator[Figure, None]:
    """Every measurement in order, or only those named, on a server of its own or on WINDLASS_TEST_MONGO_URL."""
    jobs = 5_000 if quick else 30_000
    many = 50_000 if quick else 1_000_000
    todo: dict[str, Callable[[MongoGround], Awaitable[list[Figure]]]] = {
        "bulk": partial(measures.bulk, n=jobs, least=0.6),
        "single": partial(measures.single, n=2_000 if quick else 10_000, least=8),
        "run": partial(measures.run, n=jobs, raw_batches=RAW_BATCHES, least=4_500, least_ratio=0.6),
        "pickup": partial(measures.pickup, n=100 if quick else 400, most=12),
        "crowd": partial(measures.crowd, n=40 if quick else 100, most=1.2),
        "rivals": partial(measures.rivals, n=4_000 if quick else 20_000, least=2_000),
        "steps": partial(measures.steps, n=100 if quick else 400, most=1.2),
        "idle": partial(_idle, seconds=8 if quick else 30),
        "backlog": partial(measures.backlog, n=many, least=0.6),
        "history": partial(history, n=many, least=0.6),
        "import": lambda _: measures.importing(),
    }
    # As much cache as a small server of its own would have; the raw loop runs on the same one.
    with start_mongo(cache_gb=2) as server:
        for name, measure in todo.items():
            if not only or name in only:
                with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
                    ground = MongoGround(server.url, Path(folder))
                    try:
                        for figure in await measure(ground):
                            yield figure
                    finally:
                        await ground.close()


async def _idle(ground: MongoGround, *, seconds: int) -> list[Figure]:
    await ground.settle()
    return await measures.idle(
        ground, seconds=seconds, most_cpu=2, most_memory=60, server_cpu=ground.server_cpu, most_server=1
    )
