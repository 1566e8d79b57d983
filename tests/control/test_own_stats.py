"""Figures of one user's jobs, on every store: theirs alone, and in keeping with what became of them."""

from __future__ import annotations

from collections import Counter

import pytest

from windlass import Reject, Status, Windlass
from windlass.client import own_stats
from windlass.client.figures import By
from windlass.stores.contract import Count


@pytest.fixture
def app(app: Windlass) -> Windlass:
    @app.job(name="work", queue="q", retry=1)
    async def work(n: int) -> None:
        if n % 5 == 0:
            raise Reject("as some do")

    return app


async def enqueue(app: Windlass, user: str, *numbers: int) -> None:
    for n in numbers:
        await app.enqueue("work", {"n": n}, user=user)


async def test_a_users_figures_are_of_their_jobs_alone(app: Windlass) -> None:
    await enqueue(app, "ann", *range(5))
    await enqueue(app, "bob", *range(20))
    await app.worker(drain=True).run()
    await enqueue(app, "ann", 7)
    seen = await app.stats.only("ann").read()
    jobs = (await app.jobs.find(user="ann")).jobs
    assert Counter({one.status: one.count.n for one in seen.counts.by}) == Counter(job.status for job in jobs)
    assert seen.counts.of(queue="q", status=Status.SUCCEEDED) == Count(4, exact=True)
    assert (seen.failed(), seen.counts.of(status=Status.QUEUED).n) == (1, 1)
    [(name, figures)] = seen.figures(By.TYPE).items()
    assert (name, figures.runs, figures.error_rate) == ("work", 5, 0.2)
    assert figures.run.total_ms == sum(job.duration_ms or 0 for job in jobs)
    assert sum(ended.total() for _, ended in seen.series()) == 5
    assert (await app.stats.only("nobody").read()).counts.by == ()


async def test_all_jobs_of_a_user_count_however_many_pages_they_take(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_stats, "PAGE", 10)
    n = 41
    await app.enqueue_many(("work", {"n": number}, {"user": "ann"}) for number in range(n))
    await app.worker(drain=True, concurrency=50).run()
    seen = await app.stats.only("ann").read()
    failed = len(range(0, n, 5))
    assert seen.whole
    assert seen.counts.of(status=Status.FAILED) == Count(failed, exact=True)
    assert (seen.total().runs, seen.failed(), seen.failed_last_hour()) == (n, failed, failed)
    assert sum(ended.total() for _, ended in seen.series()) == n


async def test_of_very_many_jobs_the_newest_are_counted_and_said_to_be_some(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_stats, "MOST", 7)
    monkeypatch.setattr(own_stats, "PAGE", 3)
    await app.enqueue_many(("work", {"n": 1}, {"user": "ann"}) for _ in range(8))
    seen = await app.stats.only("ann").read(max_age=0)
    assert (seen.counts.of(), seen.whole) == (Count(7, exact=False), False)
    monkeypatch.setattr(own_stats, "MOST", 8)
    seen = await app.stats.only("ann").read(max_age=0)
    assert (seen.counts.of(), seen.whole) == (Count(8, exact=True), True)
