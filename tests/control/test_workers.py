"""Who is there, on every store: judged by the store's clock, and forgotten once silent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.contract.places import Place
from tests.support.apps import working
from tests.support.until import until
from windlass import Presence, SettingsError, Windlass
from windlass.client.operations import TYPE as BULK
from windlass.stores.contract import WorkerInfo

HANDY = WorkerInfo(
    id="w1",
    host="h",
    pid=7,
    version="1",
    queues=("mail",),
    types=("send",),
    slots=4,
    running=2,
    stuck=1,
    memory_mb=50.0,
)


async def test_workers_are_told_with_all_they_said_and_whether_they_are_there(app: Windlass, place: Place) -> None:
    assert list(await app.workers.list()) == []
    await app.store.workers.beat(HANDY)
    await app.store.workers.beat(replace(HANDY, id="w2", stopping=True, loop_lag_ms=3.5))
    for gone in ("w3", "w4"):
        await app.store.workers.beat(replace(HANDY, id=gone, stopping=gone == "w4"))
        await place.silence(gone)
    first, second, third, fourth = await app.workers.list()
    assert [one.presence for one in (first, second, third, fourth)] == ["alive", "stopping", "silent", "silent"]
    assert [one.alive for one in (first, second, third, fourth)] == [True, True, False, False]
    assert (first.host, first.pid, first.queues, first.types) == ("h", 7, ("mail",), ("send",))
    assert (first.slots, first.running, first.stuck, first.memory_mb) == (4, 2, 1, 50.0)
    assert (second.loop_lag_ms, second.stopping, fourth.stopping) == (3.5, True, True)
    assert third.beat_age is not None
    assert 60 <= third.beat_age.total_seconds() < 90
    assert first.started_at is not None


async def test_silent_workers_are_forgotten_and_live_ones_are_not(app: Windlass, place: Place) -> None:
    for name in ("w1", "w2", "w3"):
        await app.store.workers.beat(replace(HANDY, id=name))
    assert await app.workers.forget() == []
    with pytest.raises(SettingsError, match="w1' is alive"):
        await app.workers.forget("w1")
    await place.silence("w2")
    await place.silence("w3")
    assert await app.workers.forget("w2", "nobody") == ["w2"]
    with pytest.raises(SettingsError, match="w1' is alive"):
        await app.workers.forget("w1", "w3")
    assert [one.id for one in await app.workers.list()] == ["w1", "w3"]
    assert await app.workers.forget() == ["w3"]
    assert [one.id for one in await app.workers.list()] == ["w1"]


async def test_a_worker_is_there_while_it_runs(app: Windlass) -> None:
    @app.job
    async def noop() -> None: ...

    async with working(app, concurrency=3):

        async def seen() -> bool:
            told = [(one.presence, one.types) for one in await app.workers.list()]
            return told == [(Presence.ALIVE, ("noop", BULK))]

        await until(seen, "the worker to describe itself")
        assert [one.slots for one in await app.workers.list()] == [3]
    assert list(await app.workers.list()) == []


async def test_it_is_answered_without_an_event_loop(app: Windlass) -> None:
    await app.store.workers.beat(HANDY)

    def script() -> list[object]:
        return [[one.id for one in app.run_sync(app.workers.list())], app.run_sync(app.workers.forget("nobody"))]

    assert await asyncio.to_thread(script) == [["w1"], []]
