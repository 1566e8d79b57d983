"""Jobs of a full limit before a free one: each is put aside once, and then costs nothing any more."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.scale.lines import EACH, EACH_OF_ITS_OWN, OWN, Line, pass_by_own
from tests.support.work import metered
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 200, 2_000
OWN_FEW, OWN_MANY = 100, 1_000


async def test_each_is_put_aside_once_and_costs_nothing_after(place: Place, store: Store) -> None:
    async with metered(place, store) as meter:
        line = Line(store, meter)
        await line.begin()
        few, _ = await line.pass_by(FEW)
        after_few, moved_few = await line.claim(), await line.move_up()
        many, claims = await line.pass_by(MANY)
        after_many, moved_many = await line.claim(), await line.move_up()
    assert all(claimed.more for claimed in claims[:-1]), "a claim that only put aside did not say that there is more"
    assert many <= EACH[store.capabilities.store] * MANY, f"{many:,} {meter.unit} for {MANY}"
    assert many <= few * (MANY / FEW) * 1.2 + meter.slack, f"{few:,} for {FEW}, {many:,} for {MANY}"
    assert after_many.total <= after_few.total * 1.5 + meter.slack, (after_few, after_many)
    assert moved_many.total <= moved_few.total * 1.5 + meter.slack, (moved_few, moved_many)


@pytest.mark.parametrize("kind", OWN)
async def test_jobs_that_are_each_barred_by_a_gate_of_their_own_cost_no_more(
    place: Place, store: Store, kind: str
) -> None:
    async with metered(place, store) as meter:
        few, _ = await pass_by_own(store, meter, kind, range(OWN_FEW))
        many, claims = await pass_by_own(store, meter, kind, range(OWN_FEW, OWN_FEW + OWN_MANY))
    assert all(claimed.more for claimed in claims[:-1]), "a claim that only put aside did not say that there is more"
    assert many.total <= EACH_OF_ITS_OWN[store.capabilities.store] * OWN_MANY, f"{many.parts} for {OWN_MANY}"
    assert many.total <= few.total * (OWN_MANY / OWN_FEW) * 1.2 + meter.slack, (few.parts, many.parts)
