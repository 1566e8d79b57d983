"""Figures against the jobs themselves, on every store: charts agree with a recount of what the jobs remember."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from windlass import Job, Reject, Retry, Status, Windlass
from windlass.client.figures import Kind
from windlass.client.gauges import Gauges, Standing, gauges_of, gauges_text, look
from windlass.client.rolling import ENDED, SAMPLED, Rolled, Rolling
from windlass.client.stepping import MINUTE, begin_of
from windlass.worker.chores.sampling import Sampling

JOBS = 240
SHARES = (0.5, 0.95, 0.99)


def percentile(values: Sequence[int], share: float) -> int:
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


@pytest.fixture
def app(app: Windlass) -> Windlass:
    @app.job(name="quick", queue="a", retry=1)
    async def quick(n: int) -> None:
        if n % 7 == 0:
            raise Reject("every seventh")

    @app.job(name="slow", queue="b", retry=Retry(2, base=0.01, jitter=False))
    async def slow(n: int) -> None:
        await asyncio.sleep(n % 12 * 0.02)  # runs of different lengths are the subject
        if n % 10 == 0:
            raise ValueError("every tenth")

    return app


async def every_job(app: Windlass) -> list[Job]:
    jobs: list[Job] = []
    after: str | None = None
    while True:
        page = await app.jobs.find(limit=500, after=after)
        jobs += page.jobs
        after = page.next
        if after is None:
            return jobs


async def test_charts_agree_with_a_recount_of_the_jobs(app: Windlass) -> None:
    await app.enqueue_many(("quick" if n % 2 else "slow", {"n": n}, {"user": f"u{n % 3}"}) for n in range(JOBS))
    await app.worker(drain=True, concurrency=20).run()
    jobs = await every_job(app)
    assert len(jobs) == JOBS
    runs: Counter[Kind] = Counter()
    for job in jobs:
        for entry in await app.jobs.history(job.id):
            if entry.token is not None and entry.status is not Status.PROCESSING:
                runs[Kind(job.queue, job.type, entry.status)] += 1
    seen, charts = await app.stats.read(max_age=0), await app.stats.charts(max_age=0)
    assert {kind: figures.runs for kind, figures in seen.kinds().items()} == runs
    assert runs[Kind("b", "slow", Status.RETRYING)] > 0
    failed = sum(n for kind, n in runs.items() if kind.status is Status.FAILED)
    assert seen.failed() == seen.failed_last_hour() == failed == sum(point.failed for point in charts.points)
    for name in ("succeeded", "failed", "retrying", "cancelled"):
        wanted = sum(n for kind, n in runs.items() if kind.status == name)
        assert (sum(getattr(point, name) for point in charts.points), getattr(charts.total, name)) == (wanted, wanted)
    assert sum(n for band in charts.heat for n in band.n) == charts.total.runs == runs.total()
    # A job remembers its last run: of a type without a second one, that is every run.
    quick = [job for job in jobs if job.type == "quick"]
    of_quick = (await app.stats.charts(type="quick", max_age=0)).total
    for band, values in (
        (of_quick.run, [job.duration_ms or 0 for job in quick]),
        (of_quick.wait, [job.wait_ms or 0 for job in quick]),
        (
            seen.kinds()[Kind("b", "slow", Status.SUCCEEDED)].run_band,
            [job.duration_ms or 0 for job in jobs if job.type == "slow" and job.status is Status.SUCCEEDED],
        ),
    ):
        assert (band.n, band.least_ms, band.most_ms) == (len(values), min(values), max(values))
        assert band.average_ms == sum(values) / len(values)
        for share, told in zip(SHARES, (band.p50_ms, band.p95_ms, band.p99_ms), strict=True):
            assert told is not None
            assert abs(told - percentile(values, share)) <= 0.1 * percentile(values, share)
    mine = await app.stats.only("u1").charts(max_age=0)
    ended = Counter(job.status for job in jobs if job.user_id == "u1")
    assert (mine.total.succeeded, mine.total.failed) == (ended[Status.SUCCEEDED], ended[Status.FAILED])
    assert (mine.backlog, set(mine.fleet.workers)) == ((), {None})


async def test_how_it_stands_is_noted_once_in_a_minute(app: Windlass) -> None:
    async with app:
        await app.enqueue_many(("quick", {"n": n}) for n in range(3))
        await app.enqueue("slow", {"n": 1}, delay=3600)
        store = app.store
        sampling = Sampling(store, app.client.hub)
        await sampling.note()
        await app.enqueue("quick", {"n": 9})
        await sampling.note()  # in the same minute, or in the next one
        [(at, text), *_] = await store.series.read(SAMPLED.series(MINUTE), (await store.now()) - 2 * MINUTE)
        noted = gauges_of(at, text)
        assert noted.queues["a"][:4] == (3, 0, 0, 0)
        assert noted.queues["b"][:4] == (0, 0, 1, 0)
        assert (noted.looks, noted.workers) == (1, 0)
        assert (await look(store)).queues["a"].waiting == 4
        charts = await app.stats.charts(max_age=0)
    [busiest, other] = charts.backlog
    assert (busiest.queue, other.queue) == ("a", "b")
    assert next(n for n in busiest.waiting if n is not None) == 3
    assert next(n for n in charts.fleet.workers if n is not None) == 0


async def test_what_is_added_up_is_what_was_noted(app: Windlass) -> None:
    """Hours are made of the same lines as minutes: nothing is counted twice, and nothing is missing in between."""
    await app.enqueue_many(("quick", {"n": n}) for n in range(20))
    await app.worker(drain=True).run()
    async with app:
        store = app.store
        now = await store.now()
        minutes = await store.views.ended(now - 5 * MINUTE, now + MINUTE)
        # As if it had been six hours ago: added up by hand, where the worker would have found them.
        long_ago = begin_of(now - timedelta(hours=6), timedelta(hours=1))
        for at in (long_ago, long_ago + 5 * MINUTE):
            await store.series.put(ENDED.series(5 * MINUTE), at, ENDED.text(ENDED.add(at, [minutes])))
            await store.series.put(SAMPLED.series(MINUTE), at, gauges_text(standing(waiting=at.minute)))
        await store.series.put(SAMPLED.series(MINUTE), begin_of(now, MINUTE), gauges_text(standing(waiting=9)))
        rolling = Rolling(store)
        await rolling.once()
        for _ in range(2):
            hours, until = await Rolled(ENDED).read(store, timedelta(hours=1), long_ago)
            assert until == begin_of(now - 2 * MINUTE, 5 * MINUTE)
            assert sum(one.n for at, some in hours for one in some if at == long_ago) == 40
            looks, _ = await Rolled(SAMPLED).read(store, timedelta(hours=1), long_ago)
            assert [(gauges.queues["q"].waiting, gauges.looks) for at, gauges in looks if at == long_ago] == [(5, 2)]
            await rolling.once()  # again does nothing
        charts = await app.stats.charts(timedelta(days=7), max_age=0)
        assert charts.total.runs == 60
        assert (charts.step, len(charts.steps)) == (timedelta(hours=1), 169)
        [backlog] = charts.backlog
        assert [n for n in backlog.waiting if n is not None] == [2.5, 9]
        month = await app.stats.charts(timedelta(days=30), max_age=0)
        assert (month.total.runs, month.total.run) == (60, charts.total.run)
        # And of a time that is over, in shorter steps.
        before = await app.stats.charts(timedelta(hours=10), until=long_ago + timedelta(hours=1), max_age=0)
        assert (before.total.runs, before.step, len(before.steps)) == (40, 5 * MINUTE, 120)
        assert [n for n in before.backlog[0].waiting if n is not None] == [long_ago.minute, long_ago.minute + 5]
        lately = await app.stats.charts(timedelta(minutes=20), until=minutes[-1].minute + MINUTE, max_age=0)
        assert (lately.total.runs, lately.step) == (20, MINUTE)
        to_come = await app.stats.charts(timedelta(hours=1), until=now + timedelta(days=9), max_age=0)
        assert to_come.total.runs == 20


def standing(waiting: int) -> Gauges:
    return Gauges(1, {"q": Standing(waiting, 0, 0, 0, 7)}, 1, 10, 3)
