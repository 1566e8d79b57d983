"""Claims whose answers did not come: what they took is handed over, once, and never what already runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.contract.invariants import check
from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, everything, get, put, settle
from tests.support.drafts import LONG, draft, want
from tests.support.forwarder import Forwarder, forwarder
from tests.support.processes import HOST
from tests.support.until import until
from windlass.core.errors import StoreUnavailable
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Lease, Store, Verdict
from windlass.stores.postgres.leases import Leases
from windlass.stores.postgres.store import PostgresStore

PROCESSING = Filter(status=Status.PROCESSING)


@asynccontextmanager
async def impatient(place: PostgresPlace) -> AsyncGenerator[tuple[Forwarder, PostgresStore], None]:
    """A store that gives up soon, and the line that leads it to its server."""
    parts = urlsplit(place.url)
    assert parts.port
    async with forwarder(parts.port) as between:
        url = parts._replace(netloc=f"{parts.username}@{HOST}:{between.port}")
        store = store_at(f"{url.geturl()}?schema={place.schema}&timeout=0.5")
        assert isinstance(store, PostgresStore)
        await store.open()
        assert await store.jobs.claim(want()) == []  # it is connected, and the server knows the statement
        try:
            yield between, store
        finally:
            between.let_go()
            await store.close()


async def running(store: Store) -> list[str]:
    return sorted(job.id for job in await everything(store, PROCESSING))


async def claim_in_doubt(between: Forwarder, store: PostgresStore, n: int) -> None:
    """Carried out, and not answered in time."""
    between.hold_answers()
    with pytest.raises(StoreUnavailable):
        await store.jobs.claim(want(n))
    between.let_go()


def leases(jobs: list[Job]) -> list[tuple[str, int]]:
    return [(job.id, job.lease_token) for job in jobs]


async def test_what_a_claim_took_that_raised_is_handed_over_with_a_new_lease(
    place: PostgresPlace, store: PostgresStore
) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft(max_crashes=1) for _ in range(5)])
        await claim_in_doubt(between, doubtful, 3)
        assert await running(store) == ids[:3]
        before = await get(store, ids[0])
        claimed = await doubtful.jobs.claim(want(3))
        assert leases(claimed) == [(id_, 1) for id_ in ids[:3]]
        assert claimed.more
        assert claimed[0].lease_expires_at is not None
        assert before.lease_expires_at is not None
        assert claimed[0].lease_expires_at > before.lease_expires_at
        assert leases(await doubtful.jobs.claim(want(3))) == [(id_, 1) for id_ in ids[3:]]
        for job in claimed:
            assert await settle(doubtful, job, DONE) == "applied"
    await check(store)


async def test_no_more_is_handed_over_than_is_wanted_and_the_rest_next_time(
    place: PostgresPlace, store: PostgresStore
) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft() for _ in range(6)])
        await claim_in_doubt(between, doubtful, 5)
        for n, expected in ((2, ids[:2]), (2, ids[2:4]), (9, ids[4:5]), (9, ids[5:])):
            assert leases(await doubtful.jobs.claim(want(n))) == [(id_, 1) for id_ in expected]


async def test_what_a_cancelled_claim_took_is_handed_over(place: PostgresPlace, store: PostgresStore) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft() for _ in range(4)])
        between.hold_answers()
        claiming = asyncio.create_task(doubtful.jobs.claim(want(2)))
        await until(lambda: running(store), "the claim to be carried out")
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        between.let_go()
        assert leases(await doubtful.jobs.claim(want(2))) == [(id_, 1) for id_ in ids[:2]]
        assert leases(await doubtful.jobs.claim(want(2))) == [(id_, 1) for id_ in ids[2:]]


async def test_what_runs_under_a_later_token_is_not_handed_over_after_a_late_end_of_an_earlier_one(
    place: PostgresPlace, store: PostgresStore
) -> None:
    async with impatient(place) as (between, doubtful):
        await put(store)
        [first] = await doubtful.jobs.claim(want(1))
        await store.jobs.extend("w1", [Lease(first.id, first.lease_token)], -LONG)
        await store.jobs.rescue(10)
        [second] = await doubtful.jobs.claim(want(1))
        assert second.id == first.id
        assert second.lease_token > first.lease_token
        assert await doubtful.jobs.apply([decide(first, DONE)]) == [Verdict.STALE]
        [other] = await put(store)
        await claim_in_doubt(between, doubtful, 1)
        assert leases(await doubtful.jobs.claim(want(5))) == [(other, 1)]
        assert await settle(doubtful, second, DONE) == "applied"


async def test_a_job_whose_end_was_rolled_back_still_runs_and_is_not_handed_over(
    place: PostgresPlace, store: PostgresStore
) -> None:
    async with impatient(place) as (between, doubtful):
        await put(store)
        [job] = await doubtful.jobs.claim(want(1))
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
        await db.execute("BEGIN")
        assert await doubtful.jobs.complete(decide(job, DONE), db) is Verdict.APPLIED
        await db.execute("ROLLBACK")
        await db.close()
        [other] = await put(store)
        await claim_in_doubt(between, doubtful, 1)
        assert leases(await doubtful.jobs.claim(want(5))) == [(other, 1)]
        assert await settle(doubtful, job, DONE) == "applied"


async def test_leases_are_forgotten_when_they_are_over_and_never_for_want_of_room(store: PostgresStore) -> None:
    await put(store, *[draft() for _ in range(8)])
    jobs = await store.jobs.claim(want(8))
    kept = Leases(most=3)
    kept.add("w1", jobs[:5])
    kept.add("w2", jobs[5:])
    many = [kept.many]
    kept.end([(jobs[0].id, jobs[0].lease_token), (jobs[1].id, jobs[1].lease_token + 1), ("unknown", 1)])
    kept.asked()
    many.append(kept.many)
    assert kept.of("w1") == set(leases(jobs[1:5]))
    assert kept.of("w2") == set(leases(jobs[5:]))
    kept.end(leases(jobs))
    kept.asked()
    kept.add("w1", jobs[:4])
    assert [*many, kept.many] == [True, False, True]
