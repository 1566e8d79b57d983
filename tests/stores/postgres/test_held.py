"""Ends of jobs that somebody else's transaction holds: told as held, and the others are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, NEVER_AGAIN, get, put, start, statuses
from tests.stores.postgres.test_doubt import claim_in_doubt, impatient
from tests.support.drafts import draft, want
from windlass.core.limit import Limit
from windlass.core.outcome import Outcome
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Verdict
from windlass.stores.postgres.store import PostgresStore

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
async def db(place: PostgresPlace) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(place.url)
    yield connection
    await connection.close()


async def hold(db: Connection, place: PostgresPlace, job_id: str) -> None:
    await db.execute("BEGIN")
    await db.execute(f'SELECT FROM "{place.schema}".windlass_jobs WHERE id = $1 FOR UPDATE', job_id)


@pytest.mark.parametrize("outcome", [DONE, NEVER_AGAIN])
async def test_an_end_that_somebody_holds_is_told_as_held_and_the_others_are_written(
    store: PostgresStore, db: Connection, place: PostgresPlace, outcome: Outcome
) -> None:
    jobs = [await start(store) for _ in range(3)]
    ends = [decide(jobs[0], DONE), decide(jobs[1], outcome), decide(jobs[2], DONE)]
    await hold(db, place, jobs[1].id)
    assert await store.jobs.apply(ends) == [Verdict.APPLIED, Verdict.HELD, Verdict.APPLIED]
    assert (await statuses(store, [job.id for job in jobs]))[1] is Status.PROCESSING
    await db.execute("ROLLBACK")
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 3
    assert Status.PROCESSING not in await statuses(store, [job.id for job in jobs])
    assert len(await store.views.history(jobs[0].id)) == 3, "what was written is not written again"


async def test_one_that_is_held_is_not_taken_for_a_claim_that_was_never_answered(
    store: PostgresStore, db: Connection, place: PostgresPlace
) -> None:
    async with impatient(place) as (between, doubtful):
        job = await start(doubtful)
        await hold(db, place, job.id)
        assert await doubtful.jobs.apply([decide(job, DONE)]) == [Verdict.HELD]
        await db.execute("ROLLBACK")
        await claim_in_doubt(between, doubtful, 1)
        assert await doubtful.jobs.claim(want(1)) == []


async def test_a_late_end_of_a_held_job_is_told_as_held(
    store: PostgresStore, db: Connection, place: PostgresPlace
) -> None:
    job, other = await start(store), await start(store)
    late = decide(job, DONE)
    await place.run(f"UPDATE windlass_jobs SET lease_token = lease_token + 1 WHERE id = '{job.id}'")
    await hold(db, place, job.id)
    assert await store.jobs.apply([late, decide(other, DONE)]) == [Verdict.HELD, Verdict.APPLIED]
    await db.execute("ROLLBACK")
    assert await store.jobs.apply([late]) == [Verdict.STALE]


async def test_one_that_is_gone_is_told_as_missing_beside_a_held_one(
    store: PostgresStore, db: Connection, place: PostgresPlace
) -> None:
    job, gone = await start(store), await start(store)
    await place.run(f"DELETE FROM windlass_jobs WHERE id = '{gone.id}'")
    await hold(db, place, job.id)
    assert await store.jobs.apply([decide(job, DONE), decide(gone, DONE)]) == [Verdict.HELD, Verdict.MISSING]
    await db.execute("ROLLBACK")


async def test_an_end_whose_line_somebody_holds_is_told_as_held(store: PostgresStore, db: Connection) -> None:
    first, second = await start(store, draft(limit=Limit("k", 2))), await start(store, draft(limit=Limit("k", 2)))
    free = await start(store, draft(limit=Limit("other", 1)))
    [waiting] = await put(store, draft(limit=Limit("other", 1)))
    assert await store.jobs.claim(want(1)) == []
    plain = await start(store)
    await db.execute("BEGIN")
    assert await store.jobs.complete(decide(first, DONE), db) is Verdict.APPLIED
    ends = [decide(job, DONE) for job in (second, free, plain)]
    assert await store.jobs.apply(ends) == [Verdict.HELD, Verdict.APPLIED, Verdict.APPLIED]
    assert (await get(store, waiting)).status is Status.QUEUED, "who waited for a free line goes on"
    await db.execute("COMMIT")
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 3


async def test_an_end_in_ones_own_transaction_leaves_its_settings_alone(store: PostgresStore, db: Connection) -> None:
    job = await start(store)
    await db.execute("BEGIN")
    await store.jobs.complete(decide(job, DONE), db)
    assert await db.fetchval("SHOW lock_timeout") == "0"
    await db.execute("COMMIT")
