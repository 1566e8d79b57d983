"""What is measured on SQLite, each against its floor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure, median, percentile
from bench.raw_sqlite import RawSqlite
from windlass import Windlass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from windlass import Bound, JobFunction

BATCH = 1000
CONCURRENCY = 500
RAW_BATCHES = (100, 250, 500)
"""sizes of the raw loop's batches; the first is the one compared with, the others are told beside it"""
SYNCHRONOUS = "FULL"


async def measure_sqlite(*, quick: bool, only: Sequence[str]) -> list[Figure]:
    """Every measurement in order, or only those named."""
    jobs = 10_000 if quick else 60_000
    measures: dict[str, Callable[[Path], Awaitable[list[Figure]]]] = {
        "bulk": partial(bulk, n=jobs),
        "single": partial(single, n=2_000 if quick else 20_000),
        "run": partial(run, n=jobs),
        "pickup": partial(pickup, n=100 if quick else 400),
        "idle": partial(idle, seconds=5 if quick else 15),
        "backlog": partial(backlog, n=100_000 if quick else 1_000_000),
        "import": importing,
    }
    made: list[Figure] = []
    for name, measure in measures.items():
        if not only or name in only:
            with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
                made.extend(await measure(Path(folder)))
    return made


def new_app(folder: Path, name: str) -> Windlass:
    """An application on a file of its own, as durable as the default."""
    return Windlass(f"sqlite:///{folder / name}.db?synchronous={SYNCHRONOUS}")


async def bulk(folder: Path, n: int) -> list[Figure]:
    """Bulk enqueue against raw inserts of the same batches; three rounds, alternating."""
    app = new_app(folder, "bulk")

    @app.job()
    async def noop(n: int) -> None: ...

    raws: list[float] = []
    ours: list[float] = []
    async with app:
        for number in range(3):
            raw = RawSqlite(str(folder / f"raw{number}.db"), SYNCHRONOUS)
            raws.append(raw.insert(n, BATCH))
            raw.close()
            begun = time.perf_counter()
            await app.enqueue_many(noop.bind(i) for i in range(n))
            ours.append(n / (time.perf_counter() - begun))
    ratio = median([mine / his for mine, his in zip(ours, raws, strict=True)])
    told = {"windlass": median(ours), "raw": median(raws)}
    return [Figure(name="bulk enqueue / raw", value=ratio, unit="", least=0.5, told=told)]


async def single(folder: Path, n: int) -> list[Figure]:
    """Single awaited enqueues: one producer against two hundred at once."""
    app = new_app(folder, "single")

    @app.job()
    async def noop(n: int) -> None: ...

    async def produce(count: int) -> None:
        for i in range(count):
            await noop.enqueue(i)

    async with app:
        begun = time.perf_counter()
        await produce(n // 20)
        one = n // 20 / (time.perf_counter() - begun)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as producers:
            for _ in range(200):
                producers.create_task(produce(n // 200))
        many = n / (time.perf_counter() - begun)
    return [
        Figure(name="200 producers / one", value=many / one, unit="", least=8, told={"one": one, "two hundred": many})
    ]


async def run(folder: Path, n: int) -> list[Figure]:
    """No-op jobs end to end in one worker process, durable, against the raw loop; three rounds, alternating."""
    raws: dict[int, list[float]] = {batch: [] for batch in RAW_BATCHES}
    ours: list[float] = []
    for number in range(3):
        for batch in RAW_BATCHES:
            raw = RawSqlite(str(folder / f"raw{number}-{batch}.db"), SYNCHRONOUS)
            raw.insert(n, BATCH)
            raws[batch].append(raw.run(batch))
            raw.close()
        ours.append(await work_through(new_app(folder, f"run{number}"), n, CONCURRENCY))
    twenty = await work_through(new_app(folder, "twenty"), n // 4, 20)
    ratio = median([mine / his for mine, his in zip(ours, raws[RAW_BATCHES[0]], strict=True)])
    told = {f"raw at {batch}": median(rates) for batch, rates in raws.items()}
    return [
        Figure(name="run no-op jobs", value=median(ours), unit="jobs/s", least=15_000, told={"at 20 slots": twenty}),
        Figure(name=f"run / raw loop of {RAW_BATCHES[0]}", value=ratio, unit="", least=0.25, told=told),
    ]


async def work_through(app: Windlass, n: int, concurrency: int) -> float:
    """Enqueue n no-op jobs, run them all, count them in the store; jobs per second of running."""

    @app.job()
    async def noop(n: int) -> None: ...

    async with app:
        await app.enqueue_many(noop.bind(i) for i in range(n))
        begun = time.perf_counter()
        worker = app.worker(concurrency=concurrency, drain=True)
        await worker.run()
        seconds = time.perf_counter() - begun
        # Counted in the store, not in the worker: a job that was not durably finished does not count.
        stats = await app.store.views.stats(since=_hour())
        done = sum(minute.n for minute in stats.minutes if minute.status == "succeeded")
        if done < n:
            raise RuntimeError(f"only {done} of {n} jobs succeeded")
        return n / seconds


def _hour() -> timedelta:
    return timedelta(hours=1)


PRODUCER = """
import asyncio, json, sys, time
from windlass import Windlass
async def main():
    app = Windlass(sys.argv[1])
    async with app:
        for i in range(int(sys.argv[2])):
            await app.enqueue("picked", {"sent": time.time()})
            await asyncio.sleep(0.013)
asyncio.run(main())
"""


async def pickup(folder: Path, n: int) -> list[Figure]:
    """From the call of enqueue in another process to the first line of the handler here."""
    app = new_app(folder, "pickup")
    took: list[float] = []
    enough = asyncio.Event()

    @app.job(name="picked")
    async def picked(sent: float) -> None:
        took.append((time.time() - sent) * 1000)
        if len(took) >= n:
            enough.set()

    async with app.worker():
        producer = await asyncio.create_subprocess_exec(sys.executable, "-c", PRODUCER, app.url, str(n))
        async with asyncio.timeout(120):
            await enough.wait()
        await producer.wait()
    told = {"p99": percentile(took, 0.99), "n": float(n)}
    return [Figure(name="pickup p50", value=percentile(took, 0.5), unit="ms", most=10, told=told)]


IDLE_APP = textwrap.dedent("""
    from windlass import Windlass
    app = Windlass()
    @app.job()
    async def noop(n: int) -> None: ...
""")


async def idle(folder: Path, seconds: int) -> list[Figure]:
    """Processor and memory of a `windlass worker` that has nothing to do."""
    (folder / "idle_app.py").write_text(IDLE_APP, encoding="utf-8")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", "worker", "idle_app:app", "--quiet"),
        cwd=folder,
        env={**os.environ, "WINDLASS_URL": f"sqlite:///{folder / 'idle.db'}"},
        stdout=subprocess.DEVNULL,
    )
    try:
        await asyncio.sleep(3)  # past its start-up
        before = _cpu_seconds(worker.pid)
        await asyncio.sleep(seconds)
        used = _cpu_seconds(worker.pid) - before
        memory = _memory_mb(worker.pid)
    finally:
        worker.terminate()
        await worker.wait()
    return [
        Figure(name="idle CPU", value=used / seconds * 100, unit="%", most=2),
        Figure(name="idle memory", value=memory, unit="MB", most=45),
    ]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


async def backlog(folder: Path, n: int) -> list[Figure]:
    """The rate of the first ten thousand jobs off a backlog of n, against a backlog of ten thousand."""
    rates: dict[int, list[float]] = {}
    for _ in range(2):
        for size in (10_000, n):
            app = new_app(folder, f"backlog{size}-{len(rates.get(size, []))}")
            rates.setdefault(size, []).append(await _first(app, size, 10_000))
    small, large = max(rates[10_000]), max(rates[n])
    return [
        Figure(
            name=f"backlog of {n:,} / 10,000",
            value=large / small,
            unit="",
            least=0.6,
            told={"10,000": small, f"{n:,}": large},
        )
    ]


async def _first(app: Windlass, backlog_size: int, n: int) -> float:
    @app.job()
    async def noop(n: int) -> None: ...

    async with app:
        await app.enqueue_many(_many(noop, backlog_size))
        begun = time.perf_counter()
        worker = app.worker(concurrency=CONCURRENCY, max_jobs=n)
        await worker.run()
        return worker.done / (time.perf_counter() - begun)


def _many(noop: JobFunction[[int], None], n: int) -> Iterator[Bound[None]]:
    return (noop.bind(i) for i in range(n))


async def importing(_: Path) -> list[Figure]:
    """Seconds that `import windlass` takes over an empty interpreter; the middle of seven."""

    def seconds(code: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)  # our own interpreter
        return time.perf_counter() - begun

    took = [seconds("import windlass") - seconds("pass") for _ in range(7)]
    return [Figure(name="import windlass", value=median(took), unit="s", most=0.35)]
