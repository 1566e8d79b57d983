"""What becomes of jobs when the store's server goes, or the way to it: nothing is lost, and work goes on by itself.

Each trial also meets a mistake that it must catch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.places import open_place
from tests.control.conftest import address
from tests.faults.matrix import ROWS, SERVERS
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place

pytestmark = pytest.mark.timeout(120)
SEEDS = {store: number for number, store in enumerate(SERVERS)}
"""another one on each store, so that they see different choices"""
own_server = pytest.mark.parametrize("store", SERVERS)
Tell = Callable[[str], None]


def nowhere(store: str, folder: Path, control: str = "") -> Place:
    """A place that stands for a kind of store: the trial starts a server of its own."""
    schemes = {"postgres": "postgresql", "mongo": "mongodb"}
    return Place(url=f"{schemes.get(store, store)}://", folder=folder / "trial", control=control)


@pytest.fixture
async def there(store: str, tmp_path: Path) -> AsyncIterator[Place]:
    """A place on a server that others may use at the same time: only the way to it is harmed."""
    async with open_place(store, tmp_path) as place:
        url, namespace = address(place)
        yield Place(url=url, namespace=namespace, folder=tmp_path / "trial")


async def passed(number: str, spot: Place, seed: int, tell: Tell) -> Finding:
    finding = await ROWS[number].run(spot, seed, long=False)
    report = finding.report
    resumed = f"{max(report.resume):.2f}" if report.resume else "-"
    tell(f"{number} seed {seed}: {report.acknowledged} acknowledged, {report.unknown} unknown, resumed {resumed} s")
    assert finding.good, f"{number} seed {seed} in {spot.folder}: {finding.told()}"
    return finding


@own_server
async def test_what_a_killed_server_acknowledged_is_done_after_its_restart(
    store: str, tmp_path: Path, tell: Tell
) -> None:
    await passed("M4", nowhere(store, tmp_path), SEEDS[store], tell)


@pytest.mark.parametrize("store", ["postgres", "redis"])
async def test_a_server_that_acknowledges_too_early_is_caught(store: str, tmp_path: Path) -> None:
    place = nowhere(store, tmp_path, "acknowledged_too_early")
    finding = await ROWS["M4"].run(place, SEEDS[store], long=False)
    assert finding.report.lost, f"nothing was lost: {finding.told()}"


@own_server
async def test_workers_resume_soon_after_a_server_that_stood_still(store: str, tmp_path: Path, tell: Tell) -> None:
    await passed("M5", nowhere(store, tmp_path), SEEDS[store], tell)


@own_server
async def test_a_worker_that_is_cut_off_gives_its_jobs_up_before_others_begin_them(
    store: str, there: Place, tell: Tell
) -> None:
    await passed("M6", there, SEEDS[store], tell)


@pytest.mark.parametrize("store", ["redis"])
async def test_a_worker_that_takes_silence_for_consent_is_caught(store: str, there: Place) -> None:
    finding = await ROWS["M6"].run(replace(there, control="never_fence"), SEEDS[store], long=False)
    assert finding.report.dup_in_lease, f"not caught: {finding.told()}"


@own_server
async def test_answers_that_are_lost_lose_and_double_no_job(store: str, there: Place, tell: Tell) -> None:
    await passed("M7", there, SEEDS[store], tell)


@pytest.mark.parametrize("store", ["redis"])
async def test_a_producer_that_asks_anew_instead_of_again_is_caught(store: str, there: Place) -> None:
    finding = await ROWS["M7"].run(replace(there, control="ask_anew"), SEEDS[store], long=False)
    assert finding.report.unexpected, f"not caught: {finding.told()}"


@pytest.mark.parametrize(("store", "seed"), [("mongo", 0), ("postgres", 1), ("redis", 1)])
async def test_jobs_begin_by_polling_and_a_deaf_listener_is_flagged(
    store: str, seed: int, there: Place, tell: Tell
) -> None:
    """An even seed silences the listener's connection, an odd one takes its notices alone."""
    await passed("M8", there, seed, tell)


@pytest.mark.parametrize("store", ["redis"])
async def test_a_worker_that_waits_for_notices_is_caught(store: str, there: Place) -> None:
    finding = await ROWS["M8"].run(replace(there, control="notify_only"), 0, long=False)
    assert "a job was not begun within" in finding.told(), f"not caught: {finding.told()}"
    assert finding.report.unfinished


@own_server
async def test_a_unique_key_has_one_holder_whatever_is_rolled_back_or_lost(
    store: str, there: Place, tell: Tell
) -> None:
    await passed("M18", there, SEEDS[store], tell)


@pytest.mark.parametrize("store", ["redis"])
async def test_a_store_that_looks_before_it_inserts_is_caught(store: str, there: Place) -> None:
    finding = await ROWS["M18"].run(replace(there, control="look_then_insert"), SEEDS[store], long=False)
    assert any(told.startswith("I6") for told in finding.report.violations), f"not caught: {finding.told()}"
    assert "held the key at one moment" in finding.told()
