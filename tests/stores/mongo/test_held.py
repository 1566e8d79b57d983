"""Jobs that somebody else's transaction has changed: told as held, and those beside them are written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pymongo import AsyncMongoClient

from tests.contract.places import MongoPlace, mongo
from tests.contract.steps import DONE, NEVER_AGAIN, get, start, statuses
from tests.support.drafts import LONG, want
from windlass.core.job import Job
from windlass.core.outcome import Outcome
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Extended, Keep, Lease, Store, Verdict


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[MongoPlace]:
    async with mongo(tmp_path) as place:
        assert isinstance(place, MongoPlace)
        yield place


@pytest.fixture
async def store(place: MongoPlace) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@asynccontextmanager
async def held(place: MongoPlace, job_id: str) -> AsyncGenerator[None, None]:
    """While inside, a transaction that has changed the job stays open."""
    client: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(place.url)
    async with client, client.start_session() as session:
        await session.start_transaction()
        jobs = client.get_database(place.database).get_collection("windlass_jobs")
        await jobs.update_one({"_id": job_id}, {"$set": {"touched": True}}, session=session)
        yield
        await session.abort_transaction()


def lease_of(job: Job) -> Lease:
    return Lease(job.id, job.lease_token)


@pytest.mark.parametrize("beside", [0, 1])
async def test_an_extension_that_was_not_written_is_told_as_held(store: Store, place: MongoPlace, beside: int) -> None:
    jobs = [await start(store) for _ in range(1 + beside)]
    leases = [lease_of(job) for job in jobs]
    async with held(place, jobs[0].id):
        found = await store.jobs.extend("w1", leases, timedelta(seconds=10))
        assert found == Extended(frozenset(), frozenset(), held=frozenset({jobs[0].id}))
    assert (await get(store, jobs[0].id)).lease_expires_at == jobs[0].lease_expires_at
    for job in jobs[1:]:
        assert (await get(store, job.id)).lease_expires_at != job.lease_expires_at
    assert await store.jobs.extend("w1", leases, LONG * 2) == Extended(frozenset(), frozenset())


async def test_an_end_that_somebody_holds_is_told_as_held_and_the_others_are_written(
    store: Store, place: MongoPlace
) -> None:
    jobs = [await start(store) for _ in range(4)]
    outcomes: tuple[Outcome, ...] = (DONE, DONE, NEVER_AGAIN, DONE)
    ends = [decide(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]
    async with held(place, jobs[1].id):
        assert await store.jobs.apply(ends) == [Verdict.APPLIED, Verdict.HELD, Verdict.APPLIED, Verdict.APPLIED]
        assert (await statuses(store, [job.id for job in jobs]))[1] is Status.PROCESSING
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 4
    assert Status.PROCESSING not in await statuses(store, [job.id for job in jobs])
    for job in jobs:
        assert len(await store.views.history(job.id)) == 3, "what was written is not written again"


async def test_a_value_of_a_job_that_somebody_holds_is_told_as_held_and_the_others_are_kept(
    store: Store, place: MongoPlace
) -> None:
    jobs = [await start(store) for _ in range(3)]
    keeps = [Keep(lease_of(job), name, "1") for job in jobs for name in ("saved", "step:a")]
    async with held(place, jobs[1].id):
        kept = [Verdict.APPLIED] * 2
        assert await store.jobs.keep(keeps) == [*kept, Verdict.HELD, Verdict.HELD, *kept]
        assert [len((await get(store, job.id)).kept) for job in jobs] == [2, 0, 2]
    assert await store.jobs.keep(keeps) == [Verdict.APPLIED] * 6
    assert [len((await get(store, job.id)).kept) for job in jobs] == [2, 2, 2]


async def test_one_alone_that_somebody_holds_is_told_as_held(store: Store, place: MongoPlace) -> None:
    job = await start(store)
    end = decide(job, DONE)
    async with held(place, job.id):
        assert await store.jobs.apply([end, end]) == [Verdict.HELD, Verdict.HELD]
    assert await store.jobs.apply([end]) == [Verdict.APPLIED]


async def test_a_late_end_of_a_held_job_is_told_as_held(store: Store, place: MongoPlace) -> None:
    job = await start(store, wanted=want(lease=timedelta(milliseconds=1)))
    other = await start(store)
    late = decide(job, DONE)
    while not await store.jobs.rescue(1):
        pass
    async with held(place, job.id):
        assert await store.jobs.apply([late, decide(other, DONE)]) == [Verdict.HELD, Verdict.APPLIED]
    assert await store.jobs.apply([late]) == [Verdict.STALE]


async def test_a_lost_job_that_somebody_holds_does_not_keep_the_others_from_being_rescued(
    store: Store, place: MongoPlace
) -> None:
    jobs = [await start(store, wanted=want(lease=timedelta(milliseconds=1))) for _ in range(2)]
    async with held(place, jobs[0].id):
        rescued: list[str] = []
        while not rescued:
            rescued = [one.id for one in await store.jobs.rescue(5)]
        assert rescued == [jobs[1].id]
    assert [one.id for one in await store.jobs.rescue(5)] == [jobs[0].id]
    assert {job.id for job in await store.jobs.claim(want(5))} == {job.id for job in jobs}
