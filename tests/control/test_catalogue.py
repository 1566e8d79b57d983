"""Enqueueing by name without the handler: as its worker has published it, on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.places import Place
from tests.support.apps import working
from tests.support.counting import Calls
from tests.support.until import until
from windlass import Job, Limit, PayloadInvalid, Rate, Retry, SettingsError, Unique, Windlass, cron
from windlass.client import catalogue
from windlass.core.draft import Options

pytestmark = pytest.mark.timeout(60)
SECOND = timedelta(seconds=1)


def handle_all(app: Windlass) -> None:
    """What only the workers' application has."""

    @app.job(
        queue="mail",
        retry=Retry(3),
        timeout=30,
        priority="high",
        max_crashes=2,
        tags=["post"],
        unique=Unique(queued="q:{to}", running="r:{to}:{copies}"),
        limit=Limit("to:{to}", 2),
        rate=Rate(1000, 60, "all:{to}"),
        fair_by="{to}",
    )
    async def send(to: str, copies: int = 1) -> str:
        return to * copies

    @app.job(idempotent=True)
    async def count(n: int) -> int:
        return n


def facts(job: Job) -> dict[str, Any]:
    """All of a job that comes from its declaration, and its payload."""
    names = (
        *("queue", "max_attempts", "max_crashes", "timeout", "priority", "tags", "payload_json", "unique_queued"),
        *("unique_running", "limit_key", "limit", "rate_key", "fair_key", "idempotency_key"),
    )
    return {name: getattr(job, name) for name in names}


async def announced(app: Windlass) -> None:
    """What a worker of this application says as it starts."""
    await app.store.types.put([one.described(app.client.version) for one in app.registry])


async def test_a_job_enqueued_by_name_is_as_its_handler_declares(app: Windlass, another: Windlass) -> None:
    handle_all(app)
    await announced(app)
    here = await app.enqueue("send", {"to": "ann"}, delay=60)
    there = await another.enqueue("send", {"to": "bob"}, delay=60)
    first, second = await here.job(), await there.job()
    assert (second.queue, second.max_attempts, second.timeout) == ("mail", 3, 30 * SECOND)
    expected = {
        name: value.replace("ann", "bob") if isinstance(value, str) else value for name, value in facts(first).items()
    }
    assert facts(second) == expected
    assert second.limit_key == "to:bob"
    assert second.unique_running == "r:bob:1", "with the default of an argument that was left out"


async def test_what_is_asked_for_wins_over_what_is_declared(app: Windlass, another: Windlass) -> None:
    handle_all(app)
    await announced(app)
    handle = await another.enqueue("send", {"to": "bob"}, queue="slow", unique="mine:{to}", max_attempts=9)
    job = await handle.job()
    assert (job.queue, job.max_attempts, job.max_crashes) == ("slow", 9, 2)
    assert job.unique_key == "mine:{to}", "a key that is asked for is no template"


async def test_a_duplicate_and_the_same_content_are_known_across_processes(app: Windlass, another: Windlass) -> None:
    handle_all(app)
    await announced(app)
    first = await app.enqueue("send", {"to": "ann"})
    assert (await another.enqueue("send", {"to": "ann"})).id == first.id
    counted = await app.enqueue("count", {"n": 1})
    again = await another.enqueue("count", {"n": 1})
    assert (again.id, again.created) == (counted.id, False)


@pytest.mark.parametrize(
    "payload", [{}, {"to": 5}, {"to": "ann", "more": 1}, {"to": "ann", "copies": None}, [1]], ids=str
)
async def test_a_payload_that_does_not_fit_is_refused_as_with_the_handler_at_hand(
    app: Windlass, another: Windlass, payload: Any
) -> None:
    handle_all(app)
    await announced(app)
    with pytest.raises(PayloadInvalid) as here:
        await app.enqueue("send", payload)
    with pytest.raises(PayloadInvalid) as there:
        await another.enqueue("send", payload)
    assert str(here.value) == str(there.value)
    assert (await another.jobs.find()).jobs == ()


async def test_code_without_a_loop_enqueues_by_name_alike(app: Windlass, another: Windlass) -> None:
    handle_all(app)
    await announced(app)

    def script() -> Job:
        with pytest.raises(PayloadInvalid):
            another.enqueue_sync("send", {"to": 5})
        return another.run_sync(another.enqueue_sync("send", {"to": "ann"}).job())

    job = await asyncio.to_thread(script)
    assert (job.queue, job.max_attempts) == ("mail", 3)


async def test_a_schedule_by_name_makes_jobs_as_declared(app: Windlass, another: Windlass) -> None:
    handle_all(app)
    await announced(app)
    with pytest.raises(PayloadInvalid):
        await another.schedules.put("nightly", "send", cron("0 3 * * *"), {"to": 5})
    await another.schedules.put("nightly", "send", cron("0 3 * * *"), {"to": "ann"})
    job = await (await another.schedules.run_now("nightly")).job()
    assert (job.queue, job.max_attempts, job.limit_key) == ("mail", 3, "to:ann")


async def test_a_type_that_nobody_has_told_of_is_taken_as_it_is(another: Windlass) -> None:
    job = await (await another.enqueue("unheard", {"any": "thing"})).job()
    assert (job.queue, job.max_attempts) == ("default", Options().max_attempts)
    with pytest.raises(SettingsError):
        await another.enqueue("", {})


async def test_many_enqueues_are_one_read(app: Windlass, place: Place) -> None:
    handle_all(app)
    await announced(app)
    calls = Calls()
    async with Windlass(store=calls.on(place.store())) as another:
        await asyncio.gather(*[another.enqueue("send", {"to": f"p{n}"}) for n in range(50)])
        for n in range(20):
            await another.enqueue("send", {"to": f"q{n}"})
    assert calls.by_name["types.get"] == 1


async def test_another_version_is_used_as_soon_as_it_is_told(
    app: Windlass, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle_all(app)
    await announced(app)
    calls = Calls()
    another = Windlass(store=calls.on(place.store()))

    async def queue() -> str:
        return (await (await another.enqueue("count", {"n": 1}, idempotent=False)).job()).queue

    async def listens() -> bool:
        assert await queue() == "default"
        return another.store.notices.healthy

    async def reads_again() -> bool:
        before = calls.by_name["types.get"]
        assert await queue() == "default"
        return calls.by_name["types.get"] > before

    async def renewed() -> bool:
        return await queue() == "numbers"

    newer = Windlass(store=place.store(), version="2")

    @newer.job(queue="numbers")
    async def count(n: int, m: int = 0) -> int:
        return n + m

    async with another, newer:
        monkeypatch.setattr(catalogue, "FRESH", 0.05)
        monkeypatch.setattr(catalogue, "FRESH_WHILE_TOLD", 0.05)
        await until(listens, "the client to listen")
        # What is read from now on is kept for longer than this test may take.
        monkeypatch.setattr(catalogue, "FRESH", 600.0)
        monkeypatch.setattr(catalogue, "FRESH_WHILE_TOLD", 600.0)
        await until(reads_again, "the type to be read once more")
        await announced(newer)
        await until(renewed, "the newer version to be enqueued by")
    assert [one.declared.version for one in await app.store.types.get("count")] == ["2", None]
    newer.close()


async def test_what_a_worker_does_not_handle_it_does_not_publish(app: Windlass) -> None:
    handle_all(app)
    async with working(app, exclude=["send"]):
        assert [one.declared.type for one in await app.store.types.list()] == ["count"]
