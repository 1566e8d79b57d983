"""A deployment changes what a handler takes while jobs wait: they are parked, and run by whoever can read them."""

from __future__ import annotations

from typing_extensions import TypedDict

from tests.contract.places import Place
from tests.support.apps import Heard, until_status, working
from windlass import Happened, Level, Status, Windlass
from windlass.client.explaining import Why
from windlass.core.events import JobOperated


class Old(TypedDict):
    to: str


def before(place: Place) -> Windlass:
    """The application as it was."""
    app = Windlass(store=place.store())

    @app.job(name="send")
    async def send(to: str) -> str:
        return f"to {to}"

    return app


def after(place: Place, *, upgrades: bool = False) -> Windlass:
    """The application as it is now: the argument has another name."""
    app = Windlass(store=place.store())

    @app.job(name="send")
    async def send(address: str) -> str:
        return f"to {address}"

    if upgrades:

        @send.upgrade(from_=Old)
        def _(old: Old) -> dict[str, str]:
            return {"address": old["to"]}

    return app


async def test_a_job_of_the_version_before_waits_until_that_is_back(place: Place) -> None:
    old, new = before(place), after(place)
    async with old, new:
        handle = await old.enqueue("send", {"to": "ann"})
        async with working(new):
            job = await until_status(handle, Status.BLOCKED)
        assert (job.blocked_by, job.attempts) == ("payload:send", 0)
        explanation = await old.jobs.explain(handle.id)
        assert explanation.why is Why.PAYLOAD
        assert "address" in explanation.text
        [check] = [check for check in await old.health.check() if check.name == "payloads"]
        assert (check.level, check.found.endswith("send: 1")) == (Level.WARN, True)
        assert handle.id in (check.fix or "")
        heard = Heard(old)
        async with working(old) as worker:
            assert await handle.result(10) == "to ann"
        assert [entry.happened for entry in await handle.history()] == [
            Happened.ENQUEUED,
            Happened.CLAIMED,
            Happened.BLOCKED,
            Happened.RETRIED,
            Happened.CLAIMED,
            Happened.SUCCEEDED,
        ]
        assert [event.actor for event in heard.all(JobOperated)] == [worker.id]


async def test_an_upgrade_reads_it_at_once(place: Place) -> None:
    old, new = before(place), after(place, upgrades=True)
    async with old, new:
        handle = await old.enqueue("send", {"to": "ann"})
        async with working(new):
            assert await handle.result(10) == "to ann"
        assert (await handle.job()).attempts == 1


async def test_what_was_parked_runs_after_a_deployment_that_brings_an_upgrade(place: Place) -> None:
    old, new, newer = before(place), after(place), after(place, upgrades=True)
    async with old, new, newer:
        handles = [await old.enqueue("send", {"to": f"n{n}"}) for n in range(5)]
        async with working(new):
            for handle in handles:
                await until_status(handle, Status.BLOCKED)
            fitting = await new.enqueue("send", {"address": "bob"})
            assert await fitting.result(10) == "to bob"
        async with working(newer):
            assert [await handle.result(10) for handle in handles] == [f"to n{n}" for n in range(5)]


async def test_an_operator_may_retry_or_cancel_it(place: Place) -> None:
    old, new = before(place), after(place)
    async with old, new:
        one, two = [await old.enqueue("send", {"to": "ann"}) for _ in range(2)]
        async with working(new):
            for handle in (one, two):
                await until_status(handle, Status.BLOCKED)
        await old.jobs.retry(one.id)
        await old.jobs.cancel(two.id)
        assert (await one.job()).status is Status.QUEUED
        assert (await two.job()).status is Status.CANCELLED


async def test_readable_jobs_behind_many_that_are_not_are_found(place: Place) -> None:
    old, new, stranger = before(place), after(place), Windlass(store=place.store())
    async with old, new, stranger:
        unreadable = [await stranger.enqueue("send", {"neither": n}) for n in range(120)]
        handle = await old.enqueue("send", {"to": "ann"})
        async with working(new, concurrency=50):
            for parked in (*unreadable, handle):
                await until_status(parked, Status.BLOCKED)
        async with working(old):
            assert await handle.result(10) == "to ann"
        assert {(await parked.job()).status for parked in unreadable} == {Status.BLOCKED}
