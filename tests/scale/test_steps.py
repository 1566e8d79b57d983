"""Jobs with steps: what each call of their lives costs does not grow with others that wait, or that expire later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import HOUR, get, passed, take
from tests.scale.scenes import AT_ONCE, PLAIN, Fill, expires_later, insert, waits_for_signals
from tests.support.drafts import INSTANT, draft, want
from tests.support.work import Meter, Work, metered
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Gathering, Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Action, Keep, Lease, Order, Store

pytestmark = pytest.mark.timeout(240)

FEW, MANY = 1_000, 10_000
GROWTH = 1.5
MINE = want(types={PLAIN}, queues={PLAIN: 10})
"""of a named queue: a claim of any passes over jobs of a type that it has no handler for, one by one"""


class Steps:
    """A job with steps, and one that nobody takes in time, and what each call of their lives cost."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store, self._meter = store, meter
        self.costs: dict[str, Work] = {}

    async def go(self) -> dict[str, Work]:
        await self._signalled()
        await self._timed_out()
        await self._gathered()
        await self._expired()
        return self.costs

    async def _begin(self) -> Job:
        await insert(self._store, [draft(PLAIN, queue=PLAIN)])
        return await self._take("claim")

    async def _take(self, name: str) -> Job:
        job: Job = await self._count(name, lambda: take(self._store, MINE))
        return job

    async def _signalled(self) -> None:
        store, job = self._store, await self._begin()
        kept = [Keep(Lease(job.id, job.lease_token), "step:a", "1")]
        await self._count("keep", lambda: store.jobs.keep(kept))
        await self._count("wait", lambda: store.jobs.apply([decide(job, Waiting("approved", HOUR))]))
        sent = Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1"))
        await self._count("signal", lambda: store.jobs.operate([sent]))
        assert (await self._take("claim after a signal")).kept == {"step:a": 1, "signal:approved": 1}

    async def _timed_out(self) -> None:
        store, job = self._store, await self._begin()
        await store.jobs.apply([decide(job, Waiting("approved", INSTANT))])
        await passed(store, (await get(store, job.id)).run_at)
        await self._count("time out", lambda: store.jobs.promote(AT_ONCE))
        assert (await self._take("claim after a time out")).kept == {"signal:approved": None}

    async def _gathered(self) -> None:
        store, job = self._store, await self._begin()
        await self._count("gather", lambda: store.jobs.apply([decide(job, Gathering("sizes"))]))
        assert (await self._take("claim after a gathering")).id == job.id

    async def _expired(self) -> None:
        store, made = self._store, draft(PLAIN, queue=PLAIN, expires=INSTANT)
        await insert(store, [made])
        await passed(store, (await get(store, made.id)).expires_at)
        await self._count("claim of nothing", lambda: store.jobs.claim(MINE))
        await self._count("expire", lambda: store.jobs.promote(AT_ONCE))
        assert (await get(store, made.id)).status is Status.CANCELLED

    async def _count(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        work, answer = await self._meter.during(call)
        self.costs[name] = work
        return answer


async def steps(store: Store, meter: Meter) -> dict[str, Work]:
    """What each call costs now: the cheaper of two, because a plan may be made anew for one of them."""
    await meter.settle()
    if meter.plans:
        await Steps(store, meter).go()
    first, second = await Steps(store, meter).go(), await Steps(store, meter).go()
    return {call: min(work, second[call], key=lambda work: work.total) for call, work in first.items()}


@pytest.mark.parametrize("fill", [waits_for_signals, expires_later], ids=["waiting", "expiring"])
async def test_no_step_costs_more_beside_ten_times_as_many(place: Place, store: Store, fill: Fill) -> None:
    async with metered(place, store) as meter:
        await fill(store, range(FEW))
        before = await steps(store, meter)
        await fill(store, range(FEW, MANY))
        after = await steps(store, meter)
    more = [
        f"{call}: {before[call]} {meter.unit} beside {FEW}, {work} beside {MANY} {dict(work.parts)}"
        for call, work in after.items()
        if work.total > before[call].total * GROWTH + meter.slack
    ]
    assert not more, "\n".join(more)
