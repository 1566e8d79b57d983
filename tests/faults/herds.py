"""M20: many jobs fail at one moment, and many workers lose their store at one moment: neither may come back so.

What is measured is how the second attempts, or the attempts to reach the store again, lie in time: the fullest of equal
parts of their window against the mean of all parts. 1 is an even flow; everything at one moment is the number of parts.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial

from tests.faults.judging import kind_of
from tests.faults.own_server import own_server
from tests.support.processes import HOST
from windlass import Ctx, Retry, StoreError, Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import Report
from windlass.chaos.waiting import until
from windlass.core.retry import JITTER

PARTS = 5
MOST = 2.0
GROWN, WATCHED = 3.0, 4.0
"""seconds without the store after which waits are as long as they get, and for how long they are watched then"""


def uneven(at: Sequence[float], begin: float, end: float) -> float:
    """The fullest part of a window against the mean of its parts; what lies outside is in the nearest."""
    part = (end - begin) / PARTS
    counted = Counter(min(PARTS - 1, max(0, int((one - begin) / part))) for one in at)
    return max(counted.values()) * PARTS / len(at)


async def herds(place: Place, seed: int, *, long: bool) -> Finding:
    """Both, one after the other."""
    random.seed(seed)  # the workers' own chance, which is Python's
    failing, starts = await _failing(place, long=long)
    lost = await _losing(place, long=long)
    figures = f"peak/mean of retries {failing:.2f}" + (f", of reconnects {lost:.2f}" if lost else "")
    missing = [f"peak/mean of retries is {failing:.2f}, at most {MOST} is promised"] if failing > MOST else []
    missing += [f"peak/mean of reconnects is {lost:.2f}, at most {MOST} is promised"] if lost > MOST else []
    return Finding(fault="herds", report=Report(acknowledged=starts), missing=tuple(missing), figures=figures)


async def _failing(place: Place, *, long: bool) -> tuple[float, int]:
    """Jobs that fail together, and the flow of their second attempts over the window that the policy leaves open."""
    n, wait = (10_000, 60.0) if long else (2_000, 8.0)
    app = Windlass(place.url, namespace=place.namespace)
    together = asyncio.Event()
    started: list[str] = []
    failed: list[float] = []
    begun: list[float] = []

    @app.job(retry=Retry.fixed(2, wait, jitter=place.control != "no_jitter"))
    async def stampede(ctx: Ctx) -> None:
        if ctx.attempt == 1:
            started.append(ctx.id)
            await together.wait()
            failed.append(time.monotonic())
            raise ConnectionError("all at once")
        begun.append(time.monotonic())

    second = timedelta(seconds=1)
    async with app, app.worker(concurrency=n, poll=second / 10, lease=second * 60, grace=second):
        await app.enqueue_many([stampede.bind() for _ in range(n)])
        assert await until(lambda: len(started) >= n, 60), f"{len(started)} of {n} run at once"
        together.set()
        assert await until(lambda: len(begun) >= n, wait * 2 + 60), f"{len(begun)} of {n} were tried again"
    app.close()
    first = min(failed) + wait
    # The store takes a while to write so many failures down: their waits end so much later.
    return uneven(begun, first, max(first + wait * JITTER, *begun)), n


async def _losing(place: Place, *, long: bool) -> float:
    """Workers that lose their server together, and the flow of their connections while it is away.

    Where it was, somebody listens who counts connections and closes each at once. Counting begins when the waits
    between two tries have grown to the longest. SQLite has nothing to lose, and MongoDB's driver looks for its server
    at fixed times by itself, whatever the workers do, so that only that would be measured.
    """
    if kind_of(place) not in ("postgres", "redis"):
        return 0.0
    tried: list[float] = []

    async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried.append(time.monotonic())
        writer.close()

    with own_server(place) as (server, own):
        apps = [Windlass(own.url) for _ in range(50 if long else 20)]
        [node] = server.nodes
        async with AsyncExitStack() as workers:
            for app in apps:
                app.job(_idle)
                await workers.enter_async_context(app)
                workers.callback(app.close)
                await workers.enter_async_context(app.worker(poll=timedelta(seconds=1), grace=timedelta(seconds=1)))
            await asyncio.to_thread(server.kill)
            gone = time.monotonic()
            async with await asyncio.start_server(count, HOST, node.port):
                await asyncio.sleep(GROWN + WATCHED)
            await asyncio.to_thread(server.restart)
            for app in apps:
                assert await until(partial(_answers, app), 20), "a worker's store did not come back"
    at = [one - gone for one in tried if one - gone >= GROWN]
    assert len(at) >= 2 * len(apps), f"{len(at)} connections: too few to tell"
    return uneven(at, GROWN, GROWN + WATCHED)


async def _idle() -> None: ...


async def _answers(app: Windlass) -> bool:
    try:
        await app.store.now()
    except StoreError:
        return False
    return True
