"""Calls do not grow with workers: twenty that are idle ask little, and one job wakes few of them."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.scale.fleet import CLAIMS, FASTER, IDLE, PROMOTES, Fleet
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(120)

WORKERS = 20
JOBS = 30
SECONDS = 2


async def test_an_idle_fleet_asks_little_and_one_job_wakes_few(place: Place, store: Store) -> None:
    fleet = Fleet(place)
    async with fleet.working(WORKERS) as client:
        idle = await fleet.idle(SECONDS)
        spent = await fleet.one_by_one(client, JOBS)
    assert idle.total() <= IDLE * WORKERS * FASTER * SECONDS, idle
    assert spent["jobs.claim"] <= CLAIMS * JOBS, spent
    assert spent["jobs.promote"] <= PROMOTES * JOBS, spent
    assert spent["schedules.list"] + spent["schedules.due"] <= PROMOTES * JOBS, spent
