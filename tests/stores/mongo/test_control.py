"""Rates and flows on MongoDB: several commands make one promise, with rivals and losses in between."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from tests.contract.places import MongoPlace
from tests.contract.steps import HOUR, NEVER_AGAIN, get, put, settle, status, statuses, take, told
from tests.stores.mongo.test_mongo import launch
from tests.support.drafts import draft, new_id, want
from tests.support.servers import start_mongo
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.errors import StoreUnavailable
from windlass.core.history import Happened
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Store, Verdict
from windlass.stores.mongo.schema import MIGRATIONS

Base = Database[dict[str, Any]]
GOES_ON = [Happened.ENQUEUED, Happened.UNBLOCKED]


@pytest.fixture
def database(place: MongoPlace) -> Iterator[Base]:
    """What lies behind the store's back."""
    with place.client() as client:
        yield client.get_database(place.database)


@pytest.fixture
async def crowd(place: MongoPlace) -> AsyncIterator[list[Store]]:
    """Five open stores on one place."""
    stores = [place.store() for _ in range(5)]
    for one in stores:
        await one.open()
    yield stores
    for one in stores:
        await one.close()


@pytest.fixture
def store(crowd: list[Store]) -> Store:
    return crowd[0]


def rated(n: int, key: str = "r", **options: Any) -> Draft:
    return draft(rate=Rate(n, HOUR, key), **options)


def booked(database: Base, key: str = "r") -> int:
    row = database["windlass_rates"].find_one({"_id": key})
    return 0 if row is None else sum(part["n"] for part in row["booked"])


async def claimed(stores: list[Store], n: int) -> list[str]:
    found = await asyncio.gather(*[one.jobs.claim(want(n, f"w{at}")) for at, one in enumerate(stores)])
    return [job.id for jobs in found for job in jobs]


async def test_claims_at_the_same_moment_do_not_exceed_a_rate(crowd: list[Store], database: Base) -> None:
    # Each has a queue of its own, so that nothing but the rate stands between them; and many rounds, because the first
    # to have its connections ready would win a single one before the others look.
    wants = [want(4, f"w{at}", queues={f"q{at}": 4}) for at in range(5)]
    for number in range(10):
        key = f"r{number}"
        await put(crowd[0], *[rated(6, key, queue=f"q{at}") for at in range(5) for _ in range(4)])
        found = await asyncio.gather(*[one.jobs.claim(wanted) for one, wanted in zip(crowd, wants, strict=True)])
        assert sum(map(len, found)) == booked(database, key) == 6
        assert await claimed(crowd, 20) == []
    blocked = await crowd[0].views.count(Filter(status=Status.BLOCKED))
    assert blocked.n == 140


async def test_what_rivals_took_first_is_given_back(crowd: list[Store], database: Base) -> None:
    await put(crowd[0], *[rated(1000) for _ in range(40)])
    ids: list[str] = []
    while some := await claimed(crowd, 4):
        ids += some
    assert len(ids) == len(set(ids)) == 40
    assert booked(database) == 40


async def test_many_claims_book_in_few_parts_and_old_ones_are_dropped(store: Store, database: Base) -> None:
    per = timedelta(milliseconds=100)
    await put(store, *[draft(rate=Rate(1000, per, "r")) for _ in range(60)])
    started = 0
    while jobs := await store.jobs.claim(want(1)):
        started += len(jobs)
        row = database["windlass_rates"].find_one({"_id": "r"})
        assert row is not None
        assert len(row["booked"]) <= 21
        newest = max(part["at"] for part in row["booked"])
        assert all(part["at"] > newest - per * 1.1 for part in row["booked"])
        assert row["until"] >= newest + per
    assert started == 60


async def test_a_rate_of_many_keys_is_claimed_in_one_go(store: Store) -> None:
    await put(store, *[rated(1, f"k{n % 150}") for n in range(300)])
    jobs = await store.jobs.claim(want(300))
    assert sorted(str(job.rate_key) for job in jobs) == sorted(f"k{n}" for n in range(150))
    assert (await store.views.count(Filter(status=Status.BLOCKED))).n == 150


async def test_lines_beyond_those_that_one_promotion_looks_at_have_their_turn(store: Store, database: Base) -> None:
    flows = [draft(awaits="success") for _ in range(60)]
    await put(store, *flows, *[draft(next_id=one.id, delay=HOUR) for one in flows])
    for one in (flows[0], flows[-1]):
        database["windlass_jobs"].delete_many({"next_id": one.id})
    await store.jobs.promote(10)
    assert await statuses(store, [flows[0].id, flows[-1].id]) == [Status.QUEUED, Status.BLOCKED]

    async def reached() -> bool:
        await store.jobs.promote(10)
        return await status(store, flows[-1].id) is Status.QUEUED

    await until(reached, "the last of them to be looked at")


async def group(store: Store, n: int = 2, awaits: str = "success") -> tuple[str, list[str]]:
    last = draft(awaits=awaits)
    ids = await put(store, last, *[draft(next_id=last.id) for _ in range(n)])
    return last.id, ids[1:]


@pytest.mark.parametrize(
    ("ended", "then", "lines"),
    [("succeeded", Status.QUEUED, GOES_ON), ("failed", Status.CANCELLED, [Happened.ENQUEUED, Happened.CANCELLED])],
)
async def test_promote_asks_for_whoever_died_after_the_last_end(
    crowd: list[Store], database: Base, ended: str, then: Status, lines: list[Happened]
) -> None:
    last, ids = await group(crowd[0])
    change = {"$set": {"status": ended, "finished_at": await crowd[0].now()}}
    database["windlass_jobs"].update_many({"_id": {"$in": ids}}, change)
    found = await asyncio.gather(*[one.jobs.promote(10) for one in crowd])
    assert await status(crowd[0], last) is then
    assert await told(crowd[0], last) == lines
    assert sum(one.unblocked for one in found) == (then is Status.QUEUED)


async def left_over(store: Store, database: Base, n: int) -> list[str]:
    """Flows whose first job has ended, written by somebody who died before he looked at what awaits it."""
    lasts = [draft(awaits="success") for _ in range(n)]
    ids = await put(store, *[draft(next_id=one.id) for one in lasts], *lasts)
    ended = {"status": "succeeded", "finished_at": await store.now(), "frees": True}
    database["windlass_jobs"].update_many({"_id": {"$in": ids[:n]}}, {"$set": ended})
    return ids[n:]


async def test_one_promotion_frees_all_that_the_dead_have_left(store: Store, database: Base) -> None:
    waiting = await left_over(store, database, 70)
    assert (await store.jobs.promote(10)).unblocked == 70
    assert await statuses(store, waiting) == [Status.QUEUED] * 70
    assert database["windlass_jobs"].count_documents({"frees": True}) == 0


@pytest.mark.timeout(60)
async def test_where_the_dead_have_left_more_than_a_page_the_rest_does_not_wait(store: Store, database: Base) -> None:
    await left_over(store, database, 1_120)  # beyond a page and what any promotion looks at of itself
    first = await store.jobs.promote(10)
    assert (first.unblocked < 1_120, first.next_due) == (True, timedelta(0))
    second = await store.jobs.promote(10)
    assert (first.unblocked + second.unblocked, second.next_due) == (1_120, None)


async def test_ends_at_the_same_moment_let_go_on_once(crowd: list[Store]) -> None:
    last, ids = await group(crowd[0], 20)
    jobs = await crowd[0].jobs.claim(want(20))
    verdicts = await asyncio.gather(*[settle(crowd[at % 5], job) for at, job in enumerate(jobs)])
    assert verdicts == [Verdict.APPLIED] * len(ids)
    assert await told(crowd[0], last) == GOES_ON


async def test_many_groups_are_asked_about_together_however_large(store: Store, database: Base) -> None:
    groups = [await group(store, 30) for _ in range(4)]
    database["windlass_jobs"].delete_many({"next_id": groups[1][0]})
    database["windlass_jobs"].update_one({"_id": groups[3][1][7]}, {"$set": {"status": "failed"}})
    await store.jobs.promote(10)
    found = await statuses(store, [last for last, _ in groups])
    assert found == [Status.BLOCKED, Status.QUEUED, Status.BLOCKED, Status.CANCELLED]
    await settle(store, (await store.jobs.claim(want(1)))[0], NEVER_AGAIN)
    assert await status(store, groups[0][0]) is Status.CANCELLED


OF_THIS_VERSION = ("ready", "front", "later", "ended", "frees", "cancels", "signals", "expiry")


async def test_an_older_schema_is_brought_up_to_date_beside_its_jobs(store: Store, database: Base) -> None:
    [id_] = await put(store, draft())
    for name in (*OF_THIS_VERSION, "fair", "called", "awaited", "spoiled", "next"):
        database["windlass_jobs"].drop_index(name)
    for name in ("rates", "types", "keys", "audit"):
        database.drop_collection(f"windlass_{name}")
    database["windlass_meta"].update_one({"_id": "schema"}, {"$set": {"version": 1}})
    assert await store.schema.pending() == list(MIGRATIONS[1:])
    assert await store.schema.migrate() == list(MIGRATIONS[1:])
    assert await store.schema.verify() == []
    assert (await take(store)).id == id_


async def test_workers_of_the_version_before_find_their_indexes_while_a_new_one_is_rolled_out(
    store: Store, database: Base
) -> None:
    jobs = database["windlass_jobs"]
    [id_] = await put(store, draft())
    for name in OF_THIS_VERSION:
        jobs.drop_index(name)
    jobs.create_index(
        [(key, 1) for key in ("queue", "priority", "run_at", "_id", "type")],
        name="claim",
        partialFilterExpression={"status": "queued"},
    )
    database["windlass_meta"].update_one({"_id": "schema"}, {"$set": {"version": 2}})
    assert await store.schema.migrate() == list(MIGRATIONS[2:])
    listing: list[dict[str, Any]] = [{"$match": {"status": "queued", "queue": "default"}}, {"$project": {"_id": 1}}]
    assert list(jobs.aggregate(listing, hint="claim")) == [{"_id": id_}]
    assert await store.schema.verify() == []
    assert (await take(store)).id == id_


@pytest.fixture(scope="module")
def fragile() -> Iterator[str]:
    """A replica set of one whose commands can be made to fail."""
    with start_mongo(own=True, options=("--setParameter", "enableTestCommands=1")) as server:
        yield server.url


def fail(url: str, mode: Any, **data: Any) -> None:
    with closing(MongoClient[dict[str, Any]](url)) as client:
        client.admin.command("configureFailPoint", "failCommand", mode=mode, data={"appName": "windlass", **data})


@pytest.fixture
async def failing(fragile: str) -> AsyncIterator[Store]:
    store = store_at(urlsplit(fragile)._replace(path=f"/t{secrets.token_hex(8)}").geturl())
    await store.open()
    yield store
    fail(fragile, "off", failCommands=["update"])
    await store.close()


async def test_an_end_told_again_after_a_lost_answer_lets_go_on(failing: Store, fragile: str) -> None:
    last, _ = await group(failing, 1)
    job = await take(failing)
    error = {"code": 64, "errmsg": "waiting timed out"}
    fail(fragile, "alwaysOn", failCommands=["update"], writeConcernError=error)
    with pytest.raises(StoreUnavailable):
        await settle(failing, job)
    fail(fragile, "off", failCommands=["update"])
    assert await status(failing, last) is Status.BLOCKED
    assert await settle(failing, job) is Verdict.APPLIED
    assert await status(failing, last) is Status.QUEUED


async def test_a_booking_whose_claim_failed_is_spent(failing: Store, fragile: str) -> None:
    ids = await put(failing, *[rated(2) for _ in range(2)])
    fail(fragile, {"skip": 1}, failCommands=["update"], errorCode=8000)  # the booking passes, the lease does not
    with pytest.raises(StoreUnavailable):
        await failing.jobs.claim(want())
    fail(fragile, "off", failCommands=["update"])
    assert await failing.jobs.claim(want()) == []
    assert await statuses(failing, ids) == [Status.BLOCKED] * 2


@pytest.mark.parametrize("command", ["insert", "commitTransaction"])
async def test_a_flow_is_inserted_whole_after_its_transaction_failed(
    failing: Store, fragile: str, command: str
) -> None:
    fail(fragile, {"times": 2}, failCommands=[command], errorCode=251, errorLabels=["TransientTransactionError"])
    last, ids = await group(failing)
    assert await statuses(failing, [last, *ids]) == [Status.BLOCKED, Status.QUEUED, Status.QUEUED]


async def test_a_flow_that_cannot_be_inserted_whole_is_not_inserted(failing: Store, fragile: str) -> None:
    last = draft(awaits="success")
    first, second = draft(next_id=last.id), draft(next_id=last.id, unique="apart")
    fail(fragile, {"skip": 1}, failCommands=["insert"], errorCode=8000)
    with pytest.raises(StoreUnavailable):
        await failing.jobs.insert([first, second, last])
    fail(fragile, "off", failCommands=["insert"])
    assert (await failing.views.count(Filter())).n == 0
    await put(failing, first, second, last)


@pytest.fixture(scope="module")
def alone() -> Iterator[str]:
    """A standalone server."""
    with launch() as server:
        yield server.url


async def test_without_transactions_those_that_are_awaited_come_first(alone: str) -> None:
    store = store_at(alone)
    await store.open()
    try:
        first, second, third = new_id(), new_id(), new_id()
        chain = [
            draft(id=third, awaits="success"),
            draft(id=second, awaits="success", next_id=third),
            draft(id=first, next_id=second),
        ]
        assert await put(store, *chain) == [third, second, first]
        with closing(MongoClient[dict[str, Any]](alone)) as client:
            written = [doc["_id"] for doc in client["shop"]["windlass_jobs"].find().sort("$natural", 1)]
        assert written == [first, second, third]
        for id_ in (first, second, third):
            job = await take(store)
            assert job.id == id_
            await settle(store, job)
        last, _ = await group(store)
        jobs = await store.jobs.claim(want())
        await settle(store, jobs[0], NEVER_AGAIN)
        assert await status(store, last) is Status.CANCELLED
        [limited] = [await get(store, id_) for id_ in await put(store, rated(1))]
        assert (await take(store)).id == limited.id
    finally:
        await store.close()
