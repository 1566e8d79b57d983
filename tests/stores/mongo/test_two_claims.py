"""Two claims of one store at once: each reads behind what the other writes, and a worker with many slots uses both."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from tests.contract.invariants import check
from tests.contract.places import MongoPlace
from tests.contract.steps import put, statuses
from tests.support.apps import Crowd, nothing_left, working
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass import Limit, Windlass
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.stores.contract import Claimed, Store, Want
from windlass.stores.mongo.claiming import _Claim  # pyright: ignore[reportPrivateUsage]  # to hold it half way
from windlass.stores.mongo.jobs import MongoJobs

CONCURRENCY = 130
"""so many that a claim asks for half of them"""


@pytest.fixture
async def store(place: MongoPlace) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def app(place: MongoPlace) -> AsyncIterator[Windlass]:
    async with nothing_left():
        app = Windlass(place.url)
        async with app:
            yield app
        app.close()


class Asked:
    """What claims of a crowd's jobs ask for, how many are under way at once, and how many slots all that may need."""

    def __init__(self, patch: pytest.MonkeyPatch, crowd: Crowd) -> None:
        self._crowd = crowd
        self._brought: Counter[str] = Counter()
        self.under_way: list[Want] = []
        self.at_once = self.largest = 0
        self.needed: Counter[str] = Counter()
        claim = MongoJobs.claim

        async def watched(jobs: MongoJobs, want: Want) -> Claimed:
            self.under_way.append(want)
            self._look()
            try:
                brought = await claim(jobs, want)
            finally:
                self.under_way.remove(want)
            self._brought.update([job.queue for job in brought], all=len(brought))
            return brought

        patch.setattr(MongoJobs, "claim", watched)

    def _look(self) -> None:
        asked = Counter({"all": sum(want.n for want in self.under_way)})
        for one in self.under_way:
            asked.update({queue: min(n, one.n) for queue, n in (one.queues or {}).items()})
        self.at_once = max(self.at_once, len(self.under_way))
        self.largest = max(self.largest, *(want.n for want in self.under_way))
        self.needed |= asked + self._brought - self._crowd.ended


async def both(store: Store, n: int) -> list[Job]:
    one, two = await asyncio.gather(store.jobs.claim(want(n)), store.jobs.claim(want(n)))
    return [*one, *two]


async def test_they_bring_the_first_jobs_between_them(store: Store) -> None:
    for _ in range(10):
        ids = await put(store, *[draft() for _ in range(50)])
        assert [job.id for job in await both(store, 20)] == ids[:40]
        assert [job.id for job in await store.jobs.claim(want(50))] == ids[40:]
    await check(store)


async def test_what_needs_a_slot_is_looked_at_by_one_after_the_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, go = asyncio.Event(), asyncio.Event()
    take = _Claim.take

    async def held(one: _Claim, now: datetime) -> int:
        chosen.set()
        await go.wait()
        return await take(one, now)

    monkeypatch.setattr(_Claim, "take", held)
    first, second = await put(store, *[draft(limit=Limit("one", 1)) for _ in range(2)])
    async with asyncio.TaskGroup() as claims:
        one = claims.create_task(store.jobs.claim(want()))
        await chosen.wait()
        monkeypatch.undo()
        two = claims.create_task(store.jobs.claim(want()))
        await asyncio.wait([two], timeout=0.3)  # it would have taken the slot by now
        go.set()
    assert [job.id for job in one.result()] == [first]
    assert two.result() == []
    assert await statuses(store, [second]) == [Status.BLOCKED]


@pytest.mark.parametrize("queues", [None, {"a": 70, "b": 100}], ids=["any queue", "queues with slots of their own"])
async def test_a_worker_makes_both_and_never_runs_more_than_it_has_slots(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, queues: dict[str, int] | None
) -> None:
    crowd = Crowd(app)
    asked = Asked(monkeypatch, crowd)
    await app.enqueue_many(crowd.job.using(queue=queue).bind(queue) for queue in ("a", "b") for _ in range(600))
    async with working(app, concurrency=CONCURRENCY, drain=True, queues=queues) as worker:
        await worker.wait()
    assert (await app.jobs.count(status="succeeded")).n == 1200
    assert (asked.at_once, asked.largest) == (2, CONCURRENCY // 2)
    assert all(asked.needed[name] <= slots for name, slots in {"all": CONCURRENCY, **(queues or {})}.items()), asked
    assert asked.needed["all"] > CONCURRENCY // 2


async def test_a_worker_with_nothing_to_do_makes_one_at_a_time(app: Windlass, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(app)
    asked = Asked(monkeypatch, crowd)
    async with working(app, concurrency=CONCURRENCY):
        for _ in range(5):
            await (await crowd.job.enqueue("a")).result()
    assert asked.at_once == 1


@pytest.mark.parametrize("slots", [8, CONCURRENCY])
@pytest.mark.parametrize("at_rest", [False, True])
async def test_a_worker_stops_when_it_is_told_to(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, slots: int, at_rest: bool
) -> None:
    crowd = Crowd(app)
    asked = Asked(monkeypatch, crowd)
    await app.enqueue_many(crowd.job.bind("a") for _ in range(400))
    async with asyncio.timeout(20), working(app, concurrency=slots):
        if at_rest:
            await until(lambda: crowd.ended["all"] == 400 and not asked.under_way, "all to have run")
        else:
            await until(lambda: crowd.ended["all"] >= 100, "some to have run")
    assert (await app.jobs.count(status="processing")).n == 0


async def test_one_that_is_to_be_recycled_claims_no_more_than_its_number(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(app)
    asked = Asked(monkeypatch, crowd)
    await app.enqueue_many(crowd.job.bind("a") for _ in range(400))
    async with working(app, concurrency=CONCURRENCY, max_jobs=200) as worker:
        await worker.wait()
    assert asked.at_once == 1
    assert (await app.jobs.count(status="succeeded")).n == 200
