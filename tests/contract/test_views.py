from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    DONE,
    HOUR,
    NEVER_AGAIN,
    cancel,
    everything,
    expired,
    finish,
    get,
    operate,
    put,
    settle,
    start,
    take,
)
from tests.support.drafts import draft, new_id, want
from windlass.core.draft import Draft
from windlass.core.outcome import Cancelled
from windlass.core.spread import spread_of, sum_of
from windlass.core.status import Status
from windlass.stores.contract import Action, Count, Filter, Looked, Minute, Store, Verdict

RECENT = timedelta(minutes=5)
PARENT = new_id()
FILTERS = [
    pytest.param(Filter(type="x"), {"type_": "x"}, id="type"),
    pytest.param(Filter(queue="x"), {"queue": "x"}, id="queue"),
    pytest.param(Filter(user_id="x"), {"user_id": "x"}, id="user_id"),
    pytest.param(Filter(entity_name="x"), {"entity_name": "x", "entity_id": "1"}, id="entity_name"),
    pytest.param(Filter(entity_id="x"), {"entity_name": "e", "entity_id": "x"}, id="entity_id"),
    pytest.param(
        Filter(entity_name="x", entity_id="y"), {"entity_name": "x", "entity_id": "y"}, id="entity_name_and_entity_id"
    ),
    pytest.param(Filter(correlation_id="x"), {"correlation_id": "x"}, id="correlation_id"),
    pytest.param(Filter(schedule="x"), {"schedule": "x"}, id="schedule"),
    pytest.param(Filter(parent_id=PARENT), {"parent_id": PARENT}, id="parent_id"),
    pytest.param(Filter(status=Status.SCHEDULED), {"delay": HOUR}, id="status"),
    pytest.param(
        Filter(type="x", queue="y", user_id="z", status=Status.QUEUED),
        {"type_": "x", "queue": "y", "user_id": "z"},
        id="several",
    ),
]
OTHERS: list[dict[str, str]] = [
    {},
    {"type_": "z"},
    {"queue": "z"},
    {"type_": "x2", "queue": "y", "user_id": "z"},
    {"user_id": "X", "entity_name": "z", "entity_id": "z", "correlation_id": "z"},
    {"entity_name": "e", "entity_id": "y", "parent_id": new_id(), "schedule": "z"},
]


async def test_jobs_are_got_in_the_order_asked_with_gaps_for_the_missing(store: Store) -> None:
    a, b = await put(store, draft(), draft())
    missing = new_id()
    found = await store.views.get([b, missing, a, b])
    assert [job.id if job else None for job in found] == [b, None, a, b]
    assert await store.views.get([]) == []
    assert await store.views.get(["not an id"]) == [None]
    assert await store.views.history(missing) == []


async def test_a_job_is_looked_at_with_its_history(store: Store) -> None:
    large = json.dumps({"text": "x" * 100_000})
    job = await start(store, draft(payload=large, queue="q"))
    await settle(store, job)
    assert await store.views.look(job.id) == Looked(await get(store, job.id), await store.views.history(job.id))
    assert await store.views.look(new_id()) is None
    assert await store.views.look("not an id") is None


async def test_a_thousand_jobs_are_got_at_once(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(1_000)])
    assert [job.id if job else None for job in await store.views.get(ids)] == ids


@pytest.mark.parametrize(("filter_", "given"), FILTERS)
async def test_every_filter_finds_and_counts_its_own_newest_first(
    store: Store, filter_: Filter, given: dict[str, str]
) -> None:
    mine: list[Draft] = []
    for n, other in enumerate(OTHERS):
        if n % 2 == 0:
            mine.append(draft(**given))
            await put(store, mine[-1])
        await put(store, draft(**other))
    found = await store.views.find(filter_, 10)
    assert [job.id for job in found.jobs] == [one.id for one in reversed(mine)]
    assert found.next is None
    assert list(found.jobs) == [await get(store, job.id) for job in found.jobs]
    assert await store.views.count(filter_) == Count(len(mine), exact=True)


async def test_every_status_is_found_by_its_name(store: Store) -> None:
    await put(store, draft("waits"), draft(delay=HOUR))
    for outcome in (DONE, NEVER_AGAIN, Cancelled("x"), AGAIN_LATER):
        await finish(store, draft("ends"), outcome)
    await start(store)
    for status in set(Status) - {Status.BLOCKED}:
        [job] = (await store.views.find(Filter(status=status), 10)).jobs
        assert job.status is status
        assert await store.views.count(Filter(status=status)) == Count(1, exact=True)
    assert (await store.views.find(Filter(status=Status.BLOCKED), 10)).jobs == ()


async def test_a_job_moves_from_one_statuss_list_to_the_next(store: Store) -> None:
    job = await start(store)
    await settle(store, job)
    assert (await store.views.find(Filter(status=Status.PROCESSING), 10)).jobs == ()
    assert [found.id for found in (await store.views.find(Filter(status=Status.SUCCEEDED), 10)).jobs] == [job.id]
    await operate(store, job.id, Action.DELETE)
    assert (await store.views.find(Filter(), 10)).jobs == ()
    assert await store.views.count(Filter()) == Count(0, exact=True)


async def test_an_unmatched_filter_finds_nothing(store: Store) -> None:
    await put(store)
    found = await store.views.find(Filter(user_id="nobody"), 10)
    assert (found.jobs, found.next) == ((), None)
    assert await store.views.count(Filter(user_id="nobody")) == Count(0, exact=True)


@pytest.mark.parametrize("page", [1, 3, 7, 20, 50])
async def test_pages_are_complete_and_do_not_overlap(store: Store, page: int) -> None:
    ids = await put(store, *[draft() for _ in range(20)])
    assert [job.id for job in await everything(store, page=page)] == ids[::-1]


async def test_pages_of_what_runs_are_complete_and_do_not_overlap(store: Store) -> None:
    await put(store, *[draft(priority=n % 3) for n in range(20)])
    claimed = await store.jobs.claim(want(13))
    found = await everything(store, Filter(status=Status.PROCESSING), page=4)
    assert [job.id for job in found] == sorted([job.id for job in claimed], reverse=True)
    queued = await everything(store, Filter(status=Status.QUEUED, queue="default"), page=4)
    assert {job.id for job in queued}.isdisjoint(job.id for job in found)
    assert len(queued) == 7


@pytest.mark.parametrize("filter_", [Filter(), Filter(user_id="u"), Filter(status=Status.QUEUED)])
async def test_pages_stay_complete_while_jobs_come_and_go(store: Store, filter_: Filter) -> None:
    ids = await put(store, *[draft(user_id="u") for _ in range(12)])
    seen: list[str] = []
    after: str | None = None
    for _ in range(6):
        page = await store.views.find(filter_, 2, after)
        seen += [job.id for job in page.jobs]
        after = page.next
        await put(store, draft(user_id="u"), draft(user_id="u"))
        # The last one shown is where the next page starts: that it is gone must not matter.
        await operate(store, seen[-1], Action.DELETE)
    assert seen == ids[::-1]
    assert after is None or (await store.views.find(filter_, 2, after)).jobs == ()


async def test_a_page_that_holds_all_is_the_last(store: Store) -> None:
    await put(store, draft(), draft())
    assert (await store.views.find(Filter(), 3)).next is None
    page = await store.views.find(Filter(), 1)
    assert len(page.jobs) == 1
    assert page.next is not None


async def test_a_count_stops_at_its_cap_and_says_so(store: Store) -> None:
    await put(store, *[draft(queue="a") for _ in range(5)], draft(queue="b"))
    assert await store.views.count(Filter(), 3) == Count(3, exact=False)
    assert await store.views.count(Filter(queue="a"), 4) == Count(4, exact=False)
    assert await store.views.count(Filter(queue="a"), 6) == Count(5, exact=True)
    assert await store.views.count(Filter()) == Count(6, exact=True)


async def test_looking_changes_nothing(store: Store) -> None:
    job = await start(store)
    history = await store.views.history(job.id)
    await store.views.find(Filter(status=Status.PROCESSING), 5)
    await store.views.count(Filter())
    await store.views.stats(RECENT)
    await store.queues.list()
    assert await get(store, job.id) == job
    assert await store.views.history(job.id) == history


async def minutes(store: Store, status: Status) -> list[Minute]:
    return [minute for minute in (await store.views.stats(RECENT)).minutes if minute.status is status]


async def test_shown_counts_are_the_counted_jobs(store: Store) -> None:
    await put(store, draft(queue="a", delay=HOUR), *[draft("never", queue="b") for _ in range(3)])
    for queue in ("a", "b"):
        await finish(store, draft(queue=queue))
    await finish(store, draft(queue="a"), NEVER_AGAIN)
    await finish(store, draft(queue="b"), AGAIN_LATER)
    running = await start(store, draft(queue="b"))
    await cancel(store, running.id)
    await operate(store, (await finish(store, draft(queue="c"))).id, Action.DELETE)
    before = await store.now()
    stats = await store.views.stats(RECENT)
    assert before <= stats.at <= await store.now()
    recounted: dict[tuple[str, Status], int] = {}
    for job in await everything(store):
        recounted[job.queue, job.status] = recounted.get((job.queue, job.status), 0) + 1
    shown = {(one.queue, one.status): one.count.n for one in stats.counts if one.count.n}
    assert shown == recounted
    assert all(one.count.exact for one in stats.counts)
    assert len({(one.queue, one.status) for one in stats.counts}) == len(stats.counts)


async def test_the_minute_of_an_end_is_written_with_it(store: Store) -> None:
    job = await finish(store, draft("mail", queue="q"))
    assert job.finished_at is not None
    assert job.duration_ms is not None
    assert job.wait_ms is not None
    [minute] = (await store.views.stats(RECENT)).minutes
    assert minute.minute == job.finished_at.replace(second=0, microsecond=0)
    assert (minute.queue, minute.type, minute.status, minute.n) == ("q", "mail", Status.SUCCEEDED, 1)
    assert (minute.run, minute.wait) == (spread_of([job.duration_ms]), spread_of([job.wait_ms]))


async def test_minutes_add_up_to_what_ended(store: Store) -> None:
    await put(store, *[draft() for _ in range(10)])
    for n, job in enumerate(await store.jobs.claim(want())):
        await settle(store, job, DONE if n < 6 else NEVER_AGAIN)
    succeeded, failed = await minutes(store, Status.SUCCEEDED), await minutes(store, Status.FAILED)
    assert sum(minute.n for minute in succeeded) == 6
    assert sum(minute.n for minute in failed) == 4
    jobs = await everything(store, Filter(status=Status.SUCCEEDED))
    assert sum_of(minute.run for minute in succeeded) == spread_of(job.duration_ms or 0 for job in jobs)
    assert sum_of(minute.wait for minute in succeeded) == spread_of(job.wait_ms or 0 for job in jobs)


async def test_an_end_is_counted_once_and_a_refused_one_not_at_all(store: Store) -> None:
    late = await expired(store)
    await store.jobs.rescue(10)
    job = await take(store)
    assert await settle(store, late) is Verdict.STALE
    assert await minutes(store, Status.SUCCEEDED) == []
    for _ in range(3):
        assert await settle(store, job) is Verdict.APPLIED
    assert [minute.n for minute in await minutes(store, Status.SUCCEEDED)] == [1]


async def test_minutes_outlive_the_jobs_they_counted(store: Store) -> None:
    job = await finish(store)
    await operate(store, job.id, Action.DELETE)
    assert [minute.n for minute in await minutes(store, Status.SUCCEEDED)] == [1]
