from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    AGAIN_SOON,
    DONE,
    HOUR,
    NEVER_AGAIN,
    RELEASED,
    SNOOZED,
    cancel,
    everything,
    expired,
    finish,
    get,
    last_entry,
    near,
    operate,
    passed,
    put,
    running,
    settle,
    start,
    status,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, want
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.outcome import Cancelled, Outcome
from windlass.core.status import Status
from windlass.core.unique import OnConflict, Unique
from windlass.stores.contract import Action, Answer, Created, Duplicate, Operated, Replaced, Store

MINUTE = timedelta(minutes=1)
STARTED = [Happened.ENQUEUED, Happened.CLAIMED]


async def is_duplicate(store: Store, one: Draft, of: str, key: str) -> bool:
    """Whether the draft is refused for a job's sake, and neither is changed by it."""
    before, history = await get(store, of), await store.views.history(of)
    verdicts = await store.jobs.insert([one])
    assert await store.views.get([one.id, of]) == [None, before]
    assert await store.views.history(of) == history
    return verdicts == [Duplicate(of, key)]


@pytest.mark.parametrize("on_conflict", ["existing", "raise"])
async def test_the_holder_of_a_key_is_named_to_the_next_and_nothing_is_written(
    store: Store, other: Store, on_conflict: OnConflict
) -> None:
    [holder] = await put(store, draft(unique="k"))
    assert (await get(store, holder)).unique_key == "k"
    assert await is_duplicate(store, draft(unique="k", on_conflict=on_conflict), holder, "k")
    assert await is_duplicate(other, draft("other", unique="k", queue="q", on_conflict=on_conflict), holder, "k")
    assert len(await everything(store)) == 1


async def test_other_keys_are_free(store: Store) -> None:
    await put(store, draft(unique="k"), draft(unique="K"), draft(unique="k "), draft())
    assert len(await store.jobs.claim(want())) == 4


@pytest.mark.parametrize("outcome", [AGAIN_LATER, SNOOZED, RELEASED], ids=["retrying", "snoozed", "released"])
async def test_one_key_is_held_from_enqueue_until_the_end(store: Store, outcome: Outcome) -> None:
    job = await start(store, draft(unique="k"))
    assert await is_duplicate(store, draft(unique="k"), job.id, "k")
    await settle(store, job, outcome)
    assert await is_duplicate(store, draft(unique="k"), job.id, "k")


async def test_a_scheduled_job_holds_its_key(store: Store) -> None:
    [holder] = await put(store, draft(unique="k", delay=HOUR))
    assert await is_duplicate(store, draft(unique="k"), holder, "k")


@pytest.mark.parametrize("outcome", [DONE, NEVER_AGAIN, Cancelled("x")], ids=["succeeded", "failed", "cancelled"])
async def test_the_key_of_an_ended_job_is_free(store: Store, outcome: Outcome) -> None:
    job = await finish(store, draft(unique="k"), outcome)
    assert (job.unique_key, job.unique_queued, job.unique_running) == (None, "k", "k")
    [next_] = await put(store, draft(unique="k"))
    assert (await take(store)).id == next_
    assert await told(store, next_) == STARTED
    assert (await told(store, job.id))[:2] == STARTED


@pytest.mark.parametrize("action", [Action.CANCEL, Action.DELETE])
async def test_the_key_of_a_cancelled_or_deleted_job_is_free(store: Store, action: Action) -> None:
    [holder] = await put(store, draft(unique="k"))
    assert (await operate(store, holder, action)).verdict is Operated.DONE
    [next_] = await put(store, draft(unique="k"))
    assert await told(store, next_) == [Happened.ENQUEUED]


async def test_the_key_of_a_job_that_crashed_too_often_is_free(store: Store) -> None:
    job = await expired(store, draft(unique="k", max_crashes=1))
    assert [found.to for found in await store.jobs.rescue(10)] == [Status.FAILED]
    assert (await get(store, job.id)).unique_key is None
    [next_] = await put(store, draft(unique="k"))
    assert await told(store, next_) == [Happened.ENQUEUED]


async def test_a_rescued_job_keeps_its_key(store: Store) -> None:
    job = await expired(store, draft(unique="k"))
    await store.jobs.rescue(10)
    assert await is_duplicate(store, draft(unique="k"), job.id, "k")


async def test_within_one_insert_the_first_holds_the_key(store: Store) -> None:
    one, two, three = draft(unique="k"), draft(unique="k"), draft(unique="k")
    assert await store.jobs.insert([one, two, three]) == [Created(one.id), *[Duplicate(one.id, "k")] * 2]
    assert [job.id for job in await everything(store)] == [one.id]
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_a_key_of_waiting_only_is_free_as_soon_as_its_job_starts(store: Store) -> None:
    waiting_only = Unique(queued="k")
    first = await start(store, draft(unique=waiting_only))
    assert first.unique_key is None
    [second] = await put(store, draft(unique=waiting_only))
    assert await is_duplicate(store, draft(unique=waiting_only), second, "k")
    assert (await take(store)).id == second
    assert await statuses(store, [first.id, second]) == [Status.PROCESSING] * 2
    await settle(store, first, AGAIN_LATER)
    assert (await get(store, first.id)).unique_key is None
    await put(store, draft(unique=waiting_only))


async def test_with_a_key_of_running_only_any_number_wait_and_one_runs(store: Store) -> None:
    ids = await put(store, *[draft(unique=running("k")) for _ in range(3)])
    assert [(await get(store, id_)).unique_key for id_ in ids] == [None] * 3
    assert (await take(store)).id == ids[0]
    assert await store.jobs.claim(want()) == []
    first, second, third = [await get(store, id_) for id_ in ids]
    assert (first.unique_key, second.unique_key, third.unique_key) == ("k", None, None)
    assert (second.status, second.blocked_by, second.attempts) == (Status.BLOCKED, "unique:k", 0)
    assert (third.status, third.blocked_by) == (Status.BLOCKED, "unique:k")
    assert await told(store, ids[1]) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_who_waits_for_a_running_key_runs_when_its_holder_has_ended(store: Store) -> None:
    ids = await put(store, *[draft(unique=running("k")) for _ in range(3)])
    holder = await take(store)
    assert await store.jobs.claim(want()) == []
    await settle(store, holder)
    assert await statuses(store, ids) == [Status.SUCCEEDED, Status.QUEUED, Status.BLOCKED]
    second = await take(store)
    assert (second.id, second.unique_key, second.blocked_by) == (ids[1], "k", None)
    assert await told(store, ids[1]) == [Happened.ENQUEUED, Happened.BLOCKED, Happened.UNBLOCKED, Happened.CLAIMED]
    await settle(store, second)
    assert (await take(store)).id == ids[2]


@pytest.mark.parametrize("outcome", [AGAIN_SOON, SNOOZED, RELEASED], ids=["retrying", "snoozed", "released"])
async def test_a_running_key_is_kept_between_attempts(store: Store, outcome: Outcome) -> None:
    holder = await start(store, draft(unique=Unique(queued="q", running="r")))
    [next_] = await put(store, draft(unique=Unique(queued="q", running="r")))
    await settle(store, holder, outcome)
    assert (await get(store, holder.id)).unique_key == "r"
    claimed = [job.id for job in await store.jobs.claim(want())]
    assert next_ not in claimed
    waiting = await get(store, next_)
    assert (waiting.status, waiting.blocked_by, waiting.unique_key) == (Status.BLOCKED, "unique:r", "q")
    assert await told(store, next_) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_the_key_changes_from_waiting_to_running_at_the_first_claim(store: Store) -> None:
    both = Unique(queued="q", running="r")
    one = draft(unique=both)
    await put(store, one)
    assert (await get(store, one.id)).unique_key == "q"
    assert await is_duplicate(store, draft(unique=both), one.id, "q")
    job = await take(store)
    assert job.unique_key == "r"
    [next_] = await put(store, draft(unique=both))
    assert await is_duplicate(store, draft(unique=both), next_, "q")
    assert await is_duplicate(store, draft(unique=Unique(queued="r")), one.id, "r")
    await settle(store, job, RELEASED)
    again = await take(store, want(1))
    assert (again.id, again.unique_key) == (one.id, "r")
    assert await told(store, one.id) == [*STARTED, Happened.RELEASED, Happened.CLAIMED]


async def test_a_waiting_holder_also_keeps_others_from_running(store: Store) -> None:
    waiting, holder = draft(unique=running("k")), draft(unique="k", delay=HOUR)
    await put(store, waiting, holder)
    assert await store.jobs.claim(want()) == []
    assert (await get(store, waiting.id)).blocked_by == "unique:k"
    await cancel(store, holder.id)
    await store.jobs.promote(10)
    assert (await take(store)).id == waiting.id
    assert await told(store, waiting.id) == [Happened.ENQUEUED, Happened.BLOCKED, Happened.UNBLOCKED, Happened.CLAIMED]


async def test_whoever_is_freed_by_a_rescue_that_ends_the_holder_runs(store: Store) -> None:
    holder = await expired(store, draft(unique=running("k"), max_crashes=1))
    [next_] = await put(store, draft(unique=running("k")))
    assert await store.jobs.claim(want()) == []
    assert await status(store, next_) is Status.BLOCKED
    assert [found.id for found in await store.jobs.rescue(10)] == [holder.id]
    assert await status(store, next_) is Status.QUEUED
    assert await told(store, next_) == [Happened.ENQUEUED, Happened.BLOCKED, Happened.UNBLOCKED]


async def test_a_blocked_job_that_is_cancelled_gives_up_its_own_key(store: Store) -> None:
    both = Unique(queued="q", running="r")
    await start(store, draft(unique=both))
    [blocked] = await put(store, draft(unique=both))
    assert await store.jobs.claim(want()) == []
    await cancel(store, blocked)
    assert (await get(store, blocked)).unique_key is None
    [next_] = await put(store, draft(unique=both))
    assert await told(store, next_) == [Happened.ENQUEUED]


async def test_an_ended_job_is_retried_only_if_its_key_is_free(store: Store) -> None:
    job = await finish(store, draft(unique="k"))
    [holder] = await put(store, draft(unique="k"))
    history = await store.views.history(job.id)
    assert await operate(store, job.id, Action.RETRY) == Answer(Operated.DUPLICATE, Status.SUCCEEDED, holder)
    assert await get(store, job.id) == job
    assert await store.views.history(job.id) == history
    await cancel(store, holder)
    assert (await operate(store, job.id, Action.RETRY)).verdict is Operated.DONE
    assert (await get(store, job.id)).unique_key == "k"
    assert await is_duplicate(store, draft(unique="k"), job.id, "k")


async def test_a_retried_job_holds_the_key_of_waiting_again(store: Store) -> None:
    job = await finish(store, draft(unique=Unique(queued="q", running="r")))
    await operate(store, job.id, Action.RETRY)
    assert (await get(store, job.id)).unique_key == "q"
    assert (await take(store)).unique_key == "r"
    assert (await told(store, job.id))[-2:] == [Happened.RETRIED, Happened.CLAIMED]


async def test_retrying_now_what_waits_for_its_next_attempt_keeps_its_running_key(store: Store) -> None:
    job = await finish(store, draft(unique=Unique(queued="q", running="r")), AGAIN_LATER)
    await put(store, draft(unique=Unique(queued="q"), delay=HOUR))
    assert (await operate(store, job.id, Action.RETRY)).verdict is Operated.DONE
    assert (await get(store, job.id)).unique_key == "r"
    assert (await told(store, job.id))[-1] is Happened.RETRIED


async def test_a_waiting_job_takes_over_what_replaces_it(store: Store) -> None:
    first = draft(payload='{"n":1}', unique="k", delay=HOUR, on_conflict="replace")
    second = draft(payload='{"n":2}', unique="k", delay=2 * HOUR, priority=5, on_conflict="replace")
    await put(store, first)
    before = await get(store, first.id)
    assert await store.jobs.insert([second]) == [Replaced(first.id)]
    after = await get(store, first.id)
    assert (after.payload, after.priority, after.status) == ({"n": 2}, 5, Status.SCHEDULED)
    assert near(after.run_at, await store.now() + 2 * HOUR)
    assert (after.created_at, after.unique_key) == (before.created_at, "k")
    assert await store.views.get([second.id]) == [None]
    assert await told(store, first.id) == [Happened.ENQUEUED, Happened.REPLACED]
    assert (await last_entry(store, first.id)).status is Status.SCHEDULED


async def test_a_scheduled_job_replaced_by_one_for_now_is_queued(store: Store) -> None:
    first, second = draft(unique="k", delay=HOUR), draft(unique="k", on_conflict="replace")
    await put(store, first)
    assert await store.jobs.insert([second]) == [Replaced(first.id)]
    assert await status(store, first.id) is Status.QUEUED
    assert await told(store, first.id) == [Happened.ENQUEUED, Happened.REPLACED]
    assert (await take(store)).id == first.id


async def test_a_queued_job_replaced_by_one_for_later_waits(store: Store) -> None:
    first, second = draft(unique="k"), draft(unique="k", delay=HOUR, on_conflict="replace")
    await put(store, first)
    assert await store.jobs.insert([second]) == [Replaced(first.id)]
    assert await status(store, first.id) is Status.SCHEDULED
    assert await store.jobs.claim(want()) == []
    assert await told(store, first.id) == [Happened.ENQUEUED, Happened.REPLACED]


async def test_a_running_job_is_not_replaced(store: Store) -> None:
    job = await start(store, draft(unique="k"))
    assert await is_duplicate(store, draft(payload='{"n":2}', unique="k", on_conflict="replace"), job.id, "k")


async def test_without_a_holder_replacing_is_creating(store: Store) -> None:
    one = draft(unique="k", on_conflict="replace")
    assert await store.jobs.insert([one]) == [Created(one.id)]
    assert await told(store, one.id) == [Happened.ENQUEUED]


async def test_a_debounced_job_is_put_off_but_never_beyond_its_longest_wait(store: Store) -> None:
    def bump(delay: timedelta) -> Draft:
        return draft(unique="k", delay=delay, on_conflict="replace", longest_wait=10 * MINUTE)

    [id_] = await put(store, bump(2 * MINUTE))
    created = (await get(store, id_)).created_at
    for delay, most in ((5 * MINUTE, 6 * MINUTE), (9 * MINUTE, 10 * MINUTE), (30 * MINUTE, 10 * MINUTE)):
        assert await store.jobs.insert([bump(delay)]) == [Replaced(id_)]
        run_at = (await get(store, id_)).run_at
        assert created + delay <= run_at or run_at == created + 10 * MINUTE
        assert run_at <= created + most
    assert (await get(store, id_)).run_at == created + 10 * MINUTE
    assert await told(store, id_) == [Happened.ENQUEUED, *[Happened.REPLACED] * 3]


async def test_the_same_work_within_its_window_is_named_and_not_written(store: Store, other: Store) -> None:
    one = draft(payload='{"a":1}', idempotency_window=HOUR)
    assert one.idempotency_key is not None
    await put(store, one)
    assert await is_duplicate(other, draft(payload='{"a":1}', idempotency_window=HOUR), one.id, one.idempotency_key)
    await put(
        store, draft(payload='{"a":2}', idempotency_window=HOUR), draft("other", '{"a":1}', idempotency_window=HOUR)
    )
    await put(store, draft(payload='{"a":1}'))
    assert len(await everything(store)) == 4


async def test_the_same_work_is_known_after_it_has_been_done(store: Store) -> None:
    job = await finish(store, draft(idempotency_window=HOUR))
    assert job.idempotency_key is not None
    assert await is_duplicate(store, draft(idempotency_window=HOUR), job.id, job.idempotency_key)


async def test_the_same_work_is_new_when_its_window_has_passed(store: Store) -> None:
    window = timedelta(milliseconds=20)
    first, second = draft(idempotency_window=window), draft(idempotency_window=HOUR)
    await put(store, first)
    await passed(store, (await get(store, first.id)).created_at + window)
    assert await store.jobs.insert([second]) == [Created(second.id)]
    assert second.idempotency_key is not None
    assert await is_duplicate(store, draft(idempotency_window=HOUR), second.id, second.idempotency_key)
    assert await told(store, first.id) == [Happened.ENQUEUED]


async def test_the_same_work_is_new_after_its_job_was_deleted(store: Store) -> None:
    [first] = await put(store, draft(idempotency_window=HOUR))
    assert (await operate(store, first, Action.DELETE)).verdict is Operated.DONE
    [second] = await put(store, draft(idempotency_window=HOUR))
    assert await told(store, second) == [Happened.ENQUEUED]


async def test_within_one_insert_the_same_work_is_written_once(store: Store) -> None:
    one, two = draft(idempotency_window=HOUR), draft(idempotency_window=HOUR)
    found = await store.jobs.insert([one, two])
    assert one.idempotency_key is not None
    assert found == [Created(one.id), Duplicate(one.id, one.idempotency_key)]
    assert [job.id for job in await everything(store)] == [one.id]


async def test_a_draft_refused_for_one_key_does_not_take_the_other(store: Store) -> None:
    [holder] = await put(store, draft(unique="k"))
    refused = draft(payload='{"x":1}', unique="k", idempotency_window=HOUR)
    assert await store.jobs.insert([refused]) == [Duplicate(holder, "k")]
    again = draft(payload='{"x":1}', idempotency_window=HOUR)
    assert await store.jobs.insert([again]) == [Created(again.id)]
    assert await told(store, again.id) == [Happened.ENQUEUED]
    other = draft(payload='{"x":1}', unique="free", idempotency_window=HOUR)
    assert again.idempotency_key is not None
    assert await store.jobs.insert([other]) == [Duplicate(again.id, again.idempotency_key)]
    await put(store, draft(unique="free"))


async def test_a_held_key_does_not_keep_the_rest_of_an_insert_out(store: Store) -> None:
    [holder] = await put(store, draft(unique="k"))
    drafts = [draft(), draft(unique="k"), draft(unique="l")]
    expected = [Created(drafts[0].id), Duplicate(holder, "k"), Created(drafts[2].id)]
    assert await store.jobs.insert(drafts) == expected
    assert (await get(store, drafts[2].id)).unique_key == "l"
    assert await told(store, drafts[2].id) == [Happened.ENQUEUED]
