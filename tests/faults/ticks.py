"""M19: five workers fire the ticks of many schedules at once, while they are frozen and killed and their clocks differ.

Every tick must make one job, and every tick must be accounted for. Schedules stand at ticks that have passed, so that
each of the workers finds several to make up for at once, and at ticks that are about to come, for which all wake.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tests.faults.clocks import Clock
from tests.faults.judging import kind_of, spec_of
from tests.faults.wrong_clocks import set_right
from windlass import Job, cron
from windlass.chaos.checker import check
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until
from windlass.stores.contract import Fired, Schedule, Tick

MINUTE, SKEW = timedelta(minutes=1), timedelta(seconds=30)
MADE_UP = 12
"""ticks that a schedule is behind"""


@dataclass(frozen=True, slots=True)
class Put:
    """A schedule as it was put."""

    name: str
    first: datetime


async def ticks(place: Place, seed: int, *, long: bool) -> Finding:
    """Rounds of schedules that are due, past and soon; in each one worker is frozen for a while, and one killed."""
    rounds, each = (2, 16) if long else (2, 6)
    puts: list[Put] = []
    async with Trial(place, spec=spec_of(place), seed=seed) as trial:
        offsets = await _workers(trial, 5)
        for number in range(rounds):
            puts += await _put(trial, number, each)
            # All of them look at once: they stand still while ticks come due, and go on together.
            for hand in (racing := trial.alive):
                trial.freeze(hand)
            await asyncio.sleep(1.2)  # until ticks of a whole second are due
            for hand in racing:
                trial.thaw(hand)
            await asyncio.sleep(trial.random.uniform(0, 0.2))  # the fault meets them at any point of their race
            frozen, killed = trial.random.sample(trial.alive, 2)
            trial.freeze(frozen)
            await trial.kill(killed)
            await asyncio.sleep(trial.random.uniform(0.1, 0.8))  # the fault itself
            trial.thaw(frozen)
            offsets |= await _workers(trial, 1)
        within = 5 if place.control else 60 if long else 20
        # Not at the turn of a minute, when a worker may be about to fire what is being counted.
        await until(lambda: _mid_minute(trial), 20)
        passed = await until(lambda: _all_fired(trial, puts), within)
        await until(lambda: _all_ended(trial), within)
        evidence = await trial.evidence()
        standing = {one.name: one for one in await trial.desk.store.schedules.list()}
        told = {put.name: await trial.desk.store.schedules.ticks(put.name) for put in puts}
    evidence = replace(evidence, lines=set_right(evidence.lines, offsets))
    made = [job for job in evidence.jobs if job.schedule is not None]
    missing = [] if passed else ["not every schedule moved on in time"]
    for put in puts:
        of = [job for job in made if job.schedule == put.name]
        missing += accounted(put, standing.get(put.name), told[put.name], of)
    unfinished = tuple(f"{job.id} is {job.status}" for job in made if not job.status.finished)
    # No producer's line tells of jobs that ticks made: what they are is counted above.
    report = replace(check(evidence), unexpected=(), acknowledged=len(made), unfinished=unfinished)
    return Finding(fault="ticks", report=report, missing=tuple(missing))


async def _workers(trial: Trial, n: int) -> dict[int, timedelta]:
    # Where the store has no clock of its own, one host has one clock: docs/stores/sqlite.md.
    if kind_of(trial.place) == "sqlite":
        await trial.ready(n)
        return {}
    offsets: dict[int, timedelta] = {}
    for number in range(n):
        clock = Clock(trial.place.folder, f"clock{len(trial.hands)}")
        off = (SKEW, -SKEW, timedelta(0))[number % 3]
        clock.shift(off)
        [hand] = trial.start(1, **clock.environment)
        offsets[hand.pid] = off
    new = trial.hands[-n:]
    assert await until(lambda: all(b" ready " in hand.log.read_bytes() for hand in new), 30), trial.logs()
    return offsets


async def _put(trial: Trial, number: int, n: int) -> list[Put]:
    now = (await trial.desk.store.now()).replace(microsecond=0)
    past = now.replace(second=0) - MADE_UP * MINUTE
    soon = now + timedelta(seconds=1)
    schedules = [
        Schedule(
            name=f"s{number}-{one}",
            cron=cron("* * * * *", missed=("all", "latest")[one % 2], overlap="allow"),
            type="work",
            payload_json='{"name":"tick","seconds":0.0}',
            queue="default",
            next_tick=(past, soon, soon)[one % 3],
        )
        for one in range(n)
    ]
    await trial.desk.store.schedules.put(schedules)
    return [Put(one.name, one.next_tick) for one in schedules]


async def _all_fired(trial: Trial, puts: Sequence[Put]) -> bool:
    now = await trial.desk.store.now()
    standing = {one.name: one for one in await trial.desk.store.schedules.list()}
    return all(put.name in standing and standing[put.name].next_tick > now for put in puts)


async def _mid_minute(trial: Trial) -> bool:
    return 3 < (await trial.desk.store.now()).second < 45


async def _all_ended(trial: Trial) -> bool:
    stats = await trial.desk.store.views.stats(timedelta(0))
    return not any(one.count.n for one in stats.counts if not one.status.finished)


def accounted(put: Put, standing: Schedule | None, told: Sequence[Tick], made: Sequence[Job]) -> list[str]:
    """What does not add up: every tick from the first to where the schedule stands now was fired once, or missed."""
    if standing is None:
        return [f"{put.name} is gone"]
    expected = [put.first]
    following = put.first.replace(second=0, microsecond=0) + MINUTE
    while following < standing.next_tick:
        expected.append(following)
        following += MINUTE
    fired = Counter(one.tick for one in told if one.fired is Fired.FIRED)
    missed: Counter[datetime] = Counter()
    for one in told:
        if one.fired is Fired.MISSED:
            start = expected.index(one.tick) if one.tick in expected else 0
            missed.update(expected[start : start + one.ticks])
    jobs = Counter(job.tick for job in made if job.tick is not None)
    wrong = [tick for tick in expected if fired[tick] + missed[tick] != 1]
    found = [f"{put.name}: tick {tick} fired {fired[tick]} times, missed {missed[tick]} times" for tick in wrong]
    found += [f"{put.name}: {jobs[tick]} jobs of tick {tick}" for tick in {*jobs, *fired} if jobs[tick] != fired[tick]]
    doubles = sum(job.tick is None for job in made)
    found += [f"{put.name}: {doubles} jobs more than its ticks"] if doubles else []
    found += [f"{put.name}: there is no tick at {tick}" for tick in jobs if tick not in expected]
    return found
