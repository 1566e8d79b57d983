from __future__ import annotations

from typing import Any

import pytest

from tests.contract.invariants import check
from tests.contract.places import Place
from tests.contract.steps import (
    AGAIN_LATER,
    DONE,
    HOUR,
    NEVER_AGAIN,
    cancel,
    everything,
    expired,
    get,
    last_entry,
    operate,
    put,
    settle,
    status,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.draft import Draft
from windlass.core.errors import TransactionRefused
from windlass.core.history import Happened
from windlass.core.outcome import Cancelled, Outcome
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Action, Created, Duplicate, Filter, Operated, Replaced, Store

WAITS = [Happened.ENQUEUED]
GOES_ON = [Happened.ENQUEUED, Happened.UNBLOCKED]
STOPS = [Happened.ENQUEUED, Happened.CANCELLED]


def then(awaits: str = "success", **options: Any) -> Draft:
    return draft(awaits=awaits, **options)


async def group(store: Store, n: int = 2, awaits: str = "success") -> tuple[str, list[str]]:
    """Jobs, and the one that awaits them."""
    last = then(awaits)
    ids = await put(store, last, *[draft(next_id=last.id) for _ in range(n)])
    return last.id, ids[1:]


async def chain(store: Store, n: int = 3) -> list[str]:
    ids = [new_id() for _ in range(n)]
    links = [
        draft(id=id_, awaits="success" if at else None, next_id=ids[at + 1] if at + 1 < n else None)
        for at, id_ in enumerate(ids)
    ]
    return await put(store, *links)


async def test_a_job_that_awaits_others_is_blocked_until_the_last_has_ended(store: Store) -> None:
    last, [first, second] = await group(store)
    waiting = await get(store, last)
    assert (waiting.status, waiting.blocked_by, waiting.awaits) == (Status.BLOCKED, f"flow:{last}", "success")
    assert (await last_entry(store, last)).status is Status.BLOCKED
    assert (await get(store, first)).next_id == last
    jobs = await store.jobs.claim(want())
    assert [job.id for job in jobs] == [first, second]
    await settle(store, jobs[0])
    assert await status(store, last) is Status.BLOCKED
    assert await told(store, last) == WAITS
    await settle(store, jobs[1])
    gone_on = await get(store, last)
    assert (gone_on.status, gone_on.blocked_by) == (Status.QUEUED, None)
    assert await told(store, last) == GOES_ON
    assert (await take(store)).id == last
    await check(store)


async def test_all_may_end_in_one_step(store: Store) -> None:
    last, ids = await group(store, 5)
    jobs = await store.jobs.claim(want())
    await store.jobs.apply([decide(job, DONE) for job in jobs])
    assert await statuses(store, [*ids, last]) == [Status.SUCCEEDED] * 5 + [Status.QUEUED]
    assert await told(store, last) == GOES_ON


async def test_a_chain_runs_one_after_the_other(store: Store) -> None:
    ids = await chain(store)
    ran: list[str] = []
    while claimed := await store.jobs.claim(want()):
        [job] = claimed
        ran.append(job.id)
        await settle(store, job)
    assert ran == ids
    await check(store)


@pytest.mark.parametrize("outcome", [NEVER_AGAIN, Cancelled("enough")], ids=["failed", "cancelled"])
async def test_what_awaits_success_is_cancelled_with_all_that_awaits_it(store: Store, outcome: Outcome) -> None:
    ids = await chain(store, 4)
    await settle(store, await take(store), outcome)
    assert (await statuses(store, ids))[1:] == [Status.CANCELLED] * 3
    assert await told(store, ids[3]) == STOPS
    note = (await last_entry(store, ids[1])).note
    assert note is not None
    assert ids[0] in note
    assert await store.jobs.claim(want()) == []
    await check(store)


async def test_one_failure_cancels_at_once_and_the_others_still_run(store: Store) -> None:
    last, ids = await group(store, 3)
    jobs = await store.jobs.claim(want(2))
    await settle(store, jobs[0], NEVER_AGAIN)
    assert await status(store, last) is Status.CANCELLED
    await settle(store, jobs[1])
    assert (await take(store)).id == ids[2]
    assert await told(store, last) == STOPS


async def test_what_awaits_the_end_runs_however_they_ended(store: Store) -> None:
    last, _ = await group(store, 2, "end")
    jobs = await store.jobs.claim(want())
    await settle(store, jobs[0], NEVER_AGAIN)
    assert await status(store, last) is Status.BLOCKED
    await settle(store, jobs[1], Cancelled("enough"))
    assert await status(store, last) is Status.QUEUED
    assert await told(store, last) == GOES_ON


async def test_a_retry_is_not_an_end(store: Store) -> None:
    last, [first] = await group(store, 1)
    await settle(store, await take(store), AGAIN_LATER)
    assert await status(store, last) is Status.BLOCKED
    await store.jobs.promote(10)
    assert await status(store, last) is Status.BLOCKED
    await operate(store, first, Action.RETRY)
    await settle(store, await take(store))
    assert await status(store, last) is Status.QUEUED


@pytest.mark.parametrize("action", [Action.CANCEL, Action.DELETE])
async def test_an_operators_order_on_one_that_waits_counts_as_an_end(store: Store, action: Action) -> None:
    last, ids = await group(store)
    assert (await operate(store, ids[0], action)).verdict is Operated.DONE
    assert await status(store, last) is Status.CANCELLED
    always, ids = await group(store, 1, "end")
    assert (await operate(store, ids[0], action)).verdict is Operated.DONE
    assert await status(store, always) is Status.QUEUED
    assert await told(store, always) == GOES_ON


async def test_deleting_one_that_ended_changes_nothing(store: Store) -> None:
    last, ids = await group(store)
    jobs = await store.jobs.claim(want())
    await settle(store, jobs[0])
    assert (await operate(store, ids[0], Action.DELETE)).verdict is Operated.DONE
    assert await status(store, last) is Status.BLOCKED
    await settle(store, jobs[1])
    assert await status(store, last) is Status.QUEUED


async def test_a_rescue_that_fails_a_job_counts_as_its_end(store: Store) -> None:
    last = then()
    await put(store, last)
    lost = await expired(store, draft(next_id=last.id, max_crashes=1))
    assert [found.id for found in await store.jobs.rescue(10)] == [lost.id]
    assert await status(store, last.id) is Status.CANCELLED
    assert await told(store, last.id) == STOPS


async def test_a_late_workers_end_frees_nothing(store: Store) -> None:
    last = then()
    await put(store, last)
    late = await expired(store, draft(next_id=last.id))
    await store.jobs.rescue(10)
    await settle(store, late)
    assert await status(store, last.id) is Status.BLOCKED
    await settle(store, await take(store))
    assert await status(store, last.id) is Status.QUEUED


async def test_cancelling_what_waits_lets_the_others_run(store: Store) -> None:
    last, ids = await group(store)
    await cancel(store, last)
    jobs = await store.jobs.claim(want())
    assert [job.id for job in jobs] == ids
    for job in jobs:
        await settle(store, job)
    assert await told(store, last) == STOPS
    assert (await operate(store, last, Action.RETRY)).verdict is Operated.DONE
    assert (await take(store)).id == last


async def test_promote_lets_go_on_what_nobody_makes_wait(store: Store) -> None:
    alone = then()
    await put(store, alone)
    await store.jobs.promote(10)
    assert await status(store, alone.id) is Status.QUEUED
    assert await told(store, alone.id) == GOES_ON


async def test_promote_leaves_what_must_wait(store: Store) -> None:
    last, _ = await group(store)
    found = await store.jobs.promote(10)
    assert (found.unblocked, found.next_due) == (0, None)
    assert await status(store, last) is Status.BLOCKED


async def test_what_has_been_taken_and_what_it_awaits_can_be_found(store: Store) -> None:
    last, ids = await group(store, 3)
    await put(store, draft())
    found = await everything(store, Filter(next_id=last))
    assert [job.id for job in reversed(found)] == ids
    assert (await store.views.count(Filter(next_id=last))).n == 3
    takes = then(takes="rows")
    await put(store, takes)
    assert (await get(store, takes.id)).takes == "rows"


async def test_a_duplicate_takes_no_part(store: Store) -> None:
    [known] = await put(store, draft(unique="u"))
    last = then()
    made = draft(next_id=last.id)
    verdicts = await store.jobs.insert([last, draft(unique="u", next_id=last.id), made])
    assert verdicts == [Created(last.id), Duplicate(known, "u"), Created(made.id)]
    jobs = {job.id: job for job in await store.jobs.claim(want())}
    await settle(store, jobs[made.id])
    assert await status(store, last.id) is Status.QUEUED


async def test_a_replacement_does_not_free_one_that_waits(store: Store) -> None:
    last = then(unique="u")
    [id_, first] = await put(store, last, draft(next_id=last.id))
    newer = draft(payload='{"n":2}', unique="u", on_conflict="replace")
    assert await store.jobs.insert([newer]) == [Replaced(id_)]
    job = await get(store, id_)
    assert (job.status, job.blocked_by, job.payload) == (Status.BLOCKED, f"flow:{id_}", {"n": 2})
    assert (await take(store)).id == first


async def test_an_awaited_job_that_is_scheduled_keeps_the_other_waiting(store: Store) -> None:
    last = then()
    await put(store, last, draft(next_id=last.id, delay=HOUR))
    await store.jobs.promote(10)
    assert await status(store, last.id) is Status.BLOCKED


async def test_a_flow_is_enqueued_inside_a_callers_transaction(store: Store, place: Place) -> None:
    last = then()
    first = draft(next_id=last.id)
    async with place.transaction() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused):
                await store.jobs.insert([last, first], transaction.tx)
            assert await everything(store) == []
            return
        await store.jobs.insert([last, first], transaction.tx)
        await transaction.rollback()
    assert await everything(store) == []
    async with place.transaction() as transaction:
        await store.jobs.insert([last, first], transaction.tx)
        await transaction.commit()
    await settle(store, await take(store))
    assert await status(store, last.id) is Status.QUEUED


async def test_a_large_group_ends_once(store: Store) -> None:
    last, ids = await group(store, 600)
    ended = 0
    while jobs := await store.jobs.claim(want(200)):
        if [job.id for job in jobs] == [last]:
            break
        await store.jobs.apply([decide(job, DONE) for job in jobs])
        ended += len(jobs)
    assert ended == len(ids)
    assert await told(store, last) == [*GOES_ON, Happened.CLAIMED]
