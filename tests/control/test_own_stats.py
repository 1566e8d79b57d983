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


async def test_of_very_many_jobs_the_newest_are_counted_and_said_to_be_some(app: Windlass) -> None:
    before = own_stats.MOST
    await app.enqueue_many(("work", {"n": 1}, {"user": "ann"}) for _ in range(before + 1))
    seen = await app.stats.only("ann").read()
    assert seen.counts.of() == Count(before, exact=False)
