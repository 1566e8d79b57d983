"""How many connections a worker takes of those that the server has, and what becomes of what it gave up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import put
from tests.stores.postgres.test_postgres import Wire
from tests.support.until import until
from windlass import Ctx, Limit, Status, Windlass
from windlass.stores.addresses import store_at
from windlass.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.timeout(60)

WAITING = """
SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE NOT granted AND application_name = 'windlass' AND relation = $1::text::regclass
"""
TAKEN = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"


@pytest.fixture
async def user(place: PostgresPlace) -> AsyncIterator[str]:
    """Somebody by whom the connections of this test can be told from others'."""
    name = f"u{place.schema}"
    await place.run(f'CREATE ROLE "{name}" LOGIN')
    await place.run(f'GRANT ALL ON SCHEMA "{place.schema}" TO "{name}"')
    yield name
    await place.run(f'DROP OWNED BY "{name}"')
    await place.run(f'DROP ROLE "{name}"')


@pytest.mark.new_place
async def test_a_busy_worker_takes_no_more_connections_than_are_counted_for_it(
    place: PostgresPlace, user: str, tell: Callable[[str], None]
) -> None:
    app = Windlass(f"{place.url.replace('postgres@', f'{user}@')}?schema={place.schema}")
    seen: list[int] = []
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)

    @app.job
    async def busy(ctx: Ctx, n: int) -> int:
        ctx.progress(n)
        await asyncio.gather(*[app.jobs.get(ctx.id) for _ in range(3)])
        if n % 10 == 0:
            await quick.enqueue(n)
        return n

    @app.job(limit=Limit("few", 2))
    async def quick(n: int) -> None: ...

    async def watch() -> None:
        while True:
            seen.append(await db.fetchval(TAKEN, user))

    async with app:
        await app.enqueue_many(busy.bind(n) for n in range(300))
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            often = timedelta(seconds=0.05)
            await app.worker(concurrency=50, drain=True, poll=often, rescue=often, heartbeat=often).run()
            watching.cancel()
        health = await app.store.health()
        assert (await app.jobs.count(status=Status.SUCCEEDED)).n == 330
    await db.close()
    tell(f"a busy worker takes {max(seen)} connections")
    assert max(seen) > 2, seen
    assert max(seen) <= health["worker_connections"], max(seen)


async def test_the_server_ends_a_statement_that_outlives_its_caller(store: PostgresStore, place: PostgresPlace) -> None:
    """Its connection is lost while it waits for a lock, which a server process does not hear of."""
    [id_] = await put(store)
    wire = Wire(urlsplit(place.url).port or 5432)
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)

    async def waiting() -> set[int]:
        return {pid for (pid,) in await db.fetch(WAITING, f"{place.schema}.windlass_jobs")}

    async with wire.laid() as port:
        far = store_at(f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={place.schema}&timeout=2")
        await far.open()
        async with db.transaction():
            await db.execute(f'LOCK TABLE "{place.schema}".windlass_jobs')
            call = asyncio.create_task(far.views.get([id_]))
            await until(waiting, "the call to wait")
            left = await waiting()
            wire.cut_now()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert left <= await waiting(), "the server has not heard that nobody waits for it"

            async def ended() -> bool:
                return not left & await waiting()

            await until(ended, "the server to end it, beside a lock that is still held", within=5)
        await far.close()
    await db.close()
