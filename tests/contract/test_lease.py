from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import BEHIND, DONE, HOUR, RELEASED, cancel, expired, get, put, settle, start, take, told
from tests.support.drafts import LONG, draft, new_id, want
from windlass.core.history import Happened
from windlass.core.job import Job, Progress
from windlass.core.status import Status
from windlass.stores.contract import Extended, Lease, Report, Store, Verdict

STARTED = [Happened.ENQUEUED, Happened.CLAIMED]


def lease_of(job: Job) -> Lease:
    return Lease(job.id, job.lease_token)


def kept(*cancels: str) -> Extended:
    return Extended(lost=frozenset(), cancels=frozenset(cancels))


def lost(*ids: str) -> Extended:
    return Extended(lost=frozenset(ids), cancels=frozenset())


async def test_extending_moves_the_expiry_and_nothing_else(store: Store) -> None:
    job = await start(store, wanted=want(lease=timedelta(minutes=1)))
    before = await store.now()
    assert await store.jobs.extend("w1", [lease_of(job)], HOUR) == kept()
    found = await get(store, job.id)
    assert found.lease_expires_at is not None
    assert before + HOUR <= found.lease_expires_at <= await store.now() + BEHIND + HOUR
    assert found._replace(lease_expires_at=job.lease_expires_at) == job
    assert await told(store, job.id) == STARTED


async def test_many_leases_are_extended_in_one_call(store: Store) -> None:
    await put(store, *[draft() for _ in range(300)])
    jobs = await store.jobs.claim(want(300, lease=timedelta(minutes=1)))
    assert await store.jobs.extend("w1", [lease_of(job) for job in jobs], HOUR) == kept()
    soon = await store.now() + timedelta(minutes=30)
    found = await store.views.get([job.id for job in jobs])
    assert all(job and job.lease_expires_at and job.lease_expires_at > soon for job in found)
    assert await told(store, jobs[-1].id) == STARTED


async def test_extending_nothing_loses_nothing(store: Store) -> None:
    assert await store.jobs.extend("w1", [], HOUR) == kept()


@pytest.mark.parametrize("wrong", [-1, 1])
async def test_a_lease_with_another_token_is_lost_and_unchanged(store: Store, wrong: int) -> None:
    job = await start(store)
    await settle(store, job, RELEASED)
    job = await take(store)
    assert await store.jobs.extend("w1", [Lease(job.id, job.lease_token + wrong)], HOUR) == lost(job.id)
    assert await get(store, job.id) == job
    assert await told(store, job.id) == [*STARTED, Happened.RELEASED, Happened.CLAIMED]


async def test_another_workers_lease_is_lost_and_unchanged(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.extend("w2", [lease_of(job)], HOUR) == lost(job.id)
    assert await get(store, job.id) == job
    assert await told(store, job.id) == STARTED


async def test_the_lease_of_an_ended_deleted_or_unknown_job_is_lost(store: Store) -> None:
    ended = await start(store)
    await settle(store, ended)
    missing = Lease(new_id(), 1)
    running = await start(store)
    found = await store.jobs.extend("w1", [lease_of(ended), missing, lease_of(running)], HOUR)
    assert found == lost(ended.id, missing.id)
    assert (await get(store, ended.id)).status is Status.SUCCEEDED
    assert (await get(store, ended.id)).lease_expires_at is None
    assert await told(store, ended.id) == [*STARTED, Happened.SUCCEEDED]


async def test_an_expired_lease_that_nobody_rescued_can_be_extended(store: Store) -> None:
    job = await expired(store)
    assert await store.jobs.extend("w1", [lease_of(job)], HOUR) == kept()
    assert await store.jobs.rescue(10) == []
    assert (await get(store, job.id)).status is Status.PROCESSING
    assert await told(store, job.id) == STARTED


async def test_a_rescued_lease_is_lost(store: Store) -> None:
    job = await expired(store)
    await store.jobs.rescue(10)
    waiting = await get(store, job.id)
    assert await store.jobs.extend("w1", [lease_of(job)], HOUR) == lost(job.id)
    assert await get(store, job.id) == waiting
    assert await told(store, job.id) == [*STARTED, Happened.LOST]


async def test_a_worker_that_claims_a_job_again_does_not_get_its_old_lease_back(store: Store) -> None:
    job = await expired(store)
    await store.jobs.rescue(10)
    again = await take(store)
    assert again.worker_id == job.worker_id
    assert await store.jobs.extend("w1", [lease_of(job)], HOUR) == lost(job.id)
    assert await get(store, job.id) == again
    assert await store.jobs.extend("w1", [lease_of(again)], HOUR) == kept()
    assert await told(store, job.id) == [*STARTED, Happened.LOST, Happened.CLAIMED]


async def test_extending_tells_which_jobs_were_asked_to_stop(store: Store) -> None:
    await put(store, draft(), draft())
    one, two = await store.jobs.claim(want())
    await cancel(store, two.id)
    assert await store.jobs.extend("w1", [lease_of(one), lease_of(two)], HOUR) == kept(two.id)
    assert await told(store, two.id) == [*STARTED, Happened.CANCEL_REQUESTED]


async def test_a_worker_asks_which_of_its_jobs_to_stop(store: Store, other: Store) -> None:
    await put(store, draft(), draft())
    mine, going_on = await store.jobs.claim(want(worker="w1"))
    theirs = await start(store, wanted=want(worker="w2"))
    for job in (mine, theirs):
        await cancel(other, job.id)
    asked = await get(store, mine.id)
    assert await store.jobs.cancels("w1") == {mine.id}
    assert await store.jobs.cancels("w2") == {theirs.id}
    assert await store.jobs.cancels("w3") == frozenset()
    assert await get(store, mine.id) == asked
    assert await get(store, going_on.id) == going_on
    assert await told(store, mine.id) == [*STARTED, Happened.CANCEL_REQUESTED]


async def test_an_ended_job_is_not_to_be_stopped_any_more(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    await settle(store, job, DONE)
    assert await store.jobs.cancels("w1") == frozenset()
    assert await told(store, job.id) == [*STARTED, Happened.CANCEL_REQUESTED, Happened.SUCCEEDED]


async def test_progress_is_written_and_leaves_no_history(store: Store, other: Store) -> None:
    job = await start(store)
    progress = Progress(done=0.25, of=3, note="a third of a quarter")
    assert await store.jobs.report([Report(lease_of(job), progress)]) == [Verdict.APPLIED]
    found = await get(other, job.id)
    assert found.progress == progress
    assert found._replace(progress=None, updated_at=job.updated_at) == job
    newer = Progress(done=1e9)
    assert await store.jobs.report([Report(lease_of(job), newer)]) == [Verdict.APPLIED]
    assert (await get(store, job.id)).progress == newer
    assert await told(store, job.id) == STARTED


async def test_progress_is_fenced_with_one_verdict_each(store: Store) -> None:
    job = await expired(store)
    await store.jobs.rescue(10)
    again = await take(store)
    missing = Lease(new_id(), 1)
    reports = [Report(lease, Progress(done=1)) for lease in (lease_of(job), missing, lease_of(again))]
    assert await store.jobs.report(reports[:2]) == [Verdict.STALE, Verdict.MISSING]
    assert await get(store, job.id) == again
    assert await store.jobs.report(reports) == [Verdict.STALE, Verdict.MISSING, Verdict.APPLIED]
    assert await store.jobs.report([]) == []
    assert await told(store, job.id) == [*STARTED, Happened.LOST, Happened.CLAIMED]


async def test_a_late_report_does_not_change_an_ended_job(store: Store) -> None:
    job = await start(store)
    await store.jobs.report([Report(lease_of(job), Progress(done=1))])
    await settle(store, job)
    ended = await get(store, job.id)
    await store.jobs.report([Report(lease_of(job), Progress(done=2))])
    assert await get(store, job.id) == ended
    assert await told(store, job.id) == [*STARTED, Happened.SUCCEEDED]


async def test_leases_are_judged_by_the_store_and_not_by_workers_rows(store: Store) -> None:
    job = await start(store)
    await store.workers.forget(["w1"])
    assert await store.jobs.rescue(10) == []
    assert await store.jobs.extend("w1", [lease_of(job)], LONG) == kept()
    assert await told(store, job.id) == STARTED
