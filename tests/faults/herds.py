"""M20: many jobs fail at one moment, and many workers lose their store at one moment: neither may come back so.

What is measured is how the second attempts, or the attempts to reach the store again, lie in time: the fullest of equal
parts of their window against the mean of all parts. 1 is an even flow; everything at one moment is the number of parts.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from functools import partial
from statistics import median

import psutil

from tests.faults.own_server import own_server
from tests.support.processes import HOST
from windlass import Ctx, Retry, StoreError, Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import Report
from windlass.chaos.waiting import until
from windlass.core.retry import JITTER

RETRIES, RECONNECTS = 5, 16
"""in how many parts the window of each is cut: those of the second must be shorter than the longest wait"""
MOST = 2.0
GROWN, WATCHED = 3.0, 4.0
"""seconds without the store after which waits are as long as they get, and for how long they are watched then"""
WINDOWS = 3
"""how often: the middle one counts, because a moment in which the machine keeps this process waiting is like a herd"""
CAUGHT = 1.5
"""seconds that a server stands still before it goes, in which every worker asks it something and waits"""


def uneven(at: Sequence[float], begin: float, end: float, parts: int) -> float:
    """The fullest part of a window against the mean of its parts; what lies outside is in the nearest."""
    part = (end - begin) / parts
    counted = Counter(min(parts - 1, max(0, int((one - begin) / part))) for one in at)
    return max(counted.values()) * parts / len(at)


def judged(what: str, found: float, n: int) -> Finding:
    """Whether they came back evenly enough."""
    missing = (f"peak/mean of {what} is {found:.2f}, at most {MOST} is promised",) if found > MOST else ()
    return Finding(fault="herds", report=Report(acknowledged=n), missing=missing, figures=f"peak/mean {found:.2f}")


async def failing(place: Place, seed: int, *, long: bool) -> Finding:
    """Jobs that fail together, and the flow of their second attempts over the window that the policy leaves open.

    At length they are counted when they start. The parts of a short trial's window last less than a busy machine may
    keep a worker waiting, after which it starts all that is due: there they are counted when they may start.
    """
    random.seed(seed)  # the worker's own chance, which is Python's
    n, wait = (10_000, 60.0) if long else (1_000, 8.0)
    app = Windlass(place.url, namespace=place.namespace)
    together = asyncio.Event()
    started: list[str] = []
    failed: list[float] = []
    begun: list[float] = []
    due: list[float] = []

    @app.job(retry=Retry.fixed(2, wait, jitter=place.control != "no_jitter"))
    async def stampede(ctx: Ctx) -> None:
        if ctx.attempt == 1:
            started.append(ctx.id)
            await together.wait()
            failed.append(time.time())
            raise ConnectionError("all at once")
        begun.append(time.time())
        due.append(ctx.job.run_at.timestamp())

    second = timedelta(seconds=1)
    async with app, app.worker(concurrency=n, poll=second / 10, lease=second * 60, grace=second):
        await app.enqueue_many([stampede.bind() for _ in range(n)])
        assert await until(lambda: len(started) >= n, 60), f"{len(started)} of {n} run at once"
        together.set()
        assert await until(lambda: len(begun) >= n, wait * 2 + 60), f"{len(begun)} of {n} were tried again"
    app.close()
    first = min(failed) + wait
    at = begun if long else due
    # The store takes a while to write so many failures down: their waits end so much later.
    return judged("retries", uneven(at, first, max(first + wait * JITTER, *at), RETRIES), n)


async def losing(place: Place, seed: int, *, long: bool) -> Finding:
    """Workers that lose their server together, and the flow of their connections while it is away.

    It stands still before it is killed, so that all of them lose it at one moment, in the midst of a call. Where it
    was, somebody listens who counts connections and closes each at once. Counting begins when the waits between two
    tries have grown to the longest. SQLite has nothing to lose, and MongoDB's driver looks for its server at fixed
    times by itself, whatever the workers do, so that only that would be measured.
    """
    random.seed(seed)  # as above
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
            if place.control:
                workers.enter_context(no_chance())
            for process in (server_process := psutil.Process(node.pid), *server_process.children(recursive=True)):
                process.suspend()
            await asyncio.sleep(CAUGHT)  # until every worker waits for an answer
            await asyncio.to_thread(server.kill)
            gone = time.monotonic()
            async with await asyncio.start_server(count, HOST, node.port):
                await asyncio.sleep(GROWN + WATCHED * WINDOWS)  # what is measured takes time
            await asyncio.to_thread(server.restart)
            for app in apps:
                assert await until(partial(_answers, app), 20), "a worker's store did not come back"
    begins = [gone + GROWN + WATCHED * number for number in range(WINDOWS)]
    found = median(_flow(tried, begin, 2 * len(apps)) for begin in begins)
    return judged("reconnects", found, len(apps))


def _flow(tried: Sequence[float], begin: float, least: int) -> float:
    at = [one for one in tried if begin <= one < begin + WATCHED]
    assert len(at) >= least, f"{len(at)} connections: too few to tell"
    return uneven(at, begin, begin + WATCHED, RECONNECTS)


@contextmanager
def no_chance() -> Generator[None, None, None]:
    """The control: whoever waits, waits as long as all others."""

    def longest(a: float, b: float) -> float:
        return max(a, b)

    chance, random.uniform = random.uniform, longest  # a mistake on purpose, in this process alone
    try:
        yield
    finally:
        random.uniform = chance


async def _idle() -> None: ...


async def _answers(app: Windlass) -> bool:
    try:
        await app.store.now()
    except StoreError:
        return False
    return True
