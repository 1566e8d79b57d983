"""What becomes of jobs when their worker is killed, frozen, stopped, poisoned or blocked: nothing is lost.

Each trial also runs on stores that are wrong on purpose, and is worth nothing if it does not catch them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.places import STORES, open_place
from tests.control.conftest import address
from tests.faults.matrix import ROWS
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(90)
SEEDS = {store: number for number, store in enumerate(("sqlite", "mongo", "postgres", "redis"))}


@pytest.fixture
def seed(spot: Place) -> int:
    """Another one on each store, so that they see different choices; printed with a failure."""
    return SEEDS[spot.url.partition(":")[0].replace("postgresql", "postgres").replace("mongodb", "mongo")]


async def passed(number: str, spot: Place, seed: int) -> Finding:
    finding = await ROWS[number].run(spot, seed, long=False)
    assert finding.good, f"{number} seed {seed} in {spot.folder}: {finding.told()}"
    return finding


async def test_nothing_is_lost_when_a_worker_is_killed_with_jobs_in_flight(spot: Place, seed: int) -> None:
    await passed("M1", spot, seed)


async def test_the_late_results_of_a_frozen_worker_are_refused(spot: Place, seed: int) -> None:
    finding = await passed("M2", spot, seed)
    assert finding.report.late_refused >= 2, "of the frozen worker's jobs, and of the one stopped at its very end"


async def test_sigterm_loses_nothing_and_spends_no_attempt(spot: Place, seed: int) -> None:
    await passed("M3", spot, seed)


async def test_a_poison_job_stops_after_three_crashes_and_the_innocent_succeed(spot: Place, seed: int) -> None:
    await passed("M16", spot, seed)


async def test_a_blocked_loop_or_a_held_gil_makes_no_job_run_twice_under_its_lease(spot: Place, seed: int) -> None:
    await passed("M17", spot, seed)


@pytest.fixture
async def control_spot(tmp_path: Path) -> AsyncIterator[Place]:
    """One store is enough for the controls: they are made of the contract alone."""
    async with open_place(STORES[0], tmp_path) as place:
        url, namespace = address(place)
        yield Place(url=url, namespace=namespace, folder=tmp_path / "trial")


CAUGHT = {
    "rescue_from_snapshot": ("dup_in_lease", "late_accepted"),
    "notify_only": ("unfinished",),
    "look_then_insert": ("I6",),
    "count_then_claim": ("I7",),
    "complete_by_id": ("dup_in_lease", "late_accepted"),
    "forget_hand_backs": ("handed back after",),
    "count_no_crashes": ("workers died",),
    "client_clock": ("dup_in_lease",),
    "look_then_fire": ("jobs more than its ticks",),
    "acknowledge_anyway": ("lost",),
    "no_patience": ("told that the file is locked",),
    "no_jitter": ("peak/mean of retries",),
    "discard_unknown": ("misjudged",),
}
"""by what each mistake must be found"""
TRIES = 3
"""a mistake that needs two at one moment may stay hidden once: as many seeds are tried"""


@pytest.mark.parametrize(
    ("number", "control"),
    [
        (row.number, one)
        for row in ROWS.values()
        if "sqlite" in row.stores and not row.long_only
        for one in row.controls
    ],
)
async def test_a_store_that_is_wrong_on_purpose_is_caught(control_spot: Place, number: str, control: str) -> None:
    told: list[str] = []
    for seed in range(1, TRIES + 1):
        spot = replace(control_spot, control=control, namespace=f"try{seed}", folder=control_spot.folder / f"{seed}")
        found = (await ROWS[number].run(spot, seed, long=False)).told()
        if any(word in found for word in CAUGHT[control]):
            return
        told.append(found)
    raise AssertionError(f"{control} was not caught in {TRIES} tries: {told}")
