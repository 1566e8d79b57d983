"""What only the PostgreSQL store has: its notices, its schema's numbers, the page of queries, lost connections."""

from __future__ import annotations

import asyncio
import re

import asyncpg
import pytest

from tests.contract.invariants import check
from tests.contract.places import PostgresPlace
from tests.contract.steps import BOOM, DONE, finish, put, start, status, told
from tests.docs.pages import ROOT
from tests.support.drafts import LONG, draft, want
from tests.support.until import until
from windlass.core.errors import SchemaMismatch, StoreUnavailable
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.outcome import Failed
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Created, Lease, Store, Verdict
from windlass.stores.postgres.schema import VERSION
from windlass.stores.postgres.store import PostgresStore


async def cut(place: PostgresPlace) -> None:
    """End every connection of every store, as an administrator or a failover does."""
    await place.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'windlass' AND pid <> pg_backend_pid()"
    )


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", (ROOT / "docs/stores/postgres.md").read_text(), re.DOTALL))
async def test_the_queries_of_the_page_work(store: PostgresStore, place: PostgresPlace, query: str) -> None:
    options = {"entity_name": "resume", "entity_id": "42", "user_id": "ann", "correlation_id": "request-7"}
    await finish(store, draft(payload='{"file_name":"cv.pdf"}', **options))
    await finish(store, draft(**options), Failed(BOOM, again=False))
    assert await place.run(query)


async def test_a_newer_schema_that_only_added_is_worked_on(store: PostgresStore, place: PostgresPlace) -> None:
    await place.run("UPDATE windlass_meta SET value = $1 WHERE key = 'schema'", str(VERSION + 1))
    await place.run("ALTER TABLE windlass_jobs ADD COLUMN colour text")
    older = store.sibling()
    await older.open()
    assert await older.schema.migrate() == []
    assert await older.schema.version() == VERSION + 1
    assert (await finish(older)).status is Status.SUCCEEDED
    await older.close()
    await place.run("UPDATE windlass_meta SET value = $1 WHERE key = 'compatible'", str(VERSION + 1))
    with pytest.raises(SchemaMismatch):
        await store.sibling().open()


async def test_the_printed_migrations_make_the_same_schema(place: PostgresPlace) -> None:
    store = place.store()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    await db.execute(store.schema.statements())
    await db.close()
    await store.open(migrate=False)
    assert await store.schema.pending() == []
    assert await store.schema.verify() == []
    assert (await finish(store)).status is Status.SUCCEEDED
    await store.close()


async def test_lost_connections_are_made_anew_and_nothing_is_lost(store: PostgresStore, place: PostgresPlace) -> None:
    ids = await put(store, *[draft() for _ in range(200)])
    done: list[str] = []

    async def work(name: str) -> None:
        while len(done) < len(ids):
            jobs = await patiently(store, name)
            await store.jobs.extend(name, [Lease(job.id, job.lease_token) for job in jobs], LONG)
            verdicts = await store.jobs.apply([decide(job, DONE) for job in jobs])
            assert set(verdicts) <= {Verdict.APPLIED}
            done.extend(job.id for job in jobs)

    async def trouble() -> None:
        while len(done) < len(ids):
            await cut(place)
            await asyncio.sleep(0.05)

    async with asyncio.timeout(18):
        await asyncio.gather(work("w1"), work("w2"), trouble())
    assert sorted(done) == ids
    jobs, _ = await check(store)
    assert {job.lease_token for job in jobs} == {1}, "a claim whose answer was lost was not found again"


async def patiently(store: Store, name: str) -> list[Job]:
    while True:
        try:
            return await store.jobs.claim(want(5, worker=name))
        except StoreUnavailable:
            await asyncio.sleep(0.01)


async def test_a_cancelled_call_leaves_no_broken_connection(store: PostgresStore, place: PostgresPlace) -> None:
    [id_] = await put(store)
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        await db.execute(f'LOCK TABLE "{place.schema}".windlass_jobs')
        for _ in range(20):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await store.views.get([id_])
    await db.close()
    assert await status(store, id_) is Status.QUEUED


async def test_an_operation_has_a_deadline(store: PostgresStore, place: PostgresPlace) -> None:
    from windlass.stores.addresses import store_at

    hurried = store_at(f"{place.url}?schema={place.schema}&timeout=0.5")
    await hurried.open()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        await db.execute(f'LOCK TABLE "{place.schema}".windlass_jobs')
        with pytest.raises(StoreUnavailable):
            await hurried.jobs.insert([draft()])
    await db.close()
    one = draft()
    assert await hurried.jobs.insert([one]) == [Created(one.id)]
    await hurried.close()


async def test_notices_come_back_after_their_connection_was_lost(store: PostgresStore, place: PostgresPlace) -> None:
    other = store.sibling()
    await other.open()
    rings: list[int] = []
    async with store.notices.subscribe(lambda: rings.append(1)):
        await until(lambda: store.notices.healthy, "the notices to be healthy")
        await cut(place)
        await until(lambda: not store.notices.healthy, "the loss to be noticed")
        await until(lambda: store.notices.healthy, "the notices to be healthy again")
        rings.clear()
        await put(other)
        await until(lambda: rings, "a wake-up")
    await other.close()


async def test_a_job_being_completed_elsewhere_holds_up_no_heartbeat(
    store: PostgresStore, place: PostgresPlace
) -> None:
    held, other = await start(store), await start(store)
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        assert await store.jobs.complete(decide(held, DONE), db) is Verdict.APPLIED
        leases = [Lease(job.id, job.lease_token) for job in (held, other)]
        found = await store.jobs.extend("w1", leases, LONG)
        assert not found.lost
        assert not await store.jobs.rescue(10)
    await db.close()
    assert await told(store, held.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    assert (await store.jobs.extend("w1", leases, LONG)).lost == {held.id}


async def test_an_open_transaction_that_named_a_queue_first_holds_nobody_up(
    store: PostgresStore, place: PostgresPlace
) -> None:
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        await store.jobs.insert([draft(queue="new")], db)
        async with asyncio.timeout(2):
            await put(store, draft(queue="new"))
            assert len(await store.jobs.claim(want())) == 1
    await db.close()
    assert [one.name for one in await store.queues.list()] == ["new"]


async def test_an_open_transaction_with_a_key_does_not_hold_up_a_claim(
    store: PostgresStore, place: PostgresPlace
) -> None:
    from windlass.core.unique import Unique

    await put(store, draft(unique=Unique(running="k")), draft())
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        await store.jobs.insert([draft(unique="k")], db)
        async with asyncio.timeout(2):
            assert len(await store.jobs.claim(want())) == 1
    await db.close()
