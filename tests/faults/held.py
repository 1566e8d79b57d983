"""Somebody else's transaction holds a job's record, or the line of a limit, for longer than a lease: M27, M27b.

As a module it is the application of both; in the second a handler ends its job in a transaction which it keeps open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import asyncpg
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from tests.faults.judging import found_by, heal, kind_of
from tests.faults.postgres_faults import Connection
from windlass import Ctx, Limit, Windlass
from windlass.chaos import workload
from windlass.chaos.checker import hindered
from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.place import Pace, Place
from windlass.chaos.report import Report
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until
from windlass.client.calls import JobFunction
from windlass.stores.contract import Action, Order

SPEC = "tests.faults.held:app"
NEIGHBOURS = 4
ROOM = 10_000
"""so much room has the limit that its jobs wait for its line alone, never for a slot"""
WRITTEN = 3.0
"""seconds within which the end of a job beside a held one is written, on a busy machine"""
HELD = 3.0
"""seconds that the line is held"""


async def row(place: Place, seed: int, *, long: bool) -> Finding:
    """A user's transaction holds the record of a running job until long after its lease has ended."""
    missing: list[str] = []
    pace = Pace(lease=4.0, heartbeat=1.0) if long else Pace()
    async with Trial(place, pace=pace, spec=SPEC, seed=seed) as trial:
        await trial.ready(2)
        for _ in range(2 if long else 1):
            missing += await _held(trial)
        await trial.finished(4 if place.control else 40)
        return await found_by("held row", trial, lambda _: missing)


async def _held(trial: Trial) -> list[str]:
    lease = trial.pace.lease
    job = await trial.enqueue("long_once", seconds=lease * 4)
    hand = await trial.runner(job)
    if job is None or hand is None:
        return ["nobody began the job: nothing was proved"]
    beside = [await trial.enqueue("work", seconds=lease * 2) for _ in range(NEIGHBOURS)]
    ending = [await trial.enqueue("work", seconds=lease * 1.6) for _ in range(NEIGHBOURS)]
    await until(lambda: trial.runs().keys() >= {*beside, *ending}, 5)
    await asyncio.sleep(trial.pace.heartbeat * 2)  # so that the lease is confirmed
    trial.strike("held row")
    async with HOLDERS[kind_of(trial.place)](trial.place, job):
        await asyncio.sleep(lease * trial.random.uniform(1.8, 2.2))  # the subject: until after the lease
        kept = any(run.job == job for run in trial.in_flight(hand))
        # By now the held job was given up, and its end is waiting to be written.
        unwritten = await _unwritten(trial, ending)
    heal(trial, "held row")
    again = await until(lambda: len(trial.runs()[job]) > 1, 10)
    # Those beside it are not held: what keeps one lease from being extended must not keep the others.
    lost = [one for one in (*beside, *ending) if len(trial.runs()[str(one)]) > 1]
    return [
        *(["a worker was still at a job whose lease was over: it could not be extended"] * kept),
        *(["nobody began the job again: nothing was proved"] * (not again)),
        *([f"{len(unwritten)} ends of jobs beside a held one were not written while it was held"] * bool(unwritten)),
        *([f"{len(lost)} of {2 * NEIGHBOURS} jobs beside a held one were lost with it"] * bool(lost)),
    ]


async def _unwritten(trial: Trial, ending: list[str | None]) -> list[str]:
    """Of jobs whose handlers end about now, those that the store does not know as ended soon after."""
    ids = [str(one) for one in ending]
    await until(lambda: all(run.left < float("inf") for one in ids for run in trial.runs()[one]), 5)
    open_ = ids

    async def written() -> bool:
        nonlocal open_
        jobs = await trial.desk.store.views.get(ids)
        open_ = [job.id for job in jobs if job is not None and not job.status.finished]
        return not open_

    await until(written, WRITTEN)
    return open_


@asynccontextmanager
async def _postgres_row(place: Place, job: str) -> AsyncGenerator[None, None]:
    db, schema = await _connected(place)
    try:
        async with db.transaction():
            await db.execute(f'SELECT FROM "{schema}".{place.namespace}_jobs WHERE id = $1 FOR UPDATE', job)
            yield
    finally:
        db.terminate()


async def _connected(place: Place) -> tuple[Connection, str]:
    parts = urlsplit(place.url)
    db: Connection = await asyncpg.connect(parts._replace(query="").geturl())
    return db, parse_qs(parts.query).get("schema", ["public"])[0]


@asynccontextmanager
async def _mongo_document(place: Place, job: str) -> AsyncGenerator[None, None]:
    client: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(place.url)
    jobs = client.get_default_database("windlass").get_collection(f"{place.namespace}_jobs")
    async with client, client.start_session() as session:

        async def touched() -> bool:
            await session.start_transaction()
            try:
                await jobs.update_one({"_id": job}, {"$set": {"touched": True}}, session=session)
            except OperationFailure:
                # Its worker wrote to it at the same moment: who comes second has to begin anew.
                await session.abort_transaction()
                return False
            return True

        assert await until(touched, 5)
        yield
        await session.abort_transaction()


HOLDERS: dict[str, Callable[[Place, str], AbstractAsyncContextManager[None]]] = {
    "postgres": _postgres_row,
    "mongo": _mongo_document,
}


async def long_once(ctx: Ctx, name: str, seconds: float) -> int:
    """Take long the first time; an heir is brief."""
    return await workload.work(ctx, name, seconds if workload.witness().first(name) else 0.1)


async def hot(ctx: Ctx, name: str) -> int:
    """One of many of a limit with room for all."""
    return await workload.work(ctx, name, 0.0)


async def lingering(ctx: Ctx, name: str, seconds: float) -> int:
    """End in a transaction of its own and keep that open, and with it whatever the end of a job of the limit holds."""
    with workload.running(ctx):
        db, _ = await _connected(Place.told())
        try:
            async with db.transaction():
                await ctx.complete_in(db, ctx.token)
                await asyncio.sleep(seconds)  # the job's work: a transaction that stays open
        finally:
            db.terminate()
        workload.witness().effect(ctx.id, ctx.token)
    return ctx.token


def application(place: Place) -> Windlass:
    from tests.faults.app import application as usual

    made = usual(place)
    made.job(long_once)
    for handler in (hot, lingering):
        made.job(limit=Limit("hot", ROOM))(handler)
    return made


async def line(place: Place, seed: int, *, long: bool) -> Finding:
    """An open transaction holds the line of a limit before which many wait: what needs no slot of it goes on."""
    waiting = 10_000 if long else 3_000
    pace = Pace(lease=5.0)
    async with Trial(place, pace=pace, spec=SPEC, seed=seed) as trial:
        await trial.ready(2)
        holder = await trial.enqueue("lingering", seconds=HELD)
        held = await trial.runner(holder)
        await asyncio.sleep(0.3)  # until its end is written and held, of which it gives no sign
        trial.strike("held line")
        ids = await _many(trial, waiting)
        late = [await _begun_after(trial) for _ in range(5 if long else 2)]
        ended = await until(lambda: trial.runs()[str(holder)][0].left < float("inf"), HELD)
        heal(trial, "held line")
        await _cancel(trial, ids)
        await trial.finished(3 if place.control else 90 if long else 40)

        def proved(_: Report) -> list[str]:
            most = pace.poll + 1
            return [
                *(["nobody held the line: nothing was proved"] * (held is None or not ended)),
                *(
                    [f"a plain job was begun after {max(late):.2f} s, at most {most:.2f} are promised"]
                    * (max(late) > most)
                ),
            ]

        return await found_by("held line", trial, proved)


async def _many(trial: Trial, n: int) -> list[str]:
    """Enqueue so many that want a slot of the held line."""
    declaration = trial.app.registry.get("hot")
    names = [f"hot-{number}" for number in range(n)]
    job: JobFunction[..., int] = JobFunction(trial.app.client, declaration, declaration.options)
    for name in names:
        trial.history.tell(What.INVOKED, name=name)
    handles = await trial.app.enqueue_many(job.bind(name) for name in names)
    for name, handle in zip(names, handles, strict=True):
        trial.history.tell(What.ACKNOWLEDGED, name=name, job=handle.id)
    return [handle.id for handle in handles]


async def _cancel(trial: Trial, ids: list[str]) -> None:
    """Spare the trial from running what has served its purpose."""
    for start in range(0, len(ids), 500):
        orders = [Order(id=one, action=Action.CANCEL, actor="chaos") for one in ids[start : start + 500]]
        await trial.desk.store.jobs.operate(orders)


async def _begun_after(trial: Trial) -> float:
    """Seconds from the acknowledgement of a job without a limit to its beginning, but for what the machine took."""
    job = await trial.enqueue("work", seconds=0.0)
    asked = time.monotonic()
    await until(lambda: job in trial.runs(), 10)
    begun = time.monotonic()
    return begun - asked - max(hindered(trial.history.lines(), hand.pid, asked, begun) for hand in trial.hands)


app = application(Place.told())
