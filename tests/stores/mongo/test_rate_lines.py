"""Whoever promotes knows when a rate has room again, whichever process put its jobs aside, and however many wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.places import MongoPlace, Place, open_place
from tests.contract.steps import HOUR, passed, status
from tests.scale.scenes import HANDLED, HELD, claim_all, end, insert, spent_rates
from tests.support.drafts import draft, want
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.stores.contract import Store

pytestmark = pytest.mark.timeout(60)

MANY = 500
SECOND = timedelta(seconds=1)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with open_place("mongo", tmp_path) as place:
        yield place


async def put_aside(store: Store, rate: Rate) -> str:
    """One more job of a rate than may start."""
    starts, waits = draft(HELD, rate=rate), draft(HELD, rate=rate)
    await insert(store, [starts, waits])
    await end(store, await claim_all(store))
    assert await status(store, waits.id) is Status.BLOCKED
    return waits.id


@pytest.mark.parametrize("many", [range(MANY), range(0)], ids=["behind many other rates", "alone"])
async def test_a_new_holder_of_the_duty_calls_in_time(store: Store, other: Store, many: range) -> None:
    await spent_rates(store, many)
    began = await store.now()
    waits = await put_aside(store, Rate(1, SECOND, "z"))
    told = await other.jobs.promote(500)
    assert told.unblocked == 0
    assert told.next_due is not None
    assert told.next_due <= SECOND * 1.05
    await passed(store, began + 1.2 * SECOND)
    assert (await other.jobs.promote(500)).unblocked == 1
    assert [job.id for job in await store.jobs.claim(want(types=HANDLED))] == [waits]


async def test_one_long_line_hides_no_other(store: Store, other: Store) -> None:
    await insert(store, [draft(HELD, rate=Rate(1, HOUR, "a")) for _ in range(MANY)])
    await end(store, await claim_all(store))
    began = await store.now()
    waits = await put_aside(store, Rate(1, SECOND, "z"))
    await passed(store, began + 1.2 * SECOND)
    assert (await other.jobs.promote(500)).unblocked == 1
    assert await status(store, waits) is Status.QUEUED


async def test_what_was_not_written_down_is_found_in_turn(place: Place, store: Store, other: Store) -> None:
    assert isinstance(place, MongoPlace)
    began = await store.now()
    waits = [await put_aside(store, Rate(1, SECOND, f"{n}")) for n in range(3)]
    with place.client() as client:
        client[place.database]["windlass_rates"].update_many({}, {"$unset": {"opens": ""}})
    await passed(store, began + 1.5 * SECOND)
    await other.jobs.promote(500)
    assert [await status(store, id_) for id_ in waits] == [Status.QUEUED] * 3


async def test_nobody_is_looked_for_where_nobody_waits_any_more(place: Place, store: Store) -> None:
    assert isinstance(place, MongoPlace)
    began = await store.now()
    await put_aside(store, Rate(1, SECOND, "z"))
    await passed(store, began + 1.2 * SECOND)
    assert (await store.jobs.promote(500)).unblocked == 1
    await end(store, await claim_all(store))
    await passed(store, await store.now() + 1.2 * SECOND)
    assert (await store.jobs.promote(500)).unblocked == 0
    with place.client() as client:
        assert client[place.database]["windlass_rates"].count_documents({"opens": {"$exists": True}}) == 0
    assert (await store.jobs.promote(500)).next_due is None
