from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.invariants import check
from tests.contract.steps import BEHIND, HOUR, get, last_entry, passed, put, start, told
from tests.support.drafts import draft, want
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Store

AT_ONCE = timedelta(0)


async def aged(store: Store, *drafts_of: int) -> list[str]:
    """Jobs of these priorities that have stood for a moment."""
    ids = await put(store, *[draft(priority=priority) for priority in drafts_of])
    await passed(store, (await get(store, ids[-1])).run_at)
    return ids


def fair(user: str, **options: Any) -> Draft:
    return draft(priority=200, fair_by="user_id", user_id=user, **options)


async def test_what_has_waited_long_is_raised(store: Store) -> None:
    low, lower, normal, high, critical = await aged(store, 200, 500, 100, 50, 10)
    assert await store.jobs.age(AT_ONCE, 50, 100) == 3
    assert [job.id for job in await store.jobs.claim(want())] == [critical, low, lower, normal, high]
    job = await get(store, low)
    assert job.priority == 50
    assert await told(store, low) == [Happened.ENQUEUED, Happened.AGED, Happened.CLAIMED]
    assert await told(store, high) == [Happened.ENQUEUED, Happened.CLAIMED]
    await check(store)


async def test_the_history_says_from_where_to_where(store: Store) -> None:
    [low] = await aged(store, 200)
    await store.jobs.age(AT_ONCE, 50, 100)
    entry = await last_entry(store, low)
    assert (entry.happened, entry.status, entry.note) == (Happened.AGED, Status.QUEUED, "priority 200 to 50")


async def test_what_has_not_waited_long_enough_stays(store: Store) -> None:
    [low] = await aged(store, 200)
    assert await store.jobs.age(HOUR, 50, 100) == 0
    assert (await get(store, low)).priority == 200
    assert await told(store, low) == [Happened.ENQUEUED]


async def test_it_is_bounded_and_goes_on_where_it_stopped(store: Store) -> None:
    ids = await aged(store, *[200] * 5)
    assert await store.jobs.age(AT_ONCE, 50, 2) == 2
    assert [(await get(store, id_)).priority for id_ in ids] == [50, 50, 200, 200, 200]
    assert await store.jobs.age(AT_ONCE, 50, 100) == 3
    assert await store.jobs.age(AT_ONCE, 50, 100) == 0


async def test_only_queued_jobs_are_raised_in_every_queue(store: Store) -> None:
    running = await start(store, draft(priority=200))
    scheduled, *queued = await put(
        store, draft(priority=200, delay=HOUR), draft(priority=200, queue="x"), draft(priority=200, queue="y")
    )
    await passed(store, (await get(store, queued[-1])).run_at)
    assert await store.jobs.age(AT_ONCE, 50, 100) == 2
    assert [(await get(store, id_)).priority for id_ in (running.id, scheduled, *queued)] == [200, 200, 50, 50]
    await check(store)


async def test_who_took_an_old_place_has_not_stood_there_for_long(store: Store) -> None:
    short = timedelta(milliseconds=200)
    for queue in "abcdefgh":
        [old] = await put(store, fair("a", queue=queue))
        place = (await get(store, old)).run_at
        await passed(store, place + short + BEHIND)
        [new] = await put(store, fair("b", queue=queue))
        newcomer = await get(store, new)
        assert newcomer.run_at == place
        await store.jobs.age(short, 50, 100)
        if newcomer.created_at > await store.now() + BEHIND - short:
            break  # it was quick enough for a newcomer that is still new
    else:
        pytest.fail("it takes too long to ask")
    assert [(await get(store, id_)).priority for id_ in (old, new)] == [50, 200]
    assert await told(store, new) == [Happened.ENQUEUED]
    await passed(store, newcomer.created_at + BEHIND)
    assert await store.jobs.age(AT_ONCE, 50, 100) == 1
    await check(store)
