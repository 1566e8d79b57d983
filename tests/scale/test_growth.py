"""The work of one call does not grow with what it does not change: what stands aside, what is kept, what is to come."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.scale.scenes import SCENES, Scene, costs
from tests.support.work import Meter, Work, metered
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 100, 1_000
GROWTH = 1.5
"""an index of ten times as many entries is at most one level higher"""


def grown(few: dict[str, Work], many: dict[str, Work], meter: Meter) -> list[str]:
    """The calls that cost more than a logarithm more."""
    return [
        f"{name}: {work.total:,} {meter.unit} beside {FEW}, {many[name].total:,} beside {MANY} {dict(many[name].parts)}"
        for name, work in few.items()
        if many[name].total > work.total * GROWTH + meter.slack
    ]


@pytest.mark.parametrize("scene", SCENES, ids=str)
async def test_no_call_costs_more_beside_ten_times_as_many(place: Place, store: Store, scene: Scene) -> None:
    async with metered(place, store) as meter:
        await scene.fill(store, range(FEW))
        few = await costs(store, meter)
        await scene.fill(store, range(FEW, MANY))
        many = await costs(store, meter)
    more = grown(few, many, meter)
    assert not more, "\n".join(more)
