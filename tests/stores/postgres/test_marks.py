"""Claims behind an old snapshot: they look from where the last one ended, and overlook nothing for long."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import RELEASED, put, settle
from tests.support.drafts import draft, want
from windlass.stores.postgres.marks import Marks
from windlass.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.timeout(60)

STEPPED_OVER = 40
"""thousands of claimed jobs that the snapshot keeps"""
TYPES = frozenset({"noop"})


@pytest.fixture
async def crowded(store: PostgresStore, place: PostgresPlace) -> AsyncIterator[PostgresStore]:
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
    await db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await db.execute("SELECT")
    for _ in range(STEPPED_OVER):
        await store.jobs.insert([draft() for _ in range(1000)])
        assert len(await store.jobs.claim(want(1000))) == 1000
    yield store
    await db.close()


async def test_what_lies_before_the_last_claim_is_found_soon_and_nothing_is_said_only_of_nothing(
    crowded: PostgresStore,
) -> None:
    plain = await put(crowded, *[draft() for _ in range(20)])
    assert len(await crowded.jobs.claim(want(5))) == 5
    urgent = await put(crowded, draft(priority=-5))
    begun = time.monotonic()
    found: list[str] = []
    while len(found) < 16:
        found += [job.id for job in await crowded.jobs.claim(want(1))]
    assert set(found) == {*plain[5:], *urgent}
    assert await crowded.jobs.claim(want(1)) == []
    await put(crowded, draft(), draft())
    [earlier] = await crowded.jobs.claim(want(1))
    assert await crowded.jobs.claim(want(1))
    await settle(crowded, earlier, RELEASED)
    assert [job.id for job in await crowded.jobs.claim(want(5))] == [earlier.id], "before the last, and found at once"
    assert await crowded.jobs.claim(want(5)) == []
    assert time.monotonic() - begun < 5


async def test_marks_are_kept_only_while_looking_is_slow(store: PostgresStore) -> None:
    await put(store, draft(), draft(queue="mail"))
    jobs = await store.jobs.claim(want(2))
    marks = Marks()
    assert not marks.due(TYPES)
    marks.looked(0.001)
    marks.passed(jobs)
    assert not marks.due(TYPES)
    marks.looked(0.05)
    assert not marks.due(TYPES), "nothing was taken, so there is nowhere to look from"
    marks.passed(jobs)
    assert 0 < marks.due(TYPES) <= 0.5
    assert sorted(marks.asked()[0]) == ["default", "mail"]
    assert not marks.due(TYPES | {"other"}), "jobs of another type may lie before the marks"
    marks.passed(jobs)
    marks.looked(30)
    marks.passed(jobs)
    assert 0 < marks.due(TYPES | {"other"}) <= 1
    marks.looked(0.001)
    assert not marks.due(TYPES | {"other"})
