"""A line of jobs before a full limit, and a free one behind them."""

from __future__ import annotations

from tests.contract.steps import DONE, take
from tests.scale.scenes import HANDLED, HELD, PLAIN, SLOTS, insert
from tests.support.drafts import draft, want
from tests.support.work import Meter, Work
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Claimed, Filter, Store

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
        free = draft(PLAIN)
        await insert(self._store, [*[draft(HELD, limit=LINE) for _ in range(n)], free])
        cost, claims = 0, list[Claimed]()
        while not claims or not claims[-1]:
            assert len(claims) <= n, "the free job is never reached"
            work, claimed = await self._meter.during(self._claim)
            cost += work.total
            claims.append(claimed)
        assert [job.id for job in claims[-1]] == [free.id]
        assert (await self._store.views.count(Filter(status=Status.QUEUED))).n == 0
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
