"""Jobs before full limits, all of one line or each of its own, and a free one behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.contract.steps import DONE, HOUR, running, take
from tests.scale.scenes import HANDLED, HELD, PLAIN, SLOTS, claim_all, end, insert
from tests.support.drafts import draft, want
from tests.support.work import Meter, Work
from windlass.core.draft import Draft
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Claimed, Filter, Store

LINE = Limit("one at a time")
EACH = {"sqlite": 600, "postgres": 60, "mongo": 30, "redis": 30}
"""the most that it may cost to put one job aside: read it, write it, tell it in its history"""
EACH_OF_ITS_OWN = {"sqlite": 600, "postgres": 80, "mongo": 20, "redis": 25}
"""the same where each stands before a gate of its own, which is looked at besides, in indexes that have grown"""
OWN: dict[str, Callable[[int], dict[str, Any]]] = {
    "limits": lambda n: {"limit": Limit(f"limit {n}")},
    "running keys": lambda n: {"unique": running(f"key {n}")},
    "rates": lambda n: {"rate": Rate(1, HOUR, f"rate {n}")},
}
"""what may bar a job, by its number"""


class Line:
    """One job that holds the limit, and those behind it."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store, self._meter = store, meter

    async def begin(self) -> None:
        await insert(self._store, [draft(HELD, limit=LINE)])
        self.holder = await take(self._store, want(types=HANDLED))

    async def pass_by(self, n: int) -> tuple[int, list[Claimed]]:
        """What it cost to come to a free job behind n more of the line, and what each claim brought on the way."""
        work, claims = await pass_by(self._store, self._meter, [draft(HELD, limit=LINE) for _ in range(n)])
        return work.total, claims

    async def claim(self) -> Work:
        """What a claim costs now, of one more free job."""
        await insert(self._store, [draft(PLAIN)])
        work, claimed = await self._meter.during(lambda: claim(self._store))
        assert len(claimed) == 1
        return work

    async def move_up(self) -> Work:
        """What it costs to end the holder, which lets in the next."""
        work, _ = await self._meter.during(lambda: self._store.jobs.apply([decide(self.holder, DONE)]))
        [self.holder] = await claim(self._store)
        return work


async def pass_by_own(store: Store, meter: Meter, kind: str, numbers: range) -> tuple[Work, list[Claimed]]:
    """The same behind jobs that are each barred by a gate of its own, whose holder runs or has used it up."""
    await insert(store, [draft(HELD, **OWN[kind](n)) for n in numbers])
    await end(store, [job for job in await claim_all(store) if job.rate_key is not None])
    return await pass_by(store, meter, [draft(HELD, **OWN[kind](n)) for n in numbers])


async def pass_by(store: Store, meter: Meter, aside: Sequence[Draft]) -> tuple[Work, list[Claimed]]:
    """What it cost to come to a free job behind these, and what each claim brought on the way."""
    free = draft(PLAIN)
    await insert(store, [*aside, free])
    await meter.settle()
    cost, claims = Counter[str](), list[Claimed]()
    while not claims or not claims[-1]:
        assert len(claims) <= len(aside), "the free job is never reached"
        work, claimed = await meter.during(lambda: claim(store))
        cost += work.parts
        claims.append(claimed)
    assert [job.id for job in claims[-1]] == [free.id]
    assert (await store.views.count(Filter(status=Status.QUEUED))).n == 0
    return Work(cost), claims


async def claim(store: Store) -> Claimed:
    return await store.jobs.claim(want(SLOTS, types=HANDLED))
