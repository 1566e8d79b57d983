"""`script/bench --listeners`: what it costs to be watched. No-op jobs with all listeners against none, and scrapes.

Each run is a process of its own; all ways take turns, and each is compared with the run beside it: the median counts.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench.figures import Figure, percentile
from bench.redis import RedisGround
from bench.sqlite import SqliteGround
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass import Windlass
from windlass.observability.figures import Figures
from windlass.observability.prometheus import Source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bench.measures import Ground
    from tests.support.servers import Server

SOURCE = Path(__file__).parents[1] / "src"
SCRAPERS = 50
_ROUNDS = 6
RUN = """
import asyncio, os, socket, sys, time
from windlass import StatsD, Windlass, core

url, n, asked = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
app = Windlass(url)
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))

@app.job()
async def noop(n: int) -> None: ...

def logs():
    from windlass.observability.forms import write_lines
    app.listen(write_lines(open(os.devnull, "w"), "json"))

def metrics():
    app.metrics()

def statsd():
    app.report_metrics(StatsD(*sink.getsockname()))

def tracing():
    from windlass.observability.tracing import instrument
    instrument(app)

def sampled():
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
    provider = TracerProvider(sampler=TraceIdRatioBased(0.01))
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    trace.set_tracer_provider(provider)
    tracing()

def errors():
    app.on_error(print)

def untold():
    # As if nothing were announced at all.
    core.events.Hub.silent = True
    for name in ("tell", "claimed", "started", "ended"):
        setattr(core.events.Hub, name, lambda *_: None)

def nothing(): ...

for name in asked:
    globals()[name or "nothing"]()

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
LISTENERS = ("logs", "metrics", "statsd", "tracing", "errors")
"""every listener that there is: a new one is given its function in RUN and its name here"""


async def measure_listeners(
    store: str, *, quick: bool = False, only: Sequence[str] = ()
) -> AsyncGenerator[Figure, None]:
    """Every figure of a store; `only` some of them: `throughput`, `scrape`, or names of listeners and `all`, `none`."""
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
        ways = _ways([one for one in only if one not in ("throughput", "scrape")])
        if store in ("sqlite", "redis") and (not only or {"throughput", *_ways(())} & {*only}):
            for figure in await _throughput(store, Path(folder), 10_000 if quick else 30_000, ways):
                yield figure
        if not only or "scrape" in only:
            for figure in await _scrapes(store, Path(folder), 50_000 if quick else 1_000_000):
                yield figure


def _ways(only: Sequence[str]) -> dict[str, str]:
    """What is run, by name: each is compared with `none`, and that with `untold`, in which nothing is announced."""
    all_ways = {
        "untold": "untold",
        "none": "",
        **{one: one for one in LISTENERS},
        "all": ",".join(LISTENERS),
        "all and an SDK": ",".join(LISTENERS).replace("tracing", "sampled"),
    }
    return {name: way for name, way in all_ways.items() if not only or name in only or name == "none"}


class _Ran(NamedTuple):
    rate: float
    used: float
    """seconds of processor time for a job"""


_LEAST = {"all": 0.9, "none": 0.99}


async def _throughput(store: str, folder: Path, n: int, ways: dict[str, str]) -> list[Figure]:
    found: dict[str, list[_Ran]] = {name: [] for name in ways}
    if store == "redis":
        with start_redis() as server:
            await _rounds(RedisGround(server.url, folder), n, ways, found)
    else:
        await _rounds(SqliteGround(folder), n, ways, found)
    pairs = [(name, "none") for name in ways if name not in ("none", "untold")]
    pairs += [("none", "untold")] if "untold" in ways else []
    return [_compared(name, other, found) for name, other in pairs]


def _compared(name: str, other: str, found: dict[str, list[_Ran]]) -> Figure:
    shares = [one.rate / beside.rate for one, beside in zip(found[name], found[other], strict=True)]
    told = {one: median(ran.rate for ran in found[one]) for one in (name, other)}
    told |= {f"µs of {one}": median(ran.used for ran in found[one]) * 1e6 for one in (name, other)}
    return Figure(name=f"{name} / {other}", value=median(shares), unit="", least=_LEAST.get(name), told=told)


async def _rounds(ground: Ground, n: int, ways: dict[str, str], found: dict[str, list[_Ran]]) -> None:
    for number in range(_ROUNDS):
        # The order is reversed each time, so that none always runs on a warm machine.
        for name in list(ways) if number % 2 else reversed(ways):
            found[name].append(await _run(ground.url(f"{name.replace(' ', '')}{number}"), n, ways[name]))


async def _run(url: str, n: int, listeners: str) -> _Ran:
    """How one process did."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, url, str(n), listeners),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "WINDLASS_FILE": os.devnull},
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
    starts: dict[str, Callable[[], Server]] = {"redis": start_redis, "mongo": start_mongo, "postgres": start_postgres}
    with starts[store]() as server:
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
