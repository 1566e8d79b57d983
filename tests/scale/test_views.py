"""What a window reads costs no more beside many jobs, waiting and finished, than beside few."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from tests.contract.places import Place
from tests.contract.steps import DONE
from tests.scale.scenes import HELD, RETIRED, insert
from tests.support.drafts import draft, want
from tests.support.work import Work, metered
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide
from windlass.stores.contract import DEPTH_CAP, Filter, Store

pytestmark = pytest.mark.timeout(120)

FEW, MANY = 100, 2_000
HOUR = timedelta(hours=1)
CALLS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "figures": lambda store: store.views.figures(HOUR),
    "a page of a status": lambda store: store.views.find(Filter(status=Status.SUCCEEDED), 20),
    "a page of several statuses": lambda store: store.views.find(Filter(status=FINISHED), 20),
    "a page that is tested": lambda store: store.views.find(Filter(type=HELD, status=Status.SUCCEEDED), 20),
    "the oldest of a queue": lambda store: store.views.find(Filter(queue="q"), 20, oldest_first=True),
    "queues": lambda store: store.queues.list(),
}


async def finished(store: Store, n: int) -> None:
    await insert(store, [draft(HELD, queue="q") for _ in range(n)])
    for _ in range(0, n, 500):
        jobs = await store.jobs.claim(want(500, types={HELD}))
        await store.jobs.apply([decide(job, DONE) for job in jobs])


async def test_what_a_window_reads_costs_the_same_beside_many_jobs(place: Place, store: Store) -> None:
    async def measured(n: int) -> dict[str, Work]:
        await finished(store, n)
        await insert(store, [draft(RETIRED, queue="q") for _ in range(n)])
        await meter.settle()
        for call in CALLS.values():
            await call(store)  # plans are made and kept
        return {name: (await meter.during(lambda call=call: call(store)))[0] for name, call in CALLS.items()}  # type: ignore[misc]  # bound

    async with metered(place, store) as meter:
        few, many = await measured(FEW), await measured(MANY)
    for name in CALLS:
        looks = meter.look * DEPTH_CAP if name == "queues" else 0  # so many of a deep queue are counted
        assert many[name].total <= few[name].total * 1.5 + meter.slack + looks, (
            name,
            few[name].parts,
            many[name].parts,
        )
