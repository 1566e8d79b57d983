"""Jobs of a full limit before a free one: each is put aside once, and then costs nothing any more."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.contract.steps import DONE, statuses, take
from tests.scale.scenes import HANDLED, HELD, PLAIN, SLOTS, insert
from tests.support.drafts import draft, want
from tests.support.work import Meter, Work, metered
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Claimed, Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 200, 2_000
LINE = Limit("one at a time")
EACH = {"sqlite": 600, "postgres": 60, "mongo": 30, "redis": 30}
"""the most that it may cost to put one job aside: read it, write it, tell it in its history"""


class Line:
    """One job that holds the limit, and those behind it."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store, self._meter = store, meter

    async def begin(self) -> None:
        await insert(self._store, [draft(HELD, limit=LINE)])
        self.holder = await take(self._store, want(types=HANDLED))

    async def pass_by(self, n: int) -> tuple[int, list[Claimed]]:
        """What it cost to come to a free job behind n more of the line, and what each claim brought on the way."""
        stood = [draft(HELD, limit=LINE) for _ in range(n)]
        free = draft(PLAIN)
        await insert(self._store, [*stood, free])
        cost, claims = 0, list[Claimed]()
        while not claims or not claims[-1]:
            assert len(claims) <= n, "the free job is never reached"
            work, claimed = await self._meter.during(self._claim)
            cost += work.total
            claims.append(claimed)
        assert [job.id for job in claims[-1]] == [free.id]
        assert await statuses(self._store, [made.id for made in stood]) == [Status.BLOCKED] * n
        return cost, claims

    async def claim(self) -> Work:
        """What a claim costs now, of one more free job."""
        await insert(self._store, [draft(PLAIN)])
        work, claimed = await self._meter.during(self._claim)
        assert len(claimed) == 1
        return work

    async def move_up(self) -> Work:
        """What it costs to end the holder, which lets in the next."""
        work, _ = await self._meter.during(lambda: self._store.jobs.apply([decide(self.holder, DONE)]))
        [self.holder] = await self._claim()
        return work

    async def _claim(self) -> Claimed:
        return await self._store.jobs.claim(want(SLOTS, types=HANDLED))


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
