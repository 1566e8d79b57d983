from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    AGAIN_SOON,
    BOOM,
    CRASHED,
    DONE,
    HOUR,
    NEVER_AGAIN,
    RELEASED,
    SNOOZED,
    cancel,
    everything,
    expired,
    get,
    last_entry,
    near,
    passed,
    put,
    settle,
    start,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.history import HISTORY_LIMIT, Happened
from windlass.core.job import Job
from windlass.core.outcome import Cancelled, Outcome, Snoozed, Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Store, Verdict

STARTED = [Happened.ENQUEUED, Happened.CLAIMED]
OUTCOMES = [
    pytest.param(outcome, id=type(outcome).__name__ + name)
    for outcome, name in (
        (DONE, ""),
        (AGAIN_LATER, "Again"),
        (NEVER_AGAIN, ""),
        (SNOOZED, ""),
        (Cancelled("asked"), ""),
        (RELEASED, ""),
        (CRASHED, ""),
    )
]
RUNS_AGAIN = [param for param in OUTCOMES if param.id in ("FailedAgain", "Snoozed", "Released", "Crashed")]


async def ended(store: Store, outcome: Outcome, **options: Any) -> Job:
    """A job after its first attempt ended so, its lease given up."""
    job = await start(store, draft(**options))
    assert await settle(store, job, outcome) is Verdict.APPLIED
    found = await get(store, job.id)
    assert found.lease_expires_at is None
    assert found.lease_token == job.lease_token
    entry = await last_entry(store, job.id)
    assert (entry.number, entry.status) == (3, found.status)
    return found


async def test_a_success_keeps_its_result_and_times(store: Store) -> None:
    before = await store.now()
    job = await ended(store, Succeeded('{"answer":42}'))
    assert (job.status, job.result, job.error, job.attempts) == (Status.SUCCEEDED, {"answer": 42}, None, 1)
    assert job.finished_at is not None
    assert before <= job.finished_at <= await store.now()
    assert job.started_at is not None
    assert job.queued_at is not None
    ran, waited = job.finished_at - job.started_at, job.started_at - job.queued_at
    assert job.duration_ms is not None
    assert job.wait_ms is not None
    assert abs(timedelta(milliseconds=job.duration_ms) - ran) <= timedelta(milliseconds=1)
    assert abs(timedelta(milliseconds=job.wait_ms) - waited) <= timedelta(milliseconds=1)
    assert await told(store, job.id) == [*STARTED, Happened.SUCCEEDED]
    assert await store.jobs.claim(want()) == []


async def test_a_failure_with_attempts_left_is_tried_again_later(store: Store) -> None:
    job = await ended(store, AGAIN_LATER)
    assert (job.status, job.attempts, job.error, job.result_json) == (Status.RETRYING, 1, BOOM, None)
    assert job.finished_at is None
    assert near(job.run_at, await store.now() + HOUR)
    assert await told(store, job.id) == [*STARTED, Happened.RETRYING]
    assert (await last_entry(store, job.id)).note == "ValueError: boom"
    assert await store.jobs.claim(want()) == []


async def test_a_failure_after_the_last_attempt_is_final(store: Store) -> None:
    job = await ended(store, AGAIN_LATER, max_attempts=1)
    assert (job.status, job.attempts, job.error) == (Status.FAILED, 1, BOOM)
    assert near(job.finished_at, await store.now())
    assert await told(store, job.id) == [*STARTED, Happened.FAILED]


async def test_a_failure_that_must_not_be_tried_again_is_final(store: Store) -> None:
    job = await ended(store, NEVER_AGAIN)
    assert (job.status, job.attempts, job.error) == (Status.FAILED, 1, BOOM)
    assert await told(store, job.id) == [*STARTED, Happened.FAILED]


async def test_a_snoozed_job_is_scheduled_and_gets_its_attempt_back(store: Store) -> None:
    job = await ended(store, SNOOZED)
    assert (job.status, job.attempts, job.crashes, job.finished_at) == (Status.SCHEDULED, 0, 0, None)
    assert near(job.run_at, await store.now() + HOUR)
    assert await told(store, job.id) == [*STARTED, Happened.SNOOZED]
    assert (await last_entry(store, job.id)).note == "not yet"


async def test_a_released_job_is_queued_and_gets_its_attempt_back(store: Store) -> None:
    job = await ended(store, RELEASED)
    assert (job.status, job.attempts, job.crashes, job.finished_at) == (Status.QUEUED, 0, 0, None)
    assert await told(store, job.id) == [*STARTED, Happened.RELEASED]
    again = await take(store)
    assert (again.id, again.attempts, again.lease_token) == (job.id, 1, 2)


async def test_a_released_job_goes_before_those_that_came_after_it(store: Store) -> None:
    ids = await put(store, draft(), draft(), draft())
    [first] = await store.jobs.claim(want(1))
    await settle(store, first, RELEASED)
    assert [job.id for job in await store.jobs.claim(want())] == ids
    assert await told(store, ids[0]) == [*STARTED, Happened.RELEASED, Happened.CLAIMED]


async def test_a_job_that_ends_itself_is_cancelled(store: Store) -> None:
    job = await ended(store, Cancelled("no longer needed"))
    assert (job.status, job.attempts) == (Status.CANCELLED, 1)
    assert near(job.finished_at, await store.now())
    assert await told(store, job.id) == [*STARTED, Happened.CANCELLED]
    assert (await last_entry(store, job.id)).note == "no longer needed"


async def test_a_crash_is_counted_and_the_attempt_given_back(store: Store) -> None:
    job = await ended(store, CRASHED)
    assert (job.status, job.attempts, job.crashes) == (Status.RETRYING, 0, 1)
    assert job.error is not None
    assert job.error.type == "WorkerDied"
    assert await told(store, job.id) == [*STARTED, Happened.CRASHED]


async def test_the_last_crash_is_final(store: Store) -> None:
    job = await ended(store, CRASHED, max_crashes=1)
    assert (job.status, job.attempts, job.crashes) == (Status.FAILED, 0, 1)
    assert near(job.finished_at, await store.now())
    assert await told(store, job.id) == [*STARTED, Happened.FAILED]


async def test_a_job_fails_for_good_after_all_its_attempts(store: Store) -> None:
    job = await start(store, draft(max_attempts=3))
    for attempt in (1, 2):
        assert job.attempts == attempt
        await settle(store, job, AGAIN_SOON)
        await passed(store, (await get(store, job.id)).run_at)
        await store.jobs.promote(10)
        job = await take(store)
    await settle(store, job, AGAIN_SOON)
    assert (await get(store, job.id)).status is Status.FAILED
    again = [Happened.RETRYING, Happened.PROMOTED, Happened.CLAIMED]
    assert await told(store, job.id) == [*STARTED, *again, *again, Happened.FAILED]


async def test_a_success_after_a_failure_has_its_result(store: Store) -> None:
    job = await start(store)
    await settle(store, job, AGAIN_SOON)
    await passed(store, (await get(store, job.id)).run_at)
    await store.jobs.promote(10)
    job = await take(store)
    await settle(store, job)
    found = await get(store, job.id)
    assert (found.status, found.result, found.attempts) == (Status.SUCCEEDED, "done", 2)
    assert (await told(store, job.id))[-2:] == [Happened.CLAIMED, Happened.SUCCEEDED]


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_the_same_transition_again_is_applied_and_changes_nothing(
    store: Store, other: Store, outcome: Outcome
) -> None:
    job = await start(store)
    transition = decide(job, outcome)
    assert await store.jobs.apply([transition]) == [Verdict.APPLIED]
    settled, history = await get(store, job.id), await store.views.history(job.id)
    assert await store.jobs.apply([transition]) == [Verdict.APPLIED]
    assert await other.jobs.apply([transition, transition]) == [Verdict.APPLIED] * 2
    assert await get(store, job.id) == settled
    assert await store.views.history(job.id) == history


async def test_the_same_transition_twice_in_one_call_has_one_effect(store: Store) -> None:
    job = await start(store)
    transition = decide(job, CRASHED)
    assert await store.jobs.apply([transition, transition]) == [Verdict.APPLIED] * 2
    assert (await get(store, job.id)).crashes == 1
    assert await told(store, job.id) == [*STARTED, Happened.CRASHED]


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_worker_that_lost_its_lease_changes_nothing_but_the_history_and_its_crash(
    store: Store, outcome: Outcome
) -> None:
    job = await expired(store)
    await store.jobs.rescue(10)
    waiting = await get(store, job.id)
    assert await settle(store, job, outcome) is Verdict.STALE
    acquitted = waiting._replace(crashes=0)  # its worker lives
    assert (await get(store, job.id))._replace(updated_at=waiting.updated_at) == acquitted
    assert await told(store, job.id) == [*STARTED, Happened.LOST, Happened.REFUSED]
    entry = await last_entry(store, job.id)
    assert (entry.number, entry.status, entry.token) == (4, Status.QUEUED, job.lease_token)


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_late_result_does_not_touch_the_next_workers_attempt(store: Store, outcome: Outcome) -> None:
    late = await expired(store)
    await store.jobs.rescue(10)
    job = await take(store, want(worker="w2"))
    assert await settle(store, late, outcome) is Verdict.STALE
    acquitted = job._replace(crashes=0)
    assert (await get(store, job.id))._replace(updated_at=job.updated_at) == acquitted
    assert await settle(store, job) is Verdict.APPLIED
    assert await settle(store, late, outcome) is Verdict.STALE
    assert (await get(store, job.id)).status is Status.SUCCEEDED
    refused = Happened.REFUSED
    assert await told(store, job.id) == [
        *(*STARTED, Happened.LOST, Happened.CLAIMED, refused, Happened.SUCCEEDED, refused)
    ]


@pytest.mark.parametrize("late_first", [True, False])
@pytest.mark.parametrize("outcome", [DONE, NEVER_AGAIN, RELEASED], ids=["succeeded", "failed", "released"])
async def test_a_late_and_a_current_end_of_one_job_in_one_call_are_told_apart(
    store: Store, outcome: Outcome, late_first: bool
) -> None:
    late = await expired(store)
    await store.jobs.rescue(10)
    job = await take(store)
    transitions = [decide(late, outcome), decide(job, outcome)]
    expected = [Verdict.STALE, Verdict.APPLIED]
    order = slice(None, None, 1 if late_first else -1)
    assert await store.jobs.apply(transitions[order]) == expected[order]
    history = await told(store, job.id)
    assert sorted(history[4:]) == sorted([Happened.REFUSED, decide(job, outcome).happened])
    assert (await get(store, job.id)).status is decide(job, outcome).to


async def test_a_token_from_the_future_is_stale(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.apply([decide(job, DONE)._replace(token=job.lease_token + 1)]) == [Verdict.STALE]
    assert (await get(store, job.id)).status is Status.PROCESSING
    assert await told(store, job.id) == [*STARTED, Happened.REFUSED]


async def test_an_expired_lease_that_nobody_rescued_still_settles(store: Store) -> None:
    job = await expired(store)
    assert await settle(store, job) is Verdict.APPLIED
    assert await store.jobs.rescue(10) == []
    assert (await get(store, job.id)).status is Status.SUCCEEDED
    assert await told(store, job.id) == [*STARTED, Happened.SUCCEEDED]


async def test_an_unknown_job_is_missing(store: Store) -> None:
    job = await start(store)
    assert await store.jobs.apply([decide(job, DONE)._replace(id=new_id())]) == [Verdict.MISSING]
    assert await get(store, job.id) == job
    assert len(await everything(store)) == 1
    assert await told(store, job.id) == STARTED


async def test_each_transition_gets_its_own_verdict_in_order(store: Store) -> None:
    await put(store, draft(), draft(), draft())
    one, two, three = await store.jobs.claim(want())
    transitions = [
        decide(two, DONE)._replace(token=99),
        decide(one, DONE),
        decide(one, DONE)._replace(id=new_id()),
        decide(three, AGAIN_LATER),
    ]
    found = await store.jobs.apply(transitions)
    assert found == [Verdict.STALE, Verdict.APPLIED, Verdict.MISSING, Verdict.APPLIED]
    ids = [one.id, two.id, three.id]
    assert await statuses(store, ids) == [Status.SUCCEEDED, Status.PROCESSING, Status.RETRYING]
    assert [(await told(store, id_))[2:] for id_ in ids] == [
        [Happened.SUCCEEDED],
        [Happened.REFUSED],
        [Happened.RETRYING],
    ]


async def test_applying_nothing_does_nothing(store: Store) -> None:
    assert await store.jobs.apply([]) == []


async def test_many_jobs_settle_in_one_call(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(500)])
    jobs = await store.jobs.claim(want(500))
    found = await store.jobs.apply([decide(job, Succeeded(f"{n}")) for n, job in enumerate(jobs)])
    assert found == [Verdict.APPLIED] * 500
    settled = await store.views.get(ids)
    assert [job.result if job else None for job in settled] == list(range(500))
    assert await told(store, ids[499]) == [*STARTED, Happened.SUCCEEDED]


@pytest.mark.parametrize("outcome", RUNS_AGAIN)
async def test_a_job_asked_to_stop_does_not_run_again_and_the_verdict_says_so(store: Store, outcome: Outcome) -> None:
    job = await start(store)
    await cancel(store, job.id)
    assert await settle(store, job, outcome) is Verdict.CANCELLED
    found = await get(store, job.id)
    assert found.status is Status.CANCELLED
    assert near(found.finished_at, await store.now())
    assert await told(store, job.id) == [*STARTED, Happened.CANCEL_REQUESTED, Happened.CANCELLED]


async def test_of_a_batch_each_end_has_its_own_verdict(store: Store) -> None:
    asked, plain, done = [await start(store, draft(f"kind-{n}")) for n in range(3)]
    await cancel(store, asked.id)
    await cancel(store, done.id)
    late = plain._replace(lease_token=plain.lease_token - 1)
    found = await store.jobs.apply(
        [decide(asked, AGAIN_LATER), decide(plain, AGAIN_LATER), decide(done, DONE), decide(late, DONE)]
    )
    assert found == [Verdict.CANCELLED, Verdict.APPLIED, Verdict.APPLIED, Verdict.STALE]
    assert await statuses(store, [asked.id, plain.id, done.id]) == [
        Status.CANCELLED,
        Status.RETRYING,
        Status.SUCCEEDED,
    ]


@pytest.mark.parametrize(
    ("outcome", "status"), [(DONE, Status.SUCCEEDED), (NEVER_AGAIN, Status.FAILED), (Cancelled("x"), Status.CANCELLED)]
)
async def test_a_job_asked_to_stop_that_ends_by_itself_keeps_its_own_end(
    store: Store, outcome: Outcome, status: Status
) -> None:
    job = await start(store)
    await cancel(store, job.id)
    assert await settle(store, job, outcome) is Verdict.APPLIED
    assert (await get(store, job.id)).status is status
    assert (await told(store, job.id))[2:] == [Happened.CANCEL_REQUESTED, Happened(status.value)]


async def test_a_long_history_keeps_its_newest_entries_and_their_numbers(store: Store) -> None:
    job = await start(store)
    rounds = HISTORY_LIMIT // 2 + 5
    for _ in range(rounds):
        await settle(store, job, RELEASED)
        job = await take(store)
    history = await store.views.history(job.id)
    total = 2 + 2 * rounds
    assert [entry.number for entry in history] == list(range(total - HISTORY_LIMIT + 1, total + 1))
    assert history[-1].happened is Happened.CLAIMED
    assert history[-1].token == job.lease_token == rounds + 1


async def test_a_snooze_of_no_time_is_due_at_once(store: Store) -> None:
    job = await start(store)
    await settle(store, job, Snoozed(timedelta(0)))
    await passed(store, (await get(store, job.id)).run_at)
    assert (await store.jobs.promote(10)).promoted == 1
    assert (await take(store)).lease_token == 2
    assert await told(store, job.id) == [*STARTED, Happened.SNOOZED, Happened.PROMOTED, Happened.CLAIMED]


async def test_history_is_in_order_of_the_stores_clock(store: Store) -> None:
    before = await store.now()
    job = await start(store)
    await settle(store, job, AGAIN_LATER)
    await cancel(store, job.id)
    history = await store.views.history(job.id)
    instants = [before, *[entry.at for entry in history], await store.now()]
    assert instants == sorted(instants)
    assert [entry.status for entry in history] == [
        Status.QUEUED,
        Status.PROCESSING,
        Status.RETRYING,
        Status.CANCELLED,
    ]
