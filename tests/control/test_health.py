"""Health on every store: the checks of `windlass doctor` as values, and one short question for readiness."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.contract.places import Place
from tests.control.conftest import address
from tests.support.drafts import draft, want
from tests.support.processes import HOST
from windlass import Level, SettingsError, Windlass
from windlass.stores.contract import WorkerInfo

HANDY = WorkerInfo(id="w1", host="h", pid=1, version="1", queues=(), types=("noop",), slots=2, running=0)


async def levels(app: Windlass) -> dict[str, Level]:
    checks = await app.health.check()
    assert all((check.fix is None) == (check.level is Level.PASS) for check in checks)
    return {check.name: check.level for check in checks}


async def test_a_sound_store_with_a_worker_passes(app: Windlass) -> None:
    await app.store.workers.beat(HANDY)
    found = await levels(app)
    expected = {
        "store reachable",
        "clock",
        "schema",
        "durability",
        "notices",
        "workers",
        "types have workers",
        "leases",
    }
    assert {name for name in expected if found[name] is Level.PASS} == expected
    first = await anext(app.health.checks())
    assert (first.name, first.level) == ("store reachable", Level.PASS)
    assert app.address in first.found


async def test_what_is_wrong_is_told_with_what_to_do(app: Windlass, place: Place) -> None:
    await app.store.jobs.insert([draft("fax"), draft("noop", queue="mail")])
    await app.queues.pause("mail")
    await app.store.workers.beat(HANDY)
    await place.damage()
    found = await levels(app)
    assert (found["types have workers"], found["schema"]) == (Level.FAIL, Level.FAIL)
    assert (found["queues"], found["workers"]) == (Level.WARN, Level.PASS)
    await place.silence("w1")
    found = await levels(app)
    assert (found["types have workers"], found["workers"]) == (Level.WARN, Level.WARN)


async def test_running_jobs_within_their_lease_pass(app: Windlass) -> None:
    await app.store.jobs.insert([draft()])
    await app.store.jobs.claim(want(1, lease=timedelta(minutes=1)))
    [check] = [check for check in await app.health.check() if check.name == "leases"]
    assert (check.level, check.found) == (Level.PASS, "1 job running, none past its lease")


async def test_a_store_that_answers_is_ready(app: Windlass, place: Place) -> None:
    told = await app.health.ready()
    assert told
    assert told.found.startswith(f"{app.address} answered in ")
    assert timedelta(0) < told.took < timedelta(seconds=5)
    await place.pretend_version(0)
    told = await app.health.ready()
    assert not told.ready
    assert 'run "windlass migrate"' in told.found
    await place.pretend_version(999)
    told = await app.health.ready()
    assert not told.ready
    assert "999" in told.found
    with pytest.raises(SettingsError, match="within is 0"):
        await app.health.ready(within=0)


async def test_it_is_answered_without_an_event_loop(app: Windlass) -> None:
    def script() -> tuple[bool, set[Level]]:
        return app.run_sync(app.health.ready()).ready, {check.level for check in app.run_sync(app.health.check())}

    ready, found = await asyncio.to_thread(script)
    assert ready
    assert Level.FAIL not in found


@pytest.fixture
def away(place: Place) -> Iterator[Windlass]:
    """An application whose store is not there: behind its port nobody answers, or there is no such folder."""
    url, namespace = address(place)
    with socket.create_server((HOST, 0)) as listening:
        host = f"{HOST}:{listening.getsockname()[1]}"
        there = {
            "sqlite": "sqlite:////no/such/folder/jobs.db",
            "mongodb": f"mongodb://{host}/x?timeout=1",
            "postgresql": f"postgresql://u@{host}/x?timeout=1",
            "redis": f"redis://{host}/0?timeout=1",
        }
        yield Windlass(there[url.partition(":")[0]], namespace=namespace)


async def test_a_store_that_is_away_is_told_and_not_raised(away: Windlass) -> None:
    told = await away.health.ready()
    assert not told
    assert any(said in told.found for said in ("folder exists", "did not answer", "answered within")), told
    [check] = await away.health.check()
    assert (check.level, check.name) == (Level.FAIL, "store reachable")
    assert check.fix


async def test_a_store_that_does_not_answer_in_time_is_not_waited_for(away: Windlass) -> None:
    began = time.monotonic()
    assert not await away.health.ready(within=0.05)
    assert time.monotonic() - began < 0.9


async def test_many_who_ask_whether_it_is_ready_share_one_question(app: Windlass) -> None:
    """Probes need no key: anybody may send them, as fast as they like."""
    first, *others = await asyncio.gather(*(app.health.ready(max_age=60) for _ in range(20)))
    assert first.ready
    assert all(one is first for one in others)
    assert await app.health.ready() is not first
