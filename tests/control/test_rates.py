"""Rates, turns and ageing on every store, as users declare them and workers obey them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.places import Place
from tests.support.apps import ms, working
from tests.support.until import until
from windlass import Ageing, JobFunction, Rate, SettingsError, Windlass
from windlass.core.events import Event, JobsPromoted, JobsUnblocked


def caller(app: Windlass, rate: Rate) -> JobFunction[[str], str]:
    @app.job(rate=rate)
    async def call(host: str) -> str:
        return host

    return call


async def starts(app: Windlass, host: str) -> list[float]:
    """When the calls of a host began, by the store's clock, in seconds."""
    jobs = (await app.jobs.find(type="call", status="succeeded", limit=1000)).jobs
    return sorted(job.started_at.timestamp() for job in jobs if job.started_at and job.payload["host"] == host)


async def all_have_run(app: Windlass, n: int) -> None:
    async def done() -> bool:
        return (await app.jobs.count(status="succeeded")).n == n

    await until(done, f"{n} to have run", within=20)


async def test_workers_together_keep_to_a_rate_and_do_not_starve(app: Windlass, another: Windlass) -> None:
    per = ms(400)
    call, _ = (caller(one, Rate(6, per=per)) for one in (app, another))
    await app.enqueue_many(call.bind("a") for _ in range(24))
    async with working(app), working(another):
        await all_have_run(app, 24)
    began = await starts(app, "a")
    for n, start in enumerate(began[6:]):
        assert start - began[n] >= per.total_seconds() - 0.001, began
    assert began[-1] - began[0] < 3 * per.total_seconds() + 4, "no window passes unused for long"


async def test_keys_of_a_rate_do_not_wait_for_each_other(app: Windlass) -> None:
    call = caller(app, Rate(1, per=timedelta(hours=1), key="api:{host}"))
    await app.enqueue_many(call.bind(host) for host in "abcabc")
    async with working(app):
        await all_have_run(app, 3)
    assert [len(await starts(app, host)) for host in "abc"] == [1, 1, 1]
    blocked = (await app.jobs.find(status="blocked")).jobs
    assert sorted(job.blocked_by or "" for job in blocked) == ["rate:api:a", "rate:api:b", "rate:api:c"]


async def test_an_idle_rate_does_not_spin(app: Windlass) -> None:
    call = caller(app, Rate(1, per=timedelta(hours=1)))
    moved: list[Event] = []
    app.listen(lambda event: moved.append(event) if isinstance(event, (JobsPromoted, JobsUnblocked)) else None)
    await app.enqueue_many(call.bind("a") for _ in range(5))
    async with working(app):
        await all_have_run(app, 1)
        histories = [len(await app.jobs.history(job.id)) for job in (await app.jobs.find(status="blocked")).jobs]
    assert histories == [2, 2, 2, 2], "enqueued and blocked, nothing more"
    assert moved == []


async def test_one_users_flood_does_not_block_the_others(app: Windlass) -> None:
    ran: list[str] = []

    @app.job(fair_by="user_id")
    async def work(user: str) -> None:
        ran.append(user)

    await app.enqueue_many(work.using(user="flood").bind("flood") for _ in range(30))
    await work.using(user="quiet").enqueue("quiet")
    async with working(app, concurrency=1):
        await all_have_run(app, 31)
    assert "quiet" in ran[:3]


async def test_a_flood_inside_one_queue_is_shared_by_an_argument_too(app: Windlass) -> None:
    ran: list[str] = []

    @app.job(fair_by="team:{team}")
    async def work(team: str) -> None:
        ran.append(team)

    await app.enqueue_many(work.bind(team) for team in ["a"] * 10 + ["b"] * 3)
    async with working(app, concurrency=1):
        await all_have_run(app, 13)
    assert ran[:6] == ["a", "b"] * 3


async def test_what_has_waited_long_is_raised(place: Place) -> None:
    app = Windlass(store=place.store(), ageing=Ageing(timedelta(seconds=1), "critical"))

    @app.job
    async def work() -> None: ...

    async with app:
        handle = await work.using(priority="low", queue="later").enqueue()
        async with working(app, queues=["now"]):

            async def raised() -> bool:
                return (await handle.job()).priority == 10

            await until(raised, "the job to be raised", within=15)
        assert (await handle.history())[-1].note == "priority 200 to 10"
    app.close()


def test_what_cannot_be_declared_is_refused() -> None:
    app = Windlass("sqlite://")
    with pytest.raises(SettingsError, match="fair_by is 'users'"):
        app.job(fair_by="users")(len)
    with pytest.raises(SettingsError, match="Rate allows 0 starts"):
        Rate(0)
