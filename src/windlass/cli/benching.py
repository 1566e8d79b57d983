"""`bench`: what your own store can do, measured in a namespace of its own that is removed afterwards."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass import settings
from windlass.app import Windlass
from windlass.cli.desk import globals_of, run_async
from windlass.core.events import JobEnded

if TYPE_CHECKING:
    from windlass.cli.output import Screen

PREFIX = "windlass_bench_"
"""of the namespace that a run works in"""
_PRODUCERS = 200
_PICKUPS = 200
_SLOTS = 200


def bench(
    ctx: typer.Context,
    jobs: Annotated[int, typer.Option(help="How many jobs to enqueue and run.", min=100, max=1_000_000)] = 10_000,
) -> None:
    """Measure enqueueing, running and pick-up on your own store.

    Works in a namespace of its own, which is removed afterwards: no other data is touched. Uses --store,
    WINDLASS_STORE or windlass.toml; without any of them an SQLite file in a temporary directory.

    Example: windlass bench --store sqlite:///jobs.db --jobs 20000
    """
    given = globals_of(ctx)
    outside = settings.load().url
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as directory:
        own = f"sqlite:///{Path(directory) / 'bench.db'}"
        url = given.store or (own if outside == settings.DEFAULT_URL else outside)
        app = Windlass(url, namespace=f"{PREFIX}{secrets.token_hex(3)}")
        figures = run_async(_Bench(app, jobs, given.screen).run())
    if given.screen.as_json:
        given.screen.fact({"store": app.address, "jobs": jobs, **figures})
        return
    given.screen.line(f"{app.address}  {app.capabilities.durability}")
    rows = [
        (_LABELS[name], f"{value:,.1f} ms" if name.endswith("_ms") else f"{value:,.0f} /s")
        for name, value in figures.items()
    ]
    given.screen.table(("measured", "figure"), rows)


_LABELS = {
    "bulk_enqueue_per_s": "enqueue_many, in steps of 1,000",
    "single_enqueue_per_s": f"single awaited enqueues from {_PRODUCERS} producers",
    "run_per_s": "no-op jobs from queued to succeeded, one worker",
    "pickup_p50_ms": "from enqueue to the handler's start, median",
    "pickup_p99_ms": "from enqueue to the handler's start, 99th percentile",
}


class _Bench:
    """One measuring run."""

    def __init__(self, app: Windlass, jobs: int, screen: Screen) -> None:
        self._app, self._jobs, self._screen = app, jobs, screen
        self._ended = 0
        self._started: asyncio.Queue[float] = asyncio.Queue()

        @app.job(name="windlass.bench.noop")
        async def noop() -> None: ...

        @app.job(name="windlass.bench.pickup")
        async def pickup() -> None:
            self._started.put_nowait(time.perf_counter())

        self._noop, self._pickup = noop, pickup

    async def run(self) -> dict[str, float]:
        async with self._app:
            try:
                return await self._measure()
            finally:
                await asyncio.shield(self._app.store.schema.remove())

    async def _measure(self) -> dict[str, float]:
        with self._screen.bar("bench") as bar:
            bar(0, 4, "bulk enqueue")
            bulk = await self._bulk()
            bar(1, 4, "single enqueues")
            single = await self._singles()
            bar(2, 4, "run")
            run = await self._run()
            bar(3, 4, "pick-up")
            waits = sorted(await self._pickups())
        return {
            "bulk_enqueue_per_s": round(bulk, 1),
            "single_enqueue_per_s": round(single, 1),
            "run_per_s": round(run, 1),
            "pickup_p50_ms": round(waits[len(waits) // 2] * 1000, 2),
            "pickup_p99_ms": round(waits[int(len(waits) * 0.99)] * 1000, 2),
        }

    async def _bulk(self) -> float:
        began = time.perf_counter()
        await self._app.enqueue_many(self._noop.bind() for _ in range(self._jobs))
        return self._jobs / (time.perf_counter() - began)

    async def _singles(self) -> float:
        each = max(1, self._jobs // 4 // _PRODUCERS)

        async def produce() -> None:
            for _ in range(each):
                await self._noop.enqueue()

        began = time.perf_counter()
        async with asyncio.TaskGroup() as producers:
            for _ in range(_PRODUCERS):
                producers.create_task(produce())
        return each * _PRODUCERS / (time.perf_counter() - began)

    async def _run(self) -> float:
        expected = self._jobs + max(1, self._jobs // 4 // _PRODUCERS) * _PRODUCERS
        all_done = asyncio.Event()

        def count(event: Any) -> None:
            if isinstance(event, JobEnded):
                self._ended += 1
                if self._ended == expected:
                    all_done.set()

        stop = self._app.listen(count)
        began = time.perf_counter()
        try:
            async with self._app.worker(concurrency=_SLOTS):
                await all_done.wait()
        finally:
            stop()
        return expected / (time.perf_counter() - began)

    async def _pickups(self) -> list[float]:
        waits: list[float] = []
        async with self._app.worker(concurrency=4, grace=timedelta(seconds=2)):
            for _ in range(_PICKUPS):
                began = time.perf_counter()
                await self._pickup.enqueue()
                waits.append(await self._started.get() - began)
        return waits
