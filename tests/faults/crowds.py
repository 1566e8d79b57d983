"""M23: two hundred people look at a store with a long past while its workers are busy.

There is no HTTP API yet, so what is measured are the views of the store that one would ask, in two processes as two
dashboards would. The reliability contract names five million jobs; `PAST_LONG` says how many there are here, so that a
row takes minutes. It also names goals, which are printed beside what was measured: on a machine where viewers, workers
and server share a few cores they may be missed. What fails the trial is what takes a system down.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from statistics import mean

from tests.faults.judging import found_by
from tests.faults.viewers import PAST, USERS
from windlass import Job, Reject, Retry, Windlass
from windlass.chaos.checker import Evidence
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import spread
from windlass.chaos.trial import SHARES, Trial
from windlass.core.status import Status

PAST_LONG, PAST_SHORT = 200_000, 20_000
VIEWERS, DASHBOARDS = 200, 2
WORKERS = 2
P95_GOAL, CLAIMS_GOAL = 0.150, 0.97
P95_MOST = 2.0
"""seconds; more is a dashboard that nobody can use"""
_BACKLOG = 300
"""jobs that always wait, so that what is counted is how many the workers manage"""


@dataclass
class Seen:
    """What the viewers were told, and how many jobs began each second, without them and with them."""

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list[str])
    alone: list[float] = field(default_factory=list[float])
    watched: list[float] = field(default_factory=list[float])

    def all(self) -> list[float]:
        return [one for some in self.took.values() for one in some]

    def missing(self) -> list[str]:
        """What is wrong with it beyond missing a goal."""
        worst = spread(self.all())["p95"]
        return [
            *(["nobody looked: nothing was proved"] if worst is None else []),
            *([f"p95 of a view is {worst:.2f} s, over {P95_MOST:g} s nobody can use it"] * ((worst or 0) > P95_MOST)),
            *([f"{len(self.errors)} views failed, as {self.errors[0]}"] if self.errors else []),
        ]

    def figures(self) -> str:
        """All of it in a phrase."""
        every = spread(self.all())
        views = ", ".join(f"{name} {_ms(spread(some)['p95'])}" for name, some in sorted(self.took.items()))
        ratio = mean(self.watched) / mean(self.alone)
        return (
            f"{len(self.all())} views, p50 {_ms(every['p50'])}, p95 {_ms(every['p95'])}"
            f" (goal {_ms(P95_GOAL)}; {views});"
            f" claims {mean(self.watched):.0f}/s beside viewers, {mean(self.alone):.0f}/s without: {ratio:.2f}"
            f" (goal {CLAIMS_GOAL})"
        )


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1000:.0f} ms"


class AfterALongPast(Trial):
    """A trial beside jobs that are none of its own."""

    async def _jobs(self) -> list[Job]:
        found: list[Job] = []
        for type_ in SHARES:
            found += [job async for job in self.desk.jobs.each(type=type_)]
        return found

    async def evidence(self) -> Evidence:
        """Only of its own jobs, with the counts of their queue."""
        counts = {status: await self.desk.jobs.count(queue="default", status=status) for status in Status}
        shown = {("default", status): count.n for status, count in counts.items() if count.exact}
        return replace(await super().evidence(), shown=shown)


async def crowds(place: Place, seed: int, *, long: bool) -> Finding:
    """A past, then a steady load alone and beside viewers in turn."""
    past = PAST_LONG if long else PAST_SHORT
    await live_through(place, past)
    seen = Seen()
    async with AfterALongPast(place, seed=seed) as trial:
        await trial.ready(WORKERS)
        async with _steady(trial):
            await _counted(trial, 2.0)
            for turn in range(3 if long else 2):
                seen.alone.append(await _counted(trial, 10.0 if long else 4.0))
                async with _watched(place, seed * 100 + turn, seen):
                    await _counted(trial, 1.0)
                    seen.watched.append(await _counted(trial, 10.0 if long else 4.0))
        await trial.finished(60)
        found = await found_by("crowds", trial, lambda _: seen.missing())
    return replace(found, figures=f"{past:,} finished; {seen.figures()}")


async def live_through(place: Place, n: int) -> None:
    """Make so many finished jobs by enqueueing and running them, a fiftieth of them failed."""
    app = Windlass(place.url, namespace=place.namespace)

    @app.job(name=PAST, queue=PAST, retry=Retry(1))
    async def past(number: int) -> None:
        if number % 50 == 0:
            raise Reject("as some do")

    async with app:
        for start in range(0, n, 10_000):
            some = range(start, min(n, start + 10_000))
            await app.enqueue_many(past.using(user=f"u{number % USERS}").bind(number) for number in some)
            await app.worker(queues=[PAST], concurrency=500, drain=True).run()
    app.close()


@asynccontextmanager
async def _steady(trial: Trial) -> AsyncGenerator[None, None]:
    """Keep a backlog: as many jobs are enqueued as are begun."""
    over = asyncio.Event()
    made = 0

    async def refill() -> None:
        nonlocal made
        while not over.is_set():
            lack = _BACKLOG - made + len(trial.runs())
            if lack > 0:
                await asyncio.gather(*(trial.enqueue("work", seconds=0.01) for _ in range(lack)))
                made += lack
            await asyncio.sleep(0.02)

    filling = asyncio.create_task(refill())
    try:
        yield
    finally:
        over.set()
        await filling


async def _counted(trial: Trial, seconds: float) -> float:
    """How many jobs a second the workers begin."""
    begun, since = len(trial.runs()), time.monotonic()
    await asyncio.sleep(seconds)
    return (len(trial.runs()) - begun) / (time.monotonic() - since)


@asynccontextmanager
async def _watched(place: Place, seed: int, seen: Seen) -> AsyncGenerator[None, None]:
    """Viewers in processes of their own, until it is left."""
    files = [place.folder / f"viewers-{seed}-{number}" for number in range(DASHBOARDS)]
    environment = {**place.environment(), "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    started = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.viewers"),
            *(str(VIEWERS // DASHBOARDS), str(seed * DASHBOARDS + number), str(file)),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number, file in enumerate(files)
    ]
    try:
        for one in started:
            assert one.stdout is not None
            async with asyncio.timeout(30):
                assert await one.stdout.readline() == b"ready\n", "viewers could not start"
        yield
    finally:
        for one in started:
            assert one.stdin is not None
            one.stdin.close()
        for one in started:
            await _ended(one)
    for file in files:
        found = json.loads(file.read_text(encoding="utf-8"))
        seen.errors += found["errors"]
        for name, seconds in found["took"]:
            seen.took[name].append(seconds)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(60):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
