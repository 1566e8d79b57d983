"""What is measured on every store alike; a store says where, against which raw loop and with which floors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bench.figures import Figure, median, percentile
from tests.support.counting import Calls
from windlass import Ctx, Limit, Progress, Windlass
from windlass.chaos.waiting import until
from windlass.stores.contract import Lease, Report, Want

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from windlass import Bound, JobFunction
    from windlass.stores.contract import Store

BATCH = 1000
CONCURRENCY = 500
CLAIM = 20
"""what a worker with the default number of slots claims at once"""
FLEET = 20
_STEPS = 20
_TOGETHER = 50
"""jobs that make a step at the same moment"""
_BESIDE = Want(worker_id="beside", n=1, lease=timedelta(minutes=5), types=frozenset({"beside"}))
_MEETING = 5.0  # seconds: two heartbeats and more
_SELDOM = 0.1  # seconds between two jobs of a fleet that has nothing else to do


class Ground(Protocol):
    """Where one store is measured: empty places for windlass, and the raw loop beside them."""

    folder: Path

    def url(self, name: str) -> str:
        """A place of its own for windlass, as durable as the default."""
        ...

    async def raw_insert(self, name: str, n: int, batch: int) -> float:
        """Insert n jobs with the driver alone, in batches; jobs per second."""
        ...

    async def raw_run(self, name: str, n: int, batch: int) -> float:
        """Insert n jobs, then claim and complete them all with the driver alone; jobs per second of the latter."""
        ...


async def bulk(ground: Ground, *, n: int, least: float) -> list[Figure]:
    """Bulk enqueue against raw inserts of the same batches; three rounds, alternating."""
    app = Windlass(ground.url("bulk"))

    @app.job()
    async def noop(n: int) -> None: ...

    raws: list[float] = []
    ours: list[float] = []
    async with app:
        for number in range(3):
            raws.append(await ground.raw_insert(f"raw{number}", n, BATCH))
            begun = time.perf_counter()
            await app.enqueue_many(noop.bind(i) for i in range(n))
            ours.append(n / (time.perf_counter() - begun))
    ratio = median([mine / his for mine, his in zip(ours, raws, strict=True)])
    told = {"windlass": median(ours), "raw": median(raws)}
    return [Figure(name="bulk enqueue / raw", value=ratio, unit="", least=least, told=told)]


async def single(ground: Ground, *, n: int, least: float) -> list[Figure]:
    """Single awaited enqueues: one producer against two hundred at once."""
    app = Windlass(ground.url("single"))

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
    told = {"one": one, "two hundred": many}
    return [Figure(name="200 producers / one", value=many / one, unit="", least=least, told=told)]


async def run(ground: Ground, *, n: int, raw_batches: Sequence[int], least: float, least_ratio: float) -> list[Figure]:
    """No-op jobs end to end in one worker process, durable, against the raw loop; three rounds, alternating.

    The first of `raw_batches` is the size compared with; the others are told beside it.
    """
    raws: dict[int, list[float]] = {batch: [] for batch in raw_batches}
    ours: list[float] = []
    for number in range(3):
        for batch in raw_batches:
            raws[batch].append(await ground.raw_run(f"raw{number}-{batch}", n, batch))
        ours.append(await work_through(Windlass(ground.url(f"run{number}")), n, CONCURRENCY))
    twenty = await work_through(Windlass(ground.url("twenty")), n // 4, 20)
    ratio = median([mine / his for mine, his in zip(ours, raws[raw_batches[0]], strict=True)])
    told = {f"raw at {batch}": median(rates) for batch, rates in raws.items()}
    return [
        Figure(name="run no-op jobs", value=median(ours), unit="jobs/s", least=least, told={"at 20 slots": twenty}),
        Figure(name=f"run / raw loop of {raw_batches[0]}", value=ratio, unit="", least=least_ratio, told=told),
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
        stats = await app.store.views.stats(since=timedelta(hours=1))
        done = sum(minute.n for minute in stats.minutes if minute.status == "succeeded")
        if done < n:
            raise RuntimeError(f"only {done} of {n} jobs succeeded")
        return n / seconds


PRODUCER = """
import asyncio, sys, time
from windlass import Windlass
async def main(url, n, pause):
    app = Windlass(url)
    async with app:
        for i in range(n):
            await app.enqueue("picked", {"sent": time.time()})
            await asyncio.sleep(pause)
asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
"""

PICKING_APP = textwrap.dedent("""
    import os, time
    from windlass import Windlass
    app = Windlass()
    file = os.open("picked.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    @app.job(name="picked")
    async def picked(sent: float) -> None:
        os.write(file, b"%.3f\\n" % ((time.time() - sent) * 1000))
""")


async def pickup(ground: Ground, *, n: int, most: float, most_p99: float | None = None) -> list[Figure]:
    """From the call of enqueue in one process to the first line of the handler in another."""
    took = await _picked_up(ground, "pickup", n, workers=1, pause=0.013)
    return [
        Figure(name="pickup p50", value=percentile(took, 0.5), unit="ms", most=most, told={"n": float(n)}),
        Figure(name="pickup p99", value=percentile(took, 0.99), unit="ms", most=most_p99),
    ]


async def crowd(ground: Ground, *, n: int, most: float) -> list[Figure]:
    """The same with twenty idle workers, each a process, against one that is as idle; two rounds, alternating.

    Slowly, so that nobody is busy: with one job at a time it is asked what those cost who have nothing to do. Each of
    twenty has a twentieth of the jobs, and a process that did nothing for two seconds is slower to begin than one that
    ran something a moment ago: so the one alone is given as few. How fast it is with all of them is told beside it.
    """
    took: dict[str, list[float]] = {"busy": [], "idle": [], "many": []}
    for number in range(2):
        for name, (jobs, workers, pause) in {
            "busy": (n, 1, _SELDOM),
            "idle": (max(10, n // 5), 1, _SELDOM * FLEET),
            "many": (n, FLEET, _SELDOM),
        }.items():
            took[name].append(percentile(await _picked_up(ground, f"{name}{number}", jobs, workers, pause), 0.5))
    busy, one, many = (min(medians) for medians in took.values())
    told = {"at one": one, f"at {FLEET}": many, "at one with all jobs": busy}
    return [Figure(name=f"pickup at {FLEET} / at one", value=many / one, unit="", most=most, told=told)]


async def _picked_up(ground: Ground, name: str, n: int, workers: int, pause: float) -> list[float]:
    """The milliseconds that each of n jobs waited for one of so many processes."""
    folder, url = ground.folder / name, ground.url(name)
    folder.mkdir()
    (folder / "picking_app.py").write_text(PICKING_APP, encoding="utf-8")
    command = (sys.executable, "-m", "windlass", "worker", "picking_app:app", "--quiet", "--lease=6s", "--heartbeat=2s")
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            worker = await asyncio.create_subprocess_exec(
                *command, cwd=folder, env={**os.environ, "WINDLASS_URL": url}, stdout=subprocess.DEVNULL
            )
            stack.push_async_callback(worker.wait)
            stack.callback(worker.terminate)
        await _all_met(url, workers)
        producer = await asyncio.create_subprocess_exec(sys.executable, "-c", PRODUCER, url, str(n), str(pause))
        await producer.wait()
        if not await until(lambda: len(_lines(folder / "picked.txt")) >= n, 60):
            raise RuntimeError(f"{len(_lines(folder / 'picked.txt'))} of {n} jobs were picked up within a minute")
    return [float(line) for line in _lines(folder / "picked.txt")]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="ascii").splitlines()


async def _all_met(url: str, workers: int) -> None:
    """Wait until so many have told that they are there, and so long again that each has heard of the others."""
    async with Windlass(url) as app:

        async def all_there() -> bool:
            return len(await app.store.workers.list()) >= workers

        if not await until(all_there, 120):
            raise RuntimeError(f"not all of {workers} workers started within two minutes")
    await asyncio.sleep(_MEETING)


async def rivals(ground: Ground, *, n: int, least: float | None) -> list[Figure]:
    """Four who claim jobs of one limit key that has room for all; jobs per second of claiming."""
    app = Windlass(ground.url("rivals"))

    @app.job(limit=Limit("shared", 1_000_000))
    async def noop(n: int) -> None: ...

    async with app, AsyncExitStack() as stack:
        await app.enqueue_many(noop.bind(i) for i in range(n))
        stores = [app.store.sibling() for _ in range(4)]
        for store in stores:
            await store.open()
            stack.push_async_callback(store.close)
        begun = time.perf_counter()
        alone = await _claimed(stores[0], 1, n // 4) / (time.perf_counter() - begun)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as claimers:
            counts = [claimers.create_task(_claimed(store, at, n)) for at, store in enumerate(stores)]
        rate = sum(count.result() for count in counts) / (time.perf_counter() - begun)
    told = {"one alone": alone}
    return [Figure(name="four claimers of one limit", value=rate, unit="jobs/s", least=least, told=told)]


async def _claimed(store: Store, number: int, most: int) -> int:
    """How many jobs one claimer took before there were no more, or it had so many."""
    want = Want(worker_id=f"rival {number}", n=CLAIM, lease=timedelta(minutes=5), types=frozenset({"noop"}))
    taken = 0
    while taken < most:
        claimed = await store.jobs.claim(want)
        if not claimed and not claimed.more:
            break
        taken += len(claimed)
    return taken


async def steps(ground: Ground, *, n: int, most: float) -> list[Figure]:
    """A durable step of a running job against one awaited fenced write of a single job; and steps that share a write.

    Jobs of twenty steps one after the other. Steps and writes take turns of five in the same handler, so that whatever
    the machine does meets both. What is written beside them is the progress of a job that keeps nothing.
    """
    calls = Calls()
    took: dict[str, list[float]] = {"step": [], "write": []}
    together = asyncio.Barrier(_TOGETHER)
    app = Windlass(ground.url("steps"))
    others: list[Lease] = []

    @app.job()
    async def beside() -> None: ...

    @app.job()
    async def stepping(ctx: Ctx) -> None:
        for number in range(2 * _STEPS):
            reports = [Report(others[0], Progress(done=number))]
            begun = time.perf_counter()
            if number // 5 % 2:
                await ctx.step("made", _make, number, key=str(number))
                took["step"].append(time.perf_counter() - begun)
            else:
                await app.store.jobs.report(reports)
                took["write"].append(time.perf_counter() - begun)

    @app.job()
    async def meeting(ctx: Ctx) -> None:
        await together.wait()
        await ctx.step("made", _make, 1)

    async with app:
        await beside.enqueue()
        others += [Lease(job.id, job.lease_token) for job in await app.store.jobs.claim(_BESIDE)]
        await app.enqueue_many(stepping.bind() for _ in range(n // _STEPS))
        await app.worker(drain=True, concurrency=1).run()
        await app.enqueue_many(meeting.bind() for _ in range(_TOGETHER))
        app.store = app.client.store = calls.on(app.store)
        await app.worker(drain=True, concurrency=_TOGETHER).run()
    step, write = median(took["step"]), median(took["write"])
    told = {"step ms": step * 1000, "write ms": write * 1000}
    return [
        Figure(name="step / fenced write", value=step / write, unit="", most=most, told=told),
        Figure(name=f"writes of {_TOGETHER} steps at once", value=float(calls.by_name["jobs.keep"]), unit="", most=2),
    ]


async def _make(number: int) -> int:
    return number


IDLE_APP = textwrap.dedent("""
    from windlass import Windlass
    app = Windlass()
    @app.job()
    async def noop(n: int) -> None: ...
""")


async def idle(
    ground: Ground,
    *,
    seconds: int,
    most_cpu: float,
    most_memory: float,
    server_cpu: Callable[[], Awaitable[float]] | None = None,
    most_server: float | None = None,
) -> list[Figure]:
    """Processor and memory of a `windlass worker` that has nothing to do, and what it adds to its server's."""
    alone = await _used(server_cpu, seconds) if server_cpu else 0.0
    (ground.folder / "idle_app.py").write_text(IDLE_APP, encoding="utf-8")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", "worker", "idle_app:app", "--quiet"),
        cwd=ground.folder,
        env={**os.environ, "WINDLASS_URL": ground.url("idle")},
        stdout=subprocess.DEVNULL,
    )
    try:
        await asyncio.sleep(3)  # past its start-up
        before = _cpu_seconds(worker.pid)
        begun = time.perf_counter()
        served = await _used(server_cpu, seconds)
        used = (_cpu_seconds(worker.pid) - before) / (time.perf_counter() - begun)
        memory = _memory_mb(worker.pid)
    finally:
        worker.terminate()
        await worker.wait()
    figures = [
        Figure(name="idle CPU", value=used * 100, unit="%", most=most_cpu),
        Figure(name="idle memory", value=memory, unit="MB", most=most_memory),
    ]
    if server_cpu:
        told = {"alone": alone * 100, "with a worker": served * 100}
        more = Figure(name="idle server CPU", value=(served - alone) * 100, unit="%", most=most_server, told=told)
        figures.append(more)
    return figures


async def _used(cpu: Callable[[], Awaitable[float]] | None, seconds: int) -> float:
    """The share of one processor that `cpu` tells of over so many seconds."""
    if cpu is None:
        await asyncio.sleep(seconds)
        return 0.0
    before, begun = await cpu(), time.perf_counter()
    await asyncio.sleep(seconds)
    return (await cpu() - before) / (time.perf_counter() - begun)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


async def backlog(
    ground: Ground, *, n: int, least: float, quiet: Callable[[], Awaitable[None]] | None = None
) -> list[Figure]:
    """The rate of the first ten thousand jobs off a backlog of n, against a backlog of ten thousand.

    `quiet` waits until the server has done what so many inserts set it to do: a backlog is measured, not its making.
    """
    rates: dict[int, list[float]] = {}
    for _ in range(2):
        for size in (10_000, n):
            app = Windlass(ground.url(f"backlog{size}-{len(rates.get(size, []))}"))
            rates.setdefault(size, []).append(await first_off(app, size, 10_000, quiet))
    small, large = max(rates[10_000]), max(rates[n])
    return [
        Figure(
            name=f"backlog of {n:,} / 10,000",
            value=large / small,
            unit="",
            least=least,
            told={"10,000": small, f"{n:,}": large},
        )
    ]


async def first_off(
    app: Windlass, backlog_size: int, n: int, quiet: Callable[[], Awaitable[None]] | None = None
) -> float:
    """Enqueue so many no-op jobs and run the first n of them; jobs per second."""

    @app.job()
    async def noop(n: int) -> None: ...

    async with app:
        await app.enqueue_many(_many(noop, backlog_size))
        if quiet is not None:
            await quiet()
        begun = time.perf_counter()
        worker = app.worker(concurrency=CONCURRENCY, max_jobs=n)
        await worker.run()
        return worker.done / (time.perf_counter() - begun)


def _many(noop: JobFunction[[int], None], n: int) -> Iterator[Bound[None]]:
    return (noop.bind(i) for i in range(n))


async def importing() -> list[Figure]:
    """Seconds that `import windlass` takes over an empty interpreter; the middle of seven."""

    def seconds(code: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)  # our own interpreter
        return time.perf_counter() - begun

    took = [seconds("import windlass") - seconds("pass") for _ in range(7)]
    return [Figure(name="import windlass", value=median(took), unit="s", most=0.35)]
