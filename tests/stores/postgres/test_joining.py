"""Enqueue and completion inside the caller's own transaction, through every driver that is known."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.contract.places import PostgresPlace, postgres_url
from tests.contract.steps import DONE, finish, get, put, start, status, told
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.errors import StoreError, TransactionRefused
from windlass.core.history import Happened
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import Transition, decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Created, Duplicate, Full, Inserted, Replaced, Verdict
from windlass.stores.postgres.store import PostgresStore

# By name: Django has no types of its own.
django: Any = importlib.import_module("django")
django_settings: Any = importlib.import_module("django.conf").settings
if not django_settings.configured:
    django_settings.configure(USE_TZ=True)
    django.setup()


AS_DICTS: Any = dict_row
"""what a caller may have told its connection to make of rows"""


class Tx:
    """A transaction that has begun, on some driver, with a table of the caller's own."""

    def __init__(
        self,
        tx: Any,
        run: Callable[[str], Awaitable[Any]],
        commit: Callable[[], Awaitable[Any]],
        rollback: Callable[[], Awaitable[Any]],
        *,
        synchronous: bool = False,
    ) -> None:
        self.tx, self.run, self.commit, self.rollback, self.synchronous = tx, run, commit, rollback, synchronous

    async def insert(self, store: PostgresStore, *drafts: Draft) -> list[Inserted]:
        return store.jobs.insert_now(drafts, self.tx) if self.synchronous else await store.jobs.insert(drafts, self.tx)

    async def complete(self, store: PostgresStore, one: Transition) -> Verdict:
        return store.jobs.complete_now(one, self.tx) if self.synchronous else await store.jobs.complete(one, self.tx)


def soon(call: Callable[..., Any], *args: Any) -> Callable[..., Awaitable[Any]]:
    async def later(*more: Any) -> Any:
        return call(*args, *more)

    return later


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncGenerator[Tx, None]:
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url)
    transaction = db.transaction()
    await transaction.start()
    yield Tx(db, db.execute, transaction.commit, transaction.rollback)
    await db.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncGenerator[Tx, None]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as db:
        transaction = db.transaction()
        await transaction.start()
        yield Tx(db, db.execute, transaction.commit, transaction.rollback)


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncGenerator[Tx, None]:
    with psycopg.connect(url, row_factory=AS_DICTS) as db:
        yield Tx(db, soon(db.execute), soon(db.commit), soon(db.rollback), synchronous=True)


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncGenerator[Tx, None]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=AS_DICTS) as db:
        execute: Any = db.execute  # its own types want literal text only
        yield Tx(db, execute, db.commit, db.rollback)


def of_sqlalchemy(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


@asynccontextmanager
async def by_connection(url: str) -> AsyncGenerator[Tx, None]:
    engine = sqlalchemy.create_engine(of_sqlalchemy(url, "psycopg"))
    with engine.connect() as db:
        yield Tx(db, soon(db.exec_driver_sql), soon(db.commit), soon(db.rollback), synchronous=True)
    engine.dispose()


@asynccontextmanager
async def by_session(url: str) -> AsyncGenerator[Tx, None]:
    engine = sqlalchemy.create_engine(of_sqlalchemy(url, "psycopg"))
    with Session(engine) as session:

        async def run(sql: str) -> Any:
            return session.execute(sqlalchemy.text(sql))

        yield Tx(session, run, soon(session.commit), soon(session.rollback), synchronous=True)
    engine.dispose()


@asynccontextmanager
async def by_async_connection(url: str, driver: str = "asyncpg") -> AsyncGenerator[Tx, None]:
    engine = create_async_engine(of_sqlalchemy(url, driver))
    async with engine.connect() as db:
        yield Tx(db, db.exec_driver_sql, db.commit, db.rollback)
    await engine.dispose()


@asynccontextmanager
async def by_async_session(url: str, driver: str = "asyncpg") -> AsyncGenerator[Tx, None]:
    engine = create_async_engine(of_sqlalchemy(url, driver))
    async with AsyncSession(engine) as session:

        async def run(sql: str) -> Any:
            return await session.execute(sqlalchemy.text(sql))

        yield Tx(session, run, session.commit, session.rollback)
    await engine.dispose()


@asynccontextmanager
async def by_async_session_psycopg(url: str) -> AsyncGenerator[Tx, None]:
    async with by_async_session(url, "psycopg") as tx:
        yield tx


@asynccontextmanager
async def by_django(url: str) -> AsyncGenerator[Tx, None]:
    parts = sqlalchemy.make_url(url)
    connections: Any = importlib.import_module("django.db.utils").ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parts.database,
                "USER": parts.username,
                "HOST": parts.host,
                "PORT": parts.port,
            }
        }
    )
    db: Any = connections["default"]
    db.inc_thread_sharing()

    def run(sql: str) -> None:
        with db.cursor() as cursor:
            cursor.execute(sql)

    db.connect()
    db.set_autocommit(False)
    yield Tx(db, soon(run), soon(db.commit), soon(db.rollback), synchronous=True)
    db.close()


DRIVERS: dict[str, Callable[[str], AbstractAsyncContextManager[Tx]]] = {
    "asyncpg": by_asyncpg,
    "asyncpg pool": by_asyncpg_pool,
    "psycopg": by_psycopg,
    "psycopg async": by_psycopg_async,
    "sqlalchemy connection": by_connection,
    "sqlalchemy session": by_session,
    "sqlalchemy async connection": by_async_connection,
    "sqlalchemy async session": by_async_session,
    "sqlalchemy async session on psycopg": by_async_session_psycopg,
    "django": by_django,
}


@pytest.fixture(params=DRIVERS)
def driver(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], AbstractAsyncContextManager[Tx]]:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # the tests' own loop is no web server's
    return DRIVERS[request.param]


@pytest.fixture
async def tx(driver: Callable[[str], AbstractAsyncContextManager[Tx]], place: PostgresPlace) -> AsyncIterator[Tx]:
    await place.run("CREATE TABLE orders (n int PRIMARY KEY)")
    async with driver(place.url) as tx:
        await tx.run(f'INSERT INTO "{place.schema}".orders VALUES (1)')
        yield tx


async def orders(place: PostgresPlace) -> list[int]:
    return [row[0] for row in await place.run("SELECT n FROM orders ORDER BY n")]


async def test_what_is_enqueued_is_seen_on_commit_and_not_before(
    store: PostgresStore, place: PostgresPlace, tx: Tx
) -> None:
    several = [draft(payload='{"a":"100 % \\u0000 $1 :x"}', tags=("t",)), draft(), draft(user_id="u")]
    assert await tx.insert(store, *several) == [Created(one.id) for one in several]
    assert await store.views.get([one.id for one in several]) == [None] * 3
    await tx.commit()
    found = await get(store, several[0].id)
    assert (found.payload_json, found.tags) == (several[0].payload_json, ("t",))
    assert await told(store, several[2].id) == [Happened.ENQUEUED]
    assert await orders(place) == [1]


async def test_what_is_enqueued_is_gone_on_rollback(store: PostgresStore, place: PostgresPlace, tx: Tx) -> None:
    one, keyed = draft(), draft(unique="k", idempotency_window=None)
    assert await tx.insert(store, one, keyed) == [Created(one.id), Created(keyed.id)]
    await tx.rollback()
    assert await store.views.get([one.id, keyed.id]) == [None, None]
    assert await orders(place) == []
    await put(store, draft(unique="k"))


async def test_a_duplicate_does_not_abort_the_transaction(store: PostgresStore, place: PostgresPlace, tx: Tx) -> None:
    [held] = await put(store, draft(unique="k"))
    [put_off] = await put(store, draft(unique="d"))
    await store.queues.limit_depth("full", 0)
    asked = [
        draft(unique="k"),
        draft(unique="d", payload='{"n":2}', on_conflict="replace"),
        draft(queue="full"),
        draft(),
        draft(id=held),
    ]
    assert await tx.insert(store, *asked) == [
        Duplicate(held, "k"),
        Replaced(put_off),
        Full("full", 0),
        Created(asked[3].id),
        Created(held),
    ]
    await tx.run(f'INSERT INTO "{place.schema}".orders VALUES (2)')
    await tx.commit()
    assert await orders(place) == [1, 2]
    assert (await get(store, put_off)).payload == {"n": 2}
    assert await status(store, asked[3].id) is Status.QUEUED


async def test_who_listens_is_woken_by_the_commit(store: PostgresStore, tx: Tx) -> None:
    rings: list[int] = []
    async with store.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: store.notices.healthy, "the notices to be healthy")
        await tx.insert(store, draft())
        rings.clear()
        await tx.commit()
        await until(lambda: rings, "a wake-up")


async def test_effect_and_completion_commit_together(store: PostgresStore, place: PostgresPlace, tx: Tx) -> None:
    job, waiting = await start(store, draft(limit=Limit("l", 1))), draft(limit=Limit("l", 1))
    await put(store, waiting)
    assert await store.jobs.claim(want()) == []
    assert await tx.complete(store, decide(job, DONE)) is Verdict.APPLIED
    assert await status(store, job.id) is Status.PROCESSING
    await tx.commit()
    found = await get(store, job.id)
    assert (found.status, found.result) == (Status.SUCCEEDED, "done")
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    assert await orders(place) == [1]
    assert await status(store, waiting.id) is Status.QUEUED
    # What the worker says of it afterwards was said before.
    assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]
    assert len(await told(store, job.id)) == 3


async def test_a_rolled_back_completion_leaves_the_job_running(store: PostgresStore, tx: Tx) -> None:
    job = await start(store)
    assert await tx.complete(store, decide(job, DONE)) is Verdict.APPLIED
    await tx.rollback()
    assert await status(store, job.id) is Status.PROCESSING
    assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]


async def test_a_lost_lease_completes_nothing(store: PostgresStore, tx: Tx) -> None:
    ended = await finish(store)
    gone = decide(ended, DONE)._replace(id=draft().id)
    stale = decide(ended, DONE)._replace(token=7)
    assert await tx.complete(store, stale) is Verdict.STALE
    assert await tx.complete(store, gone) is Verdict.MISSING
    await tx.commit()


async def test_a_transaction_elsewhere_is_refused(
    store: PostgresStore, driver: Callable[[str], AbstractAsyncContextManager[Tx]], place: PostgresPlace
) -> None:
    name = f"{place.schema}_elsewhere"
    await place.run(f'CREATE DATABASE "{name}"')
    try:
        elsewhere = place.url.rpartition("/")[0] + f"/{name}"
        async with driver(elsewhere) as tx:
            with pytest.raises(TransactionRefused):
                await tx.insert(store, draft())
            await tx.rollback()
        another = store_at(f"{elsewhere}?schema={place.schema}")
        await another.open()
        await another.close()
        async with driver(elsewhere) as tx:
            with pytest.raises(TransactionRefused):
                await tx.insert(store, draft())
            await tx.rollback()
    finally:
        await place.run(f'DROP DATABASE "{name}" WITH (FORCE)')


async def test_what_cannot_be_stored_is_a_typed_error(store: PostgresStore, tx: Tx) -> None:
    with pytest.raises(StoreError):
        await tx.insert(store, draft()._replace(payload_json='{"a":\x00}'))
    await tx.rollback()


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg async", "sqlalchemy async session"], indirect=True)
async def test_an_asynchronous_transaction_is_refused_by_the_synchronous_door(store: PostgresStore, tx: Tx) -> None:
    with pytest.raises(TransactionRefused, match="await"):
        store.jobs.insert_now([draft()], tx.tx)
    await tx.rollback()


@pytest.mark.parametrize("driver", ["psycopg", "sqlalchemy session"], indirect=True)
async def test_a_synchronous_transaction_may_be_awaited(store: PostgresStore, tx: Tx) -> None:
    one = draft()
    assert await store.jobs.insert([one], tx.tx) == [Created(one.id)]
    await tx.commit()
    assert await status(store, one.id) is Status.QUEUED


async def test_a_store_that_was_never_opened_finds_its_tables(store: PostgresStore, place: PostgresPlace) -> None:
    closed = store_at(postgres_url())
    one = draft(unique="k")
    with psycopg.connect(place.url, options=f"-csearch_path={place.schema}") as db:
        assert closed.jobs.insert_now([one], db) == [Created(one.id)]
    assert await status(store, one.id) is Status.QUEUED
