from __future__ import annotations

import pytest

from tests.contract.steps import (
    AGAIN_SOON,
    DONE,
    cancel,
    everything,
    expired,
    finish,
    get,
    last_entry,
    lose,
    near,
    operate,
    passed,
    put,
    settle,
    start,
    statuses,
    take,
    told,
    unconfirmed,
)
from tests.support.drafts import INSTANT, draft, want
from windlass.core.history import Happened
from windlass.core.outcome import Cancelled
from windlass.core.status import Status
from windlass.stores.contract import Action, Filter, Store, Verdict

STARTED = [Happened.ENQUEUED, Happened.CLAIMED]


async def rescued(store: Store) -> list[tuple[str, str | None, Status]]:
    return [(found.job.id, found.job.worker_id, found.to) for found in await store.jobs.rescue(10)]


async def test_a_job_whose_lease_has_expired_goes_back_and_its_crash_is_counted(store: Store) -> None:
    lost = await expired(store)
    assert await rescued(store) == [(lost.id, "w1", Status.QUEUED)]
    job = await get(store, lost.id)
    assert (job.status, job.attempts, job.crashes) == (Status.QUEUED, 0, 1)
    assert job.lease_token == lost.lease_token + 1
    assert (job.worker_id, job.lease_expires_at, job.finished_at) == (None, None, None)
    assert job.error is not None
    assert job.error.type == "WorkerDied"
    assert await told(store, lost.id) == [*STARTED, Happened.LOST]
    entry = await last_entry(store, lost.id)
    assert (entry.number, entry.status) == (3, Status.QUEUED)
    assert entry.note is not None
    assert "crash 1 of 3" in entry.note
    again = await take(store, want(worker="w2"))
    assert (again.id, again.attempts, again.lease_token) == (lost.id, 1, lost.lease_token + 2)


async def test_a_rescued_job_is_not_rescued_again(store: Store, other: Store) -> None:
    lost = await expired(store)
    await store.jobs.rescue(10)
    assert await store.jobs.rescue(10) == []
    assert await other.jobs.rescue(10) == []
    assert (await get(store, lost.id)).crashes == 1
    assert await told(store, lost.id) == [*STARTED, Happened.LOST]


async def test_a_job_that_keeps_killing_its_workers_fails(store: Store) -> None:
    lost = await expired(store, draft(max_crashes=3))
    for crashes in (1, 2):
        assert [found.to for found in await store.jobs.rescue(10)] == [Status.QUEUED]
        assert (await get(store, lost.id)).crashes == crashes
        [lost] = await lose(store, [await take(store)])
    assert await rescued(store) == [(lost.id, "w1", Status.FAILED)]
    job = await get(store, lost.id)
    assert (job.status, job.crashes, job.attempts) == (Status.FAILED, 3, 0)
    assert near(job.finished_at, await store.now())
    assert job.lease_token == lost.lease_token + 1
    assert job.error is not None
    assert "crash 3 of 3" in job.error.message
    back = [Happened.CLAIMED, Happened.LOST]
    assert await told(store, lost.id) == [Happened.ENQUEUED, *back, *back, Happened.CLAIMED, Happened.FAILED]
    assert await store.jobs.claim(want()) == []


async def test_a_lost_job_that_was_asked_to_stop_is_cancelled(store: Store) -> None:
    lost = await expired(store)
    await cancel(store, lost.id)
    assert await rescued(store) == [(lost.id, "w1", Status.CANCELLED)]
    job = await get(store, lost.id)
    assert job.status is Status.CANCELLED
    assert job.lease_token == lost.lease_token + 1
    assert near(job.finished_at, await store.now())
    assert await told(store, lost.id) == [*STARTED, Happened.CANCEL_REQUESTED, Happened.CANCELLED]
    assert await settle(store, lost) is Verdict.STALE


async def test_a_valid_lease_is_never_touched(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.rescue(10) == []
    assert await get(store, job.id) == job
    assert await told(store, job.id) == STARTED


@pytest.mark.parametrize("outcome", [DONE, Cancelled("x")], ids=["succeeded", "cancelled"])
async def test_a_finished_job_is_never_touched(store: Store, outcome: Cancelled) -> None:
    lost = await expired(store)
    await settle(store, lost, outcome)
    ended = await get(store, lost.id)
    assert await store.jobs.rescue(10) == []
    assert await get(store, lost.id) == ended
    assert len(await told(store, lost.id)) == 3


async def test_waiting_jobs_are_never_touched(store: Store) -> None:
    ids = await put(store, draft(), draft(delay=INSTANT))
    jobs = await store.views.get(ids)
    await passed(store, max(job.run_at for job in jobs if job))
    assert await store.jobs.rescue(10) == []
    assert await store.views.get(ids) == jobs
    assert await told(store, ids[0]) == [Happened.ENQUEUED]


async def test_one_expired_lease_is_found_among_a_thousand_valid_ones(store: Store) -> None:
    await put(store, *[draft() for _ in range(1_000)])
    valid = await store.jobs.claim(want(1_000))
    lost = await expired(store)
    assert [found.id for found in await store.jobs.rescue(10)] == [lost.id]
    assert await store.views.get([job.id for job in valid]) == valid
    assert await told(store, valid[0].id) == STARTED
    assert await told(store, lost.id) == [*STARTED, Happened.LOST]


async def test_at_most_n_are_rescued_and_the_rest_next_time(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(7)])
    jobs = await store.jobs.claim(want(lease=INSTANT))
    await passed(store, jobs[-1].lease_expires_at)
    found = [await store.jobs.rescue(3) for _ in range(4)]
    assert [len(batch) for batch in found] == [3, 3, 1, 0]
    assert {one.id for batch in found for one in batch} == set(ids)
    assert set(await statuses(store, ids)) == {Status.QUEUED}
    assert [await told(store, id_) for id_ in ids] == [[*STARTED, Happened.LOST]] * 7


async def test_those_that_fail_do_not_keep_others_from_being_rescued(store: Store) -> None:
    fatal, harmless = [draft(max_crashes=1, unique=f"u{n}") for n in range(3)], [draft() for _ in range(3)]
    await put(store, *fatal, *harmless)
    await lose(store, await store.jobs.claim(want()))
    found = {one.id: one.to for one in await store.jobs.rescue(10)}
    assert found == {one.id: Status.FAILED for one in fatal} | {one.id: Status.QUEUED for one in harmless}
    assert await told(store, fatal[0].id) == [*STARTED, Happened.FAILED]


async def test_a_rescued_job_goes_before_those_that_came_after_it(store: Store) -> None:
    lost = await expired(store)
    [younger] = await put(store)
    await store.jobs.rescue(10)
    assert [job.id for job in await store.jobs.claim(want())] == [lost.id, younger]
    assert await told(store, lost.id) == [*STARTED, Happened.LOST, Happened.CLAIMED]


async def test_a_restarted_worker_of_the_same_name_does_not_keep_its_lost_jobs(store: Store) -> None:
    lost = await expired(store)
    await start(store, wanted=want(worker="w1"))
    assert [found.id for found in await store.jobs.rescue(10)] == [lost.id]
    assert await told(store, lost.id) == [*STARTED, Happened.LOST]


async def test_a_job_lost_before_its_retry_keeps_the_attempts_it_has_spent(store: Store) -> None:
    job = await finish(store, draft(), AGAIN_SOON)
    await passed(store, job.run_at)
    await store.jobs.promote(10)
    lost = await take(store, want(lease=INSTANT))
    assert lost.attempts == 2
    await passed(store, lost.lease_expires_at)
    await store.jobs.rescue(10)
    assert (await get(store, job.id)).attempts == 1
    assert (await told(store, job.id))[-1] is Happened.LOST
    assert [found.id for found in await everything(store, Filter(status=Status.QUEUED))] == [job.id]
    assert (await take(store)).attempts == 2


async def test_a_lease_that_was_never_confirmed_counts_no_crash_and_fails_nobody(store: Store) -> None:
    lost = await unconfirmed(store, draft(max_crashes=1))
    assert await rescued(store) == [(lost.id, "w1", Status.QUEUED)]
    job = await get(store, lost.id)
    assert (job.status, job.attempts, job.crashes) == (Status.QUEUED, 0, 0)
    assert job.lease_token == lost.lease_token + 1
    assert job.error is not None
    assert job.error.type == "WorkerDied"
    assert await told(store, lost.id) == [*STARTED, Happened.LOST]
    assert "not counted as a crash" in str((await last_entry(store, lost.id)).note)
    assert await settle(store, lost) is Verdict.STALE


async def test_each_lease_is_confirmed_for_itself(store: Store) -> None:
    lost = await expired(store, draft(max_crashes=3))
    await store.jobs.rescue(10)
    again = await take(store, want(lease=INSTANT))
    await passed(store, again.lease_expires_at)
    await store.jobs.rescue(10)
    assert (await get(store, lost.id)).crashes == 1
    await lose(store, [await take(store)])
    await store.jobs.rescue(10)
    assert (await get(store, lost.id)).crashes == 2


@pytest.mark.parametrize("meanwhile", ["queued", "processing", "succeeded"])
async def test_a_worker_that_lives_after_all_takes_its_crash_back(store: Store, other: Store, meanwhile: str) -> None:
    late = await expired(store)
    await store.jobs.rescue(10)
    assert (await get(store, late.id)).crashes == 1
    if meanwhile != "queued":
        runs = await take(other, want(worker="w2"))
        if meanwhile == "succeeded":
            await settle(other, runs)
    assert await settle(store, late) is Verdict.STALE
    job = await get(store, late.id)
    assert (job.crashes, job.status) == (0, Status(meanwhile))
    entry = await last_entry(store, late.id)
    assert entry.happened is Happened.REFUSED
    assert "its worker lives" in str(entry.note)


async def test_a_crash_is_taken_back_once(store: Store) -> None:
    late = await expired(store)
    await store.jobs.rescue(10)
    later = (await lose(store, [await take(store)]))[0]
    await store.jobs.rescue(10)
    assert (await get(store, late.id)).crashes == 2
    for _ in range(3):
        assert await settle(store, later) is Verdict.STALE
    assert (await get(store, late.id)).crashes == 1


async def test_a_crash_that_an_operators_retry_has_forgotten_is_not_taken_back(store: Store) -> None:
    late = await expired(store, draft(max_crashes=1))
    assert [found.to for found in await store.jobs.rescue(10)] == [Status.FAILED]
    await operate(store, late.id, Action.RETRY)
    assert (await get(store, late.id)).crashes == 0
    assert await settle(store, late) is Verdict.STALE
    assert (await get(store, late.id)).crashes == 0


async def test_a_failed_job_stays_failed_when_its_worker_lives_after_all(store: Store) -> None:
    late = await expired(store, draft(max_crashes=1))
    await store.jobs.rescue(10)
    assert await settle(store, late) is Verdict.STALE
    assert (await get(store, late.id)).status is Status.FAILED
