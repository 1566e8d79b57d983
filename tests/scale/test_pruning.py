"""Pruning gets through what has expired, in however many queues it is, in one go of the chore."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import passed
from tests.scale.scenes import HELD, claim_all, end, insert
from tests.support.drafts import draft
from windlass.core.events import Hub
from windlass.stores.contract import Filter, Retention, Store
from windlass.worker.chores.pruning import Pruning

pytestmark = pytest.mark.timeout(120)

QUEUES, BUSY = 200, 2_000
NOTHING_KEPT = Retention(succeeded=timedelta(0))
BUSY_QUEUE = "queue 150"


async def finished(store: Store) -> None:
    """One job in each of many queues, and a great many in one of them, all of them ended."""
    await insert(store, [draft(HELD, queue=f"queue {n:03}") for n in range(QUEUES)])
    await insert(store, [draft(HELD, queue=BUSY_QUEUE) for _ in range(BUSY - 1)])
    await end(store, await claim_all(store))
    await passed(store, await store.now())


@pytest.mark.parametrize(
    ("retention", "left"),
    [(NOTHING_KEPT, 0), (Retention(queues={BUSY_QUEUE: NOTHING_KEPT}), QUEUES - 1)],
    ids=["all expired", "one queue expired"],
)
async def test_the_chore_gets_through_one_busy_queue_among_many(store: Store, retention: Retention, left: int) -> None:
    await finished(store)
    await Pruning(store, Hub(), retention).once()
    assert (await store.views.count(Filter())).n == left


async def test_the_chore_reaches_a_number_in_every_queue(store: Store) -> None:
    await finished(store)
    most = Retention(most=100, queues={BUSY_QUEUE: Retention(most=10)})
    await Pruning(store, Hub(), most).once()
    assert (await store.views.count(Filter())).n == 110


async def test_calls_that_are_repeated_while_there_is_more_leave_nothing(store: Store) -> None:
    await finished(store)
    pruned = [await store.jobs.prune(NOTHING_KEPT, 300)]
    while pruned[-1].more:
        pruned.append(await store.jobs.prune(NOTHING_KEPT, 300))
    assert sum(pruned) == QUEUES + BUSY - 1
    assert len(pruned) <= (QUEUES + BUSY) // 300 + QUEUES // 50 + 2
