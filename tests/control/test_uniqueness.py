"""Uniqueness from end to end, on every store: a crowd that wants one key, and debouncing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.control.conftest import Crew
from tests.support.apps import working
from windlass import Status, Windlass

pytestmark = pytest.mark.timeout(90)
PROCESSES, EACH = 4, 16


@pytest.mark.timeout(120)
async def test_of_64_clients_that_want_one_key_half_of_them_rolled_back_one_has_it(app: Windlass, crew: Crew) -> None:
    rivals = [crew.start("rivals", str(EACH)) for _ in range(PROCESSES)]
    for one in rivals:
        await asyncio.to_thread(crew.wait_for, "ready", one)
    crew.tell("go")
    codes = [await asyncio.to_thread(one.wait, 90) for one in rivals]
    assert codes == [0] * PROCESSES
    told = [line for line in crew.ledger() if line[0] != "ready"]
    assert len(told) == PROCESSES * EACH
    undone = sum(line[0] == "undone" for line in told)
    assert undone == (PROCESSES * EACH // 2 if app.store.capabilities.transactions else 0)

    [job] = (await app.jobs.find()).jobs
    assert [line[2] for line in told if line[0] == "created"] == [job.id]
    assert {line[2] for line in told if line[0] == "found"} == {job.id}
    assert (job.status, job.unique_key) == (Status.QUEUED, "mast")


async def test_a_debounced_job_runs_once_with_what_came_last(app: Windlass, another: Windlass) -> None:
    ran: list[str] = []

    @app.job(unique="index:{page}")
    async def index(page: str, text: str) -> str:
        ran.append(text)
        return text

    typing = index.using(delay=2, on_conflict="replace", longest_wait=60)
    async with working(app):
        handles = [await typing.enqueue("home", text) for text in ("w", "wi", "win")]
        # From another process, which knows the job only by its name.
        last = await another.enqueue(
            "index", {"page": "home", "text": "windlass"}, unique="index:home", delay=2, on_conflict="replace"
        )
        assert len({one.id for one in [*handles, last]}) == 1
        assert [one.created for one in handles] == [True, False, False]
        assert await handles[0].result(30) == "windlass"
        again = await typing.enqueue("home", "more")
        assert again.created, "the key is free when the job has ended"
        assert await again.result(30) == "more"
    assert ran == ["windlass", "more"]


async def test_a_debounced_job_is_not_put_off_beyond_its_longest_wait(app: Windlass) -> None:
    ran: list[int] = []

    @app.job(unique="index")
    async def index(n: int) -> int:
        ran.append(n)
        return n

    typing = index.using(delay=30, on_conflict="replace", longest_wait=1)
    async with working(app):
        first = await typing.enqueue(0)
        for n in range(1, 5):
            await typing.enqueue(n)
        job = await first.job()
        assert job.run_at <= job.created_at + timedelta(seconds=1), "the fifth would have put it off by half a minute"
        assert await first.result(25) == 4
    assert ran == [4]
