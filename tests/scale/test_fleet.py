"""Calls do not grow with workers: twenty that are idle ask little, and one job wakes few of them."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.places import Place
from tests.scale.fleet import CLAIMS, FASTER, IDLE, PROMOTES, Fleet
from tests.support.apps import nothing_left
from tests.support.counting import Calls
from tests.support.until import until
from windlass import Windlass
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(120)

WORKERS = 20
JOBS = 30
SECONDS = 2


async def test_an_idle_fleet_asks_little(place: Place, store: Store) -> None:
    fleet = Fleet(place)
    async with fleet.working(WORKERS):
        idle, seconds = await fleet.idle(SECONDS)
    once = WORKERS  # what comes at intervals may come once more in a span than the span is long
    assert idle.total() <= IDLE * WORKERS * FASTER * seconds + once, idle


async def test_one_job_wakes_few(place: Place, store: Store) -> None:
    fleet = Fleet(place, polls=False)
    async with fleet.working(WORKERS) as client:
        spent = await fleet.one_by_one(client, JOBS)
    assert spent["jobs.claim"] <= CLAIMS * JOBS, spent
    assert spent["jobs.promote"] <= PROMOTES * JOBS, spent
    assert spent["schedules.list"] + spent["schedules.due"] <= PROMOTES * JOBS, spent


async def test_the_ends_of_others_make_no_busy_worker_look_for_requests_to_cancel(place: Place, store: Store) -> None:
    if store.capabilities.store == "sqlite":
        return  # a file cannot tell one from the other, and to look costs a read of an index
    calls, go, held, ended = Calls(), asyncio.Event(), 0, 0
    busy, quick = Windlass(store=calls.on(place.store())), Windlass(store=place.store())

    @busy.job(name="hold")
    async def hold() -> None:
        nonlocal held
        held += 1
        await go.wait()

    @quick.job(name="quick")
    async def end() -> None:
        nonlocal ended
        ended += 1

    async with nothing_left(), busy.worker(), quick.worker():
        await hold.enqueue()
        await until(lambda: held, "a job to run")
        before = calls.now()
        for number in range(JOBS):
            await end.enqueue()
            await until(lambda number=number: ended > number, "another's job to end")  # type: ignore[misc]  # bound
        await asyncio.sleep(0.3)  # a look comes a quarter of a second after what makes a worker look
        spent = calls.since(before)
        go.set()
    assert not spent["jobs.cancels"], spent
