"""Worker processes under load while their server fails, and the witnesses of what became of the jobs.

`app` is what the worker processes run: its handler leaves a line in a ledger outside windlass when a run begins, ends
or is stopped. All processes share one host, so the monotonic clock of their lines is one clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.template import Copy, started
from tests.support.until import until
from windlass import Ctx, Entry, Happened, Status, Windlass
from windlass.core.errors import StoreError

LEASE = 3.0
QUICK = ("--heartbeat", "500ms", "--poll", "200ms", "--grace", "500ms")
CLOCKS = 0.05
"""how far a line may lie from the store's own stamp: both are cut to milliseconds, on one host"""

app = Windlass(os.environ.get("FAULTS_URL", "sqlite://"))


def mark(what: str, ctx: Ctx) -> None:
    """Add a line to the ledger; one write, so that processes do not mix their lines."""
    line = {"what": what, "id": ctx.id, "token": ctx.token, "pid": os.getpid(), "at": time.monotonic()}
    os.write(_ledger_file(), f"{json.dumps(line)}\n".encode())


@cache
def _ledger_file() -> int:
    return os.open(os.environ["FAULTS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.job()
async def work(ctx: Ctx, seconds: float) -> None:
    """Take a while."""
    mark("begin", ctx)
    try:
        await asyncio.sleep(seconds)  # the job's work
    except asyncio.CancelledError:
        mark("stopped", ctx)
        raise
    mark("end", ctx)


@app.job()
async def held(ctx: Ctx) -> None:
    """Go on until the trial lets go, also when told to stop."""
    mark("begin", ctx)
    while not Path(os.environ["FAULTS_GO"]).exists():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)  # a file rings no bell
    mark("end", ctx)


@dataclass
class Run:
    """One run of a job, as the ledger tells it."""

    id: str
    token: int
    pid: int
    begun: float
    left: float = float("inf")
    how: str = "never left"


@dataclass
class Trial:
    """One place of a store, the worker processes on it, what was acknowledged, and the ledger."""

    url: str
    folder: Path
    lease: float = LEASE
    processes: list[Copy] = field(default_factory=list[Copy])
    acknowledged: dict[str, float] = field(default_factory=dict[str, float])
    """when each job's enqueue had returned, in the order of that"""
    refused: list[str] = field(default_factory=list[str])
    """what producers were told instead of an acknowledgement"""
    _runs: list[Run] = field(default_factory=list[Run])
    _latest: dict[tuple[str, int, int], Run] = field(default_factory=dict[tuple[str, int, int], Run])
    _read: int = 0

    @property
    def _ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def _go(self) -> Path:
        return self.folder / "go"

    def let_go(self) -> None:
        """Let jobs end that are held."""
        self._go.touch()

    def start_worker(self, *arguments: str) -> None:
        environment = {
            "FAULTS_URL": self.url,
            "FAULTS_LEDGER": str(self._ledger),
            "FAULTS_GO": str(self._go),
            "WINDLASS_RESCUE_MS": "300",
            "WINDLASS_LOG_FORMAT": "text",
        }
        words = ["worker", "tests.faults.ledger:app", "--lease", f"{self.lease:g}s", *QUICK, *arguments]
        with (self.folder / f"worker{len(self.processes)}.log").open("wb") as log:
            self.processes.append(started(*words, environment=environment, folder=self.folder, log=log.fileno()))

    def stop_workers(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def logs(self) -> str:
        """The ends of what the workers said, for a failure's message."""
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("worker*.log")))

    async def fill(self, client: Windlass, n: int, seconds: float) -> None:
        """Enqueue so many jobs, and note them."""
        for start in range(0, n, 1000):
            many = [
                client.enqueue("work", {"seconds": seconds}, max_attempts=50, max_crashes=50)
                for _ in range(min(1000, n - start))
            ]
            made = await asyncio.gather(*many)
            self.acknowledged |= dict.fromkeys((handle.id for handle in made), time.monotonic())

    async def hold(self, client: Windlass, n: int) -> None:
        """Enqueue so many jobs that go on until `let_go`, and wait until each has begun."""
        made = await asyncio.gather(*(client.enqueue("held", max_attempts=50, max_crashes=50) for _ in range(n)))
        self.acknowledged |= dict.fromkeys((handle.id for handle in made), time.monotonic())
        await self.until_begun(n)

    @contextlib.asynccontextmanager
    async def producing(
        self, client: Windlass, producers: int, pause: float, seconds: float
    ) -> AsyncGenerator[None, None]:
        """Producers that enqueue one job after another and note those whose enqueue returned."""
        over = asyncio.Event()

        async def produce() -> None:
            while not over.is_set():
                try:
                    handle = await client.enqueue("work", {"seconds": seconds}, max_attempts=50, max_crashes=50)
                except StoreError as error:
                    self.refused.append(f"{type(error).__name__}: {error}")
                else:
                    self.acknowledged[handle.id] = time.monotonic()
                await asyncio.sleep(pause)  # as often as a producer enqueues

        async with asyncio.TaskGroup() as running:
            for _ in range(producers):
                running.create_task(produce())
            try:
                yield
            finally:
                over.set()

    def runs(self) -> list[Run]:
        """Every run so far, in the order of its beginning; a token that began twice is two runs."""
        if self._ledger.exists():
            with self._ledger.open("rb") as ledger:
                ledger.seek(self._read)
                for text in ledger:
                    if not text.endswith(b"\n"):
                        break  # the last, half written
                    self._read += len(text)
                    self._note(**json.loads(text))
        return self._runs

    def _note(self, *, what: str, id: str, token: int, pid: int, at: float) -> None:
        key = (id, token, pid)
        if what == "begin":
            self._latest[key] = Run(*key, at)
            self._runs.append(self._latest[key])
        else:
            self._latest[key].left, self._latest[key].how = at, what

    async def all_there(self, client: Windlass) -> bool:
        """Whether every worker that was started has said that it is there."""
        return len(await client.store.workers.list()) == len(self.processes)

    async def until_begun(self, n: int) -> None:
        await until(lambda: len(self.runs()) >= n, f"{n} runs to begin; the workers: {self.logs()}", within=60)

    def resumed_after(self, moment: float) -> dict[int, float]:
        """For each worker, seconds from the moment until it first began a job."""
        first: dict[int, float] = {}
        for run in self.runs():
            if run.begun > moment:
                first.setdefault(run.pid, run.begun - moment)
        return first

    async def until_all_resumed(self, moment: float, within: float) -> dict[int, float]:
        """The same once every worker has begun one."""

        def all_of_them() -> dict[int, float] | None:
            found = self.resumed_after(moment)
            return found if len(found) == len(self.processes) else None

        try:
            found = await until(all_of_them, "every worker to begin a job", within)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.resumed_after(moment)}; the workers: {self.logs()}") from None
        assert found is not None
        return found

    async def until_ended(self, client: Windlass, within: float) -> dict[str, Status | None]:
        """How the acknowledged jobs ended, once all have; None for one that is gone."""
        waiting, found = list(self.acknowledged), dict[str, Status | None]()

        async def all_ended() -> bool:
            for start in range(0, len(waiting), 500):
                ids = waiting[start : start + 500]
                with contextlib.suppress(StoreError):
                    for job_id, job in zip(ids, await client.store.views.get(ids), strict=True):
                        found[job_id] = job.status if job else None
            waiting[:] = [job_id for job_id in waiting if _unfinished(found.get(job_id, Status.QUEUED))]
            return not waiting

        with contextlib.suppress(AssertionError):  # judged by whoever asked
            await until(all_ended, "every acknowledged job to end", within)
        return {job_id: found.get(job_id) for job_id in self.acknowledged}

    async def judged(self, client: Windlass, within: float) -> Judgement:
        """What became of everything acknowledged, once it has ended."""
        ended = await self.until_ended(client, within)
        wrong, forgotten, again, overlaps = await self.violations(client)
        return Judgement(
            acknowledged=len(ended),
            lost={one: status for one, status in ended.items() if not status or _failed(status)},
            unfinished=[job_id for job_id, status in ended.items() if _unfinished(status)],
            wrong=wrong,
            forgotten=forgotten,
            again=again,
            overlaps=overlaps,
            refused=len(self.refused),
        )

    def lost_before(self, found: Judgement, moment: float) -> list[str]:
        """What is lost although it had been acknowledged by then."""
        return [job_id for job_id in found.lost if self.acknowledged[job_id] <= moment]

    async def violations(self, client: Windlass) -> tuple[list[str], dict[str, float], int, int]:
        """What no fault may cause, and how many jobs ran more than once, and how many of those runs overlapped.

        Never one token twice; never a run begun while an earlier one still went on, unless that one's lease was over:
        the store recorded it as lost, and a whole lease had passed since its claim.
        """
        wrong: list[str] = []
        forgotten: dict[str, float] = {}
        overlaps = 0
        by_job: dict[str, list[Run]] = {}
        for run in self.runs():
            by_job.setdefault(run.id, []).append(run)
        again = {job_id: runs for job_id, runs in by_job.items() if len(runs) > 1}
        offset = time.time() - time.monotonic()
        for job_id, runs in again.items():
            history = await client.jobs.history(job_id)
            tokens = [run.token for run in runs]
            if len(set(tokens)) < len(tokens):
                ran = ", ".join(
                    f"{run.token} in {run.pid} {run.begun + offset:.3f}-{run.left + offset:.3f}" for run in runs
                )
                wrong.append(f"{job_id}: a token ran twice: {ran}; {_told(history)}")
            ends = [entry for entry in history if entry.happened is Happened.SUCCEEDED]
            if len(ends) > 1:
                wrong.append(f"{job_id}: {len(ends)} ends were accepted")
            runs.sort(key=lambda run: run.token)
            for earlier, later in itertools.pairwise(runs):
                if later.begun >= earlier.left:
                    continue
                overlaps += 1
                lost = _between(history, Happened.LOST, earlier.token, later.token)
                claimed = next((one.at for one in history if _is_claim(one, earlier.token)), None)
                held = None if claimed is None else later.begun + offset - claimed.timestamp()
                if not lost or held is None or held < self.lease - CLOCKS:
                    told = f"token {later.token} began {held} s after the claim of {earlier}"
                    wrong.append(f"{job_id}: {told}; {_told(history)}")
                    if claimed is None:
                        forgotten[wrong[-1]] = earlier.begun
        return wrong, forgotten, len(again), overlaps


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of the jobs of a trial."""

    acknowledged: int
    lost: dict[str, Status | None]
    unfinished: list[str]
    wrong: list[str]
    forgotten: dict[str, float]
    """those of them where the store knows nothing of a claim, and when the run began that it was for"""
    again: int
    overlaps: int
    refused: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged, lost {len(self.lost)}, unfinished {len(self.unfinished)}, violations"
            f" {len(self.wrong)}, ran again {self.again} (overlapping {self.overlaps}), enqueues refused {self.refused}"
        )

    def insist(self) -> None:
        """Nothing acknowledged was lost or is left, and no job was run by two who might."""
        assert not self.lost, dict(itertools.islice(self.lost.items(), 10))
        assert not self.unfinished, self.unfinished[:10]
        assert not self.wrong, "\n".join(self.wrong[:3])


def _failed(status: Status) -> bool:
    return status.finished and status is not Status.SUCCEEDED


def _told(history: list[Entry]) -> str:
    return ", ".join(f"{one.happened} {one.token} by {one.actor} at {one.at.timestamp():.3f}" for one in history)


def _unfinished(status: Status | None) -> bool:
    return status is not None and not status.finished


def _is_claim(entry: Entry, token: int) -> bool:
    return entry.happened is Happened.CLAIMED and entry.token == token


def _between(history: list[Entry], happened: Happened, earlier: int, later: int) -> bool:
    numbers = {entry.token: entry.number for entry in history if entry.happened is Happened.CLAIMED}
    low, high = numbers.get(earlier, 0), numbers.get(later, 0)
    return any(entry.happened is happened and low < entry.number < high for entry in history)
