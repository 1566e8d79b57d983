"""What trials of the store and of the way to it share: noting a fault, waiting for work to go on, and the finding."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from windlass.chaos.checker import check
from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.invariants import CLOCKS
from windlass.chaos.place import Place
from windlass.chaos.report import Report
from windlass.chaos.trial import WORKLOAD, Trial
from windlass.chaos.waiting import until

RESUMED_WITHIN = 5.0
BROKEN = "tests.faults.app:app"
_KINDS = {"postgresql": "postgres", "mongodb": "mongo"}


def kind_of(place: Place) -> str:
    """The kind of store at a place."""
    scheme = urlsplit(place.url).scheme
    return _KINDS.get(scheme, scheme)


def spec_of(place: Place) -> str:
    """The application of a trial there."""
    return BROKEN if place.control else WORKLOAD


def strike(trial: Trial, name: str) -> None:
    """Note a fault that excuses nobody."""
    trial.strike(name)


def heal(trial: Trial, name: str) -> float:
    """Note that it is over, for every worker: when that was."""
    at = time.monotonic()
    trial.healed(name)
    return at


async def acknowledged(trial: Trial, more: int, within: float = 30.0) -> None:
    """Wait until so many more enqueues have returned."""

    def count() -> int:
        return sum(line.what is What.ACKNOWLEDGED for line in trial.history.lines())

    enough = count() + more
    if not await until(lambda: count() >= enough, within):
        raise AssertionError(f"of {more} jobs, {more - enough + count()} were acknowledged in {within:g} s")


async def resumed(trial: Trial, since: float, within: float = 15.0) -> bool:
    """Whether every worker that lives has begun a job again."""

    def all_began() -> bool:
        began = {run.pid for runs in trial.runs().values() for run in runs if run.begun > since}
        return {hand.pid for hand in trial.alive} <= began

    return await until(all_began, within)


def slow_to_resume(report: Report) -> list[str]:
    """What is wrong with how soon work went on after each healing."""
    if not report.resume:
        return ["no worker resumed: nothing was proved"]
    slow = max(report.resume)
    return [f"a worker resumed after {slow:.2f} s, at most {RESUMED_WITHIN:g} are promised"] * (slow > RESUMED_WITHIN)


async def found_by(name: str, trial: Trial, *proves: Callable[[Report], list[str]], clocks: float = CLOCKS) -> Finding:
    """The end of a trial: its report, and what is missing in it."""
    report = check(replace(await trial.evidence(), clocks=clocks))
    return Finding(fault=name, report=report, missing=tuple(told for prove in proves for told in prove(report)))
