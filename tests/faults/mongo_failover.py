"""A replica set whose primary is deposed, killed or frozen under load, and the witnesses of what became of the jobs.

`app` is what the worker processes run: its handler leaves a line in a ledger outside windlass when a run begins, ends
or is stopped. All processes share one host, so the monotonic clock of their lines is one clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

from tests.support.processes import HOST, Node, Server
from tests.support.until import until, until_sync
from windlass import Ctx, Entry, Happened, Status, Windlass
from windlass.core.errors import StoreError

ROOT = Path(__file__).parents[2]
LEASE = 3.0
QUICK = ("--lease", "3s", "--heartbeat", "500ms", "--poll", "200ms", "--grace", "500ms")
CLOCKS = 0.05
"""how far a line may lie from the store's own stamp: both are cut to milliseconds, on one host"""

app = Windlass(os.environ.get("FAILOVER_URL", "sqlite://"))


def mark(what: str, ctx: Ctx) -> None:
    """Add a line to the ledger; one write, so that processes do not mix their lines."""
    line = {"what": what, "id": ctx.id, "token": ctx.token, "pid": os.getpid(), "at": time.monotonic()}
    with Path(os.environ["FAILOVER_LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{json.dumps(line)}\n")


@app.job()
async def work(ctx: Ctx, seconds: float) -> None:
    """Take a while."""
    mark("begin", ctx)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        mark("stopped", ctx)
        raise
    mark("end", ctx)


class ReplicaSet:
    """Three members, each of which can be deposed, killed, frozen, and brought back."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.nodes = server.nodes
        self._frozen: list[Node] = []
        self.heal()
        self._hasten()

    def _hasten(self) -> None:
        # A new primary waits for word from every member before it takes writes: of a frozen one for 10 s, by default.
        client: MongoClient[dict[str, Any]] = MongoClient(self.server.url, serverSelectionTimeoutMS=20_000)
        with client:
            config: dict[str, Any] = client.admin.command("replSetGetConfig")["config"]
            config["version"] += 1
            config["settings"].update({"heartbeatTimeoutSecs": 2, "catchUpTimeoutMillis": 2000})
            client.admin.command("replSetReconfig", config)

    def url(self, database: str) -> str:
        """The whole set, with a database of its own."""
        return urlsplit(self.server.url)._replace(path=f"/{database}").geturl()

    def primary(self) -> Node | None:
        """The member that says it is primary and answers; of two, the one of the later election."""
        answers = [(self._hello(node), node) for node in self.nodes]
        leading = [(answer["electionId"], node.port) for answer, node in answers if answer.get("isWritablePrimary")]
        port = max(leading)[1] if leading else None
        return next((node for node in self.nodes if node.port == port), None)

    def wait_for_primary(self, *, other_than: Node | None = None) -> Node:
        """The primary, once there is one, or another one than before."""

        def found() -> Node | None:
            leading = self.primary()
            return None if leading is other_than else leading

        node = until_sync(found, "a primary to be elected", within=25)
        assert node is not None
        return node

    def wait_for_durable_writes(self) -> None:
        """Returns when a majority acknowledges what is written through the primary, whichever that is by then."""

        def taken() -> bool:
            leading = self.primary()
            return leading is not None and _takes_durable_writes(leading)

        until_sync(taken, "a durable write to be acknowledged", within=60)

    def others(self, node: Node) -> list[Node]:
        return [one for one in self.nodes if one is not node]

    def step_down(self, node: Node) -> None:
        # The server may close the connection that asked.
        with contextlib.suppress(PyMongoError), _direct(node, 5000) as client:
            client.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=2, force=True)

    def freeze(self, node: Node) -> None:
        os.kill(node.pid, signal.SIGSTOP)
        self._frozen.append(node)

    def thaw(self) -> None:
        for node in self._frozen:
            if node.running:
                os.kill(node.pid, signal.SIGCONT)
        self._frozen.clear()

    def heal(self) -> None:
        """Every member runs, one leads and the others follow."""
        self.thaw()
        for node in self.nodes:
            if not node.running:
                node.kill()  # forgets the old process
                node.start()

        def healthy() -> bool:
            answers = [self._hello(node) for node in self.nodes]
            return sum(bool(one.get("isWritablePrimary")) for one in answers) == 1 and all(
                one.get("isWritablePrimary") or one.get("secondary") for one in answers
            )

        until_sync(healthy, "every member to lead or follow", within=40)
        # A member killed before its first sync is on its disk would begin that again, and could not be elected.
        client: MongoClient[dict[str, Any]] = MongoClient(self.server.url, serverSelectionTimeoutMS=20_000)
        with client:
            seen_by_all = WriteConcern(w=len(self.nodes), j=True, wtimeout=20_000)
            client.get_database("healed", write_concern=seen_by_all).get_collection("healed").insert_one({})

    def _hello(self, node: Node) -> dict[str, Any]:
        if not node.running or node in self._frozen:
            return {}
        try:
            with _direct(node, 300) as client:
                return dict(client.admin.command("hello"))
        except PyMongoError:
            return {}


def _direct(node: Node, milliseconds: int) -> MongoClient[dict[str, Any]]:
    return MongoClient(
        HOST,
        node.port,
        directConnection=True,
        serverSelectionTimeoutMS=milliseconds,
        connectTimeoutMS=milliseconds,
        socketTimeoutMS=milliseconds,
    )


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
    """One database on a replica set, the worker processes on it, what was acknowledged, and the ledger."""

    replica: ReplicaSet
    folder: Path
    database: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])
    acknowledged: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    """what producers were told instead of an acknowledgement"""

    @property
    def url(self) -> str:
        return self.replica.url(self.database)

    @property
    def _ledger(self) -> Path:
        return self.folder / "ledger"

    def start_worker(self, *arguments: str) -> None:
        environment = {
            **os.environ,
            "FAILOVER_URL": self.url,
            "FAILOVER_LEDGER": str(self._ledger),
            "WINDLASS_RESCUE_MS": "300",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        }
        command = [sys.executable, "-m", "windlass", "worker", "tests.faults.mongo_failover:app", *QUICK, *arguments]
        with (self.folder / f"worker{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)

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
                    self.acknowledged.append(handle.id)
                await asyncio.sleep(pause)

        async with asyncio.TaskGroup() as running:
            for _ in range(producers):
                running.create_task(produce())
            try:
                yield
            finally:
                over.set()

    def runs(self) -> list[Run]:
        """Every run so far, in the order of its beginning; a token that began twice is two runs."""
        found: list[Run] = []
        latest: dict[tuple[str, int, int], Run] = {}
        for line in self._lines():
            key = (line["id"], line["token"], line["pid"])
            if line["what"] == "begin":
                latest[key] = Run(*key, line["at"])
                found.append(latest[key])
            else:
                latest[key].left, latest[key].how = line["at"], line["what"]
        return found

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self._ledger.exists():
            for text in self._ledger.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(json.JSONDecodeError):  # the last, half written
                    yield json.loads(text)

    async def until_begun(self, n: int) -> None:
        await until(lambda: len(self.runs()) >= n, f"{n} runs to begin; the workers: {self.logs()}", within=25)

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

    async def violations(self, client: Windlass) -> tuple[list[str], int, int]:
        """What no failover may cause, and how many jobs ran more than once, and how many of those runs overlapped.

        Never one token twice; never a run begun while an earlier one still went on, unless that one's lease was over:
        the store recorded it as lost, and a whole lease had passed since its claim.
        """
        wrong: list[str] = []
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
                if not lost or held is None or held < LEASE - CLOCKS:
                    told = f"token {later.token} began {held} s after the claim of {earlier}"
                    wrong.append(f"{job_id}: {told}; {_told(history)}")
        return wrong, len(again), overlaps


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


def _takes_durable_writes(node: Node) -> bool:
    with _direct(node, 2000) as client:
        probes = client.get_database("probes").get_collection("probes", write_concern=WriteConcern("majority"))
        try:
            probes.insert_one({})
        except PyMongoError:
            return False
    return True


def written_with_w1(node: Node, database: str, seconds: float) -> list[int]:
    """The control: numbers whose insert one member alone acknowledged, within so many seconds."""
    acknowledged: list[int] = []
    ends = time.monotonic() + seconds
    with _direct(node, 3000) as client:
        numbers = client.get_database(database).get_collection("control", write_concern=WriteConcern(w=1))
        while time.monotonic() < ends:
            try:
                numbers.insert_one({"_id": len(acknowledged)})
            except PyMongoError:
                break
            acknowledged.append(len(acknowledged))
    return acknowledged


def found_in_control(node: Node, database: str) -> set[int]:
    with _direct(node, 5000) as client:
        return {int(one["_id"]) for one in client.get_database(database).get_collection("control").find()}
