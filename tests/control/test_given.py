"""A client or pool that the application has already in place of a URL, on every store: settings in, nothing touched."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any

import asyncpg
import pytest
from pymongo import AsyncMongoClient
from redis.asyncio import Redis

from tests.contract.places import MongoPlace, Place, PostgresPlace, RedisPlace, SqlitePlace
from tests.support.apps import working
from windlass import SettingsError, Windlass
from windlass.stores.given import store_of

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def sqlite_file(place: SqlitePlace) -> AsyncGenerator[tuple[object, Callable[[], Awaitable[object]]], None]:
    with closing(sqlite3.connect(place.path)) as connection:

        async def still_works() -> object:
            return connection.execute("SELECT 1").fetchall()

        yield connection, still_works


async def _as_objects(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """As many applications do: their own codec for JSON, which windlass must not meet."""
    await connection.set_type_codec("json", encoder=str, decoder=lambda _: object(), schema="pg_catalog")


@asynccontextmanager
async def postgres_pool(place: PostgresPlace) -> AsyncGenerator[tuple[object, Callable[[], Awaitable[object]]], None]:
    pool = await asyncpg.create_pool(
        place.url,
        min_size=1,
        max_size=2,
        init=_as_objects,
        command_timeout=30,
        server_settings={"search_path": place.schema, "application_name": "shop"},
    )
    try:
        yield pool, lambda: pool.fetch("SELECT 1")
    finally:
        await pool.close()


@asynccontextmanager
async def mongo_client(place: MongoPlace) -> AsyncGenerator[tuple[object, Callable[[], Awaitable[object]]], None]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(place.url, tz_aware=False, w=0)
    try:
        yield client[place.database], lambda: client.admin.command("ping")
    finally:
        await client.close()


@asynccontextmanager
async def redis_client(place: RedisPlace) -> AsyncGenerator[tuple[object, Callable[[], Awaitable[object]]], None]:
    driver: Any = Redis
    client = driver.from_url(place.url, decode_responses=True, protocol=3, max_connections=2)
    try:
        yield client, client.ping
    finally:
        await client.aclose()


def have(place: Place) -> AbstractAsyncContextManager[tuple[object, Callable[[], Awaitable[object]]]]:
    """A client as an application might have it, with odd settings of its own; and whether it still works."""
    match place:
        case SqlitePlace():
            return sqlite_file(place)
        case PostgresPlace():
            return postgres_pool(place)
        case MongoPlace():
            return mongo_client(place)
        case RedisPlace():
            return redis_client(place)
        case _:
            raise AssertionError(place)


def namespace(place: Place) -> str:
    return place.namespace if isinstance(place, RedisPlace) else "windlass"


async def test_jobs_are_enqueued_run_and_looked_at_and_the_client_stays_open(place: Place, app: Windlass) -> None:
    async with have(place) as (client, still_works):
        own = Windlass(client, namespace=namespace(place))

        @own.job
        async def double(n: int) -> int:
            return 2 * n

        def script() -> int:
            return own.run_sync(double.enqueue_sync(21).result(20))

        async with own, working(own, concurrency=8):
            handles = await own.enqueue_many(double.bind(n) for n in range(30))
            assert [await one.result(20) for one in handles] == [2 * n for n in range(30)]
            assert await asyncio.to_thread(script) == 42, "another thread has a loop and a store of its own"
            assert (await own.health.ready()).ready
            assert (await own.jobs.count(type="double")).n == 31
        own.close()
        assert await still_works()
        assert (await app.jobs.count(type="double", status="succeeded")).n == 31, "the same place as by its URL"
        assert "password" not in own.address
        assert own.url == own.address


WORKING = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'windlass' AND query LIKE '%' || $1::text || '%' AND pid <> pg_backend_pid()
"""


async def test_no_more_connections_are_made_for_statements_than_the_pool_has(place: Place) -> None:
    if not isinstance(place, PostgresPlace):
        return
    async with have(place) as (pool, _):
        async with Windlass(pool) as own:
            await asyncio.gather(*[own.jobs.find() for _ in range(40)])
            [[n]] = await place.run(WORKING, place.schema)
        assert n <= 2
        async with Windlass(f"{place.url}?schema={place.schema}") as other:
            await asyncio.gather(*[other.jobs.find() for _ in range(40)])
            [[n]] = await place.run(WORKING, place.schema)
        assert n > 2


async def test_another_namespace_of_the_same_client_keeps_its_settings(place: Place) -> None:
    async with have(place) as (client, _):
        own = Windlass(client)
        own.move(None, "windlass_elsewhere")
        async with own:
            await own.enqueue("send", {})
            assert (await own.jobs.count()).n == 1
            await own.store.schema.remove()


async def test_what_is_no_client_is_refused_with_what_to_give() -> None:
    for wrong in (7, object(), ["postgresql://x"]):
        with pytest.raises(SettingsError, match=r"a store cannot be made of a builtins.*asyncpg.Pool"):
            Windlass(wrong)
    with closing(sqlite3.connect(":memory:")) as memory, pytest.raises(SettingsError, match="database in memory"):
        Windlass(memory)


async def test_a_client_without_a_default_database_uses_windlass_and_one_with_uses_that() -> None:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient("mongodb://ada:secret@localhost:1/?appname=shop")
    shop: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient("mongodb://localhost:1/shop")
    assert store_of(client).address == "mongodb://localhost:1/windlass"
    assert store_of(shop).address == "mongodb://localhost:1/shop"
    assert store_of(shop["other"]).address == "mongodb://localhost:1/other"
    await client.close()
    await shop.close()
