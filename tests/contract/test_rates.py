from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.invariants import check
from tests.contract.steps import (
    AGAIN_SOON,
    HOUR,
    NEVER_AGAIN,
    RELEASED,
    cancel,
    get,
    operate,
    passed,
    put,
    settle,
    status,
    statuses,
    take,
    told,
)
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.limit import Limit
from windlass.core.outcome import Outcome
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.stores.contract import Action, Store

BLOCKED = [Happened.ENQUEUED, Happened.BLOCKED]
CALLED = [*BLOCKED, Happened.UNBLOCKED]
SHORT = timedelta(milliseconds=200)


def rated(n: int = 2, key: str = "r", per: timedelta = HOUR, **options: Any) -> Draft:
    return draft(rate=Rate(n, per, key), **options)


async def call(store: Store, ids: list[str]) -> None:
    """Promote until these have been called from their line."""

    async def called() -> bool:
        await store.jobs.promote(100)
        return await statuses(store, ids) == [Status.QUEUED] * len(ids)

    await until(called, "the rate to have room")


async def test_no_more_than_its_number_start_in_a_window(store: Store, other: Store) -> None:
    ids = await put(store, *[rated() for _ in range(5)])
    assert [job.id for job in await store.jobs.claim(want(1))] == ids[:1]
    assert [job.id for job in await other.jobs.claim(want(worker="w2"))] == ids[1:2]
    assert await store.jobs.claim(want()) == []
    waiting = await get(store, ids[2])
    assert (waiting.status, waiting.blocked_by, waiting.attempts) == (Status.BLOCKED, "rate:r", 0)
    assert (waiting.rate_key, waiting.rate_n, waiting.rate_ms) == ("r", 2, 3_600_000)
    assert await told(store, ids[4]) == BLOCKED
    await check(store)


async def test_an_end_gives_no_room_back(store: Store) -> None:
    ids = await put(store, *[rated(1) for _ in range(3)])
    await settle(store, await take(store))
    assert await store.jobs.claim(want()) == []
    found = await store.jobs.promote(10)
    assert (found.promoted, found.unblocked) == (0, 0)
    assert await statuses(store, ids) == [Status.SUCCEEDED, Status.BLOCKED, Status.BLOCKED]


@pytest.mark.parametrize("outcome", [AGAIN_SOON, RELEASED], ids=["retrying", "released"])
async def test_every_start_counts_also_that_of_another_attempt(store: Store, outcome: Outcome) -> None:
    [id_] = await put(store, rated(1))
    await settle(store, await take(store), outcome)

    async def blocked() -> bool:
        await store.jobs.promote(10)
        assert await store.jobs.claim(want()) == []
        return await status(store, id_) is Status.BLOCKED

    await until(blocked, "the second attempt to be blocked")
    assert (await get(store, id_)).blocked_by == "rate:r"


async def test_keys_have_their_own_windows_and_jobs_without_one_have_none(store: Store) -> None:
    await put(store, rated(1, "a"), rated(1, "a"), rated(1, "b"), draft(), draft())
    assert [job.rate_key for job in await store.jobs.claim(want())] == ["a", "b", None, None]


async def test_promote_says_when_there_is_room_and_then_calls_the_oldest(store: Store) -> None:
    ids = await put(store, *[rated(2, per=SHORT) for _ in range(6)])
    assert len(await store.jobs.claim(want())) == 2
    due = (await store.jobs.promote(10)).next_due
    assert due is None or due <= SHORT * 1.05
    await call(store, ids[2:4])
    assert (await store.jobs.promote(10)).unblocked == 0, "those that were called are counted"
    called = await get(store, ids[2])
    assert (called.status, called.blocked_by) == (Status.QUEUED, "rate:r")
    assert await told(store, ids[2]) == CALLED
    assert await statuses(store, ids[4:]) == [Status.BLOCKED] * 2
    claimed = await store.jobs.claim(want())
    assert [(job.id, job.blocked_by) for job in claimed] == [(id_, None) for id_ in ids[2:4]]
    assert (await get(store, ids[2])).blocked_by is None
    await check(store)


async def test_while_a_rate_is_spent_promote_tells_how_long(store: Store) -> None:
    await put(store, *[rated(1) for _ in range(3)])
    assert len(await store.jobs.claim(want())) == 1
    due = (await store.jobs.promote(10)).next_due
    assert due is not None
    assert HOUR - timedelta(minutes=1) < due <= HOUR * 1.05


async def test_a_newcomer_does_not_overtake_those_that_wait(store: Store) -> None:
    ids = await put(store, *[rated(1, per=SHORT) for _ in range(2)])
    first = await take(store)
    assert first.started_at is not None
    await passed(
        store, first.started_at + SHORT * 1.1
    )  # there is room again, and the one that waits was not called yet
    newcomer = rated(1, per=SHORT)
    await put(store, newcomer)
    assert await store.jobs.claim(want()) == []
    assert await statuses(store, [ids[1], newcomer.id]) == [Status.BLOCKED] * 2
    await call(store, ids[1:])
    assert (await take(store)).id == ids[1]
    assert await status(store, newcomer.id) is Status.BLOCKED


async def test_a_newcomer_passes_where_there_is_room_for_all(store: Store) -> None:
    slow, wide = await put(store, rated(1), rated(1))
    assert (await take(store)).id == slow
    newcomer = rated(5)
    await put(store, newcomer)
    assert (await take(store)).id == newcomer.id
    assert await status(store, wide) is Status.BLOCKED


async def test_a_newcomer_joins_the_line_where_there_is_room_for_itself_alone(store: Store) -> None:
    ids = await put(store, *[rated(1) for _ in range(4)])
    assert (await take(store)).id == ids[0]
    assert await store.jobs.claim(want()) == []
    newcomer = rated(3)
    await put(store, newcomer)
    assert await store.jobs.claim(want()) == []
    assert (await get(store, newcomer.id)).blocked_by == "rate:r"


async def test_in_no_window_do_more_start_than_its_number(store: Store) -> None:
    per = timedelta(milliseconds=300)
    ids = await put(store, *[rated(3, per=per) for _ in range(12)])
    starts: list[float] = []

    async def all_started() -> bool:
        await store.jobs.promote(100)
        for job in await store.jobs.claim(want(2)):
            assert job.started_at is not None
            starts.append(job.started_at.timestamp())
        return len(starts) == len(ids)

    await until(all_started, "all to start")
    for n, start in enumerate(starts[3:]):
        assert start - starts[n] >= per.total_seconds() - 0.001, starts
    assert starts[-1] - starts[0] < 3 * per.total_seconds() * 1.5 + 1, "it does not starve either"
    await check(store)


@pytest.mark.parametrize("action", [Action.CANCEL, Action.DELETE])
async def test_one_that_is_cancelled_or_deleted_leaves_the_line(store: Store, action: Action) -> None:
    ids = await put(store, *[rated(1, per=SHORT) for _ in range(3)])
    assert len(await store.jobs.claim(want())) == 1
    await operate(store, ids[1], action)
    await call(store, ids[2:])
    assert (await take(store)).id == ids[2]


async def test_one_that_was_called_and_cancelled_makes_room_for_the_next(store: Store) -> None:
    ids = await put(store, *[rated(1, per=SHORT) for _ in range(3)])
    assert len(await store.jobs.claim(want())) == 1
    await call(store, ids[1:2])
    await cancel(store, ids[1])
    assert (await get(store, ids[1])).blocked_by is None
    await call(store, ids[2:])
    assert (await take(store)).id == ids[2]


async def test_a_job_that_its_limit_blocks_spends_nothing(store: Store) -> None:
    both = [rated(2, limit=Limit("k")) for _ in range(3)]
    await put(store, *both)
    first = await take(store)
    assert await statuses(store, [one.id for one in both[1:]]) == [Status.BLOCKED] * 2
    assert (await get(store, both[1].id)).blocked_by == "limit:k"
    await settle(store, first)
    second = await take(store)
    await settle(store, second, NEVER_AGAIN)
    assert await store.jobs.claim(want()) == []
    assert (await get(store, both[2].id)).blocked_by == "rate:r"
