"""Ageing on MongoDB: the commands it takes do not grow with the queues where anything waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.places import MongoPlace, Place, open_place
from tests.contract.steps import HOUR, passed
from tests.scale.scenes import insert
from tests.support.drafts import draft
from tests.support.work import MongoMeter, Work
from windlass.stores.contract import Filter, Store

pytestmark = pytest.mark.timeout(60)

QUEUES, EACH = 200, 5
LEVELS = (100, 200, 300)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with open_place("mongo", tmp_path) as place:
        yield place


async def waiting(store: Store) -> None:
    """Some jobs of each of some priorities in each of many queues."""
    of = [(queue, level) for queue in range(QUEUES) for level in LEVELS]
    await insert(store, [draft(queue=f"queue {queue}", priority=level) for queue, level in of for _ in range(EACH)])
    await passed(store, await store.now())


async def counted(place: Place, store: Store, after: timedelta, n: int) -> tuple[Work, int]:
    assert isinstance(place, MongoPlace)
    with place.client() as client:
        return await MongoMeter(client, place.database).during(lambda: store.jobs.age(after, 50, n))


async def test_nothing_to_raise_is_found_out_by_one_look(place: Place, store: Store) -> None:
    await waiting(store)
    work, raised = await counted(place, store, HOUR, 500)
    assert raised == 0
    assert work.parts["commands"] <= 2, work.parts
    assert work.parts["documents"] == 0, work.parts
    assert work.parts["keys"] <= 3 * QUEUES * len(LEVELS), "an entry for each level of each queue, not for each job"


async def test_what_is_raised_is_raised_in_few_commands(place: Place, store: Store) -> None:
    await waiting(store)
    work, raised = await counted(place, store, timedelta(0), 500)
    assert raised == 500
    assert work.parts["commands"] <= 2 + len(LEVELS), work.parts
    assert await store.jobs.age(timedelta(0), 50, 10_000) == QUEUES * EACH * len(LEVELS) - 500
    assert await store.jobs.age(timedelta(0), 50, 500) == 0
    assert {job.priority for job in (await store.views.find(Filter(), 500)).jobs} == {50}
