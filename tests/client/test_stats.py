"""`app.stats`: figures by type and queue, counts that are kept, and one call to the store for all who look."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from tests.support.until import until
from windlass import Reject, SettingsError, Status, Windlass
from windlass.client.counting import BEARABLE, CHEAP, FEW, SHARE, Kept, Part
from windlass.client.figures import By, figures_of
from windlass.client.sharing import Shared
from windlass.client.stats import Recent
from windlass.core.spread import spread_of
from windlass.stores.contract import Count, Minute, StatusCount

T = TypeVar("T")
NOW = datetime(2026, 11, 18, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AT_ONCE = timedelta(0)


def minute(at: datetime, n: int = 1, status: Status = Status.SUCCEEDED) -> Minute:
    return Minute(at.replace(second=0), "q", "t", status, spread_of([5] * n), spread_of([0] * n))


@pytest.fixture
async def app() -> Any:
    made = Windlass("sqlite:///:memory:")

    @made.job(name="work", queue="q", retry=1)
    async def work(n: int) -> None:
        if n % 5 == 0:
            raise Reject("as some do")

    async with made:
        await made.enqueue_many(work.bind(n) for n in range(10))
        yield made
    made.close()


async def test_figures_tell_what_ended_and_counts_what_stands_where(app: Windlass) -> None:
    seen = await app.stats.read()
    assert (seen.figures(), seen.failed()) == ({}, 0)
    assert seen.counts.of(queue="q", status=Status.QUEUED) == Count(10, exact=True)
    await app.worker(drain=True).run()
    seen = await app.stats.read(timedelta(minutes=10), max_age=0)
    assert seen.counts.of(status=Status.SUCCEEDED) == Count(8, exact=True)
    assert seen.counts.of(status=Status.FAILED).n == seen.failed() == 2
    assert seen.counts.of().n == 10
    [(name, figures)] = seen.figures(By.QUEUE).items()
    assert (name, figures.runs, figures.error_rate) == ("q", 10, 0.2)
    series = seen.series(type="work")
    assert len(series) == 11
    assert sum((ended for _, ended in series), Counter[Status]()).total() == 10
    assert sum(ended.total() for _, ended in seen.series(queue="other")) == 0


@pytest.mark.parametrize("since", [timedelta(days=30, seconds=1), timedelta(0)])
async def test_a_time_beyond_what_is_kept_is_refused(app: Windlass, since: timedelta) -> None:
    for room in (app.stats, app.stats.only("ann")):
        for read in (room.read, room.charts):
            with pytest.raises(SettingsError, match="at most 30 days"):
                await read(since)
    await app.stats.read(timedelta(days=30))


class Told:
    """A store that counts what it is asked."""

    def __init__(self, views: Any) -> None:
        self.views, self.asked = views, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self.views, name)


async def test_two_hundred_viewers_ask_the_store_once(app: Windlass) -> None:
    told = app.store.views = Told(app.store.views)  # type: ignore[misc]  # the edge of the store
    seen = await asyncio.gather(*[app.stats.read() for _ in range(200)])
    assert (told.asked["figures"], told.asked["recount"]) == (2, 2), "one more to carry forward from, and both parts"
    assert len({id(one) for one in seen}) == 1
    again = await asyncio.gather(*[app.stats.read() for _ in range(200)])
    assert again == seen
    assert told.asked["figures"] == 2
    await app.stats.read(max_age=0)
    assert told.asked["figures"] > 2


class Slow(Told):
    """A store in which a whole count takes until it may end."""

    def __init__(self, views: Any) -> None:
        super().__init__(views)
        self.counting, self.may_end = asyncio.Event(), asyncio.Event()

    async def recount(self, statuses: Any, most: int | None = None) -> Any:
        if most is not None:
            return await self.views.recount(statuses, most)
        self.counting.set()
        await self.may_end.wait()
        return await self.views.recount(statuses)


async def test_nobody_waits_for_a_count_that_takes_long(app: Windlass) -> None:
    slow = app.store.views = Slow(app.store.views)  # type: ignore[misc]  # the edge of the store
    first = await app.stats.read()
    assert slow.counting.is_set()
    assert first.counts.of(status=Status.QUEUED) == Count(10, exact=True), "so few are counted at once"
    assert (await app.stats.read(max_age=1e-6)).counts.of().n == 10
    slow.may_end.set()
    await until_kept(app)
    kept = Kept.of((await slow.figures(AT_ONCE)).kept)
    assert kept is not None
    long = replace(kept, live=part(MINUTE, 7, Status.QUEUED))
    slow.counting.clear()
    slow.may_end.clear()
    await slow.keep(long.text())
    again = await app.stats.read(max_age=1e-6)
    assert again.counts.of(status=Status.QUEUED).n == 7, "it is told what was known before"
    assert slow.counting.is_set()
    # The application closes while it is counted.


async def until_kept(app: Windlass) -> None:
    async def kept() -> bool:
        return (await app.store.views.figures(AT_ONCE)).kept is not None

    await until(kept, "the count to be kept")


async def test_who_looks_first_is_told_that_there_are_more(app: Windlass) -> None:
    store = app.store
    [few] = await store.views.recount(frozenset({Status.QUEUED}), 4)
    assert not few.count.exact
    assert few.count.n in (4, 5)
    assert FEW < 10_000


async def test_who_asks_for_queues_of_some_age_shares_one_answer(app: Windlass) -> None:
    first = await asyncio.gather(*[app.queues.list(max_age=60) for _ in range(50)])
    assert len({id(one) for one in first}) == 1
    await app.enqueue("work", {"n": 1}, queue="q")
    assert await app.queues.list(max_age=60) == first[0]
    assert [queue.depth.n for queue in await app.queues.list()] == [11]


async def test_a_call_that_fails_or_is_given_up_leaves_the_next_to_ask(app: Windlass) -> None:
    shared: Shared[int] = Shared()
    asked = asyncio.Event()

    async def never() -> int:
        asked.set()
        await asyncio.Event().wait()
        return 1

    async def fails() -> int:
        raise ZeroDivisionError

    async def three() -> int:
        return 3

    first = asyncio.create_task(shared.get(never, MINUTE))
    await asked.wait()
    second = asyncio.create_task(shared.get(three, MINUTE))
    first.cancel()
    assert await second == 3
    with pytest.raises(ZeroDivisionError):
        await shared.get(fails, AT_ONCE)
    assert await shared.get(fails, MINUTE) == 3, "the answer before is still good for who accepts its age"


async def test_while_one_asks_anew_others_are_given_the_answer_before() -> None:
    shared: Shared[int] = Shared(patient=0.0)
    going, go = asyncio.Event(), asyncio.Event()

    async def one() -> int:
        return 1

    async def slow() -> int:
        going.set()
        await go.wait()
        return 2

    await shared.get(one, AT_ONCE)
    tiny = timedelta(microseconds=1)
    asking = asyncio.create_task(shared.get(slow, tiny))
    await going.wait()
    assert await shared.get(slow, tiny) == 1
    go.set()
    assert await asking == 2


async def test_a_caller_that_accepts_less_than_a_second_waits_its_turn() -> None:
    shared: Shared[int] = Shared()
    going, go = asyncio.Event(), asyncio.Event()

    async def one() -> int:
        return 1

    async def slow() -> int:
        going.set()
        await go.wait()
        return 2

    await shared.get(one, AT_ONCE)
    asking = asyncio.create_task(shared.get(slow, AT_ONCE))
    await going.wait()
    waiting = asyncio.create_task(shared.get(one, timedelta(microseconds=1)))
    await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    assert (await asking, await waiting) == (2, 1)


def part(took: timedelta, n: int = 5, status: Status = Status.SUCCEEDED) -> Part:
    return Part(at=NOW, took=took, counts=(StatusCount("q", status, Count(n, exact=True)),))


def test_a_count_that_takes_long_is_made_seldom() -> None:
    assert part(CHEAP).is_due(NOW, AT_ONCE)
    second = timedelta(seconds=1)
    assert not part(second).is_due(NOW + SHARE * second - CHEAP, second)
    assert part(second).is_due(NOW + SHARE * second, second)
    assert part(BEARABLE).is_due(NOW, AT_ONCE), "somebody wants it anew"
    assert not part(2 * second).is_due(NOW + SHARE * second, AT_ONCE)
    assert part(timedelta(hours=1)).is_due(NOW + timedelta(hours=1), AT_ONCE)


def test_what_was_kept_reads_as_it_was_written_and_carries_what_ended_forward() -> None:
    key = ("q", Status.SUCCEEDED)
    kept = Kept(
        live=part(CHEAP, 2, Status.QUEUED),
        finished=part(CHEAP),
        since=NOW.replace(second=0),
        before=Counter({key: 1}),
        ended=Counter({key: 4, ("new", Status.FAILED): 1}),
    )
    assert Kept.of(kept.text()) == kept
    counts = kept.counts()
    assert counts.of(status=Status.SUCCEEDED).n == 9
    assert counts.of(queue="new").n == 1
    assert counts.of(queue="q", status=Status.QUEUED).n == 2
    for text in (None, "", "{}", "[]", "7", '{"live": 3}'):
        assert Kept.of(text) is None


def test_only_minutes_that_may_change_are_read_again() -> None:
    recent = Recent()
    assert recent.missing(10 * MINUTE) == 10 * MINUTE
    old, last = minute(NOW - 5 * MINUTE, 7), minute(NOW, 1)
    assert recent.put([old, last], NOW, 10 * MINUTE, 10 * MINUTE, 0.0) == (old, last)
    assert recent.missing(20 * MINUTE) == 20 * MINUTE
    changed, later = minute(NOW, 3), NOW + MINUTE
    assert recent.put([changed], later, 2 * MINUTE, 10 * MINUTE, 0.0) == (old, changed)
    assert recent.put([], later + 5 * MINUTE, MINUTE, 5 * MINUTE, 0.0) == (changed,)[:0]


def test_figures_of_what_an_earlier_version_counted_are_right_within_a_factor_of_two() -> None:
    minutes = [
        Minute.of_power((NOW, "q", "t", Status.SUCCEEDED), 3, 90, 500, 9000),
        Minute.of_power((NOW, "q", "t", Status.FAILED), 10, 10, 9000, 0),
    ]
    figures = figures_of(minutes, By.TYPE)["t"]
    half, most, waited = figures.percentile(0.5), figures.percentile(0.99), figures.wait_percentile(0.5)
    assert half is not None
    assert most is not None
    assert 4 <= half.total_seconds() * 1000 < 8
    assert 512 <= most.total_seconds() * 1000 < 1024
    assert figures.error_rate == 0.1
    assert figures.average_run == timedelta(milliseconds=95)
    assert waited == timedelta(milliseconds=100)
