"""`script/bench --listeners`: what it costs to be watched. No-op jobs with all listeners against none, and scrapes.

Each run is a process of its own; runs with and without take turns, and the best of each counts, as whatever else the
machine does only makes them slower. With `--before DIR` the sources in DIR run, too, as they are: what listeners cost
that are there and not asked for.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.figures import Figure, percentile
from bench.redis import RedisGround
from bench.sqlite import SqliteGround
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass import Windlass
from windlass.observability.figures import Figures
from windlass.observability.prometheus import Source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bench.measures import Ground

SOURCE = Path(__file__).parents[1] / "src"
SCRAPERS = 50
_ROUNDS = 5
RUN = """
import asyncio, os, sys, time
from windlass import Windlass

url, n, asked = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
app = Windlass(url)

@app.job()
async def noop(n: int) -> None: ...

def logs():
    from windlass.observability.forms import write_lines
    app.listen(write_lines(open(os.devnull, "w"), "json"))

def metrics():
    app.metrics()

def statsd():
    import socket
    from windlass.observability.statsd import StatsD
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))
    app.report(StatsD(*sink.getsockname()))

def tracing():
    from windlass.observability.tracing import instrument
    instrument(app)

def nothing(): ...

for name in asked:
    {"logs": logs, "metrics": metrics, "statsd": statsd, "tracing": tracing, "": nothing}[name]()

async def main():
    async with app:
        await app.enqueue_many(noop.bind(i) for i in range(n))
        began, used = time.perf_counter(), time.process_time()
        worker = app.worker(concurrency=500, drain=True)
        await worker.run()
        took, used = time.perf_counter() - began, time.process_time() - used
        assert worker.done == n, worker.done
        print(n / took, used / n)

asyncio.run(main())
"""
LISTENERS = ("logs", "metrics", "tracing")
"""every listener that there is: a new one is given its function in RUN and its name here"""


async def measure_listeners(
    store: str, *, before: Path | None = None, quick: bool = False, only: Sequence[str] = ()
) -> AsyncGenerator[Figure, None]:
    """Every figure of a store; `only` some of them: `throughput`, `scrape`."""
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
        if store in ("sqlite", "redis") and (not only or "throughput" in only):
            for figure in await _throughput(store, Path(folder), 10_000 if quick else 20_000, before):
                yield figure
        if not only or "scrape" in only:
            for figure in await _scrapes(store, Path(folder), 50_000 if quick else 1_000_000):
                yield figure


async def _throughput(store: str, folder: Path, n: int, before: Path | None) -> list[Figure]:
    runs = {"none": (SOURCE, "")} | {one: (SOURCE, one) for one in LISTENERS} | {"all": (SOURCE, ",".join(LISTENERS))}
    if before is not None:
        runs["before"] = (before, "")
    found: dict[str, list[_Ran]] = {name: [] for name in runs}
    if store == "redis":
        with start_redis() as server:
            await _rounds(RedisGround(server.url, folder), n, runs, found)
    else:
        await _rounds(SqliteGround(folder), n, runs, found)
    figures = [_compared(name, "none", found, least=0.9 if name == "all" else None) for name in (*LISTENERS, "all")]
    return figures if before is None else [*figures, _compared("none", "before", found, least=0.99)]


class _Ran(NamedTuple):
    rate: float
    used: float
    """seconds of processor time for a job"""


def _compared(name: str, other: str, found: dict[str, list[_Ran]], *, least: float | None) -> Figure:
    rates = {one: max(ran.rate for ran in found[one]) for one in (name, other)}
    used = {f"µs of {one}": min(ran.used for ran in found[one]) * 1e6 for one in (name, other)}
    told = {**rates, **used}
    return Figure(name=f"{name} / {other}", value=rates[name] / rates[other], unit="", least=least, told=told)


async def _rounds(ground: Ground, n: int, runs: dict[str, tuple[Path, str]], found: dict[str, list[_Ran]]) -> None:
    for number in range(_ROUNDS):
        # The order is turned round each time, so that nobody always runs on a machine that is warm already.
        for name in list(runs) if number % 2 else reversed(runs):
            source, listeners = runs[name]
            found[name].append(await _run(source, ground.url(f"{name}{number}"), n, listeners))


async def _run(source: Path, url: str, n: int, listeners: str) -> _Ran:
    """How one process did."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, url, str(n), listeners),
        env={**os.environ, "PYTHONPATH": str(source), "WINDLASS_FILE": os.devnull},
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await child.communicate()
    if child.returncode:
        raise RuntimeError(f"a run with {listeners or 'no listeners'} failed with {child.returncode}")
    rate, used = map(float, told.split())
    return _Ran(rate, used)


async def _scrapes(store: str, folder: Path, n: int) -> list[Figure]:
    if store == "sqlite":
        return await _scraped(SqliteGround(folder).url("scrape"), n)
    start = {"redis": start_redis, "mongo": start_mongo, "postgres": start_postgres}[store]
    with start() as server:
        return await _scraped(server.url, n)


async def _scraped(url: str, n: int) -> list[Figure]:
    """Scrapes that ask the store anew each time, and one each of many at once that are answered by one question."""
    app = Windlass(url)

    @app.job(queue="mail")
    async def noop(n: int) -> None: ...

    async with app:
        await app.enqueue_many(noop.bind(i) for i in range(n))
        metrics = app.metrics()
        await metrics.page()
        metrics.source = Source(metrics.source.read, Figures(app.client, every=0))
        await metrics.page()
        asking: list[float] = []
        for _ in range(20):
            await asyncio.sleep(0.2)  # as scrapes are: seldom
            began = time.perf_counter()
            await metrics.page()
            asking.append(time.perf_counter() - began)
        metrics.source = Source(metrics.source.read, Figures(app.client))
        await metrics.page()
        began = time.perf_counter()
        await asyncio.gather(*(metrics.page() for _ in range(SCRAPERS)))
        each = (time.perf_counter() - began) / SCRAPERS
        await metrics.source.figures.close()
    told = {"longest": max(asking) * 1000, f"each of {SCRAPERS} at once": each * 1000}
    return [
        Figure(name=f"scrape beside {n:,}", value=percentile(asking, 0.5) * 1000, unit="ms", most=50, told=told),
    ]
