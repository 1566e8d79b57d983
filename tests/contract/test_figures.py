"""What windows read: minutes and what was kept, recounts, and lists of queues that stay cheap."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.steps import AGAIN_LATER, HOUR, NEVER_AGAIN, everything, finish, put, start
from tests.support.drafts import draft
from windlass.core.status import FINISHED, LIVE, Status
from windlass.stores.contract import DEPTH_CAP, Count, Store

RECENT = timedelta(minutes=5)


async def test_a_recount_counts_every_job_of_the_statuses_asked_for(store: Store) -> None:
    await put(store, draft(queue="a", delay=HOUR), *[draft("never", queue="b") for _ in range(3)])
    for queue in ("a", "b"):
        await finish(store, draft(queue=queue))
    await finish(store, draft(queue="a"), NEVER_AGAIN)
    await finish(store, draft(queue="b"), AGAIN_LATER)
    await start(store, draft(queue="b"))
    jobs = await everything(store)
    for statuses in (LIVE, FINISHED, frozenset({Status.QUEUED}), frozenset({Status.PROCESSING}), frozenset(Status)):
        counted = {(one.queue, one.status): one.count for one in await store.views.recount(statuses)}
        wanted = {(job.queue, job.status): 0 for job in jobs if job.status in statuses}
        for job in jobs:
            if job.status in statuses:
                wanted[job.queue, job.status] += 1
        assert counted == {key: Count(n, exact=True) for key, n in wanted.items()}


async def test_figures_are_the_minutes_and_what_was_kept_last(store: Store, other: Store) -> None:
    assert (await store.views.figures(RECENT)).kept is None
    await finish(store, draft("mail", queue="q"))
    await store.views.keep("first")
    await store.views.keep('{"second": "\u00e9 \\u0000"}')
    before = await other.now()
    figures = await other.views.figures(RECENT)
    assert before <= figures.at <= await other.now()
    assert figures.kept == '{"second": "\u00e9 \\u0000"}'
    assert figures.minutes == (await store.views.stats(RECENT)).minutes
    assert [(one.queue, one.type, one.status, one.n) for one in figures.minutes] == [("q", "mail", Status.SUCCEEDED, 1)]


@pytest.mark.timeout(60)
async def test_a_deep_queue_is_counted_so_far_and_says_so(store: Store) -> None:
    for _ in range(0, DEPTH_CAP + 500, 500):
        await put(store, *[draft(queue="deep") for _ in range(500)])
    await put(store, draft(queue="deep", priority=1000), draft(queue="shallow"))
    deep, shallow = await store.queues.list()
    assert deep.name == "deep"
    # A store that keeps count tells all of them.
    assert deep.depth in (Count(DEPTH_CAP, exact=False), Count(DEPTH_CAP + 501, exact=True))
    assert (shallow.name, shallow.depth) == ("shallow", Count(1, exact=True))
    assert deep.oldest is not None
    assert shallow.oldest is not None
    assert deep.oldest >= shallow.oldest
