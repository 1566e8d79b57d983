"""Very many lines: the index finds what a worker may take, in the same order as a look at all of them would."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.invariants import check
from tests.contract.steps import DONE, HOUR, expired, finish, get, gone, operate, put, settle, start, take
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Action, Filter, Full, Operated, Retention
from windlass.stores.redis.store import RedisStore

MANY = 260
"""more lines than are looked at one by one"""
AT_ONCE = Retention(succeeded=timedelta(0), failed=timedelta(0), cancelled=timedelta(0))


async def commands(store: RedisStore) -> int:
    """How many commands the server has carried out since it was last asked, those of scripts included."""
    used = await store.link.command("INFO", "commandstats")
    await store.link.command("CONFIG RESETSTAT")
    return sum(int(one["calls"]) for one in used.values())


async def many_lines(store: RedisStore, *, types: int = 3) -> list[str]:
    """Each queue with one job of each of some types, at one of five priorities."""
    jobs = [
        draft(f"t{kind}", queue=f"q{queue:03}", priority=random.randrange(5))
        for queue in range(MANY // types + 1)
        for kind in range(types)
    ]
    random.shuffle(jobs)
    return await put(store, *jobs)


async def test_every_job_of_many_lines_is_claimed_once_and_in_order(store: RedisStore) -> None:
    ids = await many_lines(store)
    types = {"t0", "t2", "other"}
    claimed = [job for _ in range(40) for job in await store.jobs.claim(want(7, types=types))]
    assert [job.priority for job in claimed] == sorted(job.priority for job in claimed)
    assert {job.type for job in claimed} == {"t0", "t2"}
    rest = await store.jobs.claim(want(1000, types={"t1"}))
    assert sorted(job.id for job in [*claimed, *rest]) == sorted(ids)
    await check(store)


async def test_a_worker_of_some_queues_takes_from_these_among_many(store: RedisStore) -> None:
    await many_lines(store)
    queues = {f"q{n:03}": 2 for n in range(5)}
    claimed = await store.jobs.claim(want(100, types={"t0", "t1", "t2"}, queues=queues))
    assert Counter(job.queue for job in claimed) == queues
    assert [job.priority for job in claimed] == sorted(job.priority for job in claimed)


async def test_inside_a_queue_the_order_stays_among_many_lines(store: RedisStore) -> None:
    await put(store, *[draft(queue=f"q{n:03}") for n in range(MANY)])
    ids = await put(store, *[draft(f"t{n % 3}", queue="mail") for n in range(12)])
    claimed = await store.jobs.claim(want(12, types={"t0", "t1", "t2"}))
    assert [job.id for job in claimed] == ids


async def test_queues_take_turns_among_many_lines(store: RedisStore) -> None:
    await put(store, *[draft("retired", queue=f"q{n:03}") for n in range(MANY)])
    await put(store, *[draft(queue=queue) for queue in ("a", "b", "c") for _ in range(24)])
    for _ in range(4):  # wherever they begin
        wanted = replace(want(10), weights={"a": 3})
        assert Counter(job.queue for job in await store.jobs.claim(wanted)) == {"a": 6, "b": 2, "c": 2}
        claimed = await store.jobs.claim(want(2, queues={"b": 9, "c": 9}))
        assert {job.queue for job in claimed} == {"b", "c"}


async def test_a_queue_that_weighs_nothing_has_its_turn_all_the_same(store: RedisStore) -> None:
    await put(store, draft(queue="a"), draft(queue="b"))
    assert len(await store.jobs.claim(replace(want(5), weights={"a": 0, "b": -1}))) == 2


async def test_each_queue_of_very_many_is_begun_with_at_some_time(store: RedisStore) -> None:
    await put(store, *[draft(queue=f"q{n:03}") for n in range(MANY) for _ in range(2)])
    begun = {(await take(store, want(1))).queue for _ in range(60)}
    assert len(begun) > 30


@pytest.mark.parametrize("queues", [None, {"mail": 5}])
async def test_a_claim_costs_the_same_beside_lines_that_it_cannot_take_from(
    store: RedisStore, queues: dict[str, int] | None
) -> None:
    async def cost_beside(n: int) -> int:
        await put(store, *[draft("retired", queue=f"r{n}.{at}", priority=9) for at in range(n)])
        await put(store, *[draft(queue=f"p{n}.{at}") for at in range(n)])
        await store.queues.pause([f"p{n}.{at}" for at in range(n)])
        await put(store, *[draft(queue="mail") for _ in range(5)])
        await commands(store)
        assert len(await store.jobs.claim(want(5, queues=queues))) == 5
        return await commands(store)

    few = await cost_beside(MANY)
    assert await cost_beside(4 * MANY) <= few + 5


async def test_a_queue_that_is_resumed_among_many_is_found_again(store: RedisStore) -> None:
    await put(store, *[draft(queue=f"q{n:03}") for n in range(MANY)])
    await store.queues.pause([f"q{n:03}" for n in range(MANY)])
    [late] = await put(store, draft(queue="q007"))
    assert await store.jobs.claim(want(MANY)) == []
    await store.queues.resume(["q007"])
    claimed = [job.id for job in await store.jobs.claim(want(MANY))]
    assert (len(claimed), claimed[1]) == (2, late)


async def test_lines_written_by_who_does_not_know_of_the_index_are_found(store: RedisStore) -> None:
    ids = await put(store, *[draft(queue=f"q{n:03}") for n in range(MANY)])
    for n in range(MANY):
        await store.link.command("DEL", store.link.key(f"by:q{n:03}"))
    await store.link.command("DEL", store.link.key("of:noop"))
    await store.link.command("HDEL", store.link.key("meta"), "indexed")
    first = await store.jobs.claim(want(10))  # all lines are looked at
    assert len(first) == 10
    for _ in range(5):
        await store.jobs.promote(10)
    assert await store.link.command("HGET", store.link.key("meta"), "indexed") == b"1"
    rest = await store.jobs.claim(want(MANY))
    assert sorted(job.id for job in [*first, *rest]) == sorted(ids)


async def test_a_promotion_costs_the_same_beside_lines_whose_holders_go_on(store: RedisStore) -> None:
    async def cost_beside(n: int) -> int:
        for _ in range(2):
            await put(store, *[draft(limit=Limit(f"k{n}.{at}")) for at in range(n)])
            while await store.jobs.claim(want(500)):
                pass
        await commands(store)
        await store.jobs.promote(10)
        return await commands(store)

    few = await cost_beside(MANY)
    assert await cost_beside(4 * MANY) <= few + 5


async def test_a_way_that_became_free_without_an_end_is_found_among_many(store: RedisStore) -> None:
    for _ in range(2):
        await put(store, *[draft(limit=Limit(f"k{at}")) for at in range(MANY)])
        await store.jobs.claim(want(1000))
    await store.link.command("HDEL", store.link.key("slots"), "k77")
    freed = 0
    for _ in range(MANY // 50 + 1):
        freed += (await store.jobs.promote(10)).unblocked
    assert freed == 1


async def test_pruning_nothing_costs_the_same_with_many_queue_names(store: RedisStore) -> None:
    async def cost_with(n: int) -> int:
        await put(store, *[draft(queue=f"n{n}.{at}") for at in range(n)])
        while claimed := await store.jobs.claim(want(250)):
            await store.jobs.apply([decide(job, DONE) for job in claimed])
        await commands(store)
        assert await store.jobs.prune(Retention(), 1000) == 0
        return await commands(store)

    few = await cost_with(1000)
    assert await cost_with(3000) < 2.5 * few  # a hash that is growing tells twice as many names at once


async def test_the_oldest_of_many_queues_go_beyond_the_number_that_is_kept(store: RedisStore) -> None:
    ids = [(await finish(store, draft(queue=f"q{at % 5}"))).id for at in range(12)]
    own = (await finish(store, draft(queue="own"))).id
    retention = Retention(most=4, queues={"own": Retention()})
    assert await store.jobs.prune(retention, 100) == 8
    assert {job.id for job in (await store.views.find(Filter(), 20)).jobs} == {*ids[-4:], own}
    assert await store.jobs.prune(retention, 100) == 0


async def test_what_a_live_job_awaits_stands_aside_and_hides_nothing(store: RedisStore) -> None:
    last = draft(awaits="end")
    members = [draft(next_id=last.id) for _ in range(6)]
    await put(store, last, *members)
    *ended, running = await store.jobs.claim(want(6))
    for job in ended:
        await settle(store, job)
    other = await finish(store, draft("later"))
    assert await store.jobs.prune(AT_ONCE, 5) + await store.jobs.prune(AT_ONCE, 5) == 1
    assert await gone(store, other.id)
    await settle(store, running)
    await settle(store, await take(store), DONE)
    assert await store.jobs.prune(AT_ONCE, 100) == 7
    assert (await store.views.find(Filter(), 10)).jobs == ()


async def test_a_job_that_stands_aside_can_be_retried(store: RedisStore) -> None:
    last = draft(awaits="end")
    await put(store, last, draft(next_id=last.id), draft(next_id=last.id))
    first, _ = await store.jobs.claim(want(2))
    await settle(store, first)
    assert await store.jobs.prune(AT_ONCE, 5) == 0
    assert (await get(store, first.id)).status is Status.SUCCEEDED
    assert (await operate(store, first.id, Action.RETRY)).verdict is Operated.DONE
    assert await store.jobs.prune(AT_ONCE, 5) == 0
    assert (await take(store)).id == first.id
    await check(store)


async def test_a_lease_of_who_does_not_know_of_the_index_is_rescued(store: RedisStore) -> None:
    job = await expired(store)
    await store.link.command("DEL", store.link.key("leased"))
    await store.jobs.prune(Retention(), 10)
    assert [one.id for one in await store.jobs.rescue(10)] == [job.id]


async def test_rescuing_nothing_costs_the_same_with_many_queues(store: RedisStore) -> None:
    async def cost_with(n: int) -> int:
        await put(store, *[draft(queue=f"n{n}.{at}") for at in range(n)])
        claimed = await store.jobs.claim(want(n))
        assert len(claimed) == n
        for job in claimed[::2]:
            await settle(store, job)
        await commands(store)
        assert await store.jobs.rescue(100) == []
        return await commands(store)

    few = await cost_with(50)
    assert await cost_with(500) <= few + 5


async def test_a_depth_is_counted_by_the_types_of_its_queue_alone(store: RedisStore) -> None:
    await store.queues.limit_depth("mail", 3)
    await put(store, draft(queue="mail"), draft("other", queue="mail", delay=HOUR))
    await start(store, draft("third", queue="mail"), want(types={"third"}))
    await put(store, *[draft(f"t{n}", queue=f"q{n}") for n in range(300)])
    await commands(store)
    _, full = await store.jobs.insert([draft(queue="mail"), draft(queue="mail")])
    assert full == Full("mail", 3)
    assert await commands(store) < 60


async def test_a_rate_whose_room_comes_is_called_beside_many_that_are_spent(store: RedisStore) -> None:
    for _ in range(2):
        await put(store, *[draft(rate=Rate(1, HOUR, f"k{at}")) for at in range(MANY)])
        await store.jobs.claim(want(1000))
    soon = timedelta(milliseconds=300)
    await put(store, *[draft(rate=Rate(1, soon, "soon")) for _ in range(2)])
    assert len(await store.jobs.claim(want(1000))) == 1

    async def called() -> int:
        return (await store.jobs.promote(10)).unblocked

    await until(called, "room in the rate", within=2)
    await commands(store)
    promoted = await store.jobs.promote(10)
    assert await commands(store) < 300
    assert promoted.next_due is not None
    assert promoted.next_due > timedelta(minutes=50) or promoted.next_due <= timedelta(seconds=1)
