from __future__ import annotations

from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import HOUR, RELEASED, cancel, expired, get, passed, put, settle, start, status, take, told
from tests.support.drafts import INSTANT, draft, want
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.errors import TransactionRefused
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.stores.contract import Store


def of(user: str | None, **options: Any) -> Draft:
    return draft(user_id=user, fair_by="user_id", **options)


async def order(store: Store, n: int = 100) -> str:
    """Whose jobs are claimed, one after the other."""
    return "".join(job.user_id or "-" for job in await store.jobs.claim(want(n)))


async def test_one_users_flood_does_not_hold_up_the_others(store: Store) -> None:
    await put(store, *[of("a") for _ in range(6)])
    await put(store, of("b"), of("b"), of("c"))
    assert await order(store) == "abcabaaaa"


async def test_turns_are_shared_from_where_the_queue_stands_now(store: Store) -> None:
    await put(store, *[of("a") for _ in range(6)])
    assert await order(store, 4) == "aaaa"
    await put(store, *[of("b") for _ in range(4)])
    assert await order(store) == "ababbb"


async def test_jobs_of_one_user_run_in_order(store: Store) -> None:
    ids = await put(store, *[of("a") for _ in range(5)])
    assert [job.id for job in await store.jobs.claim(want())] == ids


async def test_one_batch_may_hold_many_users(store: Store) -> None:
    await put(store, of("a"), of("a"), of("a"), of("b"), of("b"), of("c"))
    assert await order(store) == "abcaba"


async def test_a_priority_goes_before_every_turn(store: Store) -> None:
    await put(store, of("a"), of("a"), of("b", priority=200), of("a", priority=10))
    assert await order(store) == "aaab"


async def test_queues_have_their_own_turns(store: Store) -> None:
    await put(store, *[of("a", queue="x") for _ in range(3)])
    await put(store, of("b", queue="y"), of("b", queue="x"))
    assert [job.user_id for job in await store.jobs.claim(want(queues={"x": 9}))] == ["a", "b", "a", "a"]


async def test_a_job_without_a_user_stands_in_line_as_ever(store: Store) -> None:
    first, second = await put(store, of(None), draft())
    assert [job.id for job in await store.jobs.claim(want())] == [first, second]
    assert (await get(store, first)).fair_key is None


async def test_the_turn_is_only_an_order_nobody_waits_for_a_time(store: Store) -> None:
    ids = await put(store, *[of("a") for _ in range(50)])
    assert len(await store.jobs.claim(want(100))) == 50
    job = await get(store, ids[-1])
    assert (job.fair_key, job.wait_ms is not None and job.wait_ms >= 0) == ("a", True)
    assert await told(store, ids[-1]) == [Happened.ENQUEUED, Happened.CLAIMED]


async def test_one_that_left_counts_no_more(store: Store) -> None:
    ids = await put(store, *[of("a") for _ in range(4)])
    for id_ in ids[1:]:
        await cancel(store, id_)
    await put(store, of("b"), of("a"))
    assert await order(store) == "aba"


async def test_a_delayed_job_takes_its_place_by_its_time(store: Store) -> None:
    later = of("a", delay=HOUR)
    await put(store, later, of("a"))
    assert await order(store) == "a"
    assert (await get(store, later.id)).run_at > (await store.now())


async def test_turns_are_taken_inside_a_callers_transaction_too(store: Store, place: Place) -> None:
    await put(store, *[of("a") for _ in range(3)])
    async with place.transaction() as transaction:
        if not store.capabilities.transactions:
            with pytest.raises(TransactionRefused):
                await store.jobs.insert([of("b")], transaction.tx)
            assert await order(store) == "aaa"
            return
        await store.jobs.insert([of("b")], transaction.tx)
        await transaction.commit()
    assert await order(store) == "abaa"


async def test_a_job_that_takes_no_part_is_not_overtaken_by_fair_ones_that_come_later(store: Store) -> None:
    await put(store, *[of("a") for _ in range(3)])
    [plain] = await put(store, draft())
    for n in range(20):
        await put(store, of(f"u{n}"))
    claimed = [job.id for job in await store.jobs.claim(want(4))]
    assert plain in claimed
    assert (await get(store, plain)).fair_key is None


async def test_a_flood_of_fair_ones_ends_for_one_that_takes_no_part(store: Store) -> None:
    await put(store, of("a"), of("b"))
    [plain] = await put(store, draft())
    ran: list[str] = []
    for n in range(20):
        await put(store, of(f"new{n}"), of(f"other{n}"))
        ran += [job.id for job in await store.jobs.claim(want(2))]
    assert plain in ran
    assert ran.index(plain) < 6


async def newcomers_behind(store: Store, fair: Job, plain: str) -> None:
    """Those who come now stand behind both: one that came back to its old place, and one that takes no part."""
    await put(store, *[of(f"u{n}") for n in range(5)])
    await put(store, *[of(f"v{n}") for n in range(5)])
    assert [job.id for job in await store.jobs.claim(want(2))] == [fair.id, plain]
    assert (await get(store, fair.id)).run_at == fair.run_at
    assert (await get(store, plain)).fair_key is None


async def test_one_that_was_handed_back_to_its_old_place_lets_nobody_overtake_who_waits(store: Store) -> None:
    fair = await start(store, of("a"))
    await passed(store, fair.run_at)
    [plain] = await put(store)
    await settle(store, fair, RELEASED)
    await newcomers_behind(store, fair, plain)


async def test_one_that_was_rescued_to_its_old_place_lets_nobody_overtake_who_waits(store: Store) -> None:
    fair = await expired(store, of("a"))
    [plain] = await put(store)
    await until(lambda: store.jobs.rescue(10), "the rescue")
    await newcomers_behind(store, fair, plain)


async def test_of_several_that_came_back_the_last_to_go_still_lets_nobody_overtake(store: Store) -> None:
    first, second = await start(store, of("a")), await start(store, of("b"))
    await passed(store, second.run_at)
    [plain] = await put(store)
    await settle(store, first, RELEASED)
    await settle(store, second, RELEASED)
    assert (await take(store, want(1))).id == first.id
    await newcomers_behind(store, second, plain)


async def test_one_that_came_back_costs_the_others_no_turn(store: Store) -> None:
    ids = await put(store, *[of("a") for _ in range(20)])
    [first] = await store.jobs.claim(want(1))
    await passed(store, (await get(store, ids[-1])).run_at)
    await settle(store, first, RELEASED)
    await put(store, of("b"), of("c"))
    assert set(await order(store, 6)) == set("abc")


async def test_one_that_was_due_later_and_takes_no_part_is_not_overtaken_either(store: Store) -> None:
    [plain] = await put(store, draft(delay=100 * INSTANT))
    fair = await start(store, of("a"))
    await passed(store, max(fair.run_at, (await get(store, plain)).run_at))
    assert (await store.jobs.promote(10)).promoted == 1
    await settle(store, fair, RELEASED)
    claimed: list[str] = []
    for n in range(5):
        await put(store, of(f"u{n}"), of(f"v{n}"))
        claimed += [job.id for job in await store.jobs.claim(want(2))]
    assert plain in claimed[:2]


async def test_one_that_was_put_by_somebody_who_had_not_heard_of_turns_is_not_overtaken(
    store: Store, other: Store
) -> None:
    await start(other, draft())
    fair = await start(store, of("a"))
    await passed(store, fair.run_at)
    [plain] = await put(other)
    await settle(store, fair, RELEASED)
    await newcomers_behind(store, fair, plain)


async def flooded(store: Store, waiting: str, types: set[str]) -> list[str]:
    """What is claimed of these types while new fair jobs keep coming, until the one that waits."""
    ran: list[str] = []
    while waiting not in ran and len(ran) < 40:
        await put(store, of(f"new{len(ran)}"), of(f"other{len(ran)}"))
        ran += [job.id for job in await store.jobs.claim(want(2, types=types))]
    return ran


async def test_a_flood_of_fair_ones_ends_for_one_behind_another_that_nobody_takes(store: Store) -> None:
    await put(store, of("a"), of("b"))
    [retired] = await put(store, draft("retired"))
    await passed(store, (await get(store, retired)).run_at + 3 * INSTANT)
    [plain] = await put(store)
    assert len(await flooded(store, plain, {"noop"})) <= 6
    assert await status(store, retired) is Status.QUEUED


async def test_a_flood_of_fair_ones_ends_for_one_before_many_that_went_another_way(store: Store) -> None:
    [first, _] = await put(store, of("a"), of("b"))
    await passed(store, (await get(store, first)).run_at)
    [slow] = await put(store, draft("slow"))
    await put(store, *[draft("quick") for _ in range(300)])
    assert len(await store.jobs.claim(want(300, types={"quick"}))) == 300
    assert len(await flooded(store, slow, {"noop", "slow"})) <= 6
