"""The faults: what is done to the workers of a trial, and what else must have happened for it to have proved something.

Each is one entry of `FAULTS`; the seed of a trial decides every choice that chance leaves open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from windlass.chaos.absence import absence, can_be_away
from windlass.chaos.history import What
from windlass.chaos.place import Pace, Place
from windlass.chaos.report import Report
from windlass.chaos.trial import WORKLOAD, Hand, Trial
from windlass.chaos.waiting import until
from windlass.chaos.workload import KINDS

CRASHES = 3
"""how many crashes a poison job is allowed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large a trial is."""

    jobs: int = 30
    workers: int = 2
    seconds: float = 0.0
    """go on with faults for so long; 0 is one round"""
    within: float = 30.0
    """how long everything may take to end after the last fault"""
    deaths: int = CRASHES + 1
    """how many workers each poison job may kill: the first before it was known to have the job, which is not counted"""
    job: float = 0.3
    """seconds that an ordinary job takes, about"""
    kinds: tuple[str, ...] = KINDS
    """how poison kills"""
    innocents: int = 9
    pace: Pace = field(default_factory=Pace)
    spec: str = WORKLOAD
    tell: Callable[[float], None] | None = None
    """told how much of it is done, from 0 to 1"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of harm."""

    name: str
    summary: str
    harm: Callable[[Trial, Plan], Awaitable[bool | None]]
    """does it; False says that there is nothing more to wait for"""
    proves: Callable[[Report, Plan], list[str]]
    """what is still missing or too slow in a report that breaks nothing"""
    possible: Callable[[Place], None] = lambda _: None
    """raises NotHere where it cannot be done"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A report, and what the fault itself asks of it."""

    fault: str
    report: Report
    missing: tuple[str, ...] = ()
    figures: str = ""
    """what else was measured, in a phrase"""

    @property
    def good(self) -> bool:
        """Whether nothing is broken, and the trial proved that."""
        return not self.report.broken and not self.missing

    @property
    def open(self) -> bool:
        """Whether nothing is broken, but the fault did not come to bear, so that nothing was proved either."""
        return not self.report.broken and bool(self.missing) and all("proved" in text for text in self.missing)

    def told(self) -> str:
        """Why it is not good."""
        return "\n".join([*self.report.told().splitlines(), *self.missing])


async def run(name: str, place: Place, plan: Plan, seed: int = 0) -> Finding:
    """One trial of one fault."""
    fault = FAULTS[name]
    async with Trial(place, pace=plan.pace, spec=plan.spec, seed=seed) as trial:
        if await fault.harm(trial, plan) is not False:
            await trial.finished(plan.within, None if plan.tell is None else _share(plan.tell))
        report = await trial.judged()
        stuck = await trial.stop()
        return Finding(fault=name, report=report, missing=(*fault.proves(report, plan), *stuck))


def _share(tell: Callable[[float], None]) -> Callable[[int, int], None]:
    return lambda done, of: tell(0.5 + 0.5 * done / max(of, 1))


async def _rounds(trial: Trial, plan: Plan, once: Callable[[], Awaitable[object]]) -> None:
    """Do it once, and again until the time is over; jobs keep coming meanwhile."""
    began = time.monotonic()
    first = max(1, plan.jobs // 2) if plan.seconds else plan.jobs
    await trial.fill(first, plan.job)
    left = plan.jobs - first
    while True:
        await once()
        spent = time.monotonic() - began
        if spent >= plan.seconds:
            break
        if plan.tell is not None:
            plan.tell(0.5 * spent / plan.seconds)
        due = min(left, round(plan.jobs * spent / plan.seconds) - (plan.jobs - left) + 8)
        await trial.fill(max(0, due), plan.job)
        left -= max(0, due)
    await trial.fill(left, plan.job)


async def _kill(trial: Trial, plan: Plan) -> None:
    await trial.ready(plan.workers)

    async def once() -> None:
        # A few long ones among those in flight, so that their heirs, too, are at it for a while.
        last = [await trial.enqueue("work", seconds=plan.pace.lease) for _ in range(trial.random.randint(2, 4))][-1]
        hand = await trial.runner(last)
        if hand is not None:
            await asyncio.sleep(trial.random.uniform(0, 0.1))
            await trial.kill(hand)
            await trial.ready(1)  # the next is killed when this one is replaced: some worker always goes on

    await _rounds(trial, plan, once)


async def _freeze(trial: Trial, plan: Plan) -> None:
    await trial.ready(plan.workers)
    naps = [0.0]  # at first while the heirs are still at it; later also when they have done

    async def once() -> None:
        # Jobs that outlast a lease are still running in their heirs' hands when the frozen worker wakes.
        last = [await trial.enqueue("work", seconds=plan.pace.lease * 1.5) for _ in range(3)][-1]
        hand = await trial.runner(last)
        if hand is not None:
            trial.freeze(hand)
            await _inherited(trial, hand, plan)
            await asyncio.sleep(trial.random.choice(naps))
            trial.thaw(hand)
            naps.append(plan.pace.lease * 2)

    await _rounds(trial, plan, once)
    await trial.enqueue("stop_at_the_end")
    await _thaw_by_itself(trial, plan)


async def _inherited(trial: Trial, hand: Hand, plan: Plan) -> bool:
    """Whether others began what a frozen worker holds."""
    held = {run.job for run in trial.in_flight(hand)}

    def begun() -> bool:
        runs = trial.runs()
        return all(any(run.pid != hand.pid and run.left == float("inf") for run in runs[job]) for job in held)

    return await until(begun, plan.pace.recovery + 1)


async def _thaw_by_itself(trial: Trial, plan: Plan) -> None:
    """Wake the worker that a handler stopped, once somebody else has done its job."""

    def stopped() -> list[Hand]:
        own = {line.pid for line in trial.history.lines() if line.what is What.FAULT and line.job}
        return [hand for hand in trial.hands if hand.pid in own]

    if await until(lambda: bool(stopped()), 10):
        [hand] = stopped()
        hand.frozen = True
        job = next(line.job for line in trial.history.lines() if line.what is What.FAULT and line.job)
        await until(lambda: len(trial.runs().get(str(job), ())) > 1, plan.pace.recovery + 3)
        trial.thaw(hand)


async def _term(trial: Trial, plan: Plan) -> None:
    await trial.ready(plan.workers)

    async def once() -> None:
        # One that outlasts the grace period, so that there is something to hand back.
        job = await trial.enqueue("work", seconds=plan.pace.grace + 1)
        hand = await trial.runner(job)
        if hand is not None:
            await asyncio.sleep(trial.random.uniform(0, 0.3))
            trial.terminate(hand)
            trial.start()
            if trial.random.random() < 0.3:
                await asyncio.sleep(trial.random.uniform(0, plan.pace.grace))
                trial.terminate(hand)
            await hand.ended()

    await _rounds(trial, plan, once)


async def _poison(trial: Trial, plan: Plan) -> bool:
    # One worker at a time, so that the innocent sit where the poison kills.
    for kind in plan.kinds:
        await trial.enqueue("poison", kind=kind, seconds=0.15, expect="failed", max_crashes=CRASHES)
    for _ in range(plan.innocents):
        await trial.enqueue("work", seconds=0.25, max_crashes=CRASHES)
    await trial.ready(1)
    deadline = time.monotonic() + plan.seconds + plan.within
    while time.monotonic() < deadline and len(trial.hands) <= plan.deaths * len(plan.kinds) + 1:
        if not trial.alive:
            trial.start()
        if await trial.finished(0.1):
            break
    return False


async def _block(trial: Trial, plan: Plan) -> None:
    # One worker each for the blocked loop, for the held lock, and to take their jobs.
    await trial.ready(max(3, plan.workers))
    began = time.monotonic()
    while True:
        await trial.enqueue("block", seconds=plan.pace.lease * 5)
        await _taken(trial, "block")
        await trial.enqueue("hold_gil", seconds=plan.pace.lease * 2)
        await _taken(trial, "hold_gil")
        await trial.fill(plan.jobs, plan.job)
        if time.monotonic() - began + plan.pace.lease * 5 >= plan.seconds:
            return
        await trial.finished(plan.within)


async def _taken(trial: Trial, type_: str) -> None:
    """Wait until every job of a type has begun."""
    ids = {str(line.job) for line in trial.history.lines() if line.job and (line.name or "").startswith(type_)}
    await until(lambda: ids <= trial.runs().keys(), 10)


async def _child(trial: Trial, plan: Plan) -> None:
    await trial.ready(plan.workers)
    await _warmed(trial)

    async def once() -> None:
        # It would outlast its lease by far, and the beginning of its heir.
        job = await trial.enqueue("offspring", seconds=plan.pace.lease * 5)
        hand = await _parent(trial, job)
        if hand is not None:
            await asyncio.sleep(trial.random.uniform(0, plan.pace.heartbeat))
            trial.freeze(hand)
            await until(lambda: len(trial.runs().get(job or "", ())) > 1, plan.pace.recovery + 5)
            await asyncio.sleep(trial.random.uniform(0, plan.pace.lease / 2))
            trial.thaw(hand)

    await _rounds(trial, plan, once)


async def _warmed(trial: Trial, tries: int = 20) -> None:
    """Let every worker have a process to spare: an heir that must start one first would begin too late to be beside."""
    for _ in range(tries):
        begun = {line.note for line in trial.history.lines() if line.what is What.BEGUN}
        if {str(hand.pid) for hand in trial.alive} <= begun:
            return
        jobs = [await trial.enqueue("offspring", seconds=0.0) for _ in trial.alive]
        await _all_ended(trial, jobs, 15)


async def _parent(trial: Trial, job: str | None) -> Hand | None:
    """The worker whose child runs this job."""

    def parents() -> list[Hand]:
        begun = [line for line in trial.history.lines() if line.what is What.BEGUN and line.job == job]
        return [hand for hand in trial.alive if begun and str(hand.pid) == begun[-1].note]

    await until(lambda: bool(parents()), 15)
    return next(iter(parents()), None)


async def _away(trial: Trial, plan: Plan) -> None:
    with absence(trial.place.url) as store:
        await trial.ready(plan.workers, CHAOS_URL=store.url)

        async def once() -> None:
            # Some end while the store is away, and their results are kept; some are still at it when their leases end.
            lease, many = plan.pace.lease, 2 * plan.workers
            jobs = [
                *[await trial.enqueue("work", seconds=lease / 2, max_crashes=1) for _ in range(many)],
                *[await trial.enqueue("work", seconds=lease * 2) for _ in range(plan.workers)],
            ]
            await until(lambda: trial.runs().keys() >= set(jobs), 10)
            trial.strike("away")
            store.begin()
            await asyncio.sleep(lease * trial.random.uniform(1.8, 2.4))
            store.end()
            trial.healed("away")
            await _all_ended(trial, jobs, plan.within)

        await _rounds(trial, plan, once)
        await trial.finished(plan.within)
        await trial.stop()


async def _all_ended(trial: Trial, jobs: list[str | None], within: float) -> bool:
    """Whether these were ended by a handler, and not only begun."""

    def ended() -> bool:
        return {line.job for line in trial.history.lines() if line.what is What.ENDED} >= set(jobs)

    return await until(ended, within)


def _kept(report: Report, _: Plan) -> list[str]:
    if not report.resume:
        return ["no worker resumed: nothing was proved"]
    twice = report.effects_twice
    return [f"{twice} jobs ran again though their results were ready"] if twice else []


def _fenced(report: Report, _: Plan) -> list[str]:
    return [] if report.late_refused else ["nothing late was refused: nothing was proved"]


def _recovered(report: Report, plan: Plan) -> list[str]:
    if not report.recovery:
        return ["no job was hit: nothing was proved"]
    # Besides the recovery itself: a second for a worker to start, and what the machine kept from the workers.
    most = plan.pace.recovery + 1 + report.stalled
    slow = max(report.recovery)
    return [f"a job took {slow:.2f} s to begin again, at most {most:.2f} are promised"] if slow > most else []


def _refused(report: Report, _: Plan) -> list[str]:
    # One of a frozen worker at least, and the one that was stopped between its last act and the writing of its end.
    return [] if report.late_refused > 1 else [f"{report.late_refused} late results were refused: not all was proved"]


def _handed(report: Report, _: Plan) -> list[str]:
    if not report.handback:
        return ["nothing was handed back: nothing was proved"]
    slow, most = max(report.handback), 1 + report.stalled
    return [f"a job was handed back after {slow:.2f} s, at most {most:.2f} are promised"] if slow > most else []


def _deaths(report: Report, plan: Plan) -> list[str]:
    most = plan.deaths * len(plan.kinds)
    return [f"{report.deaths} workers died, at most {most} are promised"] if report.deaths > most else []


def _nothing(_: Report, __: Plan) -> list[str]:
    return []


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("kill", "kill -9 of a worker with jobs in flight", _kill, _recovered),
        Fault("freeze", "SIGSTOP beyond the lease, then SIGCONT", _freeze, _refused),
        Fault("term", "SIGTERM at random points", _term, _handed),
        Fault("poison", "jobs that kill their worker", _poison, _deaths),
        Fault("block", "a blocked event loop, a held GIL", _block, _nothing),
        Fault("child", "SIGSTOP of a worker whose job runs in a process of its own", _child, _fenced),
        Fault("away", "a store that is away longer than a lease", _away, _kept, lambda place: can_be_away(place.url)),
    )
}
"""by name, in the order they are run"""
