"""Finished jobs that a live one awaits, kept beyond their time: a pruning passes some thousand of them, not all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.places import Place
from tests.contract.steps import HOUR, passed
from tests.scale.scenes import AT_ONCE, HELD, PLAIN, claim_all, end, insert
from tests.support.drafts import draft
from tests.support.work import Work, metered
from windlass.core.draft import Draft
from windlass.stores.contract import Filter, Retention, Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 2_000, 6_000
NOTHING_KEPT = Retention(succeeded=timedelta(0))


async def finish(store: Store, drafts: list[Draft]) -> None:
    await insert(store, drafts)
    await end(store, await claim_all(store))


async def test_a_pruning_passes_a_bounded_number_and_comes_to_what_is_behind_them(place: Place, store: Store) -> None:
    last = draft(HELD, awaits="success")
    await insert(store, [last, draft(HELD, next_id=last.id, delay=HOUR)])

    async def add(n: int) -> int:
        """What a pruning costs at most beside so many more; plain jobs that ended after them are pruned by then."""
        await finish(store, [draft(HELD, next_id=last.id) for _ in range(n)])
        await finish(store, [draft(PLAIN) for _ in range(10)])
        await passed(store, await store.now())
        await meter.settle()
        works, removed = list[Work](), 0
        while removed < 10 or len(works) < 3:
            assert len(works) < 20, "what is behind them is never reached"
            work, gone = await meter.during(lambda: store.jobs.prune(NOTHING_KEPT, AT_ONCE))
            works.append(work)
            removed += gone
        assert removed == 10
        return max(work.total for work in works)

    async with metered(place, store) as meter:
        few, many = await add(FEW), await add(MANY - FEW)
    assert many <= few * 1.5 + meter.slack, f"{few:,} {meter.unit} beside {FEW}, {many:,} beside {MANY}"
    assert (await store.views.count(Filter(type=HELD))).n == MANY + 2
