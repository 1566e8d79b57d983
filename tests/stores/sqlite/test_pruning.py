"""Pruning on a file: what live jobs await is passed over, a part of it at every call."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.places import SqlitePlace
from tests.contract.steps import passed, put
from tests.scale.scenes import HELD, claim_all, end, insert
from tests.support.drafts import draft
from tests.support.work import metered
from windlass.core.draft import Draft
from windlass.stores.contract import Filter, Retention
from windlass.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.timeout(60)

FEW, MANY = 1_500, 4_500
NOTHING_KEPT, ONE_KEPT = Retention(succeeded=timedelta(0)), Retention(most=1)
OWN_NUMBER = Retention(queues={"default": Retention(most=1)})


async def ended(store: SqliteStore, *drafts: Draft) -> None:
    await insert(store, drafts)
    await end(store, await claim_all(store))
    await passed(store, await store.now())


@pytest.mark.parametrize("retention", [NOTHING_KEPT, ONE_KEPT, OWN_NUMBER], ids=["time", "number", "number of a queue"])
async def test_a_call_does_not_walk_all_that_live_jobs_await(
    file: SqliteStore, path: Path, retention: Retention
) -> None:
    waiting = draft(awaits="success")
    await put(file, waiting, draft(next_id=waiting.id, delay=timedelta(hours=1)))
    async with metered(SqlitePlace(path), file) as meter:
        await ended(file, *[draft(HELD, next_id=waiting.id) for _ in range(FEW)])
        few, _ = await meter.during(lambda: file.jobs.prune(retention, 500))
        await ended(file, *[draft(HELD, next_id=waiting.id) for _ in range(MANY - FEW)])
        many, _ = await meter.during(lambda: file.jobs.prune(retention, 500))
    assert many.total <= few.total * 1.2 + meter.slack, (few, many)


@pytest.mark.parametrize("retention", [NOTHING_KEPT, ONE_KEPT, OWN_NUMBER], ids=["time", "number", "number of a queue"])
async def test_what_stands_behind_them_goes_after_some_calls(file: SqliteStore, retention: Retention) -> None:
    waiting = draft(awaits="success")
    await put(file, waiting, draft(next_id=waiting.id, delay=timedelta(hours=1)))
    await ended(file, *[draft(HELD, next_id=waiting.id) for _ in range(MANY)])
    await ended(file, *[draft(HELD) for _ in range(3)])
    await ended(file, draft(HELD, next_id=waiting.id))
    pruned = [await file.jobs.prune(retention, 2) for _ in range(2 * (MANY // 1_000 + 1))]
    assert sum(pruned) == 3
    assert (await file.views.count(Filter())).n == MANY + 3
