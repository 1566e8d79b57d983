"""While one process migrates: what the others do, what is told of it, and the same by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.stores.postgres.test_control import old_tables
from tests.support.apps import Heard
from tests.support.until import until
from windlass import Windlass
from windlass.client import client
from windlass.client.checking import being_migrated
from windlass.core.events import StoreRecovered, StoreTroubled
from windlass.stores.postgres.schema import VERSION

pytestmark = pytest.mark.new_place

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@asynccontextmanager
async def migrating(place: PostgresPlace) -> AsyncGenerator[None, None]:
    """While inside, somebody else migrates."""
    db: Connection = await asyncpg.connect(place.url)
    try:
        async with db.transaction():
            await db.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", f"{place.schema}.windlass:migrate"
            )
            yield
    finally:
        await db.close()


async def test_who_waits_for_anothers_migration_asks_over_one_connection(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, made = 0, 0
    connect, fetchval = asyncpg.connect, asyncpg.Connection.fetchval

    async def connecting(*args: Any, **kwargs: Any) -> Any:
        nonlocal made
        made += 1
        return await connect(*args, **kwargs)

    async def asking(connection: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        nonlocal asked
        asked += "pg_try_advisory_xact_lock" in sql
        return await fetchval(connection, sql, *args, **kwargs)

    await old_tables(place)
    store = place.store()
    async with migrating(place):
        monkeypatch.setattr(asyncpg, "connect", connecting)
        monkeypatch.setattr(asyncpg.Connection, "fetchval", asking)
        opening = asyncio.create_task(store.open())
        await until(lambda: asked >= 4, "the lock to be asked for again and again")
        assert not opening.done()
        assert made <= 3, "one to look at the server, one to work, one to wait"
    await opening
    assert await store.schema.version() == VERSION
    await store.close()


async def test_that_a_store_takes_long_to_open_is_told(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SLOW", 0.2)
    await old_tables(place)
    app = Windlass(f"{place.url}?schema={place.schema}")
    heard = Heard(app)
    async with migrating(place):
        opening = asyncio.create_task(app.client.open())
        troubled = await heard.one(StoreTroubled)
        assert "migrat" in troubled.error
        assert "doctor" in troubled.error
    await opening
    assert heard.all(StoreRecovered)
    await app.client.close()


async def test_doctor_tells_how_far_a_migration_is(place: PostgresPlace) -> None:
    await old_tables(place)
    app = Windlass(f"{place.url}?schema={place.schema}")
    assert await being_migrated(app.store) is None, "nobody is at it: it is done by whoever opens the store"
    db: Connection = await asyncpg.connect(place.url)
    await db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await db.execute("SELECT")  # the making of an index waits for such a snapshot
    other = place.store()
    opening = asyncio.create_task(other.open())
    found = await until(lambda: being_migrated(app.store), "an index to be made")
    assert found is not None
    assert (found.level, found.name) == ("WARN", "schema")
    assert "version 1" in found.found
    assert "blocks" in found.found
    await db.close()
    await opening
    assert await being_migrated(app.store) is None
    await other.close()


async def test_the_printed_upgrade_is_what_the_installed_version_lacks(place: PostgresPlace) -> None:
    await old_tables(place)
    store = place.store()
    await store.open(migrate=False)
    text = store.schema.statements(await store.schema.version())
    assert "CREATE TABLE windlass_jobs " not in text
    whole, _, rest = text.partition("COMMIT;")
    assert "INDEX" not in whole
    assert rest.count("INDEX ") - rest.count("INDEX CONCURRENTLY") == 0
    assert rest.rindex("CREATE INDEX") < rest.index("DROP INDEX")
    db: Connection = await asyncpg.connect(place.url)
    for statement in text.split(";\n"):
        if statement.strip():
            await db.execute(statement)
    await db.close()
    assert await store.schema.pending() == []
    assert await store.schema.verify() == []
    await store.close()


async def test_the_printed_upgrade_of_what_is_up_to_date_is_empty(place: PostgresPlace) -> None:
    store = place.store()
    await store.open()
    assert "CREATE" not in store.schema.statements(VERSION)
    await store.close()
