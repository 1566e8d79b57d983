"""M12: workers whose wall clocks are an hour off, and a store whose clock is set while they are at it.

A worker's clock must not matter: leases and due times are the store's. A store's clock that is set forward ends the
leases of that moment, which may cost one run more of each job in flight; set back, it costs nothing but the patience of
what was due later. SQLite has no clock but that of the processes on its host, so there all of them are set together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.faults.clocks import Clock
from tests.faults.judging import kind_of, spec_of
from tests.faults.own_server import open_folder, own_server, removing
from windlass import Entry, Happened, Status
from windlass.chaos.checker import Evidence, check, shown
from windlass.chaos.faults import Finding
from windlass.chaos.history import Line, What
from windlass.chaos.place import Place
from windlass.chaos.report import Report
from windlass.chaos.trial import Hand, Trial
from windlass.chaos.waiting import until

HOUR, STEP = timedelta(hours=1), timedelta(minutes=10)
DELAY = 1.0
AROUND = 0.2
"""seconds around a step in which a claim or an extension may have met either clock"""


async def delayed(trial: Trial, n: int) -> None:
    """Jobs that are due in a while."""
    for number in range(n):
        name = f"late-{os.getpid()}-{number}-{len(trial.history.lines())}"
        trial.history.tell(What.INVOKED, name=name, expect="succeeded")
        handle = await trial.app.enqueue("work", {"name": name, "seconds": 0.05}, delay=DELAY, max_crashes=50)
        trial.history.tell(What.ACKNOWLEDGED, name=name, job=handle.id)


def early(evidence: Evidence) -> list[str]:
    """Jobs that began before they were due, by the store's clock and by the stopwatch, which no step moves.

    Both must say so: a clock set forward makes a job due, and one set back does not make it undue that was.
    """
    asked = {line.name: line.at for line in evidence.of(What.INVOKED) if str(line.name).startswith("late-")}
    found: list[str] = []
    for job in evidence.jobs:
        name, history = str(job.payload["name"]), evidence.histories[job.id]
        runs = evidence.runs.get(job.id)
        claims = [one.at for one in history if one.happened is Happened.CLAIMED]
        if name not in asked or not runs or not claims:
            continue
        waited = min(run.begun for run in runs) - asked[name]
        told = (claims[0] - history[0].at).total_seconds()
        if waited < DELAY and told < DELAY:
            found.append(f"early: {job.id} began after {waited:.3f} s, by the store's clock after {told:.3f} s")
    return found


async def clocks(place: Place, seed: int, *, long: bool) -> Finding:
    """One worker's clock is an hour fast, one's an hour slow; the store's is set ten minutes forward, and back."""
    if kind_of(place) == "sqlite":
        place.folder.mkdir(parents=True, exist_ok=True)
        clock = Clock(place.folder)
        return await ClockTrial(place, seed, clock, clock, long=long).run()
    folder = open_folder()
    clock = Clock(folder)
    with own_server(place, clock.environment) as (_, own), removing(folder):
        return await ClockTrial(own, seed, clock, None, long=long).run()


class ClockTrial:
    """One trial; `shared` is the clock of every worker where the store has none of its own."""

    def __init__(self, place: Place, seed: int, clock: Clock, shared: Clock | None, *, long: bool) -> None:
        self.place, self.clock, self.shared, self.long = place, clock, shared, long
        self.trial = Trial(place, spec=spec_of(place), seed=seed)
        self.offsets: dict[int, timedelta] = {}
        self.forward: list[tuple[float, float]] = []
        """by the stopwatch, before and after each step forward"""
        self.missing: list[str] = []

    async def run(self) -> Finding:
        async with self.trial:
            await self._workers(HOUR, -HOUR)
            await self._calm()
            if not self.place.control:
                await self._step(STEP)
                await self._step(timedelta(0))
            evidence = await self.trial.evidence()
        return self._judged(evidence)

    async def _workers(self, *offsets: timedelta) -> None:
        new: list[Hand] = []
        for off in offsets:
            clock = self.shared
            if clock is None:
                clock = Clock(self.place.folder, f"clock{len(self.trial.hands)}")
                clock.shift(off)
            [hand] = self.trial.start(1, **clock.environment)
            self.offsets[hand.pid] = off
            new.append(hand)
        assert await until(lambda: all(b" ready " in hand.log.read_bytes() for hand in new), 30), self.trial.logs()

    async def _calm(self) -> None:
        """The store's clock is right, and a worker is killed."""
        trial = self.trial
        await delayed(trial, 4)
        await trial.fill(60 if self.long else 10, 0.05)
        # Longer than a lease, so that every worker has to keep it by extending. With the mistake so long that it is
        # made while they run: the worker on duty may be the one that is killed, and then the other is so a lease later.
        leases = 3 if self.place.control else 1.3
        held = [await trial.enqueue("work", seconds=trial.pace.lease * leases) for _ in range(6)][-1]
        hand = await trial.runner(held)
        if hand is not None:
            await trial.kill(hand)
            await self._workers(self.offsets[hand.pid])
        await self._all_ended("a worker was killed")

    async def _step(self, to: timedelta) -> None:
        trial = self.trial
        if to > timedelta(0) or self.shared is None:
            # Who enqueues here has a clock that is right, and one file wants one clock: docs/stores/sqlite.md.
            await delayed(trial, 4)
        if to <= timedelta(0):
            # What is due later is due so much later when a clock is set back: nothing may wait for its time then.
            await until(self._none_is_scheduled, 10)
        many = 30 if self.long else 20
        held = [await trial.enqueue("work", seconds=trial.random.uniform(0.3, 1.2)) for _ in range(many)]
        await trial.runner(held[0])
        trial.fault("clock")
        before = time.monotonic()
        self.clock.shift(to)
        if to > timedelta(0):
            self.forward.append((before, time.monotonic()))
        if self.shared is None and not await until(lambda: self._shows(to), 10):
            self.missing.append(f"the store did not show a clock set to {to} within 10 s")
        trial.healed("clock")
        await self._all_ended(f"the clock was set to {to}")

    async def _all_ended(self, after: str) -> None:
        within = 4 if self.place.control else 90 if self.long else 20
        if not await self.trial.finished(within):
            self.missing.append(f"not all ended within {within} s after {after}")

    async def _none_is_scheduled(self) -> bool:
        stats = await self.trial.desk.store.views.stats(timedelta(0))
        return not any(one.count.n for one in stats.counts if one.status is Status.SCHEDULED)

    async def _shows(self, off: timedelta) -> bool:
        return abs(await self.trial.desk.store.now() - off - datetime.now(UTC)) < timedelta(seconds=30)

    def _judged(self, evidence: Evidence) -> Finding:
        """By one clock: what workers and store stamped while theirs were wrong is set right before it is compared."""
        missing = [*self.missing, *early(evidence)]
        latest = datetime.now(UTC) + STEP / 2
        stamps = [one.at for some in evidence.histories.values() for one in some]
        if not self.place.control and max(stamps) < latest:
            missing.append("the store's clock did not follow the shim: nothing was proved")
        histories = {job: [_stepped_back(one, latest) for one in some] for job, some in evidence.histories.items()}
        right = replace(evidence, histories=histories)
        if self.shared is None:
            right = replace(right, lines=set_right(evidence.lines, self.offsets))
            missing += _all_were_off(right.lines, self.offsets)
        else:
            right = replace(right, lines=[_by_monotonic(line, evidence.lines) for line in evidence.lines])
        report = check(right)
        # A step forward ends the leases of that moment, though their workers are well: one more run each is the price.
        hit = {
            job
            for job, runs in evidence.runs.items()
            for run in runs
            if any(run.begun < after + AROUND and run.left > before - AROUND for before, after in self.forward)
        }
        doubled = [one for one in report.dup_in_lease if one.partition(":")[0] not in hit]
        report = replace(report, dup_in_lease=tuple(doubled))
        missing += [
            f"{job} ran {len(runs)} times around a step forward: {shown(right, job)}"
            for job, runs in evidence.runs.items()
            if job in hit and len(runs) > 2
        ]
        return Finding(fault="clocks", report=report, missing=(*missing, *self._slow(report)))

    def _slow(self, report: Report) -> list[str]:
        most = self.trial.pace.recovery + 1 + report.stalled
        if not report.recovery:
            return ["no job was hit: nothing was proved"]
        slow = max(report.recovery)
        return [f"a job took {slow:.2f} s to begin again, at most {most:.2f} are promised"] if slow > most else []


def _stepped_back(entry: Entry, latest: datetime) -> Entry:
    return replace(entry, at=entry.at - STEP) if entry.at > latest else entry


_WORKERS_OWN = (What.BEGUN, What.ENDED, What.STOPPED, What.EFFECT, What.STALLED)


def set_right(lines: Sequence[Line], offsets: Mapping[int, timedelta]) -> list[Line]:
    """What workers stamped by clocks that were off so much, by the right one."""
    return [_right(line, offsets) for line in lines]


def _right(line: Line, offsets: Mapping[int, timedelta]) -> Line:
    off = offsets.get(line.pid or 0) if line.what in _WORKERS_OWN else None
    return line if off is None else replace(line, wall=line.wall - off.total_seconds())


def _by_monotonic(line: Line, lines: Sequence[Line]) -> Line:
    """By the clock of whoever enqueued, which nobody set."""
    ours = next(one for one in lines if one.what is What.INVOKED)
    return replace(line, wall=ours.wall + line.at - ours.at)


def _all_were_off(right: Sequence[Line], offsets: Mapping[int, timedelta]) -> list[str]:
    """Every clock was really off by what it was set to, and every worker worked."""
    ours = next(line.wall - line.at for line in right if line.what is What.INVOKED)
    worst = max(abs(line.wall - line.at - ours) for line in right)
    told = [f"a clock was {worst:.1f} s away from what it was set to"] if worst > 5 else []
    lazy = set(offsets.values()) - {offsets.get(line.pid or 0) for line in right if line.what is What.BEGUN}
    return [*told, *(f"no worker with a clock off by {off} began anything: nothing was proved" for off in lazy)]
