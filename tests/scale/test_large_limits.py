"""A large limit that is full, and jobs that wait for it: what the end of one costs."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.contract.steps import DONE
from tests.scale.scenes import HELD, claim_all, insert
from tests.support.drafts import draft
from tests.support.work import Meter, Work, metered
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Filter, Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 100, 1_000
WAITING = 20
# Whether there is room shows only when those that run are counted, by the index and no further than the limit: so the
# work is bounded by the limit's own number, for all ends of a batch together. Redis keeps a counter.
ENTRY = {"sqlite": 6, "postgres": 2, "mongo": 2, "redis": 0}
"""what one step over an index entry costs at most"""


async def end_some(store: Store, meter: Meter, size: int, n: int = 1) -> Work:
    """What it costs to end n of so many that a limit lets run, with some that wait."""
    limit = Limit(f"of {size}", size)
    await insert(store, [draft(HELD, limit=limit) for _ in range(size + WAITING)])
    jobs = await claim_all(store)
    assert len(jobs) == size
    await meter.settle()
    work, _ = await meter.during(lambda: store.jobs.apply([decide(job, DONE) for job in jobs[:n]]))
    assert (await store.views.count(Filter(status=Status.QUEUED))).n == n, "one goes on for one that ended"
    assert len(await claim_all(store)) == n
    return work


async def test_the_end_of_one_costs_no_more_than_a_look_at_each_slot(place: Place, store: Store) -> None:
    async with metered(place, store) as meter:
        await end_some(store, meter, FEW - 1)
        few, many = await end_some(store, meter, FEW), await end_some(store, meter, MANY)
    counted = ENTRY[store.capabilities.store] * (MANY - FEW)
    assert many.total <= few.total * 1.5 + meter.slack + counted, (few.parts, many.parts)


async def test_ends_of_one_batch_are_counted_for_together(place: Place, store: Store) -> None:
    async with metered(place, store) as meter:
        one = await end_some(store, meter, MANY, 1)
        some = await end_some(store, meter, MANY + 1, WAITING)
    most = one.total + 20 * (meter.look * WAITING + meter.slack)
    assert some.total <= most, (one.parts, some.parts)
