"""What ends in a large limit is counted by the server, which does not hand over all that run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.places import MongoPlace, Place, open_place
from tests.contract.steps import DONE
from tests.scale.scenes import HELD, claim_all, insert
from tests.support.drafts import draft
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Filter, Store

pytestmark = pytest.mark.timeout(60)

SLOTS, ENDED, WAITING = 1_000, 5, 20


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with open_place("mongo", tmp_path) as place:
        yield place


async def test_an_end_does_not_read_all_that_run(place: Place, store: Store) -> None:
    assert isinstance(place, MongoPlace)
    await insert(store, [draft(HELD, limit=Limit("large", SLOTS)) for _ in range(SLOTS + WAITING)])
    jobs = await claim_all(store)
    with place.client() as client:
        database = client[place.database]
        database.command("profile", 2)
        await store.jobs.apply([decide(job, DONE) for job in jobs[:ENDED]])
        database.command("profile", 0)
        lines = list(database.get_collection("system.profile").find({"appName": "windlass"}))
    assert sum(line.get("nreturned", 0) for line in lines) <= 3 * WAITING
    assert (await store.views.count(Filter(status=Status.QUEUED))).n == ENDED


async def test_a_limit_that_was_raised_lets_more_go_on(store: Store) -> None:
    await insert(store, [draft(HELD, limit=Limit("k", 300)) for _ in range(301)])
    jobs = await claim_all(store)
    await insert(store, [draft(HELD, limit=Limit("k", 310)) for _ in range(20)])
    jobs += await claim_all(store)
    assert len(jobs) == 310
    await store.jobs.apply([decide(job, DONE) for job in jobs[:11]])
    assert (await store.views.count(Filter(status=Status.QUEUED))).n == 1, "as the first in line has the limit"
