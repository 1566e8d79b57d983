"""Jobs with steps on PostgreSQL: what others hold, what was asked at the same moment, and answers that were lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, HOUR, get, lose, passed, put, settle, start, status, take, told
from tests.support.drafts import INSTANT, draft, want
from tests.support.forwarder import Forwarder, forwarder
from tests.support.processes import HOST
from tests.support.until import until
from windlass.core.events import Hub
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Gathering, Outcome, Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import About, Action, Answer, Keep, Lease, Notice, Operated, Order, Store, Verdict
from windlass.stores.postgres.schema import MIGRATIONS
from windlass.stores.postgres.store import PostgresStore
from windlass.worker.chores.promoting import Promoting

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

WAITS = Waiting("approved", HOUR)
SUSPENDED = [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUSPENDED]
WAITING_HERE = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE application_name = 'windlass' AND wait_event_type = 'Lock' AND strpos(query, current_schema()) > 0
)
"""

FILE = "SELECT pg_relation_filenode('windlass_jobs')"
# Like the first, before which they stand.
COPY = """
INSERT INTO windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, queued_at,
    expires_at, history
)
SELECT '01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), type, queue, payload, status, priority, run_at,
    max_attempts, max_crashes, created_at, updated_at, queued_at, expires_at, history
FROM windlass_jobs, generate_series(1, $1::int) AS i
"""


@pytest.fixture
async def db(place: PostgresPlace) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(place.url, server_settings={"search_path": place.schema})
    yield connection
    await connection.close()


async def hold(db: Connection, job_id: str) -> None:
    await db.execute("BEGIN")
    await db.execute("SELECT FROM windlass_jobs WHERE id = $1 FOR UPDATE", job_id)


def keep(job: Job, name: str = "step:a", text: str = "1") -> Keep:
    return Keep(Lease(job.id, job.lease_token), name, text)


async def signal(store: Store, job_id: str, text: str = "true") -> Answer:
    order = Order(id=job_id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", text))
    [answer] = await store.jobs.operate([order])
    return answer


async def waiting(store: Store, outcome: Waiting = WAITS) -> Job:
    job = await start(store)
    assert await settle(store, job, outcome) is Verdict.APPLIED
    return await get(store, job.id)


async def settled(store: Store, job: Job, outcome: Outcome = DONE) -> Verdict:
    """What became of an end, once nobody holds what it needs: on a slow machine a moment may be too long for it."""
    while (verdict := await settle(store, job, outcome)) is Verdict.HELD:
        pass
    return verdict


async def one_waits_for_a_lock(db: Connection) -> bool:
    await db.execute("SELECT pg_stat_clear_snapshot()")  # a transaction goes on seeing what it saw first
    return bool(await db.fetchval(WAITING_HERE))


async def is_done_or_waits(calling: asyncio.Task[Verdict], db: Connection) -> bool:
    return calling.done() or await one_waits_for_a_lock(db)


async def signalled_meanwhile(
    store: Store, db: Connection, call: Callable[[Job], Coroutine[None, None, Verdict]]
) -> Job:
    """A running job to which a signal is written while this call waits for its row, as it was before."""
    while True:
        job = await start(store)
        await hold(db, job.id)
        await db.execute('UPDATE windlass_jobs SET kept = \'{"signal:approved": "1"}\' WHERE id = $1', job.id)
        calling = asyncio.create_task(call(job))
        await until(partial(is_done_or_waits, calling, db), "the call to wait for the row")
        await db.execute("COMMIT")
        # Else the machine was so slow that the call was given up before.
        if await calling is Verdict.APPLIED:
            return job
        await settled(store, job)


async def test_what_somebody_holds_is_told_as_held_and_the_others_are_kept(
    store: PostgresStore, db: Connection
) -> None:
    held, free, gone = [await start(store) for _ in range(3)]
    late = free._replace(lease_token=free.lease_token - 1)
    keeps = [keep(held), keep(free), keep(held, "saved"), keep(gone), keep(late)]
    await db.execute("DELETE FROM windlass_jobs WHERE id = $1", gone.id)
    await hold(db, held.id)
    verdicts = await store.jobs.keep(keeps)
    assert verdicts == [Verdict.HELD, Verdict.APPLIED, Verdict.HELD, Verdict.MISSING, Verdict.STALE]
    await db.execute("ROLLBACK")
    assert (await get(store, held.id)).kept == {}
    assert (await store.jobs.keep(keeps))[:3] == [Verdict.APPLIED] * 3
    assert (await get(store, held.id)).kept == {"step:a": 1, "saved": 1}


async def test_values_that_are_written_at_the_same_moment_are_all_kept(store: PostgresStore, db: Connection) -> None:
    async def write(job: Job) -> Verdict:
        return (await store.jobs.keep([keep(job)]))[0]

    job = await signalled_meanwhile(store, db, write)
    assert (await get(store, job.id)).kept == {"signal:approved": 1, "step:a": 1}


async def test_a_value_beside_a_rescue_is_kept_or_refused_as_a_whole(store: PostgresStore) -> None:
    for _ in range(10):
        job = await start(store)
        [late] = await lose(store, [job])
        await passed(store, late.lease_expires_at)
        [verdict], _ = await asyncio.gather(store.jobs.keep([keep(job)]), store.jobs.rescue(10))
        if await status(store, job.id) is Status.PROCESSING:  # the rescue passed over it
            assert [one.id for one in await store.jobs.rescue(10)] == [job.id]
        again = await take(store)
        assert again.kept == ({"step:a": 1} if verdict is Verdict.APPLIED else {})
        await settle(store, again)


async def test_a_signal_that_comes_while_its_job_suspends_frees_it_once(store: PostgresStore, db: Connection) -> None:
    job = await start(store)
    await hold(db, job.id)
    sending = asyncio.create_task(signal(store, job.id))
    await until(lambda: one_waits_for_a_lock(db), "the signal to wait for the row")
    suspending = asyncio.create_task(settled(store, job, WAITS))
    await db.execute("ROLLBACK")
    answer, verdict = await sending, await suspending
    assert (answer.verdict, verdict) in {(Operated.KEPT, Verdict.APPLIED), (Operated.DONE, Verdict.APPLIED)}
    again = await take(store)
    assert (again.id, again.kept) == (job.id, {"signal:approved": True})
    assert await store.jobs.claim(want()) == []


async def test_a_signal_that_was_written_while_its_job_waited_to_suspend_is_seen(
    store: PostgresStore, db: Connection
) -> None:
    job = await signalled_meanwhile(store, db, lambda job: settle(store, job, WAITS))
    queued = await get(store, job.id)
    assert (queued.status, queued.blocked_by, queued.run_at) == (Status.QUEUED, None, job.run_at)


async def test_a_signal_that_is_being_written_is_not_timed_out_beside(store: PostgresStore, db: Connection) -> None:
    job = await waiting(store, Waiting("approved", INSTANT))
    await passed(store, job.run_at)
    order = Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1"))
    await db.execute("BEGIN")
    assert await store.jobs.operate([order], db) == [Answer(Operated.DONE, Status.BLOCKED)]
    promoted = await store.jobs.promote(10)
    assert promoted.unblocked == 0
    await db.execute("COMMIT")
    assert (await store.jobs.promote(10)).unblocked == 0
    assert (await get(store, job.id)).kept == {"signal:approved": 1}
    assert await told(store, job.id) == [*SUSPENDED, Happened.SIGNALLED]


async def test_a_worker_does_not_look_on_and_on_at_what_is_due_and_held(store: PostgresStore, db: Connection) -> None:
    job = await waiting(store, Waiting("approved", INSTANT))
    await passed(store, job.run_at)
    promoting = Promoting(store, Hub(), poll=60, promoted=lambda: None)
    await hold(db, job.id)
    assert 0 < await promoting.once() < 1
    await db.execute("ROLLBACK")
    assert await promoting.once() == 60
    assert await status(store, job.id) is Status.QUEUED


async def test_the_last_child_that_ends_while_its_parent_suspends_lets_it_go_on_at_once(store: PostgresStore) -> None:
    for _ in range(20):
        parent = await start(store)
        await put(store, draft("child", next_id=parent.id))
        [child] = await store.jobs.claim(want(types={"child"}))
        verdicts = await asyncio.gather(settled(store, parent, Gathering("all")), settled(store, child))
        assert {*verdicts} == {Verdict.APPLIED}
        assert (await take(store)).id == parent.id
        assert await store.jobs.claim(want()) == []
        await settle(store, await get(store, parent.id))


async def test_a_parent_that_gathers_is_told_as_held_while_the_end_of_its_child_is_not_committed(
    store: PostgresStore, db: Connection
) -> None:
    parent, other = await start(store), await start(store)
    await put(store, draft("child", next_id=parent.id))
    [child] = await store.jobs.claim(want(types={"child"}))
    await db.execute("BEGIN")
    assert await store.jobs.complete(decide(child, DONE), db) is Verdict.APPLIED
    ends = [decide(parent, Gathering("all")), decide(other, DONE)]
    assert await store.jobs.apply(ends) == [Verdict.HELD, Verdict.APPLIED]
    await db.execute("COMMIT")
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 2
    assert await status(store, parent.id) is Status.QUEUED


async def test_a_parent_that_somebody_signals_goes_on_though_its_child_ended_meanwhile(
    store: PostgresStore, db: Connection
) -> None:
    parent = await start(store)
    await put(store, draft("child", next_id=parent.id))
    [child] = await store.jobs.claim(want(types={"child"}))
    await settle(store, parent, Gathering("all"))
    order = Order(id=parent.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1"))
    await hold(db, parent.id)
    sending = asyncio.create_task(store.jobs.operate([order]))
    await until(lambda: one_waits_for_a_lock(db), "the signal to wait for the row")
    assert await settled(store, child) is Verdict.APPLIED
    await db.execute("ROLLBACK")
    assert await sending == [Answer(Operated.KEPT, Status.BLOCKED)]
    assert await status(store, parent.id) is Status.QUEUED


async def test_a_job_that_a_worker_has_taken_just_in_time_is_not_cancelled(
    store: PostgresStore, db: Connection
) -> None:
    [job_id] = await put(store, draft(expires=INSTANT))
    await passed(store, (await get(store, job_id)).expires_at)
    await hold(db, job_id)
    assert (await store.jobs.promote(10)).expired == (), "somebody is at it"
    await db.execute("UPDATE windlass_jobs SET lease_token = 1 WHERE id = $1", job_id)
    await db.execute("COMMIT")
    assert (await store.jobs.promote(10)).expired == ()
    assert await status(store, job_id) is Status.QUEUED


@pytest.mark.parametrize("queues", [None, {"default": 10}], ids=["any", "named"])
async def test_a_claim_passes_over_so_many_expired_jobs_and_the_next_goes_on_behind_them(
    store: PostgresStore, db: Connection, queues: dict[str, int] | None
) -> None:
    await put(store, draft(expires=INSTANT))
    await db.execute(COPY, 12_000)
    [live] = await put(store, draft())
    first = await store.jobs.claim(want(queues=queues))
    assert (first, first.more) == ([], True), "one claim does not walk over all of them"
    second = await store.jobs.claim(want(queues=queues))
    assert ([job.id for job in second], second.more) == ([live], False)
    assert len((await store.jobs.promote(100)).expired) == 100


async def test_a_value_in_ones_own_transaction_counts_with_its_commit(
    store: PostgresStore, place: PostgresPlace
) -> None:
    job = await start(store)
    db: Connection = await asyncpg.connect(place.url)
    await db.execute("BEGIN")
    assert await store.jobs.keep_in(keep(job), db) is Verdict.APPLIED
    assert await db.fetchval("SHOW lock_timeout") == "0", "its settings are left alone"
    assert (await get(store, job.id)).kept == {}
    await db.execute("ROLLBACK")
    assert (await get(store, job.id)).kept == {}
    await db.execute("BEGIN")
    assert await store.jobs.keep_in(keep(job._replace(lease_token=job.lease_token - 1)), db) is Verdict.STALE
    assert await store.jobs.keep_in(keep(job), db) is Verdict.APPLIED
    await db.execute("COMMIT")
    await db.close()
    assert (await get(store, job.id)).kept == {"step:a": 1}


async def test_a_value_and_a_signal_are_kept_in_a_synchronous_drivers_transaction(
    store: PostgresStore, place: PostgresPlace
) -> None:
    job, other = await start(store), await waiting(store)
    order = Order(id=other.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", '{"ö": 1}'))
    with psycopg.connect(place.url) as db:
        assert store.jobs.keep_in_now(keep(job, text='"ö"'), db) is Verdict.APPLIED
        assert store.jobs.operate_now([order, order], db) == [
            Answer(Operated.DONE, Status.BLOCKED),
            Answer(Operated.DUPLICATE, Status.QUEUED),
        ]
        assert (await get(store, other.id)).status is Status.BLOCKED
    assert (await get(store, job.id)).kept == {"step:a": "ö"}
    assert (await get(store, other.id)).kept == {"signal:approved": {"ö": 1}}


async def test_what_only_waits_for_signals_is_not_looked_through_for_free_lines(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def asking(connection: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(sql)
        return await fetch(connection, sql, *args, **kwargs)

    await waiting(store)
    monkeypatch.setattr(asyncpg.Connection, "fetch", asking)
    assert (await store.jobs.promote(10)).unblocked == 0
    assert len(asked) == 1


async def test_a_job_that_goes_on_at_once_is_told_as_claimable(store: PostgresStore) -> None:
    heard: list[Notice] = []
    signalled, parent, plain = [await start(store) for _ in range(3)]
    await signal(store, signalled.id)
    async with store.notices.subscribe(heard.append):
        for ends in ([decide(signalled, WAITS)], [decide(parent, Gathering("all")), decide(plain, DONE)]):
            heard.clear()
            assert {*await store.jobs.apply(ends)} == {Verdict.APPLIED}
            await until(lambda: [one for one in heard if (one.about, one.n) == (About.CLAIMABLE, 1)], "the notice")


async def test_tables_of_the_version_before_are_brought_up_to_date_without_being_written_anew(
    place: PostgresPlace, store: PostgresStore
) -> None:
    for column in ("kept", "origin", "expires_at"):
        await place.run(f"ALTER TABLE windlass_jobs DROP COLUMN {column}")
    await place.run("DROP INDEX windlass_jobs_signals")
    await place.pretend_version(MIGRATIONS.index("0006_steps"))
    [before] = await place.run(FILE)
    late = place.store()
    await late.open(migrate=False)
    assert (await late.schema.migrate())[0] == "0006_steps"
    assert await late.schema.verify() == []
    assert await place.run(FILE) == [before]
    job = await waiting(late)
    assert (await signal(late, job.id)).verdict is Operated.DONE
    assert (await take(late)).kept == {"signal:approved": True}
    await late.close()


@asynccontextmanager
async def by_a_bad_line(place: PostgresPlace) -> AsyncGenerator[tuple[Forwarder, PostgresStore], None]:
    """A store, and the line that leads it to its server."""
    parts = urlsplit(place.url)
    assert parts.port
    async with forwarder(parts.port) as between:
        url = parts._replace(netloc=f"{parts.username}@{HOST}:{between.port}")
        store = store_at(f"{url.geturl()}?schema={place.schema}")
        assert isinstance(store, PostgresStore)
        await store.open()
        try:
            yield between, store
        finally:
            between.lose = 0
            await store.close()


@pytest.mark.timeout(90)
async def test_whichever_answer_is_lost_a_signal_is_not_taken_for_anothers(
    place: PostgresPlace, store: PostgresStore
) -> None:
    async with by_a_bad_line(place) as (between, doubtful):
        for n in range(100):
            job = await waiting(store)
            between.spare, between.lose = n, 1
            assert await signal(doubtful, job.id, json.dumps(n)) == Answer(Operated.DONE, Status.BLOCKED)
            assert (await get(store, job.id)).kept == {"signal:approved": n}
            assert await told(store, job.id) == [*SUSPENDED, Happened.SIGNALLED]
            await settle(store, await take(store))
            if between.lose:
                break
        else:
            pytest.fail("a signal has more answers than this: raise the number")


async def test_a_value_whose_answer_was_lost_is_kept_once(place: PostgresPlace, store: PostgresStore) -> None:
    job = await start(store)
    async with by_a_bad_line(place) as (between, doubtful):
        for n in range(4):
            between.spare, between.lose = n, 1
            assert await doubtful.jobs.keep([keep(job, text=str(n))]) == [Verdict.APPLIED]
            assert (await get(store, job.id)).kept == {"step:a": n}
