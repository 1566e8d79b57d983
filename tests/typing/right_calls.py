"""Every call here is right: mypy and pyright accept the file as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from windlass import (
    Batched,
    Bound,
    ChildFailed,
    Cron,
    Ctx,
    Entry,
    Flow,
    FlowHandle,
    Group,
    Handle,
    Handler,
    Job,
    JobFunction,
    Limit,
    Outgoing,
    Progress,
    Rate,
    Retry,
    Secret,
    Unique,
    Windlass,
    cron,
)

app = Windlass("sqlite://")


@app.job
async def plain(order_id: int, *, copy_to: str | None = None) -> str:
    return f"{order_id} {copy_to}"


@app.around_run
async def timing(ctx: Ctx) -> AsyncIterator[None]:
    print(ctx.job.type)
    yield


@app.around_enqueue
def routing(job: Outgoing) -> Iterator[Outgoing | None]:
    yield job.using(queue="vip", metadata={**job.metadata, "tenant": "acme"})


async def create(user: int, name: str = "") -> dict[str, int]:
    return {name: user}


def measure(path: str) -> float:
    return len(path)


@app.job
async def remembers(ctx: Ctx, user: int) -> None:
    assert_type(await ctx.step("account", create, user), dict[str, int])
    assert_type(await ctx.step("account", create, user, "x", key="1"), dict[str, int])
    assert_type(await ctx.step("size", measure, "p"), float)
    assert_type(ctx.step_now("size", measure, "p"), float)
    await ctx.save({"row": 3})
    ctx.save_now(3, tx=sqlite3.connect(":memory:"))
    await ctx.wait("approved", timedelta(days=3))
    assert_type(await ctx.gather("all", [plain.bind(n) for n in range(3)]), list[str])
    assert_type(ctx.gather_now("all", [plain.bind(1)], errors="raise"), list[str])
    assert_type(await ctx.gather("all", [plain.bind(1)], errors="return"), list[str | ChildFailed])
    assert_type(ctx.origin, str)
    assert_type(await app.jobs.signal("id", "approved", {"by": "eve"}, actor="eve"), bool)
    assert_type(app.jobs.signal_sync("id", "approved"), bool)


@app.job(around_run=[timing], around_enqueue=[routing])
async def surrounded(n: int) -> int:
    return n


@app.job(queue="mail", timeout=30, retry=Retry(5, never=(ValueError,)))
async def with_ctx(ctx: Ctx, order_id: int, *, copy_to: str | None = None) -> str:
    return f"{ctx.id} {order_id} {copy_to}"


@app.job
def in_thread(path: str, size: int = 3) -> bytes:
    return path.encode() * size


@app.job(process=True, limit=Limit("thumb:{path}", 1), unique="thumb:{path}", priority="high", tags=["a"])
def in_process(ctx: Ctx, path: str) -> list[int]:
    return [ctx.attempt, len(path)]


@app.job(schedule=cron("0 9 * * mon-fri", tz="America/New_York", overlap="skip", missed="latest"))
async def report() -> None: ...


@app.job(name="other.name", schedule=[Cron("0 0 * * *")], idempotent=timedelta(hours=1), max_crashes=1)
async def optional(days: int = 7) -> int | None:
    return days


@app.job
def only_ctx(ctx: Ctx) -> str:
    return ctx.id


@app.job(rate=Rate(100, per=timedelta(minutes=1), key="join"), fair_by="user_id", retry=Retry(cap=timedelta(hours=1)))
async def joined(parts: list[str]) -> str:
    return "".join(parts)


@dataclass
class Shift:
    worker: str


class Remind(Handler[Shift, int], name="remind", queue="mail", retry=5):
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    async def perform(self, data: Shift) -> int:
        return len(data.worker)


class Simple(Handler[str, None]):
    def perform(self, data: str) -> None: ...


class Seeds(Handler[Shift, str]):
    name = "seeds"
    max_attempts = 3

    async def perform(self, shift: Shift, job: Ctx) -> str:
        return f"{shift.worker} {job.attempt}"


@app.job(batch=100, queue="index")
async def together(jobs: list[Batched[Shift, int]]) -> None:
    for job in jobs:
        assert_type(job.data, Shift)
        job.done(len(job.data.worker))
        job.fail(ValueError("no"))


@app.job(batch=100)
def together_in_thread(jobs: list[Batched[str, None]]) -> None:
    print([job.id for job in jobs])


@app.job
async def charge(token: Secret[str], *, headers: Secret[dict[str, str]] | None = None) -> Secret[int]:
    assert_type(token.reveal(), str)
    return Secret(len(token.reveal()))


async def secrets() -> None:
    handle = await charge.enqueue(Secret("token"), headers=Secret({"a": "b"}))
    assert_type((await handle.result()).reveal(), int)


async def calls() -> None:
    assert_type(await together.enqueue(Shift("Ada")), Handle[int])
    assert_type(together_in_thread.enqueue_sync("x"), Handle[None])
    assert_type(await plain.enqueue(42), Handle[str])
    assert_type(await app.enqueue(plain, {"order_id": 42}, queue="vip"), Handle[str])
    assert_type(await app.enqueue(plain.bind(42)), Handle[str])
    assert_type(await app.enqueue(Seeds, Shift("Ada")), Handle[str])
    assert_type(await app.enqueue(Seeds(), Shift("Ada")), Handle[str])
    assert_type(app.enqueue_sync(plain, {"order_id": 42}), Handle[str])
    assert_type(await app.jobs.cancel("id"), bool)
    assert_type(await app.jobs.cancel("id", await plain.enqueue(42)), list[bool])
    await app.schedules.put("plain", optional, cron("0 8 * * *"))
    assert_type(await plain.enqueue(order_id=42, copy_to="x"), Handle[str])
    assert_type(await with_ctx.enqueue(42, copy_to=None), Handle[str])
    assert_type(await (await with_ctx.enqueue(42)).result(timeout=3), str)
    assert_type(in_thread.enqueue_sync("p"), Handle[bytes])
    assert_type(in_thread.enqueue_sync("p", size=4), Handle[bytes])
    assert_type(app.enqueue_many_sync(plain.bind(n) for n in range(3)), list[Handle[str]])
    assert_type(plain.bind(1).enqueue_sync(), Handle[str])
    assert_type(app.group([plain.bind(1)]).enqueue_sync(), list[Handle[str]])
    assert_type(plain.bind(1).then(in_thread).enqueue_sync(), FlowHandle[bytes])
    assert_type(app.run_sync(in_thread.enqueue_sync("p").result(3)), bytes)
    assert_type(await in_process.enqueue("p"), Handle[list[int]])
    assert_type(await report.enqueue(), Handle[None])
    assert_type(await optional.enqueue(), Handle[int | None])
    assert_type(await only_ctx.enqueue(), Handle[str])

    assert_type(with_ctx.bind(1, copy_to="x"), Bound[str])
    assert_type(await app.enqueue_many(plain.bind(n) for n in range(3)), list[Handle[str]])
    mixed = [plain.bind(1), in_thread.bind("p")]
    await app.enqueue_many(mixed)

    assert_type(await plain.bind(1).enqueue(), Handle[str])
    assert_type(plain.bind(1).then(in_thread), Flow[bytes])
    assert_type(plain.bind(1).then(in_thread.using(queue="x")), Flow[bytes])
    assert_type(plain.bind(1).then(optional.bind(3), on_failure="run"), Flow[int | None])
    assert_type(app.group([plain.bind(n) for n in range(3)]), Group[str])
    assert_type(app.group([plain.bind(n) for n in range(3)]).then(joined).then(in_thread), Flow[bytes])
    assert_type(await app.group([plain.bind(1)]).then(joined).enqueue(), FlowHandle[str])
    assert_type(await (await plain.bind(1).then(in_thread).enqueue()).result(), bytes)

    asked = with_ctx.using(
        delay=60,
        at=None,
        priority="high",
        queue="vip",
        max_attempts=3,
        unique="receipt:42",
        tx=sqlite3.connect(":memory:"),
        user="u1",
        entity=("order", 42),
        correlation="c",
        metadata={"a": 1},
        tags=("a",),
        timeout=timedelta(seconds=3),
        idempotent=True,
        limit=Limit("x", 2),
        on_conflict="replace",
        longest_wait=3.5,
        expires=timedelta(minutes=5),
    )
    assert_type(await asked.enqueue(42), Handle[str])
    await plain.using(at=datetime(2030, 1, 1, tzinfo=UTC), unique=Unique(queued="q", running="r")).enqueue(1)
    await plain.using().using(queue="x").enqueue(1)

    await plain.call(1)
    in_thread.call("p", size=2)
    with_ctx.call(1)

    assert_type(app.add(Remind("hi")), JobFunction[[Shift], int])
    assert_type(await app.add(Remind("hi")).enqueue(Shift("ada")), Handle[int])
    assert_type(await app.add(Simple).enqueue("x"), Handle[None])
    assert_type(await app.enqueue(Remind, Shift("ada"), priority="low"), Handle[int])

    assert_type(await app.enqueue("plain", {"order_id": 42}, queue="x"), Handle[Any])
    assert_type(app.enqueue_sync("plain", {"order_id": 42}), Handle[Any])
    await app.enqueue("report")

    await app.schedules.put("acme", report.bind(), cron("0 8 * * *", tz="Europe/Paris"))
    assert_type(await app.schedules.remove("acme"), bool)
    await plain.using(user_id="u", entity_name="order", entity_id=1, correlation_id="c").enqueue(1)
    await app.jobs.find(user_id="u", entity_name="order", entity_id=1, correlation_id="c", parent_id="p", next_id="n")
    await app.dead_letters.discard_all(user_id="u", dry_run=True)
    await app.jobs.find(
        status="failed", type="plain", queue="q", user="u", entity=("order", 1), correlation="c", limit=3
    )

    handle = await plain.enqueue(1)
    assert_type(await handle.job(), Job)
    assert_type(await handle.cancel("enough"), bool)
    assert_type(handle.events(), AsyncGenerator[Entry | Progress, None])
    anything: Handle[object] = handle
    print(anything.id, anything.created)

    with app.within(object()):
        await plain.enqueue(1)
    async with app, app.worker(queues={"mail": 10}, exclude=["x"], lease=timedelta(seconds=3)) as worker:
        worker.stop()
    async with app.worker(queues=["mail", "default"], concurrency=3):
        ...
