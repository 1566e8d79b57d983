"""One of many workers does the chores, and another soon after it is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps import app_at, ms, nothing_left, until_status
from tests.support.counting import Calls
from tests.support.drafts import want
from tests.support.until import until
from windlass import Ageing, Retention, Status, Windlass, cron
from windlass.stores.contract import Granted, Lease
from windlass.worker.config import WorkerConfig
from windlass.worker.duty import PREFIX, duty_of
from windlass.worker.worker import Worker

pytestmark = pytest.mark.timeout(60)
CHORES = ("jobs.promote", "jobs.rescue", "schedules.due")
QUICK: dict[str, Any] = {"lease": 3.0, "heartbeat": 0.2, "poll": 0.2, "rescue": 0.2, "grace": 1.0}


class Crew:
    """Workers of one application on one file, each with a store, and calls, of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workers: list[Worker] = []
        self.calls: list[Calls] = []
        self.ran: list[int] = []

    async def join(self, stack: AsyncExitStack, **options: Any) -> Worker:
        calls = Calls()
        app = Windlass(store=calls.on(app_at(self.path).store))

        @app.job
        async def note(number: int) -> None:
            self.ran.append(number)

        worker = await stack.enter_async_context(app.worker(**{**QUICK, **options}))
        self.workers.append(worker)
        self.calls.append(calls)
        return worker

    async def met(self) -> None:
        beats = [calls.by_name["workers.beat"] for calls in self.calls]
        await until(
            lambda: all(
                calls.by_name["workers.beat"] > before + 1 for calls, before in zip(self.calls, beats, strict=True)
            ),
            "all to know each other",
        )

    async def on_duty(self, seconds: float = 1.5) -> list[int]:
        """Which of them did chores in so long a time."""
        before = [calls.now() for calls in self.calls]
        await asyncio.sleep(seconds)  # what is not done shows only in time
        done = [calls.since(then) for calls, then in zip(self.calls, before, strict=True)]
        return [number for number, count in enumerate(done) if any(count[chore] > 1 for chore in CHORES)]


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[Crew]:
    async with nothing_left():
        yield Crew(tmp_path / "jobs.db")


async def test_one_of_several_does_the_chores_and_hands_them_over_when_it_stops(crew: Crew) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await crew.join(stack)
        await crew.met()
        [first] = await crew.on_duty()
        crew.workers[first].stop()
        await crew.workers[first].wait()
        before = [calls.now() for calls in crew.calls]

        def taken_over() -> bool:
            return any(
                calls.since(then)["jobs.promote"] > 1
                for number, (calls, then) in enumerate(zip(crew.calls, before, strict=True))
                if number != first
            )

        await until(taken_over, "another to take over", within=3)


async def test_what_is_due_is_promoted_in_time_whoever_enqueued_it(crew: Crew, tmp_path: Path) -> None:
    client = app_at(tmp_path / "jobs.db")
    async with client, AsyncExitStack() as stack:
        for _ in range(4):
            await crew.join(stack, poll=30.0)
        await crew.met()
        for number in range(3):
            await client.enqueue("note", {"number": number}, delay=0.3)
            await until(partial(crew.ran.__contains__, number), "it to run", within=5)


async def test_a_worker_alone_and_one_that_drains_do_their_own_chores(crew: Crew) -> None:
    async with AsyncExitStack() as stack:
        await crew.join(stack)
        await crew.met()
        assert await crew.on_duty() == [0]
        assert crew.calls[0].by_name["locks.acquire"] == 0, "nobody to ask"
        calls = Calls()
        app = Windlass(store=calls.on(app_at(crew.path).store))

        @app.job
        async def other() -> None: ...

        await app.worker(**QUICK, drain=True).run()
        assert calls.by_name["jobs.promote"] > 0
        assert calls.by_name["locks.acquire"] == 0


async def test_jobs_of_one_that_died_on_duty_begin_again_within_lease_rescue_and_poll(
    crew: Crew, tmp_path: Path
) -> None:
    lease, rescue, poll = 2.0, 1.0, 0.5
    client = app_at(tmp_path / "jobs.db")

    @client.job
    async def note(number: int) -> None: ...

    options: dict[str, Any] = {"lease": lease, "rescue": rescue, "poll": poll}
    duty, ttl = duty_of(client.worker(**options).config, client.registry), timedelta(seconds=rescue)
    async with client, AsyncExitStack() as stack:

        async def on_duty() -> bool:
            return isinstance(await client.store.locks.acquire(duty, "dead/1", ttl), Granted)

        assert await on_duty()
        for _ in range(3):
            await crew.join(stack, **options, queues=["elsewhere"])
            assert await on_duty()
        beats = [calls.by_name["workers.beat"] + 2 for calls in crew.calls]
        while any(calls.by_name["workers.beat"] < n for calls, n in zip(crew.calls, beats, strict=True)):
            assert await on_duty(), "nobody takes it away"
        handle = await note.enqueue(7)
        [job] = await client.store.jobs.claim(want(types={"note"}))
        assert await on_duty()
        await client.store.jobs.extend("w1", [Lease(job.id, job.lease_token)], timedelta(seconds=lease))
        died = time.monotonic()
        await until_status(handle, Status.QUEUED)
        assert time.monotonic() - died < lease + rescue + poll


def test_those_share_a_duty_who_would_do_the_same() -> None:
    one, same, other = (Windlass("sqlite://") for _ in range(3))
    for app in (one, same):

        @app.job(name="report", schedule=cron("0 9 * * *"))
        async def report() -> None: ...

    names = {
        "one": duty_of(WorkerConfig(), one.registry),
        "same": duty_of(WorkerConfig(concurrency=3), same.registry),
        "other handlers": duty_of(WorkerConfig(), other.registry),
        "other retention": duty_of(WorkerConfig(retention=Retention(succeeded=ms(1))), one.registry),
        "ageing": duty_of(WorkerConfig(ageing=Ageing(ms(60_000))), one.registry),
    }
    assert names["one"] == names["same"]
    assert len(set(names.values())) == 4
    assert all(name.startswith(PREFIX) for name in names.values())
