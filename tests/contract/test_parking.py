"""Jobs whose payload no worker here can read: they are put aside, and wait for one that can."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.steps import (
    BOOM,
    DONE,
    cancel,
    get,
    gone,
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
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.limit import Limit
from windlass.core.outcome import Unfit
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.core.unique import Unique
from windlass.stores.contract import Action, Answer, Created, Duplicate, Full, Operated, Store, Verdict

UNFIT = Unfit(BOOM)
LINE = BlockedBy(Kind.PAYLOAD, "noop").text


async def parked(store: Store, one: Draft | None = None) -> Job:
    job = await start(store, one)
    assert await settle(store, job, UNFIT) is Verdict.APPLIED
    return await get(store, job.id)


async def aside(store: Store) -> list[str]:
    """The jobs that wait to be read, those that have stood longest first."""
    return [job.id for job in await store.views.blocked([LINE], 100)]


async def test_a_job_nobody_can_read_waits_and_spends_no_attempt(store: Store) -> None:
    began = await start(store)
    queued_at = began.queued_at
    assert await settle(store, began, UNFIT) is Verdict.APPLIED
    job = await get(store, began.id)
    assert (job.status, job.blocked_by, job.attempts, job.crashes) == (Status.BLOCKED, LINE, 0, 0)
    assert (job.worker_id, job.lease_expires_at, job.finished_at) == (None, None, None)
    assert (job.error, job.queued_at, job.lease_token) == (BOOM, queued_at, began.lease_token)
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.BLOCKED]
    entry = await last_entry(store, job.id)
    assert (entry.status, entry.token) == (Status.BLOCKED, began.lease_token)
    assert entry.note is not None
    assert LINE in entry.note
    assert "boom" in entry.note


@pytest.mark.parametrize("options", [{}, {"limit": Limit("k", 5)}, {"rate": Rate(5, 60, key="r")}], ids=str)
async def test_no_promotion_frees_it(store: Store, options: dict[str, Any]) -> None:
    job = await parked(store, draft(**options))
    for _ in range(3):
        assert (await store.jobs.promote(100)).unblocked == 0
    assert await store.jobs.claim(want()) == []
    assert await status(store, job.id) is Status.BLOCKED


async def test_no_end_of_another_job_frees_it(store: Store) -> None:
    limit = Limit("k", 2)
    job = await parked(store, draft(limit=limit))
    assert await settle(store, await start(store, draft(limit=limit)), DONE) is Verdict.APPLIED
    assert await status(store, job.id) is Status.BLOCKED


async def test_a_retry_queues_it_with_the_attempts_it_had(store: Store) -> None:
    job = await parked(store)
    assert await operate(store, job.id, Action.RETRY, "readable again") == Answer(Operated.DONE, Status.BLOCKED)
    queued = await get(store, job.id)
    assert (queued.status, queued.blocked_by, queued.attempts) == (Status.QUEUED, None, 0)
    entry = await last_entry(store, job.id)
    assert (entry.happened, entry.actor, entry.note) == (Happened.RETRIED, "ann", "readable again")
    again = await take(store)
    assert (again.id, again.attempts, again.lease_token) == (job.id, 1, job.lease_token + 1)
    assert await settle(store, again) is Verdict.APPLIED
    assert (await get(store, job.id)).error is None


async def test_it_may_be_put_aside_more_than_once(store: Store) -> None:
    job = await parked(store)
    await operate(store, job.id, Action.RETRY)
    assert await settle(store, await take(store), UNFIT) is Verdict.APPLIED
    again = await get(store, job.id)
    assert (again.status, again.blocked_by, again.attempts) == (Status.BLOCKED, LINE, 0)
    assert await aside(store) == [job.id]


async def test_a_retry_of_a_job_with_a_full_limit_puts_it_into_that_line(store: Store) -> None:
    limit = Limit("k")
    job = await parked(store, draft(limit=limit))
    holder = await start(store, draft(limit=limit))
    await operate(store, job.id, Action.RETRY)
    assert await store.jobs.claim(want()) == []
    assert (await get(store, job.id)).blocked_by == BlockedBy(Kind.LIMIT, "k").text
    await settle(store, holder)
    assert (await take(store)).id == job.id


async def test_it_is_cancelled_as_any_waiting_job(store: Store) -> None:
    job = await parked(store)
    await cancel(store, job.id)
    cancelled = await get(store, job.id)
    assert (cancelled.status, cancelled.blocked_by) == (Status.CANCELLED, None)
    assert await aside(store) == []


async def test_it_is_deleted_as_any_waiting_job(store: Store) -> None:
    job = await parked(store)
    assert (await operate(store, job.id, Action.DELETE)).verdict is Operated.DONE
    assert await gone(store, job.id)
    assert await aside(store) == []


async def test_one_that_was_asked_to_cancel_is_cancelled_instead(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    assert await settle(store, job, UNFIT) is Verdict.CANCELLED
    cancelled = await get(store, job.id)
    assert (cancelled.status, cancelled.blocked_by) == (Status.CANCELLED, None)


async def test_a_lost_lease_cannot_put_a_job_aside(store: Store) -> None:
    job = await start(store)
    assert await settle(store, job._replace(lease_token=job.lease_token - 1), UNFIT) is Verdict.STALE
    assert await status(store, job.id) is Status.PROCESSING


async def test_the_same_end_told_again_is_applied(store: Store) -> None:
    job = await start(store)
    assert [await settle(store, job, UNFIT) for _ in range(2)] == [Verdict.APPLIED] * 2
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.BLOCKED]


async def test_its_slot_is_free_for_the_next(store: Store) -> None:
    first, second = draft(limit=Limit("k")), draft(limit=Limit("k"))
    job = await start(store, first)
    await put(store, second)
    assert await store.jobs.claim(want()) == []
    assert await settle(store, job, UNFIT) is Verdict.APPLIED
    assert (await take(store)).id == second.id


async def test_its_unique_key_stays_held(store: Store) -> None:
    job = await parked(store, draft(unique=Unique(queued="k", running="k")))
    other = draft(unique=Unique(queued="k"))
    assert await store.jobs.insert([other]) == [Duplicate(job.id, "k")]


async def test_who_awaits_it_goes_on_waiting(store: Store) -> None:
    last = draft("last", awaits="success")
    await put(store, last, draft(next_id=last.id))
    [job] = await store.jobs.claim(want())
    assert await settle(store, job, UNFIT) is Verdict.APPLIED
    await store.jobs.promote(100)
    assert await status(store, last.id) is Status.BLOCKED
    await operate(store, job.id, Action.RETRY)
    await settle(store, await take(store))
    assert await status(store, last.id) is Status.QUEUED


async def test_it_counts_in_the_depth_of_its_queue(store: Store) -> None:
    await parked(store)
    await store.queues.limit_depth("default", 1)
    more = draft()
    assert await store.jobs.insert([more]) == [Full("default", 1)]
    await store.queues.limit_depth("default", None)
    assert await store.jobs.insert([more]) == [Created(more.id)]


async def test_many_ends_of_one_batch_each_go_their_way(store: Store) -> None:
    await put(store, draft(), draft(), draft())
    one, two, three = await store.jobs.claim(want())
    ends = [decide(one, DONE), decide(two, UNFIT), decide(three, UNFIT)]
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 3
    assert [await status(store, job.id) for job in (one, two, three)] == [
        Status.SUCCEEDED,
        Status.BLOCKED,
        Status.BLOCKED,
    ]
    assert await aside(store) == [two.id, three.id]


async def test_the_first_of_each_line_are_listed(store: Store) -> None:
    types = ("a", "b", "c")
    made = {type_: [(await parked(store, draft(type_))).id for _ in range(3)] for type_ in types}
    lines = [BlockedBy(Kind.PAYLOAD, type_).text for type_ in types]
    asked = await store.views.blocked([lines[2], lines[0], "payload:none"], 2)
    assert [job.id for job in asked] == [*made["c"][:2], *made["a"][:2]]
    assert await store.views.blocked([], 2) == []


async def test_a_line_is_walked_from_job_to_job(store: Store) -> None:
    made = [(await parked(store)).id for _ in range(5)]
    walked, after = list[str](), None
    while page := await store.views.blocked([LINE], 2, after):
        walked += [job.id for job in page]
        after = page[-1]
    assert walked == made
