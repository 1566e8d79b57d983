"""What is measured on PostgreSQL, each against its floor."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import psutil

from bench import measures
from bench.figures import Figure
from bench.raw_postgres import RawPostgres
from tests.support.servers import start_postgres
from windlass import Windlass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from tests.support.processes import Server

RAW_BATCHES = (100, measures.CONCURRENCY // 2)
"""sizes of the raw loop's batches; the first is compared with, a worker's own is told beside it"""


class PostgresGround:
    """Schemas of one server, which are dropped in the end."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._mark = f"bench{time.time_ns() // 1_000_000}"
        self.folder = folder

    def url(self, name: str) -> str:
        """A schema of its own."""
        return f"{self._url}?schema={self.schema(name)}"

    def schema(self, name: str) -> str:
        """What that schema is called."""
        return f"{self._mark}_{name}"

    async def raw_insert(self, name: str, n: int, batch: int) -> float:
        """Insert n rows with the driver alone."""
        raw = RawPostgres(self._url, self.schema(name))
        await raw.open()
        rate = await raw.insert(n, batch)
        await raw.close()
        return rate

    async def raw_run(self, name: str, n: int, batch: int) -> float:
        """Insert n rows, then claim and complete them with the driver alone."""
        raw = RawPostgres(self._url, self.schema(name))
        await raw.open()
        await raw.insert(n, measures.BATCH)
        rate = await raw.run(batch)
        await raw.close()
        return rate

    async def multiply(self, name: str, n: int) -> None:
        """Copy the one finished job of a place n times, every column of it: a long history in little time."""
        table = f'"{self.schema(name)}".windlass_jobs'
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self._url)
        try:
            columns = [
                row[0]
                for row in await db.fetch(
                    "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0"
                    " AND attname <> 'id'",
                    table,
                )
            ]
            named = ", ".join(columns)
            await db.execute(
                f"INSERT INTO {table} (id, {named}) SELECT '00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'),"  # noqa: S608  # names that this file made
                f" {named} FROM {table}, generate_series(1, {n}) AS i",
                timeout=300,
            )
            await db.execute(f"VACUUM ANALYZE {table}", timeout=300)
        finally:
            await db.close()

    @contextlib.asynccontextmanager
    async def old_snapshot(self, name: str) -> AsyncGenerator[None, None]:
        """A transaction that has looked once and is left open."""
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self._url)
        try:
            async with db.transaction(isolation="repeatable_read"):
                await db.fetch(f'SELECT FROM "{self.schema(name)}".windlass_jobs LIMIT 1')  # names that this file made
                yield
        finally:
            await db.close()

    async def close(self) -> None:
        """Drop every schema that was made here."""
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self._url)
        await db.execute("SET client_min_messages = warning")
        found = await db.fetch("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)", self._mark)
        for (name,) in found:
            await db.execute(f'DROP SCHEMA "{name}" CASCADE')
        await db.close()


async def history(ground: PostgresGround, *, n: int, least: float) -> list[Figure]:
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


async def snapshot(ground: PostgresGround, *, n: int, seconds: int, least: float) -> list[Figure]:
    """The rate of one worker while another transaction holds a snapshot from before: the last quarter to the first."""
    app = Windlass(ground.url("snapshot"))

    @app.job()
    async def noop(n: int) -> None: ...

    async with app:
        await app.enqueue_many(noop.bind(i) for i in range(n))
        done: list[int] = []
        async with ground.old_snapshot("snapshot"), app.worker(concurrency=measures.CONCURRENCY) as worker:
            for _ in range(seconds):
                await asyncio.sleep(1)
                done.append(worker.done)
        left = (await app.jobs.count(status="queued")).n
    if not left:
        raise RuntimeError(f"{n} jobs were too few for {seconds} s: the rate at the end says nothing")
    part = max(1, seconds // 4)
    early, late = done[part] - done[0], done[-1] - done[-1 - part]
    told = {"first": early / part, "last": late / part, "jobs": float(done[-1])}
    return [Figure(name=f"old snapshot of {seconds} s", value=late / early, unit="", least=least, told=told)]


async def _idle(ground: PostgresGround, *, seconds: int, server: Server) -> list[Figure]:
    ours = bool(server.nodes)  # the processes of a server of the user's own may be anywhere
    return await measures.idle(
        ground,
        seconds=seconds,
        most_cpu=2,
        most_memory=60,
        server_cpu=partial(_server_cpu, server) if ours else None,
        most_server=1,
    )


async def _server_cpu(server: Server) -> float:
    """The seconds of processor that the server has used: its processes, and those that have ended."""
    postmaster = psutil.Process(server.pid)
    ended = postmaster.cpu_times()
    used = ended.children_user + ended.children_system
    for one in [postmaster, *postmaster.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            used += times.user + times.system
    return float(used)


async def measure_postgres(*, quick: bool, only: Sequence[str]) -> AsyncGenerator[Figure, None]:
    """Every measurement in order, or only those named, on a server of its own or on WINDLASS_TEST_POSTGRES_URL."""
    jobs = 10_000 if quick else 50_000
    many = 50_000 if quick else 1_000_000
    todo: dict[str, Callable[[PostgresGround], Awaitable[list[Figure]]]] = {
        "bulk": partial(measures.bulk, n=jobs, least=0.5),
        "single": partial(measures.single, n=4_000 if quick else 20_000, least=10),
        "run": partial(measures.run, n=jobs, raw_batches=RAW_BATCHES, least=15_000, least_ratio=0.45),
        "pickup": partial(measures.pickup, n=100 if quick else 400, most=4, most_p99=None if quick else 15),
        "crowd": partial(measures.crowd, n=40 if quick else 100, most=1.2),
        "rivals": partial(measures.rivals, n=4_000 if quick else 20_000, least=2_000),
        "steps": partial(measures.steps, n=100 if quick else 400, most=1.2),
        "backlog": partial(measures.backlog, n=many, least=0.6),
        "history": partial(history, n=many, least=0.6),
        "snapshot": partial(snapshot, n=250_000 if quick else 700_000, seconds=8 if quick else 20, least=0.5),
        "import": lambda _: measures.importing(),
    }
    with start_postgres() as server:
        todo["idle"] = partial(_idle, seconds=8 if quick else 30, server=server)
        for name, measure in todo.items():
            if not only or name in only:
                with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
                    ground = PostgresGround(server.url, Path(folder))
                    try:
                        for figure in await measure(ground):
                            yield figure
                    finally:
                        await ground.close()
