"""Rates, flows and turns where several connections are at them, and on tables that an earlier windlass has made."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.resources import files

import asyncpg
import pytest

from tests.contract.invariants import check
from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, HOUR, NEVER_AGAIN, get, operate, put, settle, status, statuses, take, told
from tests.support.drafts import draft, new_id, want
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.rate import GRAINS, Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Action, Operated, Replaced, Verdict
from windlass.stores.postgres.schema import MIGRATIONS
from windlass.stores.postgres.store import PostgresStore

GOES_ON = [Happened.ENQUEUED, Happened.UNBLOCKED]


@pytest.fixture
async def crowd(store: PostgresStore) -> AsyncIterator[list[PostgresStore]]:
    """Five open stores on one place."""
    others = [store.sibling() for _ in range(4)]
    for one in others:
        await one.open()
    yield [store, *others]
    for one in others:
        await one.close()


async def waits_for_a_lock(place: PostgresPlace) -> bool:
    return bool(await place.run("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))


# More than one claim looks at and holds at once, so that rivals meet other jobs of the same rates.
@pytest.mark.parametrize("keys", [1, 7])
async def test_claims_at_the_same_moment_never_spend_more_than_a_rate(
    crowd: list[PostgresStore], place: PostgresPlace, keys: int
) -> None:
    store, n = crowd[0], 9
    ids = await put(store, *[draft(rate=Rate(n, HOUR, f"r{at % keys}")) for at in range(420)])
    started: Counter[str | None] = Counter()

    async def work(mine: PostgresStore, worker: str) -> None:
        while Status.QUEUED in await statuses(store, ids):
            await mine.jobs.promote(5)
            for job in await mine.jobs.claim(want(2, worker=worker)):
                started[job.rate_key] += 1
                await settle(mine, job)

    async with asyncio.timeout(18):
        await asyncio.gather(*[work(mine, f"w{at}") for at, mine in enumerate(crowd)])
    assert started == {f"r{at}": n for at in range(keys)}
    booked = await place.run("SELECT key, sum(n)::int FROM windlass_rates GROUP BY key")
    assert dict(map(tuple, booked)) == started
    await check(store)


async def test_what_is_booked_of_a_key_stays_little(store: PostgresStore, place: PostgresPlace) -> None:
    # A part of such a window is a millisecond: hardly two claims are booked together.
    await put(store, *[draft(rate=Rate(1000, timedelta(milliseconds=GRAINS), "r")) for _ in range(60)])
    for _ in range(60):
        await take(store, want(1))
    assert len(await place.run("SELECT FROM windlass_rates")) <= GRAINS + 2


async def group(store: PostgresStore, awaits: str = "success") -> tuple[str, list[str]]:
    last = draft(awaits=awaits)
    _, *ids = await put(store, last, draft(next_id=last.id), draft(next_id=last.id))
    return last.id, ids


@pytest.mark.parametrize("awaits", ["success", "end"])
async def test_the_last_two_that_end_at_the_same_moment_wake_who_awaits_them(
    store: PostgresStore, place: PostgresPlace, awaits: str
) -> None:
    last, _ = await group(store, awaits)
    one, two = await store.jobs.claim(want())
    async with place.transaction() as first, place.transaction() as second:
        assert await store.jobs.complete(decide(one, DONE), first.tx) is Verdict.APPLIED
        other = asyncio.create_task(store.jobs.complete(decide(two, DONE), second.tx))

        async def stands() -> bool:
            return other.done() or await waits_for_a_lock(place)

        await until(stands, "the second end to wait for the first, or not to")
        await first.commit()
        assert await other is Verdict.APPLIED
        await second.commit()
    assert await status(store, last) is Status.QUEUED
    assert await told(store, last) == GOES_ON


async def test_groups_that_end_on_many_connections_go_on_once(crowd: list[PostgresStore]) -> None:
    store = crowd[0]
    lasts = [draft(awaits="success", queue="last") for _ in range(40)]
    await put(store, *lasts, *[draft(next_id=last.id, queue="first") for last in lasts for _ in range(5)])
    jobs = await store.jobs.claim(want(200, queues={"first": 200}))
    transitions = [decide(job, DONE) for job in jobs]
    # Each store ends one job of every group, in batches that meet the same lines.
    batches = [(mine, transitions[at::5][half::2]) for at, mine in enumerate(crowd) for half in (0, 1)]
    for verdicts in await asyncio.gather(*[mine.jobs.apply(batch) for mine, batch in batches]):
        assert set(verdicts) == {Verdict.APPLIED}
    for last in lasts:
        assert await told(store, last.id) == GOES_ON
    await check(store)


def chain(n: int, queue: str) -> list[Draft]:
    ids = [new_id() for _ in range(n)]
    return [
        draft(id=id_, queue=queue, awaits="success" if at else None, next_id=ids[at + 1] if at + 1 < n else None)
        for at, id_ in enumerate(ids)
    ]


async def test_chains_that_fall_crosswise_do_not_wait_for_each_other(crowd: list[PostgresStore]) -> None:
    store = crowd[0]
    chains = [chain(5, "first") for _ in range(20)]
    # Others end into the middle of each chain at the moment that its beginning fails.
    sides = [draft(next_id=links[at].id, queue="side") for links in chains for at in (1, 2, 3)]
    await put(store, *[link for links in chains for link in links], *sides)
    firsts = await store.jobs.claim(want(20, queues={"first": 20}))
    others = await store.jobs.claim(want(60, queues={"side": 60}))
    failing = [decide(job, NEVER_AGAIN) for job in firsts]
    ending = [decide(job, DONE) for job in others]
    async with asyncio.timeout(15):
        await asyncio.gather(
            *[crowd[at].jobs.apply(failing[at::2]) for at in (0, 1)],
            *[crowd[2 + at].jobs.apply(ending[at::3]) for at in (0, 1, 2)],
        )
    for links in chains:
        assert await statuses(store, [link.id for link in links[1:]]) == [Status.CANCELLED] * 4
    await check(store)


async def test_one_that_is_replaced_while_its_last_job_ends_is_found_by_promote(
    store: PostgresStore, place: PostgresPlace
) -> None:
    last = draft(awaits="success", unique="u")
    await put(store, last, draft(next_id=last.id))
    job = await take(store)
    async with place.transaction() as held:
        newer = draft(payload='{"n":2}', unique="u", on_conflict="replace")
        assert await store.jobs.insert([newer], held.tx) == [Replaced(last.id)]
        async with asyncio.timeout(2):
            await settle(store, job)
        assert (await store.jobs.promote(10)).unblocked == 0
        await held.commit()
    assert await status(store, last.id) is Status.BLOCKED
    assert (await store.jobs.promote(10)).unblocked == 1
    assert await told(store, last.id) == [Happened.ENQUEUED, Happened.REPLACED, Happened.UNBLOCKED]


async def test_that_a_job_was_deleted_unfinished_is_not_lost_on_one_that_is_being_replaced(
    store: PostgresStore, place: PostgresPlace
) -> None:
    last = draft(awaits="success", unique="u")
    _, first = await put(store, last, draft(next_id=last.id))
    async with place.transaction() as held:
        newer = draft(payload='{"n":2}', unique="u", on_conflict="replace")
        assert await store.jobs.insert([newer], held.tx) == [Replaced(last.id)]
        order = asyncio.create_task(operate(store, first, Action.DELETE))

        async def stands() -> bool:
            return order.done() or bool(await place.run("SELECT 1 FROM pg_locks WHERE NOT granted"))

        await until(stands, "the order to wait for the row")
        await held.commit()
    assert (await order).verdict is Operated.DONE
    assert await status(store, last.id) is Status.CANCELLED


async def test_promote_goes_round_among_very_many_that_wait(store: PostgresStore) -> None:
    first = draft(delay=HOUR)
    waiting = [draft(awaits="end") for _ in range(1500)]
    await put(store, first, *waiting, *[draft(next_id=one.id, delay=HOUR) for one in waiting[:-1]])

    async def found() -> bool:
        await store.jobs.promote(10)
        return await status(store, waiting[-1].id) is Status.QUEUED

    await until(found, "the only one that nobody makes wait")


async def test_drafts_of_one_key_follow_each_other_within_a_batch(store: PostgresStore) -> None:
    ids = await put(store, *[draft(user_id="a", fair_by="user_id") for _ in range(3)])
    times = [(await get(store, id_)).run_at for id_ in ids]
    assert [later - times[0] for later in times] == [timedelta(milliseconds=at) for at in range(3)]


async def test_what_is_raised_is_bounded_over_all_queues_and_priorities(store: PostgresStore) -> None:
    ids = await put(store, *[draft(queue=f"q{at % 3}", priority=200 + at % 2) for at in range(12)])
    await until(lambda: store.jobs.age(timedelta(0), 50, 4), "the last to have stood for a millisecond")
    priorities = [(await get(store, id_)).priority for id_ in ids]
    assert priorities.count(50) == 4
    assert await store.jobs.age(timedelta(0), 50, 100) == 8


OLD_JOB = """
INSERT INTO windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, queued_at,
    history
) VALUES (
    $1, 'noop', 'default', '{}', 'queued', 100, now(), 5, 3, now(), now(), now(),
    '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
)
"""


async def old_tables(place: PostgresPlace) -> None:
    """What the first version made."""
    first = (files("windlass.stores.postgres") / "migrations" / "0001_install.sql").read_text(encoding="utf-8")
    for statement in "\n".join(line for line in first.splitlines() if not line.strip().startswith("--")).split(";"):
        if statement.strip():
            await place.run(statement)
    await place.run("INSERT INTO windlass_meta (key, value) VALUES ('schema', '1'), ('compatible', '1')")


@pytest.mark.new_place
async def test_tables_of_the_first_version_are_brought_up_to_date_and_stay_usable_for_it(place: PostgresPlace) -> None:
    await old_tables(place)
    await place.run("INSERT INTO windlass_queues VALUES ('default')")
    before, after = sorted(new_id() for _ in range(2))
    await place.run(OLD_JOB, before)
    store = place.store()
    await store.open(migrate=False)
    assert await store.schema.pending() == list(MIGRATIONS[1:])
    assert await store.schema.migrate() == list(MIGRATIONS[1:])
    assert await store.schema.verify() == []
    await place.run(OLD_JOB, after)  # an older worker's enqueue
    assert {job.id for job in await store.jobs.claim(want())} == {before, after}
    [compatible] = await place.run("SELECT value FROM windlass_meta WHERE key = 'compatible'")
    assert compatible[0] == "1"
    [replaced] = await place.run("SELECT to_regclass($1)", f"{place.schema}.windlass_jobs_claim")
    assert replaced[0] is None
    await store.close()


@pytest.mark.new_place
async def test_a_migration_has_no_deadline_and_holds_up_nobody(place: PostgresPlace) -> None:
    """A snapshot held open keeps the making of an index waiting for longer than any operation may take."""
    await old_tables(place)
    hurried = store_at(f"{place.url}?schema={place.schema}&timeout=1")
    await hurried.open(migrate=False)
    other = place.store()
    await other.open(migrate=False)
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    await db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await db.execute("SELECT")
    made = asyncio.gather(hurried.schema.migrate(), other.schema.migrate())

    async def builds() -> bool:
        return (await other.health())["index_builds"] is not None

    await until(builds, "an index to be made")
    begun = time.monotonic()
    await until(lambda: time.monotonic() - begun > 1.2, "more time than an operation has")
    await place.run(OLD_JOB, new_id())  # an older worker's enqueue
    assert not made.done()
    await db.close()
    assert sorted(await made, key=len) == [[], list(MIGRATIONS[1:])], "one of them did it"
    assert await other.schema.verify() == []
    await hurried.close()
    await other.close()


@pytest.mark.new_place
async def test_a_migration_that_was_interrupted_goes_on_where_it_was(place: PostgresPlace) -> None:
    await old_tables(place)
    await place.run('ALTER TABLE windlass_jobs ADD COLUMN rate_key text COLLATE "C"')
    # As its interrupted making would leave it: there, and not to be used.
    await place.run("CREATE INDEX windlass_jobs_finished ON windlass_jobs (queue)")
    await place.run(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::text::regclass",
        f"{place.schema}.windlass_jobs_finished",
    )
    store = place.store()
    await store.open()
    [made] = await place.run(
        "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = $1::text::regclass",
        f"{place.schema}.windlass_jobs_finished",
    )
    assert made[0]
    assert "finished_at" in made[1]
    assert await store.schema.verify() == []
    await store.close()
