"""M30: workers are killed between every two things that their jobs remember, while signals come early, late and twice.

A step that was remembered must not happen again, a cursor must not go back, each signal that was acknowledged must
arrive, and each child must be there once. A late word of a lease that is over must not be kept.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.faults.rememberer import PARTS, POINTS, ROWS, STEPS
from windlass import Handle, Happened, Job, MoveRefused, SignalExists, Status, StoreError
from windlass.chaos.faults import Finding
from windlass.chaos.place import Pace, Place
from windlass.chaos.report import Report
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until
from windlass.stores.contract import Filter, Keep, Lease, Verdict

SPEC = "tests.faults.rememberer:app"
WORKERS = 3
_OFTEN = 5
PACE = Pace(lease=1.2, slots=3)


@dataclass
class Sent:
    """What became of the signals to one job."""

    go: Any = None
    """the value that was acknowledged"""
    maybe: Any = None
    late: bool = False
    """the second signal came after the time was up"""
    refused: int = 0


@dataclass
class Orders:
    """The jobs of a trial."""

    trial: Trial
    handles: dict[str, Handle[Any]] = field(default_factory=dict[str, Handle[Any]])
    sent: dict[str, Sent] = field(default_factory=dict[str, Sent])
    late: list[str] = field(default_factory=list[str])
    """words of leases that were over, and were kept all the same"""
    probes: int = 0

    async def enqueue(self, points: Sequence[str]) -> None:
        """A job for each of these points, where it dies."""
        for number, point in enumerate(points):
            name = f"order-{number}"
            payload = {"name": name, "deaths": [point]}
            self.handles[name] = await self.trial.app.enqueue("order", payload, max_crashes=100)
            self.sent[name] = Sent()

    async def signal(self, name: str) -> None:
        """Both signals at random moments, the first of them by two senders at once."""
        sent, chance = self.sent[name], self.trial.random
        await asyncio.sleep(chance.uniform(0, 3))  # it comes before, while or after it is waited for
        told = await asyncio.gather(*(self._send(name, "go", f"{name} by {who}") for who in ("ann", "bob")))
        arrived = [value for value in told if value is not None]
        sent.refused += told.count(None)
        sent.go = arrived[0] if len(arrived) == 1 else f"{len(arrived)} were acknowledged"
        await asyncio.sleep(chance.uniform(0, 2))  # the same, of one that may come too late
        sent.maybe = await self._send(name, "maybe", f"{name} maybe")
        sent.late = sent.maybe is None

    async def _send(self, name: str, signal: str, value: str) -> str | None:
        while True:
            try:
                await self.trial.app.jobs.signal(self.handles[name], signal, value)
            except (SignalExists, MoveRefused):
                return None
            except StoreError:
                await asyncio.sleep(0.05)  # asked again: whether it arrived is not known
            else:
                return value

    async def speak_late(self, over: asyncio.Event) -> None:
        """Say in the name of every lease that was lost, a few times, what its worker might still have said."""
        said: Counter[tuple[str, int]] = Counter()
        while not over.is_set():
            begun = {(line["name"], line["token"]) for line in self.lines("begun")}
            for name, token in begun - {lease for lease, times in said.items() if times >= _OFTEN}:
                [job] = await self.trial.desk.store.views.get([self.handles[name].id])
                if job is not None and job.status is Status.PROCESSING and token < job.lease_token:
                    said[name, token] += 1
                    await self._speak(job, token)
            await asyncio.sleep(0.1)  # as often as it can be said beside the work

    async def _speak(self, job: Job, token: int) -> None:
        [verdict] = await self.trial.app.store.jobs.keep([Keep(Lease(job.id, token), "late", "1")])
        self.probes += 1
        if verdict is Verdict.APPLIED:
            self.late.append(f"job {job.id} kept a late word of lease {token}, while {job.lease_token} held it")

    def lines(self, *what: str) -> list[dict[str, Any]]:
        """What the handlers have told, in order."""
        file = self.trial.place.folder / "lines"
        texts = file.read_text().splitlines() if file.exists() else []
        told: list[dict[str, Any]] = [json.loads(text) for text in texts if text.endswith("}")]
        return [line for line in told if not what or line["what"] in what]

    async def all_ended(self) -> bool:
        """Whether every job of the trial has."""
        jobs = await self.trial.desk.store.views.get([handle.id for handle in self.handles.values()])
        return all(job is not None and job.status.finished for job in jobs)

    async def over(self) -> bool:
        """Whether there is nothing more to learn: all have ended, or a mistake that was made on purpose has shown."""
        caught = self.trial.place.control and (self.late or judged_lines(self.lines()))
        return bool(caught) or await self.all_ended()

    def effects(self) -> Counter[tuple[str, int]]:
        """How often each step has had its effect."""
        return Counter((line["name"], line["of"]) for line in self.lines("effect"))

    async def lost_leases(self) -> int:
        """How often a job had to begin again because its worker was gone."""
        histories = [await handle.history() for handle in self.handles.values()]
        return sum(entry.happened is Happened.LOST for history in histories for entry in history)

    @property
    def died(self) -> int:
        """How often a job has taken its worker with it."""
        return len(list(self.trial.place.folder.glob("died *")))


async def remembered(place: Place, seed: int, *, long: bool) -> Finding:
    """Jobs that kill their workers, workers that are replaced, and signals meanwhile."""
    async with Trial(place, pace=PACE, spec=SPEC, seed=seed) as trial:
        orders = Orders(trial)
        await trial.ready(WORKERS)
        await orders.enqueue(POINTS * 3 if long else POINTS[seed % 2 :: 2])
        async with replaced(trial):
            over = asyncio.Event()
            beside = asyncio.create_task(orders.speak_late(over))
            signals = [asyncio.create_task(orders.signal(name)) for name in orders.handles]
            done = await until(orders.over, 20 if place.control else 240 if long else 90)
            over.set()  # not cancelled: a driver may take that for a trouble of its own, and go on
            await beside
            await asyncio.wait(signals, timeout=10)
        missing = [*judged_lines(orders.lines()), *orders.late, *await judged_jobs(orders)]
        unproved = [] if orders.probes else ["no lease was lost while somebody could speak late: nothing was proved"]
        unproved += [] if orders.died or place.control else ["nobody died: nothing was proved"]
        report = Report(
            acknowledged=len(orders.handles),
            deaths=orders.died,
            late_refused=orders.probes - len(orders.late),
            dup_total=await orders.lost_leases(),
            # Those whose worker died before they were remembered: at least once is the promise there.
            effects_twice=sum(times > 1 for times in orders.effects().values()),
        )
        figures = f"{orders.died} deaths, {orders.probes} late words, {'all ended' if done else 'not all ended'}"
        return Finding(fault="remembered", report=report, missing=tuple(missing or unproved), figures=figures)


@asynccontextmanager
async def replaced(trial: Trial) -> AsyncGenerator[None, None]:
    """While inside, a worker that dies is replaced."""

    async def watch() -> None:
        while True:
            trial.note_ends()
            trial.start(WORKERS - len(trial.alive))
            await asyncio.sleep(0.05)  # as often as a supervisor looks

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


def judged_lines(lines: list[dict[str, Any]]) -> list[str]:
    """What must not be, of what the handlers told: in their order, which is that of their writing."""
    wrong: list[str] = []
    kept: set[tuple[str, int]] = set()
    cursor: Counter[str] = Counter()
    for line in lines:
        match line:
            case {"what": "effect", "name": name, "of": n} if (name, n) in kept:
                wrong.append(f"step {n} of {name} happened again although remembered")
            case {"what": "remembered", "name": name, "of": n}:
                kept.add((name, n))
            case {"what": "saved", "name": name, "of": row}:
                cursor[name] = max(cursor[name], row)
            case {"what": "begun", "name": name, "saved": row} if row < cursor[name]:
                wrong.append(f"the cursor of {name} went back from {cursor[name]} to {row}")
            case _:
                pass
    return wrong


async def judged_jobs(orders: Orders) -> list[str]:
    """What must not be, of what the store has in the end."""
    wrong: list[str] = []
    children = Counter[str]()
    for child in (await orders.trial.desk.store.views.find(Filter(type="part"), 1000)).jobs:
        children[child.payload["name"]] += 1
    found = await orders.trial.desk.store.views.get([handle.id for handle in orders.handles.values()])
    for (name, sent), job in zip(orders.sent.items(), found, strict=True):
        if job is None:
            wrong.append(f"{name} is lost")
        elif job.status is not Status.SUCCEEDED:
            wrong.append(f"{name} is {job.status}, blocked by {job.blocked_by}: lost, or its signal is")
        else:
            expected = [
                [n * n for n in range(STEPS)],
                ROWS,
                [sent.go, sent.maybe],
                [f"{name} {n}" for n in range(PARTS)],
            ]
            if job.result != expected:
                wrong.append(f"{name} gave {job.result}, not {expected}: a signal or a value was lost")
            if children[name] != PARTS:
                wrong.append(f"{name} has {children[name]} children, not {PARTS}")
    return wrong
