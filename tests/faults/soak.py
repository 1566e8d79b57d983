"""M24: faults of every kind at random for a long time, while jobs keep coming; then nothing may be lost or have grown.

One worker lives through all of it: it is cut off and loses answers like the others, but is never killed, stopped or
frozen. Its memory, files and threads are sampled, and so are the connections through the proxy; `slopes.py` says what
counts as flat. `SOAK_MINUTES=1440` makes it last for a day.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import psutil

from tests.faults.judging import found_by, heal, kind_of, spec_of, strike
from tests.faults.network import proxied
from tests.faults.slopes import MIB, Slope
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.proxy import Proxy
from windlass.chaos.trial import Hand, Trial

MINUTES = "SOAK_MINUTES"
LONG, SHORT = 180.0, 20.0
MORTALS = 3
PRODUCERS = 2
MOST_JOBS = 200_000
"""however long it takes: everything is judged in memory at the end, so that producers of a day go about it slowly"""
SAMPLES = 2_000
"""at most so many, evenly over the time"""
GROWTH = 8.0
"""MiB that a worker's memory may grow by after its first quarter; a leak of 64 KiB a job is more within seconds"""
PAGES = 32.0
"""MiB besides: the pages that each of SQLite's two connections keeps, 16 MiB at most, which a long trial fills"""
FEW = 4.0
"""files or threads more: a pool may have been smaller in one quarter than in another"""


def lasting(*, long: bool, environ: Mapping[str, str] = os.environ) -> float:
    """For how many seconds faults go on."""
    minutes = environ.get(MINUTES)
    return float(minutes) * 60 if minutes else LONG if long else SHORT


async def soak(place: Place, seed: int, *, long: bool) -> Finding:
    """Everything at once for the time asked for, then the end of all jobs."""
    seconds = lasting(long=long)
    async with AsyncExitStack() as stack:
        proxy, there = None, place
        if kind_of(place) != "sqlite":
            proxy, there = stack.enter_context(proxied(place, seed))
        trial = Trial(there, spec=spec_of(place), seed=seed, direct=place.url)
        await stack.enter_async_context(trial)
        await trial.ready(1)
        [survivor] = trial.hands
        await trial.ready(MORTALS)
        chaos = Chaos(trial, survivor, proxy)
        growth = GROWTH + PAGES if long and proxy is None else GROWTH
        watch = Watch(survivor, proxy, every=max(0.25, seconds / SAMPLES), growth=growth)
        pause = max(0.02, PRODUCERS * seconds / MOST_JOBS)
        async with trial.producing(0.05, producers=PRODUCERS, pause=pause):
            watching = asyncio.create_task(watch.go_on())
            try:
                await chaos.go_on(seconds)
            finally:
                watching.cancel()
        missing = [one for slope in watch.slopes() for one in slope.missing()]
        if survivor.code is not None:
            missing.append(f"the worker that nobody harmed ended with {survivor.code}")
        if len(chaos.done) < len(chaos.ways) and not place.control:
            missing.append(f"of {len(chaos.ways)} kinds of fault, {len(chaos.done)} were done")
        await trial.finished(60)
        found = await found_by("soak", trial, lambda _: missing)
        told = ", ".join(f"{n} {name}" for name, n in sorted(chaos.done.items()))
        figures = "; ".join([f"{seconds:g} s: {told}", *(slope.told() for slope in watch.slopes())])
        return Finding(fault=found.fault, report=found.report, missing=found.missing, figures=figures)


class Chaos:
    """Draws faults by the trial's seed: all kinds in random order, then all again."""

    def __init__(self, trial: Trial, survivor: Hand, proxy: Proxy | None) -> None:
        self._trial, self._survivor, self._proxy = trial, survivor, proxy
        self.ways: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "term": self._term,
        }
        if proxy is not None:
            self.ways |= {"reset": self._reset, "silence": self._silence, "answers lost": self._lose_answers}
        self.done: Counter[str] = Counter()

    async def go_on(self, seconds: float) -> None:
        """Fault upon fault until the time is over."""
        over = time.monotonic() + seconds
        deck: list[str] = []
        while time.monotonic() < over:
            if not deck:
                deck = sorted(self.ways)
                self._trial.random.shuffle(deck)
            name = deck.pop()
            await self.ways[name]()
            self.done[name] += 1
            await self._wait(0.1, 1.0)
            self._replace()

    def _replace(self) -> None:
        self._trial.start(MORTALS - sum(hand.code is None and hand is not self._survivor for hand in self._trial.hands))

    def _victim(self) -> Hand:
        return self._trial.random.choice([hand for hand in self._trial.alive if hand is not self._survivor])

    async def _wait(self, least: float, most: float) -> None:
        await asyncio.sleep(self._trial.random.uniform(least, most))  # the time between two faults

    async def _kill(self) -> None:
        await self._trial.kill(self._victim())

    async def _freeze(self) -> None:
        hand = self._victim()
        self._trial.freeze(hand)
        await self._wait(0.2, self._trial.pace.lease * 2.5)  # some are back before their leases end, some are not
        self._trial.thaw(hand)

    async def _term(self) -> None:
        hand = self._victim()
        self._trial.terminate(hand)
        await hand.ended()

    async def _reset(self) -> None:
        assert self._proxy is not None
        strike(self._trial, "reset")
        self._proxy.reset()
        heal(self._trial, "reset")

    async def _silence(self) -> None:
        assert self._proxy is not None
        strike(self._trial, "silence")
        self._proxy.silence()
        await self._wait(0.2, self._trial.pace.lease * 2)
        self._proxy.heal()
        heal(self._trial, "silence")

    async def _lose_answers(self) -> None:
        assert self._proxy is not None
        strike(self._trial, "answers lost")
        self._proxy.lose_answers(0.04)
        await self._wait(0.5, 2.0)
        self._proxy.heal()
        heal(self._trial, "answers lost")


@dataclass(kw_only=True)
class Seen:
    """The samples so far."""

    memory: list[float] = field(default_factory=list[float])
    files: list[float] = field(default_factory=list[float])
    threads: list[float] = field(default_factory=list[float])
    connections: list[float] = field(default_factory=list[float])


class Watch:
    """Samples what a process holds."""

    def __init__(self, hand: Hand, proxy: Proxy | None, *, every: float, growth: float) -> None:
        self._process, self._proxy, self._every, self._growth = psutil.Process(hand.pid), proxy, every, growth
        self._seen = Seen()

    async def go_on(self) -> None:
        """Until it is cancelled, or the process is no more."""
        with suppress(psutil.NoSuchProcess):
            while True:
                self._sample()
                await asyncio.sleep(self._every)  # the time between two samples

    def _sample(self) -> None:
        with self._process.oneshot():
            self._seen.memory.append(self._process.memory_info().rss / MIB)
            self._seen.threads.append(self._process.num_threads())
            self._seen.files.append(self._process.num_fds())
        if self._proxy is not None:
            self._seen.connections.append(self._proxy.connections)

    def slopes(self) -> list[Slope]:
        """What must be flat."""
        seen = self._seen
        found = [
            Slope(name="memory in MiB", samples=seen.memory, allowance=self._growth),
            Slope(name="open files", samples=seen.files, allowance=FEW),
            Slope(name="threads", samples=seen.threads, allowance=FEW),
        ]
        if self._proxy is not None:
            # Of all workers and producers together, of which some are always just coming or going.
            found.append(Slope(name="connections", samples=seen.connections, allowance=FEW * (MORTALS + 2)))
        return found
