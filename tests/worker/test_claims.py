"""Which jobs a worker takes, how many at once, and when it stops by itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.apps import Crowd, Heard, ms, status_of, until_status, working
from tests.support.drafts import want
from tests.support.until import until
from windlass import Limit, Retention, SettingsError, Status, Windlass, cron
from windlass.core.events import JobsPruned, ScheduleFired, ScheduleMissed
from windlass.stores.contract import Schedule
from windlass.worker.chores.pruning import Pruning
from windlass.worker.config import WorkerConfig
from windlass.worker.slots import Slots

EVERY_YEAR = cron("0 0 1 1 *")


async def drain(app: Windlass, **options: Any) -> None:
    async with working(app, drain=True, **options) as worker:
        await worker.wait()


async def test_never_more_run_at_once_than_a_queue_has_slots(app: Windlass) -> None:
    crowd = Crowd(app)
    await app.enqueue_many(crowd.job.using(queue=queue).bind(queue) for queue in ("a", "b") for _ in range(30))
    await drain(app, queues={"a": 2, "b": 5})
    assert crowd.most == {"a": 2, "b": 5, "all": 7}
    assert (await app.jobs.count(status="succeeded")).n == 60


async def test_never_more_run_at_once_than_the_worker_has_slots(app: Windlass) -> None:
    crowd = Crowd(app)
    await app.enqueue_many(crowd.job.using(queue=queue).bind(queue) for queue in ("a", "b") for _ in range(20))
    await drain(app, queues={"a": 5, "b": 5}, concurrency=3)
    assert crowd.most["all"] == 3


async def test_who_waits_for_a_slot_hears_of_a_claim_that_brought_less() -> None:
    slots = Slots(WorkerConfig(concurrency=64))
    with slots.asked(want(64)):
        assert slots.free() == (0, None)
        slots.freed.clear()
        waiting = asyncio.create_task(slots.freed.wait())
        await asyncio.sleep(0)
    await asyncio.wait_for(waiting, 1)
    assert slots.free() == (64, None)


async def test_a_limit_holds_across_workers(app: Windlass) -> None:
    crowd = Crowd(app, limit=Limit("crowd", 2))
    await app.enqueue_many(crowd.job.bind("a") for _ in range(20))
    async with working(app), working(app):

        async def done() -> bool:
            return (await app.jobs.count(status="succeeded")).n == 20

        await until(done, "all to be done")
    assert crowd.most["all"] <= 2


async def test_a_worker_leaves_other_queues_alone(app: Windlass) -> None:
    crowd = Crowd(app)
    handle = await crowd.job.using(queue="elsewhere").enqueue("elsewhere")
    await drain(app, queues=["here"])
    assert await status_of(handle) is Status.QUEUED


async def test_a_type_nobody_handles_here_stays_queued(app: Windlass) -> None:
    crowd = Crowd(app)
    stranger, ours = await app.enqueue("stranger", {"x": 1}), await crowd.job.enqueue("a")
    await drain(app)
    assert (await status_of(stranger), await status_of(ours)) == (Status.QUEUED, Status.SUCCEEDED)
    assert (await stranger.job()).attempts == 0


async def test_an_excluded_type_stays_queued(app: Windlass) -> None:
    crowd = Crowd(app)
    handle = await crowd.job.enqueue("a")
    await drain(app, exclude=["crowd"])
    assert await status_of(handle) is Status.QUEUED


async def test_a_drained_worker_has_done_everything_that_was_due(app: Windlass) -> None:
    @app.job
    async def chain(n: int) -> None:
        if n:
            await chain.using(delay=ms(1)).enqueue(n - 1)

    later = await chain.using(delay=3600).enqueue(0)
    for n in range(10):
        await chain.enqueue(n)
    await drain(app)
    assert (await app.jobs.count(status="queued")).n == 0
    assert await status_of(later) is Status.SCHEDULED


async def test_a_worker_stops_for_a_fresh_process_after_its_number_of_jobs(app: Windlass) -> None:
    crowd = Crowd(app)
    await app.enqueue_many(crowd.job.bind("a") for _ in range(50))
    async with working(app, max_jobs=5, concurrency=2) as worker:
        await worker.wait()
        assert worker.recycled
        assert 5 <= worker.started < 50
    assert (await app.jobs.count(status="processing")).n == 0
    assert (await app.jobs.count(status="succeeded")).n == worker.done


async def test_a_job_wakes_an_idle_worker_long_before_its_poll(app: Windlass) -> None:
    crowd = Crowd(app)
    async with working(app, poll=timedelta(hours=1)):
        assert await (await crowd.job.enqueue("a")).wait(5)
        assert await (await crowd.job.using(delay=ms(50)).enqueue("a")).wait(5)


async def test_schedules_declared_in_code_are_put_when_a_worker_starts(app: Windlass) -> None:
    @app.job(schedule=[EVERY_YEAR, cron("0 12 * * *")], queue="reports")
    async def report(days: int = 7) -> None: ...

    assert list(await app.schedules.list()) == []
    async with working(app):
        ...
    found = {one.name: one for one in await app.schedules.list()}
    assert set(found) == {"report", "report#2"}
    assert {(one.type, one.queue, one.declared) for one in found.values()} == {(report.name, "reports", True)}


async def test_a_tick_in_the_past_fires_once_with_two_workers(app: Windlass) -> None:
    heard = Heard(app)

    @app.job
    async def report() -> str:
        return "made"

    tick = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=5)
    await app.store.schedules.put(
        [Schedule(name="s", cron=EVERY_YEAR, type="report", payload_json="{}", queue="default", next_tick=tick)]
    )
    async with working(app), working(app):
        await heard.one(ScheduleFired)

        async def made() -> list[Any]:
            page = await app.jobs.find(schedule="s")
            return [job for job in page.jobs if job.status is Status.SUCCEEDED]

        [job] = await until(made, "the tick's job to be done")
    assert (job.schedule, job.result) == ("s", "made")
    assert len((await app.jobs.find(schedule="s")).jobs) == 1
    [schedule] = await app.schedules.list()
    assert schedule.next_tick > datetime.now(UTC)


async def test_ticks_that_were_missed_are_all_accounted_for(app: Windlass, heard: Heard) -> None:
    @app.job
    async def report() -> None: ...

    newest = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    first = newest - timedelta(hours=7)
    rule = cron("0 * * * *", missed="latest")
    await app.store.schedules.put(
        [Schedule(name="s", cron=rule, type="report", payload_json="{}", queue="default", next_tick=first)]
    )
    async with working(app):
        await heard.one(ScheduleFired)
    assert heard.all(ScheduleMissed) == [ScheduleMissed("s", first, 7)]
    fired, missed = await app.store.schedules.ticks("s")
    assert (missed.tick, missed.fired.value, missed.job_id, missed.ticks) == (first, "missed", None, 7)
    assert (fired.tick, fired.fired.value, fired.ticks) == (newest, "fired", 1)


async def test_a_jobs_limit_holds_for_what_its_schedule_makes(app: Windlass) -> None:
    @app.job(limit=Limit("one at a time", 1))
    async def report() -> None: ...

    tick = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=5)
    await app.store.schedules.put(
        [Schedule(name="s", cron=EVERY_YEAR, type="report", payload_json="{}", queue="default", next_tick=tick)]
    )
    async with working(app):

        async def made() -> Any:
            return (await app.jobs.find(schedule="s")).jobs

        [job] = await until(made, "the tick's job")
    assert (job.limit_key, job.limit) == ("one at a time", 1)


async def test_what_has_been_kept_long_enough_is_pruned(app: Windlass, heard: Heard) -> None:
    crowd = Crowd(app)
    done, waiting = await crowd.job.enqueue("a"), await crowd.job.using(delay=3600).enqueue("a")
    await drain(app)
    await Pruning(app.store, app.hub, Retention()).once()
    assert await status_of(done) is Status.SUCCEEDED, "kept for a week"
    await Pruning(app.store, app.hub, Retention(succeeded=timedelta(0))).once()
    assert (await app.jobs.count()).n == 1
    assert await status_of(waiting) is Status.SCHEDULED
    assert JobsPruned(1) in heard.events


async def test_jobs_run_by_priority_then_time_then_order(app: Windlass) -> None:
    order: list[str] = []

    @app.job
    async def note(name: str) -> None:
        order.append(name)

    for name, priority in (
        ("low", "low"),
        ("first", "normal"),
        ("second", "normal"),
        ("critical", "critical"),
        ("7", 7),
    ):
        await note.using(priority=priority).enqueue(name)
    await drain(app, concurrency=1)
    assert order == ["7", "critical", "first", "second", "low"]


async def test_a_paused_queue_is_left_alone_until_it_is_resumed(app: Windlass) -> None:
    crowd = Crowd(app)
    await app.queues.pause("default")
    handle = await crowd.job.enqueue("a")
    await drain(app)
    assert await status_of(handle) is Status.QUEUED
    async with working(app):
        await app.queues.resume("default")
        await until_status(handle, Status.SUCCEEDED)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"queues": {}}, "empty"),
        ({"queues": "mail"}, "list"),
        ({"queues": {"mail": 0}}, "slots"),
        ({"lease": ms(100), "heartbeat": ms(90)}, "two heartbeats"),
        ({"poll": ms(0)}, "poll"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_under_which_a_worker_could_not_work_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Windlass("sqlite://").worker(**options)


async def test_a_job_behind_many_that_are_put_aside_does_not_wait_for_a_poll(app: Windlass) -> None:
    go, began = asyncio.Event(), asyncio.Event()

    @app.job(limit=Limit("hot", 1))
    async def hot() -> None:
        await go.wait()

    @app.job
    async def plain() -> None:
        began.set()

    await app.enqueue_many(hot.bind() for _ in range(3_000))
    await plain.enqueue()
    async with working(app, concurrency=5, poll=60, grace=0):
        await asyncio.wait_for(began.wait(), 15)
