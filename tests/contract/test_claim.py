from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.steps import (
    HOUR,
    RELEASED,
    cancel,
    get,
    last_entry,
    near,
    put,
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
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.stores.contract import Claimed, Store, Want


async def order(store: Store, *drafts: Draft) -> list[int]:
    """In which order these are claimed, by their place among the arguments."""
    ids = await put(store, *drafts)
    return [ids.index(job.id) for job in await store.jobs.claim(want(len(ids)))]


async def test_a_claimed_job_is_leased_counted_and_told(store: Store) -> None:
    [id_] = await put(store)
    waiting = await get(store, id_)
    before = await store.now()
    job = await take(store, want(worker="w7", lease=HOUR))
    assert job == await get(store, id_)
    assert (job.status, job.worker_id, job.lease_token, job.attempts) == (Status.PROCESSING, "w7", 1, 1)
    assert job.started_at is not None
    assert before <= job.started_at <= await store.now()
    assert near(job.lease_expires_at, job.started_at + HOUR, timedelta(milliseconds=10))
    assert (job.run_at, job.queued_at, job.created_at) == (waiting.run_at, waiting.queued_at, waiting.created_at)
    assert await told(store, id_) == [Happened.ENQUEUED, Happened.CLAIMED]
    entry = await last_entry(store, id_)
    assert (entry.number, entry.status, entry.actor, entry.token) == (2, Status.PROCESSING, "w7", 1)


async def test_a_claimed_job_is_not_claimed_again(store: Store, other: Store) -> None:
    job = await start(store)
    assert await store.jobs.claim(want()) == []
    assert await other.jobs.claim(want(worker="w2")) == []
    assert await get(store, job.id) == job
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_nothing_to_claim_is_an_empty_answer(store: Store) -> None:
    assert await store.jobs.claim(want()) == []


async def test_at_most_n_are_claimed(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(5)])
    assert await store.jobs.claim(want(0)) == []
    assert [job.id for job in await store.jobs.claim(want(2))] == ids[:2]
    assert await statuses(store, ids) == [Status.PROCESSING] * 2 + [Status.QUEUED] * 3
    assert [job.id for job in await store.jobs.claim(want(9))] == ids[2:]
    assert await told(store, ids[4]) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_every_claim_of_a_job_has_a_greater_token(store: Store) -> None:
    job = await start(store)
    for token in (2, 3):
        await settle(store, job, RELEASED)
        job = await take(store)
        assert (job.lease_token, job.attempts) == (token, 1)
    history = await store.views.history(job.id)
    assert [entry.token for entry in history if entry.happened is Happened.CLAIMED] == [1, 2, 3]
    assert [entry.number for entry in history] == [1, 2, 3, 4, 5, 6]


async def test_a_lower_priority_goes_first(store: Store) -> None:
    assert await order(store, draft(priority=200), draft(priority=-5), draft(), draft(priority=10)) == [1, 3, 2, 0]


async def test_an_earlier_run_at_goes_first_among_equals(store: Store) -> None:
    now = await store.now()
    drafts = [draft(run_at=now - n * HOUR) for n in (1, 3, 2)]
    assert await order(store, *drafts) == [1, 2, 0]


async def test_the_older_goes_first_among_the_rest(store: Store) -> None:
    drafts = [draft() for _ in range(20)]
    assert await order(store, *drafts) == list(range(20))


async def test_jobs_inserted_one_by_one_are_claimed_one_by_one_in_order(store: Store) -> None:
    ids = [(await put(store))[0] for _ in range(5)]
    assert [(await store.jobs.claim(want(1)))[0].id for _ in range(5)] == ids
    assert await told(store, ids[0]) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_the_order_is_kept_across_queues(store: Store) -> None:
    a, b, c, d = draft(queue="a"), draft(queue="b", priority=1), draft(queue="c"), draft(queue="a", priority=2)
    await put(store, a, b, c, d)
    claimed = await store.jobs.claim(want(queues={"a": 5, "b": 5, "c": 5}))
    assert [job.id for job in claimed[:2]] == [b.id, d.id]
    assert {job.id for job in claimed[2:]} == {a.id, c.id}  # equal: either may come first
    assert await told(store, d.id) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_only_the_named_queues_are_claimed_from(store: Store) -> None:
    a, b = draft(queue="a"), draft(queue="b")
    await put(store, a, b)
    assert [job.id for job in await store.jobs.claim(want(queues={"b": 1, "unheard": 1}))] == [b.id]
    assert await store.jobs.claim(want(queues={"unheard": 1})) == []
    assert await store.jobs.claim(want(queues={})) == []
    assert await status(store, a.id) is Status.QUEUED
    assert await told(store, a.id) == [Happened.ENQUEUED]


async def test_a_queues_allowance_is_not_exceeded_and_the_others_fill_the_rest(store: Store) -> None:
    first = [draft(queue="a", priority=1) for _ in range(5)]
    second = [draft(queue="b") for _ in range(5)]
    await put(store, *first, *second)
    claimed = await store.jobs.claim(want(4, queues={"a": 2, "b": 10}))
    assert [job.id for job in claimed] == [one.id for one in first[:2] + second[:2]]
    assert await statuses(store, [one.id for one in first]) == [Status.PROCESSING] * 2 + [Status.QUEUED] * 3
    claimed = await store.jobs.claim(want(10, queues={"a": 0, "b": 1}))
    assert [job.id for job in claimed] == [second[2].id]
    assert await told(store, second[2].id) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_only_the_named_types_are_claimed(store: Store) -> None:
    a, b, c = draft("a"), draft("b"), draft("c")
    await put(store, a, b, c)
    assert [job.id for job in await store.jobs.claim(want(types={"b", "c", "d"}))] == [b.id, c.id]
    assert await store.jobs.claim(want(types=frozenset())) == []
    assert await status(store, a.id) is Status.QUEUED
    assert await told(store, a.id) == [Happened.ENQUEUED]


async def test_a_job_is_found_behind_many_of_other_types(store: Store) -> None:
    await put(store, *[draft("other", priority=1) for _ in range(500)])
    [id_] = await put(store, draft("mine"))
    assert (await take(store, want(1, types={"mine"}))).id == id_
    assert await told(store, id_) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_a_job_is_found_behind_many_whose_limit_is_reached(store: Store) -> None:
    holder = await start(store, draft(limit=Limit("k")))
    limited = await put(store, *[draft(limit=Limit("k")) for _ in range(50)])
    [free] = await put(store)
    assert (await take(store, want(1))).id == free
    assert set(await statuses(store, limited)) <= {Status.QUEUED, Status.BLOCKED}
    assert await told(store, free) == [Happened.ENQUEUED, Happened.CLAIMED]
    assert await get(store, holder.id) == holder


async def test_the_order_holds_past_jobs_that_become_blocked_on_the_way(store: Store) -> None:
    await start(store, draft(limit=Limit("k")))
    one, two, three = [draft(queue="b", limit=Limit("k")), draft(queue="b"), draft(queue="a")]
    await put(store, one, two, three)
    claimed = await store.jobs.claim(want(queues={"a": 1, "b": 1}))
    assert {job.id for job in claimed} == {two.id, three.id}
    assert await told(store, one.id) == [Happened.ENQUEUED, Happened.BLOCKED]


async def test_a_later_job_does_not_take_a_slot_before_an_earlier_one(store: Store) -> None:
    await start(store, draft(limit=Limit("k")))
    one, two, three = [draft(limit=Limit(key)) for key in ("k", "m", "m")]
    await put(store, one, two, three)
    claimed = await store.jobs.claim(want())
    assert [job.id for job in claimed] == [two.id]
    assert await told(store, two.id) == [Happened.ENQUEUED, Happened.CLAIMED]
    assert set(await statuses(store, [one.id, three.id])) <= {Status.QUEUED, Status.BLOCKED}


async def test_a_job_is_found_behind_those_that_a_paused_queue_holds(store: Store) -> None:
    held = await put(store, *[draft(queue="held", priority=1) for _ in range(50)])
    [free] = await put(store)
    await store.queues.pause(["held"])
    assert [job.id for job in await store.jobs.claim(want())] == [free]
    assert await store.jobs.claim(want(queues={"held": 5})) == []
    assert set(await statuses(store, held)) == {Status.QUEUED}
    assert await told(store, held[0]) == [Happened.ENQUEUED]


async def test_what_waits_for_its_time_is_not_claimed(store: Store) -> None:
    [id_] = await put(store, draft(delay=HOUR))
    assert await store.jobs.claim(want()) == []
    assert await status(store, id_) is Status.SCHEDULED
    assert await told(store, id_) == [Happened.ENQUEUED]


async def test_a_cancelled_job_is_never_claimed(store: Store) -> None:
    [id_] = await put(store)
    await cancel(store, id_)
    assert await store.jobs.claim(want()) == []
    assert await status(store, id_) is Status.CANCELLED
    assert await told(store, id_) == [Happened.ENQUEUED, Happened.CANCELLED]


async def test_claimed_jobs_are_seen_by_others_as_the_claimer_got_them(store: Store, other: Store) -> None:
    ids = await put(store, *[draft(payload=f'{{"n":{n}}}') for n in range(3)])
    claimed = await store.jobs.claim(want(worker="w1"))
    assert await other.views.get(ids) == claimed
    assert await told(other, ids[0]) == [Happened.ENQUEUED, Happened.CLAIMED]


async def queues_of(store: Store, wanted: Want) -> list[str]:
    return [job.queue for job in await store.jobs.claim(wanted)]


async def test_a_flood_in_one_queue_does_not_hold_up_another(store: Store) -> None:
    await put(store, *[draft(queue="flood") for _ in range(300)])
    later = await put(store, *[draft(queue="later") for _ in range(5)])
    claimed = await store.jobs.claim(want(10))
    assert [job.id for job in claimed if job.queue == "later"] == later
    assert [job.queue for job in claimed].count("flood") == 5


async def test_queues_of_equal_priority_take_turns_one_by_one(store: Store) -> None:
    await put(store, *[draft(queue=queue) for queue in ("a", "b", "c") for _ in range(4)])
    turns = await queues_of(store, want(12))
    rounds = [turns[at : at + 3] for at in range(0, 12, 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)


async def test_each_of_many_small_claims_gives_every_queue_its_turn(store: Store) -> None:
    await put(store, *[draft(queue=queue) for queue in ("a", "b") for _ in range(60)])
    counts = Counter([(await take(store, want(1))).queue for _ in range(60)])
    assert min(counts["a"], counts["b"]) >= 10  # by chance: fewer than 10 of 60 happens once in ten million


async def test_weights_say_how_many_jobs_a_turn_takes(store: Store) -> None:
    await put(store, *[draft(queue=queue) for queue in ("a", "b") for _ in range(20)])
    counts = Counter(await queues_of(store, replace(want(12), weights={"a": 3})))
    assert counts == {"a": 9, "b": 3}


async def test_weights_hold_among_many_small_claims_too(store: Store) -> None:
    await put(store, *[draft(queue=queue) for queue in ("a", "b") for _ in range(400)])
    counts = Counter([(await take(store, replace(want(1), weights={"a": 3}))).queue for _ in range(400)])
    assert 240 <= counts["a"] <= 356  # 300 on average; by chance fewer or more happens once in a thousand million


async def test_a_better_priority_goes_before_every_turn_of_a_queue(store: Store) -> None:
    await put(store, *[draft(queue="a") for _ in range(3)], *[draft(queue="b", priority=1) for _ in range(3)])
    assert await queues_of(store, want(4)) == ["b", "b", "b", "a"]


async def test_inside_a_queue_the_order_stays_whatever_the_turns(store: Store) -> None:
    ids = await put(store, *[draft(queue="ab"[n % 2]) for n in range(20)])
    claimed = await store.jobs.claim(want(20))
    for queue in "ab":
        assert [job.id for job in claimed if job.queue == queue] == [
            id_ for n, id_ in enumerate(ids) if "ab"[n % 2] == queue
        ]


async def test_less_than_asked_for_is_all_there_is_unless_more_is_said(store: Store) -> None:
    await put(store, *[draft() for _ in range(3)])
    claimed = await store.jobs.claim(want(5))
    assert (len(claimed), claimed.more) == (3, False)
    assert not (await store.jobs.claim(want(5))).more


async def test_claims_that_only_put_jobs_aside_say_that_more_may_follow(store: Store) -> None:
    await start(store, draft(limit=Limit("k")))
    await pass_by(store, [draft(limit=Limit("k")) for _ in range(2_500)], draft())


@pytest.mark.parametrize("named", [False, True], ids=["of every queue", "of named queues"])
async def test_the_same_where_each_of_many_queues_begins_with_a_full_limit_of_its_own(
    store: Store, named: bool
) -> None:
    numbers = range(300)
    held = await put(store, *[draft(limit=Limit(f"k{n}")) for n in numbers])
    while held:
        held = held[len(await store.jobs.claim(want(len(held)))) :]
    aside = [draft(limit=Limit(f"k{n}"), queue=f"q{n:03}") for n in numbers]
    queues = {made.options.queue: 1 for made in aside} | {"z": 1}
    await pass_by(store, aside, draft(queue="z", priority=200), queues if named else None)


async def pass_by(store: Store, aside: list[Draft], free: Draft, queues: dict[str, int] | None = None) -> None:
    """Claim until the free job behind the others comes: all of these are put aside, in not too many claims."""
    await put(store, *aside, free)
    claimed = Claimed(more=True)
    claims = 0
    while claimed.more and not claimed:
        claimed = await store.jobs.claim(want(1, queues=queues))
        claims += 1
    assert [job.id for job in claimed] == [free.id]
    assert claims <= 10
    assert set(await statuses(store, [made.id for made in aside])) == {Status.BLOCKED}
