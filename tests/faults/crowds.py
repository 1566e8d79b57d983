"""M23: two hundred people look at a store with a long past while its workers are busy.

They ask the application, as the HTTP API does, in two processes as two dashboards would. Both bounds are promises: at
length a trial that misses one fails. The short trial only bounds what takes a system down, as seconds of a machine that
does other things tell little; what a view costs is counted in `tests/scale`.

How many processors were busy is told beside it: where all of them are without viewers, claims and views share what
there is, and claims fall by what views take.
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
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from tests.faults.judging import found_by
from tests.faults.past import live_through
from windlass import Job
from windlass.chaos.checker import Evidence
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import spread
from windlass.chaos.trial import SHARES, Trial
from windlass.core.status import Status

PAST_LONG, PAST_SHORT = 1_000_000, 20_000
VIEWERS, DASHBOARDS = 200, 2
WORKERS = 2
P95_MOST, CLAIMS_LEAST = 0.150, 0.95
P95_SHORT = 2.0
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
    busy: dict[bool, list[float]] = field(default_factory=lambda: defaultdict(list))
    """processors of this machine that were busy, without viewers and with them"""
    cores: list[float] = field(default_factory=list[float])
    """processors that one process of viewers had"""

    def all(self) -> list[float]:
        return [one for some in self.took.values() for one in some]

    @property
    def ratio(self) -> float:
        """What is left of the claims beside viewers."""
        return mean(self.watched) / mean(self.alone)

    def missing(self, *, long: bool) -> list[str]:
        """What is wrong with it."""
        worst, most = spread(self.all())["p95"], P95_MOST if long else P95_SHORT
        few = long and self.ratio < CLAIMS_LEAST
        return [
            *(["nobody looked: nothing was proved"] if worst is None else []),
            *([f"p95 of a view is {worst:.2f} s, at most {most:g} s is promised"] * ((worst or 0) > most)),
            *([f"claims are {self.ratio:.2f} of those without viewers, {CLAIMS_LEAST} is promised"] if few else []),
            *([f"{len(self.errors)} views failed, as {self.errors[0]}"] if self.errors else []),
        ]

    def figures(self) -> str:
        """All of it in a phrase."""
        every = spread(self.all())
        views = ", ".join(f"{name} {_ms(spread(some)['p95'])}" for name, some in sorted(self.took.items()))
        return (
            f"{len(self.all())} views, p50 {_ms(every['p50'])}, p95 {_ms(every['p95'])}"
            f" (at most {_ms(P95_MOST)}; {views});"
            f" claims {mean(self.watched):.0f}/s beside viewers, {mean(self.alone):.0f}/s without: {self.ratio:.2f}"
            f" (at least {CLAIMS_LEAST}); {mean(self.busy[False]):.2f} of {os.cpu_count()} processors busy without"
            f" viewers, {mean(self.busy[True]):.2f} beside them, {mean(self.cores) * DASHBOARDS:.2f} in their own"
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
        counts = await self.desk.store.views.recount(frozenset(Status))  # more than `count` goes up to
        shown = {(one.queue, one.status): one.count.n for one in counts if one.queue == "default"}
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
            for turn in range(4 if long else 2):
                # Each comes first as often: what slows down as the store fills meets both.
                for watched in (False, True) if turn % 2 == 0 else (True, False):
                    viewers = _watched(place, seed * 100 + turn, seen) if watched else nullcontext()
                    async with viewers:
                        await _counted(trial, 1.0)
                        used, since = _used(), time.monotonic()
                        (seen.watched if watched else seen.alone).append(await _counted(trial, 10.0 if long else 4.0))
                        seen.busy[watched].append((_used() - used) / (time.monotonic() - since))
        await trial.finished(60)
        found = await found_by("crowds", trial, lambda _: seen.missing(long=long))
    return replace(found, figures=f"{past:,} finished; {seen.figures()}")


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
            await asyncio.sleep(0.02)  # there are enough for now

    filling = asyncio.create_task(refill())
    try:
        yield
    finally:
        over.set()
        await filling


async def _counted(trial: Trial, seconds: float) -> float:
    """How many jobs a second the workers begin."""
    begun, since = len(trial.runs()), time.monotonic()
    await asyncio.sleep(seconds)  # what is measured takes time
    return (len(trial.runs()) - begun) / (time.monotonic() - since)


def _used() -> float:
    """Seconds that all processors of this machine have been busy."""
    counts = [int(count) for count in Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()[1:9]]
    return (sum(counts) - counts[3] - counts[4]) / os.sysconf("SC_CLK_TCK")  # but for idle and waiting for a disk


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
            async with asyncio.timeout(120):
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
        seen.cores.append(found["cores"])
        for name, seconds in found["took"]:
            seen.took[name].append(seconds)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(120):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
