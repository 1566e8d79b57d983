"""Schedules at run time, on every store: several of one handler, run now, changed, and what does not fire any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.steps import settle, take
from tests.support.apps import working
from tests.support.drafts import want
from tests.support.until import until
from windlass import Job, Limit, PayloadInvalid, Rate, ScheduleNotFound, SettingsError, Status, Windlass, cron, every
from windlass.stores.contract import Schedule

pytestmark = pytest.mark.timeout(60)
YEARLY = cron("0 0 1 1 *")


async def stored(app: Windlass, name: str) -> Schedule:
    [found] = [one for one in await app.schedules.list() if one.name == name]
    return found


async def make_due(app: Windlass, name: str) -> Schedule:
    """Let a schedule's next tick lie in the past, as if its time had come: put away, and there again so."""
    one = await stored(app, name)
    past = (await app.store.now()).replace(second=0, microsecond=0) - timedelta(minutes=1)
    await app.schedules.remove(name)
    await app.store.schedules.put([replace(one, next_tick=past)])
    return await stored(app, name)


async def jobs_of(app: Windlass, name: str) -> list[Job]:
    return [job async for job in app.jobs.each(schedule=name)]


async def made(app: Windlass, name: str) -> list[Job]:
    """The jobs of a schedule, once there are any."""
    return await until(lambda: jobs_of(app, name), f"a job of {name}", within=20)


async def test_several_schedules_of_one_handler_have_their_own_payloads_and_queues(app: Windlass) -> None:
    @app.job
    async def report(customer: str) -> str:
        return f"report for {customer}"

    every_minute = cron("* * * * *")
    await app.schedules.put("acme", report.using(queue="slow", user="ada").bind("acme"), every_minute)
    await app.schedules.put("globex", report.bind("globex"), every_minute)
    await app.schedules.put("initech", "report", every_minute, {"customer": "initech"}, queue="fast", priority="high")
    for name in ("acme", "globex", "initech"):
        await make_due(app, name)
    async with working(app):
        found = {name: (await made(app, name))[0] for name in ("acme", "globex", "initech")}

        async def ended() -> bool:
            return (await app.jobs.count(status=Status.SUCCEEDED)).n >= 3

        await until(ended, "the reports", within=20)
    assert {name: (job.queue, job.payload["customer"], job.priority) for name, job in found.items()} == {
        "acme": ("slow", "acme", 100),
        "globex": ("default", "globex", 100),
        "initech": ("fast", "initech", 50),
    }
    assert (found["acme"].user_id, found["globex"].user_id) == ("ada", None)
    assert (await app.jobs.get(found["acme"].id)).result == "report for acme"


async def test_an_interval_fires_again_and_again_and_is_told_as_such(app: Windlass) -> None:
    @app.job(schedule=every(1, overlap="allow"))
    async def poll() -> None: ...

    async def twice() -> list[Job]:
        jobs = await jobs_of(app, "poll")
        return jobs if len(jobs) >= 2 else []

    async with working(app):
        jobs = await until(twice, "two ticks", within=20)
    ticks = sorted(job.tick for job in jobs if job.tick is not None)
    assert ticks[1] - ticks[0] >= timedelta(seconds=1)
    assert all(tick.microsecond == 0 for tick in ticks)
    assert (await stored(app, "poll")).cron == every(1, overlap="allow")


async def test_an_interval_keeps_its_tick_when_put_again_and_a_changed_one_starts_anew(app: Windlass) -> None:
    @app.job
    async def poll() -> None: ...

    await app.schedules.put("s", poll, every(timedelta(days=1)))
    due = await make_due(app, "s")
    await app.schedules.put("s", poll, every(86_400))
    assert (await stored(app, "s")).next_tick == due.next_tick
    await app.schedules.put("s", poll, every(3600))
    assert (await stored(app, "s")).next_tick > due.next_tick


async def test_a_rule_that_is_put_again_takes_the_place_of_the_old_whose_ticks_fire_no_more(app: Windlass) -> None:
    @app.job
    async def report(n: int) -> None: ...

    await app.schedules.put("s", report.bind(1), cron("* * * * *"))
    due = await make_due(app, "s")
    await app.schedules.put("s", report.bind(2), YEARLY)
    found = await stored(app, "s")
    assert (found.cron, found.payload_json) == (YEARLY, '{"n":2}')
    assert found.next_tick == YEARLY.after(await app.store.now())
    assert found.next_tick > due.next_tick
    await app.schedules.put("witness", report.bind(3), cron("* * * * *"))
    await make_due(app, "witness")
    async with working(app):
        await made(app, "witness")
    assert await jobs_of(app, "s") == []


async def test_the_same_rule_put_again_keeps_its_tick_and_takes_the_new_payload(app: Windlass) -> None:
    @app.job
    async def report(n: int) -> None: ...

    await app.schedules.put("s", report.bind(1), cron("* * * * *"))
    await make_due(app, "s")
    await app.schedules.put("s", report.bind(2), cron("* * * * *"))
    async with working(app):
        assert (await made(app, "s"))[0].payload == {"n": 2}


async def test_run_now_makes_a_job_and_leaves_the_ticks_alone(app: Windlass, another: Windlass) -> None:
    @app.job(timeout=7)
    async def report(customer: str) -> str:
        return f"report for {customer}"

    bound = report.using(queue="slow", user="ada", tags=["t"], max_attempts=2).bind("acme")
    await app.schedules.put("acme", bound, YEARLY)
    await app.schedules.pause("acme")
    before = await stored(app, "acme")
    handle = await app.schedules.run_now("acme")
    elsewhere = await another.schedules.run_now("acme")  # without the handler
    assert handle.created
    assert elsewhere.created
    for one in (handle, elsewhere):
        job = await one.job()
        assert (job.type, job.payload, job.queue, job.user_id, job.tags) == (
            "report",
            {"customer": "acme"},
            "slow",
            "ada",
            ("t",),
        )
        assert (job.schedule, job.tick, job.max_attempts, job.timeout) == ("acme", None, 2, timedelta(seconds=7))
        assert job.status is Status.QUEUED
    assert replace(await stored(app, "acme"), updated_at=None) == replace(before, updated_at=None)
    assert await app.store.schedules.ticks("acme") == []
    async with working(app):
        assert await handle.result(20) == "report for acme"


async def test_what_is_run_now_counts_for_the_overlap_of_its_schedule(app: Windlass) -> None:
    await app.schedules.put("skips", "noop", cron("* * * * *"))
    await app.schedules.put("queues", "noop", cron("* * * * *", overlap="queue"))
    one, two = await app.schedules.run_now("queues"), await app.schedules.run_now("queues")
    job = await take(app.store)
    assert (await two.job()).status is Status.BLOCKED
    await settle(app.store, job)
    assert (await app.store.jobs.claim(want()))[0].id == two.id
    assert one.id == job.id

    await app.schedules.run_now("skips")
    await make_due(app, "skips")
    async with working(app, queues=["none"]):

        async def told() -> set[str]:
            found = {one.fired.value for one in await app.store.schedules.ticks("skips")}
            return found if found & {"skipped", "fired"} else set()

        assert "fired" not in await until(told, "the tick to be accounted for", within=20)


async def test_a_schedule_that_is_not_there_is_told_of(app: Windlass) -> None:
    for order in (app.schedules.run_now, app.schedules.pause, app.schedules.resume):
        with pytest.raises(ScheduleNotFound, match="no schedule is called 'nightly'"):
            await order("nightly")
    assert await app.schedules.remove("nightly") is False


async def test_what_cannot_be_a_schedule_is_refused(app: Windlass) -> None:
    @app.job
    async def report(customer: str) -> None: ...

    bad: Any = "0 8 * * *"
    with pytest.raises(SettingsError, match=r"the rule of schedule 's' is '0 8 \* \* \*': expected one made by cron"):
        await app.schedules.put("s", report.bind("acme"), bad)
    with pytest.raises(SettingsError, match="the schedule's name is ''"):
        await app.schedules.put("", report.bind("acme"), YEARLY)
    with pytest.raises(PayloadInvalid, match="customer"):
        await app.schedules.put("s", "report", YEARLY, {"client": "acme"})
    with pytest.raises(SettingsError, match=r"bind and using\(\) take those"):
        await app.schedules.put("s", report.bind("acme"), YEARLY, {"customer": "x"})
    assert list(await app.schedules.list()) == []


async def test_an_option_that_a_schedule_would_not_keep_is_refused(app: Windlass) -> None:
    @app.job(limit=Limit("reports", 2), fair_by="user")
    async def report(customer: str = "acme") -> None: ...

    with pytest.raises(SettingsError, match="a schedule does not keep unique"):
        await app.schedules.put("s", report.using(unique="k").bind(), YEARLY)
    with pytest.raises(SettingsError, match="a schedule does not keep delay"):
        await app.schedules.put("s", "report", YEARLY, delay=5)
    with pytest.raises(SettingsError, match="a schedule does not keep limit, rate"):
        await app.schedules.put("s", "elsewhere", YEARLY, limit=Limit("x", 1), rate=Rate(1, timedelta(seconds=1)))
    strange: Any = {"colour": "red"}
    with pytest.raises(SettingsError, match="'colour' is no option"):
        await app.schedules.put("s", "elsewhere", YEARLY, **strange)
    assert await app.schedules.list() == []
    await app.schedules.put("s", report.using(user_id="ada", priority="low").bind(), YEARLY)
    assert (await (await app.schedules.run_now("s")).job()).user_id == "ada"
