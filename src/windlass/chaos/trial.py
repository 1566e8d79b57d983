"""One trial: a place, worker processes that are harmed by their recorded pids only, producers, and the evidence."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from windlass import Job, StoreError, StoreUnavailable, Windlass
from windlass.chaos.checker import Evidence, Run, Runs, check
from windlass.chaos.history import History, What
from windlass.chaos.place import Pace, Place
from windlass.chaos.report import Report
from windlass.chaos.starting import Process
from windlass.chaos.waiting import until
from windlass.chaos.workload import LIMIT
from windlass.stores.contract import Action, Filter, Order

WORKLOAD = "windlass.chaos.workload:app"
SHARES = {"work": 9, "labour": 2, "flaky": 2, "keyed": 3, "limited": 4}
"""of twenty ordinary jobs"""
_AT_ONCE = 200
_STOP_WITHIN = 20.0
_START_WITHIN = 30.0
_READ_WITHIN = 30.0


class Hand:
    """One worker process that the trial started."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process, self.log = process, log
        self.pid = process.pid
        self.frozen = False
        self.noted = False
        """whether its end stands in the history"""

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def signal(self, what: signal.Signals) -> None:
        """Send a signal to this very process, unless it has ended."""
        self._process.send_signal(what)

    async def ended(self, within: float = _STOP_WITHIN) -> bool:
        """Whether it ended in time."""
        return await until(lambda: self.code is not None, within)


class Trial:
    """`async with` it; leaving ends every process it started.

    `spec` names the application that the workers run, for trials of applications that are wrong on purpose. `direct` is
    the store's own URL, for a look at it past whatever stands between it and the workers.
    """

    def __init__(
        self,
        place: Place,
        *,
        pace: Pace | None = None,
        spec: str = WORKLOAD,
        seed: int = 0,
        direct: str | None = None,
    ) -> None:
        self.place, self.pace, self._spec = place, pace or Pace(), spec
        self._pipe = os.pipe()
        self.random = random.Random(seed)
        self.hands: list[Hand] = []
        place.folder.mkdir(parents=True, exist_ok=True)
        self.history = History(place.folder)
        self._numbers = 0
        self._deck: list[str] = []
        self._runs = Runs()
        self.app = self._application()
        """what the producers use"""
        self.desk = self.app if direct is None else Windlass(direct, namespace=place.namespace)
        """what the end is judged by"""

    def _application(self) -> Windlass:
        from importlib import import_module

        # What enqueues is the application that works, so that a store that is wrong on purpose is wrong for both.
        module = import_module(self._spec.partition(":")[0])
        made: Windlass = module.application(self.place)
        return made

    async def __aenter__(self) -> Self:
        await self.app.__aenter__()
        await self.desk.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stuck = await self.stop()
        for one in (self.desk, self.app):
            await one.__aexit__(kind, error, trace)
            one.close()
        self.history.close()
        for end in self._pipe:
            os.close(end)
        if stuck and error is None:
            raise RuntimeError("\n".join(stuck))

    # Workers.

    @property
    def alive(self) -> list[Hand]:
        """The workers that can work now."""
        return [hand for hand in self.hands if hand.code is None and not hand.frozen]

    def start(self, n: int = 1, **environment: str) -> list[Hand]:
        """Start so many workers more, each with these variables besides."""
        return [self._start(environment) for _ in range(n)]

    def _start(self, besides: Mapping[str, str]) -> Hand:
        log = self.place.folder / f"worker{len(self.hands)}.log"
        # It stops when the other end of the pipe closes: none outlives the trial, however that ends.
        arguments = [self._spec, f"--child={self._pipe[0]}", *self.pace.arguments()]
        # What is found here is found there, too: the trial's own application may not be installed.
        path = os.pathsep.join(one for one in sys.path if one)
        told = {"PYTHONPATH": path, "WINDLASS_LOG_FORMAT": "text", **besides}
        environment = {**self.place.environment(), **self.pace.environment(), **told}
        with log.open("wb") as file:
            process = self.place.start(["worker", *arguments], environment, log=file.fileno(), kept=self._pipe[0])
        hand = Hand(process, log)
        self.hands.append(hand)
        return hand

    async def kill(self, hand: Hand) -> None:
        """`kill -9`."""
        self.history.tell(What.FAULT, pid=hand.pid, name="kill")
        hand.signal(signal.SIGKILL)
        await hand.ended()

    def freeze(self, hand: Hand) -> None:
        """SIGSTOP."""
        self.history.tell(What.FAULT, pid=hand.pid, name="freeze")
        hand.frozen = True
        hand.signal(signal.SIGSTOP)

    def thaw(self, hand: Hand) -> None:
        """SIGCONT."""
        hand.signal(signal.SIGCONT)
        hand.frozen = False
        self.history.tell(What.HEALED, pid=hand.pid, name="freeze")

    def terminate(self, hand: Hand) -> None:
        """SIGTERM; a second one hurries."""
        self.history.tell(What.FAULT, pid=hand.pid, name="term")
        hand.signal(signal.SIGTERM)

    def strike(self, name: str) -> None:
        """Note a fault that excuses nobody: a worker that can work gives its jobs up in time."""
        self.history.tell(What.FAULT, pid=os.getpid(), name=name)

    def fault(self, name: str) -> None:
        """Note that something was done to the store or the way to it, which hinders every worker until `healed`."""
        self.history.tell(What.FAULT, name=name)

    def healed(self, name: str) -> None:
        """Note that it is over."""
        self.history.tell(What.HEALED, name=name)

    def note_ends(self) -> int:
        """Write down which processes have ended; how many are new."""
        new = [hand for hand in self.hands if hand.code is not None and not hand.noted]
        for hand in new:
            hand.noted = True
            self.history.tell(What.EXITED, pid=hand.pid, note=str(hand.code))
        return len(new)

    async def stop(self) -> list[str]:
        """End what still runs: politely, then not. Tells of workers that had to be killed, which is their fault."""
        stuck: list[str] = []
        for hand in self.hands:
            if hand.code is None:
                hand.signal(signal.SIGCONT)
                hand.signal(signal.SIGTERM)
        for hand in self.hands:
            if not await hand.ended():
                last = hand.log.read_text(errors="replace")[-600:]
                stuck.append(f"worker {hand.pid} did not end within {_STOP_WITHIN:g} s of SIGTERM; it said: {last}")
                hand.signal(signal.SIGKILL)
                await hand.ended()
        self.note_ends()
        return stuck

    # Producers.

    async def enqueue(
        self, type_: str, *, expect: str = "succeeded", max_crashes: int = 50, **payload: Any
    ) -> str | None:
        """Enqueue a job under a name of its own, and note what came of it; its id, if that is known."""
        self._numbers += 1
        name = f"{type_}-{os.getpid()}-{self._numbers}"
        limit = LIMIT if type_ == "limited" else None
        self.history.tell(What.INVOKED, name=name, key=payload.get("key"), limit=limit, expect=expect)
        try:
            handle = await self.app.enqueue(type_, {"name": name, **payload}, max_crashes=max_crashes)
        except StoreError as error:
            self.history.tell(What.UNKNOWN, name=name, note=f"{type(error).__name__}: {error}"[:300])
            return None
        self.history.tell(What.ACKNOWLEDGED, name=name, job=handle.id)
        return handle.id

    async def fill(self, n: int, seconds: float) -> None:
        """Enqueue so many ordinary jobs: of every kind, in random order, taking about so long."""
        for start in range(0, n, _AT_ONCE):
            await asyncio.gather(*(self._ordinary(seconds) for _ in range(min(_AT_ONCE, n - start))))

    @asynccontextmanager
    async def producing(self, seconds: float, *, producers: int = 2, pause: float = 0.02) -> AsyncGenerator[None, None]:
        """Producers that enqueue one ordinary job after another while inside, whatever they are told."""
        over = asyncio.Event()

        async def produce() -> None:
            while not over.is_set():
                await self._ordinary(seconds)
                await asyncio.sleep(pause)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(producers):
                tasks.create_task(produce())
            try:
                yield
            finally:
                over.set()

    async def _ordinary(self, seconds: float) -> None:
        if not self._deck:
            self._deck = [kind for kind, share in SHARES.items() for _ in range(share)]
            self.random.shuffle(self._deck)
        long = round(seconds * self.random.uniform(0.5, 1.5), 3)
        match self._deck.pop():
            case "flaky":
                await self.enqueue("flaky", failures=self.random.randint(0, 2))
            case "keyed":
                await self.enqueue("keyed", key=f"u{self.random.randint(0, 1)}", seconds=long)
            case "limited":
                await self.enqueue("limited", key="l", seconds=long)
            case kind:
                await self.enqueue(kind, seconds=long)

    # Watching.

    def runs(self) -> dict[str, list[Run]]:
        """Every run so far, by job."""
        return self._seen().of

    def in_flight(self, hand: Hand) -> list[Run]:
        """What a worker runs now."""
        return self._seen().now(hand.pid)

    def _seen(self) -> Runs:
        self.note_ends()
        self._runs.read(self.history.lines())
        return self._runs

    async def runner(self, job: str | None, within: float = 10.0) -> Hand | None:
        """The worker that runs this job, once one does."""

        def running() -> list[Hand]:
            pids = {run.pid for run in self.runs().get(job or "", ()) if run.left == float("inf")}
            return [hand for hand in self.alive if hand.pid in pids]

        await until(lambda: bool(running()), within)
        return next(iter(running()), None)

    async def ready(self, n: int, within: float = _START_WITHIN, **environment: str) -> None:
        """Start so many workers, and wait until each has said that it is ready."""
        new = self.start(n, **environment)

        def all_said() -> bool:
            return all(hand.code is not None or b" ready " in hand.log.read_bytes() for hand in new)

        if not await until(all_said, within) or any(hand.code is not None for hand in new):
            raise RuntimeError(f"a worker of the trial could not start: {self.logs()}")

    async def finished(self, within: float, tell: Callable[[int, int], None] | None = None) -> bool:
        """Whether everything acknowledged ended in time."""
        waiting = {line.job for line in self.history.lines() if line.what is What.ACKNOWLEDGED and line.job}
        whole = len(waiting)

        async def all_ended() -> bool:
            self.note_ends()
            ids = sorted(waiting)
            for start in range(0, len(ids), 500):
                some = ids[start : start + 500]
                with suppress(StoreError):
                    jobs = await self.desk.store.views.get(some)
                    waiting.difference_update(
                        one for one, job in zip(some, jobs, strict=True) if job is None or job.status.finished
                    )
            if tell is not None:
                tell(whole - len(waiting), whole)
            return not waiting

        return await until(all_ended, within, every=0.05 if whole < 500 else 0.5)

    async def evidence(self) -> Evidence:
        """All that is known, once the workers have stopped. A store that is slow on a busy machine is asked again."""
        await self.stop()
        deadline = time.monotonic() + _READ_WITHIN
        while True:
            try:
                return await self._read()
            except StoreUnavailable:
                if time.monotonic() > deadline:
                    raise

    async def _read(self) -> Evidence:
        views = self.desk.store.views
        jobs = await self._jobs()
        histories: dict[str, Any] = {}
        for start in range(0, len(jobs), _AT_ONCE):
            some = jobs[start : start + _AT_ONCE]
            told = await asyncio.gather(*(views.history(job.id) for job in some))
            histories |= {job.id: entries for job, entries in zip(some, told, strict=True)}
        stats = await views.stats(timedelta(0))
        return Evidence(
            lines=self.history.lines(),
            effects=self.history.effects(),
            jobs=jobs,
            histories=histories,
            shown={(one.queue, one.status): one.count.n for one in stats.counts if one.count.exact},
            pace=self.pace,
            one_file=urlsplit(self.place.url).scheme == "sqlite",
        )

    async def judged(self) -> Report:
        """What the checker makes of it."""
        return check(await self.evidence())

    async def _jobs(self) -> list[Job]:
        found: list[Job] = []
        after: str | None = None
        while True:
            page = await self.desk.store.views.find(Filter(), 500, after)
            found += page.jobs
            after = page.next
            if after is None:
                return found

    async def empty(self) -> None:
        """Delete every job of the place, which is the trial's own."""
        deadline = time.monotonic() + 60
        while (jobs := await self._jobs()) and time.monotonic() < deadline:
            orders = [Order(id=job.id, action=Action.DELETE, actor="chaos") for job in jobs]
            for start in range(0, len(orders), _AT_ONCE):
                await self.desk.store.jobs.operate(orders[start : start + _AT_ONCE])

    def logs(self) -> str:
        """The ends of what the workers said, for a failure's message."""
        return "\n".join(hand.log.read_text(errors="replace")[-1500:] for hand in self.hands)
