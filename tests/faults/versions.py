"""M21: a fleet of two versions, each with a handler that the other lacks: what a worker does not know, it leaves alone.

As a module it is the application of the fleet; FLEET says which version a worker process is of. Producers know both.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

from windlass import Cancel, Ctx, Status, Windlass
from windlass.chaos import workload
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until
from windlass.client.explaining import Why

SPEC = "tests.faults.versions:app"
OLD, NEW = "retired", "brand_new"
"""the types that only one version knows"""


async def retired(ctx: Ctx, name: str, seconds: float) -> int:
    """Only the old version has it."""
    return await workload.work(ctx, name, seconds)


async def brand_new(ctx: Ctx, name: str, seconds: float) -> int:
    """Only the new version has it."""
    return await workload.work(ctx, name, seconds)


async def discarded(name: str, seconds: float) -> None:
    """The control: a worker that takes what it does not know, and drops it."""
    raise Cancel("unknown type")


def application(place: Place) -> Windlass:
    made = workload.application(place)
    version = os.environ.get("FLEET")
    for handler, type_, known in ((retired, OLD, "old"), (brand_new, NEW, "new")):
        if version in (None, known):
            made.job(handler)
        elif place.control == "discard_unknown":
            made.job(name=type_)(discarded)
    return made


@dataclass(frozen=True, slots=True)
class Sides:
    """Who runs, and what waits for the other."""

    here: str
    away: str
    waits: str


async def rolling(place: Place, seed: int, *, long: bool) -> Finding:
    """Workers of one version, then of both, then of the other; jobs of both come all the time."""
    jobs = 60 if long else 12
    missing: list[str] = []
    async with Trial(place, spec=SPEC, seed=seed) as trial:
        for side in (Sides("old", "new", NEW), Sides("new", "old", OLD)):
            await trial.ready(2, FLEET=side.here)
            known = [await trial.enqueue("work", seconds=0.05) for _ in range(jobs)]
            unknown = [await trial.enqueue(side.waits, seconds=0.05) for _ in range(jobs)]
            if not await until(partial(_all, trial, known, Status.SUCCEEDED), 30):
                missing.append(f"what {side.here} knows did not end")
            if not await _all(trial, unknown, Status.QUEUED) and not place.control:
                missing.append(f"what {side.here} does not know did not wait")
            if not place.control:
                missing += await _told(trial, str(unknown[0]), side)
            # The deploy: the others come. At the second one of those that were there is killed with whatever it runs;
            # not at the first, for a killed worker counts as alive until it has been silent for a while.
            mixed = [await trial.enqueue("work", seconds=0.4) for _ in range(4)]
            hand = await trial.runner(mixed[0])
            await trial.ready(1, FLEET=side.away)
            if hand is not None and side.here == "new":
                await trial.kill(hand)
            if not await trial.finished(4 if place.control else 30):
                missing.append(f"not all ended when {side.away} had come")
            for one in trial.alive:
                trial.terminate(one)
            for one in trial.hands:
                await one.ended()
        report = await trial.judged()
    return Finding(fault="versions", report=report, missing=tuple(missing))


async def _all(trial: Trial, ids: list[str | None], status: Status) -> bool:
    found = await trial.desk.store.views.get([one for one in ids if one is not None])
    return all(job is not None and job.status is status for job in found)


async def _told(trial: Trial, job: str, side: Sides) -> list[str]:
    """Whether people are told that nobody handles the type."""
    why = await trial.desk.jobs.explain(job)
    missing = [] if why.why is Why.NO_HANDLER and side.waits in why.text else [f"explain says: {why}"]
    doctor = next(one for one in await trial.desk.health.check() if one.name == "types have workers")
    return missing if side.waits in doctor.found else [*missing, f"doctor says: {doctor}"]


app = application(Place.told())
