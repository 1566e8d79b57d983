"""Handles and the rooms: looking at jobs and operating on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.client.test_enqueue import define
from tests.support.apps import status_of, until_status, working
from tests.support.drafts import want
from tests.support.until import until
from windlass import (
    Ctx,
    DuplicateJob,
    Entry,
    Happened,
    JobFailed,
    JobNotFound,
    Limit,
    MoveRefused,
    Progress,
    Reject,
    SettingsError,
    Status,
    Windlass,
    cron,
)
from windlass.client import changes
from windlass.stores.contract import Notice

NOBODY = "0190a3c4-5d6e-7f80-9123-456789abcdef"


async def test_a_result_is_awaited_and_typed(app: Windlass) -> None:
    @app.job
    async def delta(days: int) -> timedelta:
        return timedelta(days=days)

    async with working(app):
        assert await (await delta.enqueue(2)).result(timeout=timedelta(seconds=10)) == timedelta(days=2)


async def test_waiting_has_an_end(app: Windlass) -> None:
    handle = await define(app).enqueue(1)
    with pytest.raises(TimeoutError):
        await handle.wait(0.05)
    with pytest.raises(TimeoutError):
        await handle.result(timedelta(milliseconds=50))


async def test_a_job_without_a_result_raises_with_the_job(app: Windlass) -> None:
    @app.job
    async def refuse() -> None:
        raise Reject("no good")

    async with working(app):
        handle = await refuse.enqueue()
        with pytest.raises(JobFailed, match="no good") as caught:
            await handle.result(10)
    assert caught.value.job.status is Status.FAILED
    cancelled = await refuse.enqueue()
    await cancelled.cancel()
    with pytest.raises(JobFailed):
        await cancelled.result(10)


async def test_a_job_that_is_deleted_while_awaited_is_told_of(app: Windlass) -> None:
    handle = await define(app).enqueue(1)
    waiting = asyncio.create_task(handle.wait(10))
    await app.jobs.delete(handle.id)
    with pytest.raises(JobNotFound):
        await waiting
    for gone in (handle.job(), app.jobs.history(handle.id), app.jobs.get(handle.id), handle.cancel()):
        with pytest.raises(JobNotFound):
            await gone
    assert await handle.history() == []


async def test_events_tell_everything_until_the_end(app: Windlass) -> None:
    go = asyncio.Event()

    @app.job
    async def work(ctx: Ctx) -> None:
        ctx.progress(1, of=2)
        await go.wait()

    seen: list[Entry | Progress] = []
    async with working(app):
        handle = await work.enqueue()
        async for event in handle.events():
            seen.append(event)
            if isinstance(event, Progress):
                go.set()
    assert [event.happened for event in seen if isinstance(event, Entry)] == ["enqueued", "claimed", "succeeded"]
    assert [event for event in seen if isinstance(event, Progress)] == [Progress(done=1, of=2)]


async def test_whoever_stops_listening_leaves_nothing_behind(app: Windlass) -> None:
    handle = await define(app).enqueue(1)
    events = handle.events()
    assert isinstance(await anext(events), Entry)
    await events.aclose()
    assert repr(handle) == f"Handle({handle.id}, created=True)"


class Subscribed:
    """How many subscriptions of a store are open, and how many were opened."""

    def __init__(self, app: Windlass, patch: pytest.MonkeyPatch) -> None:
        self.now = self.ever = 0
        subscribe = app.store.notices.subscribe

        @asynccontextmanager
        async def counted(wake: Callable[[Notice], None]) -> AsyncGenerator[None, None]:
            self.ever += 1
            self.now += 1
            try:
                async with subscribe(wake):
                    yield
            finally:
                self.now -= 1

        patch.setattr(app.store.notices, "subscribe", counted)


async def test_waits_share_one_subscription_which_is_kept_for_the_next(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(app)
    watcher = Windlass(app.url)
    send = define(watcher)
    subscribed = Subscribed(watcher, monkeypatch)
    async with working(app):
        async with watcher:
            assert subscribed.ever == 0
            handles = await watcher.enqueue_many(send.bind(n) for n in range(5))
            assert await asyncio.gather(*(one.result(10) for one in handles)) == [f"sent {n}" for n in range(5)]
            for _ in range(3):
                assert await (await send.enqueue(6)).result(10) == "sent 6"
            assert (subscribed.ever, subscribed.now) == (1, 1)
        assert subscribed.now == 0, "closing ends it"


async def test_a_subscription_that_nobody_needs_any_more_is_ended(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "KEPT", 0.05)
    subscribed = Subscribed(app, monkeypatch)
    handle = await define(app).enqueue(1)
    waiting = asyncio.create_task(handle.wait(0.4))
    await asyncio.wait([waiting], timeout=0.2)
    assert subscribed.now == 1, "while somebody waits it lasts"
    with pytest.raises(TimeoutError):
        await waiting
    await until(lambda: subscribed.now == 0, "nobody to listen")
    with pytest.raises(TimeoutError):
        await handle.wait(0.01)
    assert subscribed.ever == 2


async def test_jobs_are_found_page_by_page_newest_first(app: Windlass) -> None:
    send = define(app)
    handles = await app.enqueue_many(send.bind(n) for n in range(25))
    found: list[str] = []
    after: str | None = None
    while True:
        page = await app.jobs.find(type="send", limit=10, after=after)
        found += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break
    assert found == [handle.id for handle in reversed(handles)]


async def test_jobs_are_found_by_what_they_are_about(app: Windlass) -> None:
    send = define(app)
    first = await send.using(user="u1", entity=("order", 1), correlation="c").enqueue(1)
    second = await send.using(user="u2", entity=("order", 2), correlation="c", queue="vip").enqueue(2)

    def ids(jobs: Sequence[Any]) -> list[str]:
        return [job.id for job in jobs]

    assert ids(await app.jobs.about("order", 1)) == [first.id]
    assert ids(await app.jobs.of(correlation="c")) == [first.id, second.id]
    searches: tuple[tuple[dict[str, Any], list[str]], ...] = (
        ({"user": "u2"}, [second.id]),
        ({"queue": "vip"}, [second.id]),
        ({"entity": ("order", "2")}, [second.id]),
        ({"status": "queued"}, [second.id, first.id]),
        ({"status": Status.FAILED}, []),
        ({"type": "send", "user": "u1"}, [first.id]),
    )
    for search, expected in searches:
        assert ids((await app.jobs.find(**search)).jobs) == expected
        assert (await app.jobs.count(**search)).n == len(expected)


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 1001}, {"status": "waiting"}, {"after": "x"}, {"entity": "order"}]
)
async def test_a_search_that_makes_no_sense_is_refused(app: Windlass, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        await app.jobs.find(**wrong)


async def test_ids_that_name_no_job_are_told_apart_from_ids_that_are_none(app: Windlass) -> None:
    for operate in (app.jobs.get, app.jobs.cancel, app.jobs.retry, app.jobs.delete, app.jobs.replay, app.jobs.history):
        with pytest.raises(JobNotFound):
            await operate(NOBODY)
        with pytest.raises(SettingsError, match="not a job id"):
            await operate("'; DROP TABLE jobs;--")


async def test_a_finished_job_is_retried_with_fresh_attempts(app: Windlass) -> None:
    handle = await define(app).enqueue(1)
    await handle.cancel()
    await app.jobs.retry(handle.id, actor="ada", reason="was right after all")
    job = await handle.job()
    assert (job.status, job.attempts, job.cancel_requested_at) == (Status.QUEUED, 0, None)
    last = (await handle.history())[-1]
    assert (last.happened, last.actor, last.note) == (Happened.RETRIED, "ada", "was right after all")
    with pytest.raises(MoveRefused) as caught:
        await app.jobs.retry(handle.id)
    assert (caught.value.status, caught.value.wanted) == (Status.QUEUED, "queued")


async def test_a_scheduled_job_is_hurried(app: Windlass) -> None:
    handle = await define(app).using(delay=3600).enqueue(1)
    await app.jobs.retry(handle.id)
    assert await status_of(handle) is Status.QUEUED


async def test_a_retry_does_not_steal_a_key_that_another_job_holds(app: Windlass) -> None:
    send = define(app).using(unique="k")
    old = await send.enqueue(1)
    await old.cancel()
    new = await send.enqueue(2)
    with pytest.raises(DuplicateJob) as caught:
        await app.jobs.retry(old.id)
    assert caught.value.existing == new.id


async def test_a_replay_is_a_new_job_that_names_the_old_and_keeps_its_limit(app: Windlass) -> None:
    send = define(app).using(
        limit=Limit("mailer", 2), unique="k", user="u1", entity=("order", 1), tags=("t",), metadata={"a": 1}
    )
    old = await send.enqueue(1)
    with pytest.raises(MoveRefused):
        await app.jobs.replay(old.id)
    await old.cancel()
    new = await app.jobs.replay(old.id)
    job, was = await new.job(), await old.job()
    assert (new.created, job.replay_of, job.payload) == (True, old.id, was.payload)
    assert (job.limit_key, job.limit, job.unique_queued) == ("mailer", 2, "k")
    assert (job.user_id, job.entity_name, job.entity_id, job.tags, job.metadata) == (
        "u1",
        "order",
        "1",
        ("t",),
        {"a": 1},
    )
    assert (await app.jobs.replay(old.id)).id == new.id, "its key is held by the first replay"


async def test_a_processing_job_is_asked_to_cancel_and_not_deleted(app: Windlass) -> None:
    handle = await define(app).enqueue(1)
    await app.store.jobs.claim(want(types={"send"}))
    assert await app.jobs.cancel(handle.id, actor="ada") is False
    with pytest.raises(MoveRefused):
        await app.jobs.delete(handle.id)
    with pytest.raises(MoveRefused):
        await app.jobs.retry(handle.id)


async def test_queues_are_listed_paused_and_resumed(app: Windlass) -> None:
    send = define(app)
    await send.enqueue(1)
    await send.using(queue="vip").enqueue(2)
    await app.queues.pause("vip", "empty")
    listed = {one.name: one for one in await app.queues.list()}
    assert {name: one.paused_at is not None for name, one in listed.items()} == {
        "mail": False,
        "vip": True,
        "empty": True,
    }
    assert (listed["vip"].depth.n, listed["mail"].processing.n) == (1, 0)
    await app.queues.resume("vip")
    assert all(one.paused_at is None for one in await app.queues.list() if one.name == "vip")


async def test_schedules_are_put_listed_paused_and_removed(app: Windlass) -> None:
    send = define(app)
    await app.schedules.put("acme", send.bind(7), cron("0 8 * * *", tz="Europe/Paris"))
    [one] = await app.schedules.list()
    assert (one.name, one.type, one.queue, one.payload_json, one.cron.tz) == (
        "acme",
        "send",
        "mail",
        '{"order_id":7}',
        "Europe/Paris",
    )
    await app.schedules.pause("acme")
    assert (await app.schedules.list())[0].paused_at is not None
    await app.schedules.resume("acme")
    assert (await app.schedules.list())[0].paused_at is None
    assert await app.schedules.remove("acme") is True
    assert await app.schedules.remove("acme") is False
    with pytest.raises(SettingsError):
        await app.schedules.put("", send.bind(7), cron("0 8 * * *"))


async def test_a_second_application_sees_how_a_job_ends(app: Windlass) -> None:
    watcher = Windlass(app.url)
    send = define(app)
    handle = await send.enqueue(5)
    async with watcher, working(app):
        seen = define(watcher)
        assert seen.name == send.name
        job = await until_status(handle, Status.SUCCEEDED)
        assert (await watcher.jobs.get(handle.id)).result == job.result == "sent 5"
