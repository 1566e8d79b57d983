"""Gathering on every store: what children have of their parent, and what becomes of both if something is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.support.apps import until_status, working
from tests.support.until import until
from windlass import Ctx, Job, Retry, Status, Unique, Windlass

pytestmark = pytest.mark.timeout(60)
WORKERS = 20
ONCE = Retry(1)


async def children_of(app: Windlass, parent: str) -> list[Job]:
    return [job async for job in app.jobs.each(type="child") if job.parent_id == parent]


async def test_children_belong_to_whom_their_parent_does(app: Windlass) -> None:
    @app.job
    async def child(n: int) -> int:
        return n

    @app.job
    async def parent(ctx: Ctx) -> list[int]:
        return await ctx.gather("all", [child.bind(n) for n in range(3)])

    handle = await parent.using(user="eve", entity=("order", 7), correlation="c1").enqueue()
    async with working(app):
        assert await handle.result(20) == [0, 1, 2]
    told = {
        (job.user_id, job.entity_name, job.entity_id, job.correlation_id) for job in await children_of(app, handle.id)
    }
    assert told == {("eve", "order", "7", "c1")}


async def test_cancelling_a_parent_leaves_its_children_and_its_end_alone(app: Windlass) -> None:
    @app.job(queue="later")
    async def child(n: int) -> int:
        return n

    @app.job
    async def parent(ctx: Ctx) -> list[int]:
        return await ctx.gather("all", [child.bind(n) for n in range(2)])

    await app.queues.pause("later")
    handle = await parent.enqueue()
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await app.jobs.cancel(handle)
        assert (await handle.job()).status is Status.CANCELLED
        await app.queues.resume("later")

        async def all_done() -> bool:
            return [job.status for job in await children_of(app, handle.id)] == [Status.SUCCEEDED] * 2

        await until(all_done, "the children to end as if nothing had happened")
    assert (await handle.job()).status is Status.CANCELLED


async def test_a_child_whose_key_another_job_has_fails_its_parent_which_an_operator_then_takes_on(
    app: Windlass,
) -> None:
    ran: Counter[int] = Counter()

    @app.job(unique=Unique("child:{n}"))
    async def child(n: int) -> int:
        ran[n] += 1
        return n

    @app.job(retry=ONCE)
    async def parent(ctx: Ctx) -> list[int]:
        return await ctx.gather("all", [child.bind(n) for n in range(3)])

    holder = await child.using(delay=timedelta(hours=1)).enqueue(1)
    handle = await parent.enqueue()
    async with working(app):
        failed = await until_status(handle, Status.FAILED)
        assert failed.error is not None
        assert failed.error.type.endswith("DuplicateJob")
        assert holder.id in failed.error.message
        await app.jobs.cancel(holder)
        await app.jobs.retry(handle)
        assert await handle.result(20) == [0, 1, 2]
    assert ran == {0: 1, 1: 1, 2: 1}
    assert len(await children_of(app, handle.id)) == 3


async def test_children_that_a_full_queue_has_no_room_for_come_with_a_later_attempt(app: Windlass) -> None:
    ran: Counter[int] = Counter()

    @app.job(queue="narrow")
    async def child(n: int) -> int:
        ran[n] += 1
        return n

    @app.job(retry=Retry(50, base=0.05, factor=1.0, jitter=False))
    async def parent(ctx: Ctx) -> list[int]:
        return await ctx.gather("all", [child.bind(n) for n in range(5)])

    await app.queues.limit_depth("narrow", 2)
    handle = await parent.enqueue()
    async with working(app):
        assert await handle.result(30) == [0, 1, 2, 3, 4]
    assert ran == dict.fromkeys(range(5), 1)
    assert (await handle.job()).attempts > 1, "there was room for all: nothing was tried"


async def test_with_many_workers_every_step_is_done_once(app: Windlass) -> None:
    made: Counter[str] = Counter()

    @app.job
    async def child(n: int) -> int:
        made[f"child {n}"] += 1
        return n

    async def make(name: str) -> str:
        made[name] += 1
        return name

    @app.job
    async def order(ctx: Ctx, n: int) -> list[Any]:
        first = await ctx.step("first", make, f"first {n}")
        word = await ctx.wait("word", timedelta(hours=1))
        results = await ctx.gather("two", [child.bind(2 * n), child.bind(2 * n + 1)])
        return [first, word, *results, await ctx.step("last", make, f"last {n}")]

    handles = await app.enqueue_many(order.bind(n) for n in range(15))
    async with many_working(app):
        for n, handle in enumerate(handles):
            await app.jobs.signal(handle, "word", n)
        results = [await handle.result(40) for handle in handles]
    assert results == [[f"first {n}", n, 2 * n, 2 * n + 1, f"last {n}"] for n in range(15)]
    assert set(made.values()) == {1}
    assert len(made) == 4 * 15


@asynccontextmanager
async def many_working(app: Windlass) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for _ in range(WORKERS):
            await stack.enter_async_context(working(app, concurrency=2))
        yield
