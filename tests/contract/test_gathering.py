"""Jobs that gather: they wait for the children that name them as their next, and hold no worker meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import (
    DONE,
    NEVER_AGAIN,
    cancel,
    get,
    last_entry,
    operate,
    put,
    settle,
    start,
    status,
    take,
    told,
)
from tests.support.drafts import draft, want
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.outcome import Gathering, Outcome
from windlass.core.status import Status
from windlass.stores.contract import Action, Answer, Operated, Retention, Store, Verdict

GATHERS = Gathering("sizes")


async def children(store: Store, parent: Job, n: int = 2) -> list[Job]:
    """Claimed children of a job that runs."""
    ids = await put(store, *[draft("child", next_id=parent.id) for _ in range(n)])
    jobs = await store.jobs.claim(want(types={"child"}))
    assert [job.id for job in jobs] == ids
    return list(jobs)


async def test_it_waits_for_its_children_and_goes_on_after_the_last(store: Store) -> None:
    began = await start(store)
    first, second = await children(store, began)
    assert await settle(store, began, GATHERS) is Verdict.APPLIED
    job = await get(store, began.id)
    line = BlockedBy(Kind.FLOW, job.id).text
    assert (job.status, job.blocked_by, job.awaits, job.attempts) == (Status.BLOCKED, line, "end", 0)
    assert (job.worker_id, job.lease_expires_at) == (None, None)
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUSPENDED]
    note = (await last_entry(store, job.id)).note
    assert note is not None
    assert "sizes" in note
    await settle(store, first)
    await store.jobs.promote(100)
    assert await status(store, job.id) is Status.BLOCKED
    await settle(store, second)
    assert await status(store, job.id) is Status.QUEUED
    assert (await told(store, job.id))[-1] is Happened.UNBLOCKED
    again = await take(store)
    assert (again.id, again.attempts, again.lease_token) == (job.id, 1, began.lease_token + 1)


@pytest.mark.parametrize("outcome", [DONE, NEVER_AGAIN], ids=["succeeded", "failed"])
async def test_children_that_ended_before_it_waits_do_not_hold_it(store: Store, outcome: Outcome) -> None:
    job = await start(store)
    for child in await children(store, job):
        await settle(store, child, outcome)
    assert await settle(store, job, GATHERS) is Verdict.APPLIED
    assert await status(store, job.id) is Status.QUEUED
    assert (await take(store)).id == job.id


async def test_children_that_fail_are_ends_as_well(store: Store) -> None:
    job = await start(store)
    first, second = await children(store, job)
    await settle(store, job, GATHERS)
    await settle(store, first, NEVER_AGAIN)
    assert await status(store, job.id) is Status.BLOCKED
    await settle(store, second)
    assert await status(store, job.id) is Status.QUEUED


async def test_without_children_it_goes_on_at_once(store: Store) -> None:
    job = await start(store)
    assert await settle(store, job, GATHERS) is Verdict.APPLIED
    assert (await take(store)).id == job.id


async def test_it_may_gather_again(store: Store) -> None:
    job = await start(store)
    for _ in range(2):
        some = await children(store, job)
        await settle(store, job, GATHERS)
        assert await status(store, job.id) is Status.BLOCKED
        for child in some:
            await settle(store, child)
        job = await take(store)
    assert await settle(store, job) is Verdict.APPLIED


async def test_a_job_that_had_awaited_others_may_gather(store: Store) -> None:
    last = draft(awaits="success")
    await put(store, last, draft("child", next_id=last.id))
    [first] = await store.jobs.claim(want(types={"child"}))
    await settle(store, first)
    job = await take(store)
    failing, _ = [*await children(store, job, 1), None]
    await settle(store, job, GATHERS)
    assert failing is not None
    await settle(store, failing, NEVER_AGAIN)
    assert await status(store, job.id) is Status.QUEUED, "it awaits their end now, and not their success"


async def test_its_children_are_kept_while_it_lives(store: Store) -> None:
    job = await start(store)
    [child] = await children(store, job, 1)
    await settle(store, child)
    await settle(store, job, GATHERS)
    at_once = Retention(succeeded=timedelta(0))
    await store.jobs.prune(at_once, 100)
    assert (await get(store, child.id)).status is Status.SUCCEEDED


async def test_it_is_cancelled_while_it_waits_and_stays_so(store: Store) -> None:
    job = await start(store)
    [child] = await children(store, job, 1)
    await settle(store, job, GATHERS)
    await cancel(store, job.id)
    await settle(store, child)
    await store.jobs.promote(100)
    assert await status(store, job.id) is Status.CANCELLED


async def test_an_operators_retry_is_refused(store: Store) -> None:
    job = await start(store)
    await children(store, job, 1)
    await settle(store, job, GATHERS)
    assert await operate(store, job.id, Action.RETRY) == Answer(Operated.REFUSED, Status.BLOCKED)


async def test_one_that_was_asked_to_cancel_is_cancelled_instead(store: Store) -> None:
    job = await start(store)
    await children(store, job, 1)
    await cancel(store, job.id)
    assert await settle(store, job, GATHERS) is Verdict.CANCELLED
    assert await status(store, job.id) is Status.CANCELLED


async def test_the_same_end_told_again_is_applied(store: Store) -> None:
    job = await start(store)
    [child] = await children(store, job, 1)
    assert [await settle(store, job, GATHERS) for _ in range(2)] == [Verdict.APPLIED] * 2
    await settle(store, child)
    assert await status(store, job.id) is Status.QUEUED
