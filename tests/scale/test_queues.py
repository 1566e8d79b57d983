"""Many queues with something to give, and full ones."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.scale.scenes import HANDLED, HELD, PLAIN, RETIRED, SLOTS, insert
from tests.support.drafts import draft, want
from tests.support.work import Meter, Work, metered
from windlass.stores.contract import Full, Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 100, 1_000
DEPTH = 50


async def test_a_claim_looks_once_at_each_queue_that_has_something_to_give(place: Place, store: Store) -> None:
    async def claim() -> Work:
        work, jobs = await meter.during(lambda: store.jobs.claim(want(SLOTS, types=HANDLED)))
        assert len(jobs) == SLOTS
        return work

    async with metered(place, store) as meter:
        await insert(store, [draft(HELD, queue=f"queue {n % FEW}") for n in range(FEW * 2)])
        await meter.settle()
        few = await claim()
        await insert(store, [draft(HELD, queue=f"queue {n % MANY}") for n in range(MANY * 2)])
        await meter.settle()
        many = await claim()
    assert many.total <= few.total * 1.5 + meter.slack + meter.look * (MANY - FEW), (few.parts, many.parts)


async def test_a_full_queue_refuses_without_counting_what_waits(place: Place, store: Store) -> None:
    async def refused(n: int) -> Work:
        await store.queues.limit_depth(PLAIN, None)
        await insert(store, [draft(RETIRED, queue=PLAIN) for _ in range(n)])
        await store.queues.limit_depth(PLAIN, DEPTH)
        await meter.settle()
        return await again()

    async def again() -> Work:
        work, [answer] = await meter.during(lambda: store.jobs.insert([draft(queue=PLAIN)]))
        assert isinstance(answer, Full)
        return work

    async with metered(place, store) as meter:
        few, many = await refused(FEW), await refused(MANY - FEW)
    assert many.total <= few.total * 1.5 + meter.slack, (few.parts, many.parts)


async def test_a_queue_with_room_takes_a_job_at_no_more_than_its_depth(place: Place, store: Store) -> None:
    async def inserted(depth: int) -> Work:
        await store.queues.limit_depth(PLAIN, depth)
        work, _ = await meter.during(lambda: insert(store, [draft(RETIRED, queue=PLAIN) for _ in range(SLOTS)]))
        return work

    async with metered(place, store) as meter:
        await insert(store, [draft(RETIRED, queue=PLAIN) for _ in range(MANY)])
        await meter.settle()
        with_room, without = await inserted(10 * MANY), await _unlimited(store, meter)
    assert with_room.total <= without.total * 2 + meter.slack + meter.look * MANY, (without.parts, with_room.parts)


async def _unlimited(store: Store, meter: Meter) -> Work:
    await store.queues.limit_depth(PLAIN, None)
    work, _ = await meter.during(lambda: insert(store, [draft(RETIRED, queue=PLAIN) for _ in range(SLOTS)]))
    return work
