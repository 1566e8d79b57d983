"""What only the PostgreSQL store has: its notices, its schema's numbers, the page of queries, lost connections."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import cast
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from tests.contract.invariants import check
from tests.contract.places import PostgresPlace
from tests.contract.steps import BOOM, DONE, expired, finish, get, last_entry, put, settle, start, status, told
from tests.docs.pages import ROOT
from tests.support.drafts import LONG, draft, want
from tests.support.until import until
from windlass.core.errors import SchemaMismatch, StoreUnavailable
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.outcome import Failed, Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.core.unique import Unique
from windlass.stores.addresses import store_at
from windlass.stores.contract import About, Created, Lease, Notice, Store, Verdict
from windlass.stores.postgres import notices
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.schema import VERSION
from windlass.stores.postgres.store import PostgresStore


async def cut(place: PostgresPlace) -> None:
    """End every connection of every store, as an administrator or a failover does."""
    await place.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'windlass' AND pid <> pg_backend_pid()"
    )


PAGE = (ROOT / "docs/stores/postgres.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL))
async def test_the_queries_of_the_page_work(store: PostgresStore, place: PostgresPlace, query: str) -> None:
    options = {"entity_name": "resume", "entity_id": "42", "user_id": "ann", "correlation_id": "request-7"}
    await finish(store, draft(payload='{"file_name":"cv.pdf"}', **options))
    await finish(store, draft(**options), Failed(BOOM, again=False))
    await settle(store, await start(store), Waiting("approved", LONG))
    last = draft(awaits="end")
    await put(store, last, draft(next_id=last.id))
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


@pytest.mark.new_place
async def test_the_printed_migrations_make_the_same_schema(place: PostgresPlace) -> None:
    await place.run(f'DROP SCHEMA "{place.schema}"')
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
        while (before := len(done)) < len(ids):
            await cut(place)
            await until(lambda: len(done) > before, "work to go on after a cut", within=15)

    await asyncio.gather(work("w1"), work("w2"), trouble())
    assert sorted(done) == ids
    jobs, _ = await check(store)
    assert {job.lease_token for job in jobs} == {1}, "a claim whose answer was lost was not found again"


class Wire:
    """Stands between a store and its server: can cut the connection just before an answer, or not tell of its end."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cut_next = False
        self.hide_ends = False
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def laid(self) -> AsyncGenerator[int, None]:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        yield server.sockets[0].getsockname()[1]
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_now(self) -> None:
        """Cut every connection, whatever is on its way."""
        for task in self._tasks:
            task.cancel()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        for source, sink, other, answers in ((reader, back, writer, False), (there, writer, back, True)):
            task = asyncio.create_task(self._carry(source, sink, other, answers=answers))
            self._tasks.add(task)

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, other: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        try:
            with suppress(OSError):
                while data := await source.read(65536):
                    if answers and self.cut_next:
                        self.cut_next = False
                        break
                    sink.write(data)
                    await sink.drain()
            if answers and self.hide_ends:
                await asyncio.Event().wait()  # until the wire is taken away
        finally:
            for end in (sink, other):
                end.close()


async def test_a_claim_whose_answer_was_lost_is_found_again(store: PostgresStore, place: PostgresPlace) -> None:
    wire = Wire(urlsplit(place.url).port or 5432)
    async with wire.laid() as port:
        far = store_at(f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={place.schema}")
        await far.open()
        [first] = await put(store)
        assert [job.id for job in await far.jobs.claim(want())] == [first]
        [second] = await put(store)
        wire.cut_next = True
        [found] = await far.jobs.claim(want())
        assert (found.id, found.lease_token, found.attempts) == (second, 1, 1)
        assert await far.jobs.apply([decide(found, DONE)]) == [Verdict.APPLIED]
        await far.close()


async def test_a_claim_that_was_given_up_is_not_carried_out_behind_its_workers_back(
    store: PostgresStore, place: PostgresPlace
) -> None:
    """The server has not begun with it when the connection is lost, and does not hear of that."""
    waiting = """
        SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND application_name = 'windlass' AND relation = $1::text::regclass
    """
    ids = await put(store, draft(), draft())
    wire = Wire(urlsplit(place.url).port or 5432)
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with wire.laid() as port:
        far = store_at(f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={place.schema}")
        await far.open()
        await db.execute("BEGIN")
        await db.execute(f'LOCK TABLE "{place.schema}".windlass_jobs')
        claim = asyncio.create_task(far.jobs.claim(want(1)))
        table = f"{place.schema}.windlass_jobs"

        async def pids() -> set[int]:
            return {row[0] for row in await db.fetch(waiting, table)}

        await until(pids, "the claim to wait")
        given_up = await pids()
        wire.cut_now()

        async def ended() -> bool:
            return not given_up & await pids()

        await until(ended, "what was given up to be ended", within=5)
        assert not claim.done()
        await db.execute("ROLLBACK")
        [job] = await claim
        assert (job.id, job.lease_token) == (ids[0], 1)
        assert await status(store, ids[1]) is Status.QUEUED, "nobody has what was asked for the first time"
        await far.close()
    await db.close()


async def test_an_insert_and_an_end_whose_answers_were_lost_are_made_once(
    store: PostgresStore, place: PostgresPlace
) -> None:
    wire = Wire(urlsplit(place.url).port or 5432)
    async with wire.laid() as port:
        far = store_at(f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={place.schema}")
        await far.open()
        one = draft(unique="k")
        wire.cut_next = True
        assert await far.jobs.insert([one]) == [Created(one.id)]
        [job] = await far.jobs.claim(want())
        wire.cut_next = True
        assert await far.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]
        await far.close()
    assert await told(store, one.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def patiently(store: Store, name: str) -> list[Job]:
    while True:
        try:
            return await store.jobs.claim(want(5, worker=name))
        except StoreUnavailable:
            await asyncio.sleep(0.01)  # as a worker pauses


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
    async with store.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: store.notices.healthy and rings, "the notices to be healthy")
        rings.clear()
        await cut(place)
        # It rings when the connection is lost and when there is one again; in between may be less than a look takes.
        await until(lambda: store.notices.healthy and len(rings) >= 2, "the loss to be noticed and made good")
        rings.clear()
        await put(other)
        await until(lambda: rings, "a wake-up")
    await other.close()


async def test_what_one_tells_itself_to_see_if_notices_pass_wakes_nobody_else(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_PROBE", 0.02)
    other = store.sibling()
    await other.open()
    heard: list[Notice] = []
    async with store.notices.subscribe(heard.append):
        await until(lambda: store.notices.healthy and heard, "the notices to be healthy")
        heard.clear()
        async with other.notices.subscribe(lambda _: None):
            await until(lambda: other.notices.healthy, "the other's to be healthy")
            await put(other)
            await until(lambda: heard, "a wake-up")
    assert {notice.about for notice in heard} == {About.CLAIMABLE}
    await other.close()


async def test_the_last_words_of_a_server_whose_end_is_not_heard_yet_stop_nobody(
    store: PostgresStore, place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a server's last words and the end of its connection, the driver refuses in a way of its own."""
    monkeypatch.setattr(notices, "_PROBE", 0.05)
    wire = Wire(urlsplit(place.url).port or 0)
    wire.hide_ends = True
    async with wire.laid() as port:
        far = store_at(f"{place.url.replace(str(wire.port), str(port))}?schema={place.schema}")
        await far.open()
        async with far.notices.subscribe(lambda _: None):
            await until(lambda: far.notices.healthy, "the notices to be healthy")
            await asyncio.gather(*[far.health() for _ in range(6)])  # so that some connections are there
            await cut(place)
            await until(lambda: not far.notices.healthy, "the loss to be noticed")
            assert await far.jobs.claim(want()) == []
            await until(lambda: far.notices.healthy, "the notices to be healthy again")
        await far.close()


async def test_an_internal_error_of_the_driver_is_told_as_a_lost_connection(store: PostgresStore) -> None:
    class Refusing(Room):
        @guarded
        async def ask(self) -> None:
            raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")

    with pytest.raises(StoreUnavailable, match="try again"):
        await Refusing(store.link).ask()


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
    await put(store, draft(unique=Unique(running="k")), draft())
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    async with db.transaction():
        await store.jobs.insert([draft(unique="k")], db)
        async with asyncio.timeout(2):
            assert len(await store.jobs.claim(want())) == 1
    await db.close()


async def test_health_tells_the_age_of_the_oldest_snapshot(store: PostgresStore, place: PostgresPlace) -> None:
    with place.transaction_now() as held:
        cast("psycopg.Connection[tuple[object, ...]]", held.tx).execute("SELECT pg_current_xact_id()")

        async def aged() -> bool:
            return ((await store.health())["oldest_snapshot_seconds"] or 0) >= 1

        await until(aged, "the open transaction to be a second old")


async def test_what_waited_for_a_refusal_is_told_after_it(store: PostgresStore) -> None:
    """A statement reads the clock, then waits for the row: it goes by what the row was last told."""
    late = await expired(store)
    await store.jobs.rescue(10)
    assert await settle(store, late) is Verdict.STALE
    refused = await last_entry(store, late.id)
    assert refused.happened is Happened.REFUSED
    assert (await get(store, late.id)).updated_at == refused.at
