"""Jobs that wait for a signal: they hold nothing but their keys, and go on by the signal or by their time, once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.contract.steps import (
    DONE,
    HOUR,
    cancel,
    finish,
    get,
    gone,
    last_entry,
    operate,
    passed,
    put,
    settle,
    start,
    status,
    take,
    told,
)
from tests.support.drafts import INSTANT, draft, new_id, want
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import LARGEST, MOST, Signal
from windlass.core.limit import Limit
from windlass.core.outcome import Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.core.unique import Unique
from windlass.stores.contract import Action, Answer, Duplicate, Keep, Lease, Operated, Order, Store, Verdict

WAITS = Waiting("approved", HOUR)
LINE = BlockedBy(Kind.SIGNAL, "approved").text
SUSPENDED = [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUSPENDED]


async def waiting(store: Store, one: Draft | None = None, outcome: Waiting = WAITS) -> Job:
    job = await start(store, one)
    assert await settle(store, job, outcome) is Verdict.APPLIED
    return await get(store, job.id)


async def signal(store: Store, job_id: str, name: str = "approved", text: str = "true") -> Answer:
    order = Order(id=job_id, action=Action.SIGNAL, actor="ann", signal=Signal(name, text))
    [answer] = await store.jobs.operate([order])
    return answer


async def test_a_job_that_waits_holds_no_worker_and_spends_no_attempt(store: Store) -> None:
    began = await start(store)
    assert await settle(store, began, WAITS) is Verdict.APPLIED
    job = await get(store, began.id)
    assert (job.status, job.blocked_by, job.attempts, job.crashes) == (Status.BLOCKED, LINE, 0, 0)
    assert (job.worker_id, job.lease_expires_at, job.finished_at, job.error) == (None, None, None, None)
    assert job.lease_token == began.lease_token
    assert abs(job.run_at - job.updated_at - HOUR) <= timedelta(milliseconds=2), "its time is up then"
    assert await told(store, job.id) == SUSPENDED
    entry = await last_entry(store, job.id)
    assert (entry.status, entry.token) == (Status.BLOCKED, began.lease_token)
    assert entry.note is not None
    assert "approved" in entry.note
    for _ in range(3):
        await store.jobs.promote(100)
    assert await store.jobs.claim(want()) == []
    assert await store.views.blocked([LINE], 10) == [job]


async def test_its_signal_queues_it_now(store: Store) -> None:
    job = await waiting(store)
    assert await signal(store, job.id) == Answer(Operated.DONE, Status.BLOCKED)
    queued = await get(store, job.id)
    assert (queued.status, queued.blocked_by, queued.kept) == (Status.QUEUED, None, {"signal:approved": True})
    assert queued.run_at < job.run_at
    assert await told(store, job.id) == [*SUSPENDED, Happened.SIGNALLED]
    entry = await last_entry(store, job.id)
    assert (entry.actor, entry.status, entry.note) == ("ann", Status.QUEUED, "approved")
    again = await take(store)
    assert (again.id, again.attempts, again.kept) == (job.id, 1, {"signal:approved": True})
    assert again.lease_token == job.lease_token + 1
    assert await settle(store, again) is Verdict.APPLIED


async def test_the_first_of_a_name_counts(store: Store) -> None:
    job = await waiting(store)
    await signal(store, job.id, text="1")
    assert await signal(store, job.id, text="2") == Answer(Operated.DUPLICATE, Status.QUEUED)
    assert (await get(store, job.id)).kept == {"signal:approved": 1}
    assert await told(store, job.id) == [*SUSPENDED, Happened.SIGNALLED]


@pytest.mark.parametrize("state", [Status.QUEUED, Status.SCHEDULED, Status.PROCESSING])
async def test_an_early_signal_is_kept(store: Store, state: Status) -> None:
    [job_id] = await put(store, draft(delay=HOUR if state is Status.SCHEDULED else None))
    if state is Status.PROCESSING:
        await take(store)
    assert await signal(store, job_id, text='"early"') == Answer(Operated.KEPT, state)
    job = await get(store, job_id)
    assert (job.status, job.kept) == (state, {"signal:approved": "early"})
    entry = await last_entry(store, job_id)
    assert (entry.happened, entry.actor, entry.status) == (Happened.SIGNALLED, "ann", state)


async def test_a_job_does_not_wait_for_a_signal_that_is_there(store: Store) -> None:
    job = await start(store)
    await signal(store, job.id, text='"early"')
    assert await settle(store, job, WAITS) is Verdict.APPLIED
    queued = await get(store, job.id)
    assert (queued.status, queued.blocked_by, queued.attempts, queued.run_at) == (Status.QUEUED, None, 0, job.run_at)
    again = await take(store)
    assert (again.id, again.kept) == (job.id, {"signal:approved": "early"})


async def test_one_end_of_a_batch_goes_on_and_the_other_waits(store: Store) -> None:
    await put(store, draft(), draft(), draft())
    one, two, three = await store.jobs.claim(want())
    await signal(store, one.id)
    ends = [decide(one, WAITS), decide(two, WAITS), decide(three, DONE)]
    assert await store.jobs.apply(ends) == [Verdict.APPLIED] * 3
    assert [await status(store, job.id) for job in (one, two, three)] == [
        Status.QUEUED,
        Status.BLOCKED,
        Status.SUCCEEDED,
    ]


async def test_a_signal_of_another_name_does_not_free_it(store: Store) -> None:
    job = await waiting(store)
    assert await signal(store, job.id, "paid") == Answer(Operated.KEPT, Status.BLOCKED)
    assert (await get(store, job.id)).kept == {"signal:paid": True}
    assert await status(store, job.id) is Status.BLOCKED
    assert await signal(store, job.id) == Answer(Operated.DONE, Status.BLOCKED)


async def test_the_same_wait_told_again_is_applied(store: Store) -> None:
    job = await start(store)
    assert [await settle(store, job, WAITS) for _ in range(2)] == [Verdict.APPLIED] * 2
    assert await told(store, job.id) == SUSPENDED
    await signal(store, job.id)
    assert await settle(store, job, WAITS) is Verdict.APPLIED, "the answer was lost, and it has gone on since"
    assert await status(store, job.id) is Status.QUEUED


async def test_when_its_time_is_up_it_goes_on_without(store: Store) -> None:
    job = await waiting(store, outcome=Waiting("approved", INSTANT))
    await passed(store, job.run_at)
    promoted = await store.jobs.promote(100)
    assert promoted.unblocked + promoted.promoted == 1
    queued = await get(store, job.id)
    assert (queued.status, queued.blocked_by, queued.kept) == (Status.QUEUED, None, {"signal:approved": None})
    assert await told(store, job.id) == [*SUSPENDED, Happened.UNBLOCKED]
    note = (await last_entry(store, job.id)).note
    assert note is not None
    assert "approved" in note
    assert await signal(store, job.id) == Answer(Operated.DUPLICATE, Status.QUEUED), "exactly one of both"
    again = await take(store)
    assert (again.id, again.kept) == (job.id, {"signal:approved": None})


async def test_what_it_kept_before_stays(store: Store) -> None:
    job = await start(store)
    await store.jobs.keep([Keep(Lease(job.id, job.lease_token), "step:a", "1")])
    await settle(store, job, Waiting("approved", INSTANT))
    await passed(store, (await get(store, job.id)).run_at)
    await store.jobs.promote(100)
    again = await take(store)
    assert again.kept == {"step:a": 1, "signal:approved": None}
    await settle(store, again, Waiting("paid", HOUR))
    await signal(store, job.id, "paid")
    assert (await take(store)).kept == {"step:a": 1, "signal:approved": None, "signal:paid": True}


async def test_the_next_due_moment_is_that_of_the_first_wait(store: Store) -> None:
    await waiting(store, outcome=Waiting("approved", HOUR * 2))
    await waiting(store, outcome=Waiting("paid", HOUR))
    next_due = (await store.jobs.promote(100)).next_due
    assert next_due is not None
    assert HOUR - timedelta(minutes=1) < next_due <= HOUR


async def test_many_whose_time_is_up_go_on_a_part_at_a_time(store: Store) -> None:
    jobs = [await waiting(store, outcome=Waiting("approved", INSTANT)) for _ in range(5)]
    await passed(store, jobs[-1].run_at)
    moved = list[int]()
    while not moved or moved[-1]:
        promoted = await store.jobs.promote(2)
        moved.append(promoted.promoted + promoted.unblocked)
    assert sum(moved) == 5
    assert max(moved) <= 4, "no more than asked for, of each kind"


async def test_signal_and_time_at_one_moment_free_it_once(store: Store) -> None:
    for _ in range(5):
        job = await waiting(store, outcome=Waiting("approved", INSTANT))
        await passed(store, job.run_at)
        answer, _ = await asyncio.gather(signal(store, job.id), store.jobs.promote(100))
        again = await take(store)
        came = answer.verdict is Operated.DONE
        assert (again.id, again.kept) == (job.id, {"signal:approved": True if came else None})
        assert answer.verdict in (Operated.DONE, Operated.DUPLICATE)
        moves = await told(store, job.id)
        assert moves == [*SUSPENDED, Happened.SIGNALLED if came else Happened.UNBLOCKED, Happened.CLAIMED]
        await settle(store, again)


async def test_signals_at_one_moment_count_once(store: Store) -> None:
    job = await waiting(store)
    answers = await asyncio.gather(*[signal(store, job.id, text=str(n)) for n in range(8)])
    assert sorted(answer.verdict for answer in answers) == [Operated.DONE] + [Operated.DUPLICATE] * 7
    [first] = [n for n, answer in enumerate(answers) if answer.verdict is Operated.DONE]
    assert (await get(store, job.id)).kept == {"signal:approved": first}


async def test_its_slot_is_free_and_its_key_stays_held(store: Store) -> None:
    one = draft(limit=Limit("k"), unique=Unique(queued="u", running="u"))
    job = await start(store, one)
    other = draft(limit=Limit("k"))
    await put(store, other)
    assert await store.jobs.claim(want()) == []
    assert await settle(store, job, WAITS) is Verdict.APPLIED
    assert (await take(store)).id == other.id
    assert await store.jobs.insert([draft(unique=Unique(queued="u"))]) == [Duplicate(job.id, "u")]


async def test_one_that_goes_on_needs_a_slot_again(store: Store) -> None:
    job = await waiting(store, draft(limit=Limit("k")))
    holder = await start(store, draft(limit=Limit("k")))
    await signal(store, job.id)
    assert await store.jobs.claim(want()) == []
    assert (await get(store, job.id)).blocked_by == BlockedBy(Kind.LIMIT, "k").text
    await settle(store, holder)
    assert (await take(store)).id == job.id


async def test_it_is_cancelled_and_deleted_as_any_waiting_job(store: Store) -> None:
    job, other = await waiting(store), await waiting(store)
    await cancel(store, job.id)
    cancelled = await get(store, job.id)
    assert (cancelled.status, cancelled.blocked_by) == (Status.CANCELLED, None)
    assert (await operate(store, other.id, Action.DELETE)).verdict is Operated.DONE
    assert await gone(store, other.id)
    assert await store.views.blocked([LINE], 10) == []
    assert (await store.jobs.promote(100)).next_due is None


async def test_an_operators_retry_is_refused(store: Store) -> None:
    job = await waiting(store)
    assert await operate(store, job.id, Action.RETRY) == Answer(Operated.REFUSED, Status.BLOCKED)


async def test_one_that_was_asked_to_cancel_is_cancelled_instead(store: Store) -> None:
    job = await start(store)
    await cancel(store, job.id)
    assert await settle(store, job, WAITS) is Verdict.CANCELLED
    assert await status(store, job.id) is Status.CANCELLED


async def test_a_lost_lease_cannot_suspend_a_job(store: Store) -> None:
    job = await start(store)
    assert await settle(store, job._replace(lease_token=job.lease_token - 1), WAITS) is Verdict.STALE
    assert await status(store, job.id) is Status.PROCESSING


async def test_a_finished_job_takes_no_signal(store: Store) -> None:
    job = await finish(store)
    assert await signal(store, job.id) == Answer(Operated.REFUSED, Status.SUCCEEDED)
    assert await signal(store, new_id()) == Answer(Operated.MISSING)
    assert (await get(store, job.id)).kept_json is None


async def test_a_job_takes_no_more_signals_than_it_may_keep(store: Store) -> None:
    job = await waiting(store)
    large = f'"{"x" * (LARGEST - 2)}"'
    orders = [Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal(f"s{n}", large)) for n in range(4)]
    answers = await store.jobs.operate(orders)
    assert [answer.verdict for answer in answers] == [Operated.KEPT] * 3 + [Operated.FULL]
    other = await waiting(store)
    await store.jobs.operate(
        [Order(id=other.id, action=Action.SIGNAL, actor="ann", signal=Signal(f"s{n}", "1")) for n in range(MOST)]
    )
    assert await signal(store, other.id) == Answer(Operated.FULL, Status.BLOCKED)
    assert len((await get(store, other.id)).kept) == MOST


async def test_who_awaits_it_goes_on_waiting(store: Store) -> None:
    last = draft("last", awaits="success")
    await put(store, last, draft(next_id=last.id))
    [job] = await store.jobs.claim(want())
    await settle(store, job, WAITS)
    await store.jobs.promote(100)
    assert await status(store, last.id) is Status.BLOCKED
    await signal(store, job.id)
    await settle(store, await take(store))
    assert await status(store, last.id) is Status.QUEUED
