"""The work of one call does not grow with what it does not change: what stands aside, what is kept, what is to come."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.scale.scenes import SCENES, Scene, costs
from tests.support.work import metered
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 100, 1_000
GROWTH = 1.5
"""an index of ten times as many entries is at most one level higher"""


@pytest.mark.parametrize("scene", SCENES, ids=str)
async def test_no_call_costs_more_beside_ten_times_as_many(place: Place, store: Store, scene: Scene) -> None:
    async with metered(place, store) as meter:
        await scene.fill(store, range(FEW))
        before = await costs(store, meter, scene.lives)
        await scene.fill(store, range(FEW, MANY))
        after = await costs(store, meter, scene.lives)
    more = [
        f"{call}: {before[call]} {meter.unit} beside {FEW}, {work} beside {MANY} {dict(work.parts)}"
        for call, work in after.items()
        if work.total > scene.most(call, before[call], MANY - FEW, meter, GROWTH)
    ]
    assert not more, "\n".join(more)
