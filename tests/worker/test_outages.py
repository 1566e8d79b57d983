"""When the store is away or refuses: ends are kept until it has said what becomes of them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.apps import Heard, app_at, ms, until_status, working
from tests.support.until import until
from windlass import JobFunction, Status, Windlass
from windlass.core.errors import SchemaMismatch, StoreUnavailable, ValueRefused
from windlass.core.events import ResultRefused, WorkerWarned
from windlass.core.transition import Transition
from windlass.stores.contract import Extended, Jobs, Store, Verdict
from windlass.worker import leasing, settling

pytestmark = pytest.mark.timeout(60)


class Refusing:
    """A store whose server has a bad time: `apply` raises what it is told to, or says that somebody holds a job."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.trouble: Callable[[list[Transition]], Exception | None] = lambda _: None
        self.tries: list[int] = []
        self.held: set[str] = set()
        self.extends = True
        """whether an extension is ever answered"""
        self.jobs = cast("Jobs", _Jobs(self, store.jobs))

    def sibling(self) -> Refusing:
        other = Refusing(self._store.sibling())
        other.extends = self.extends
        return other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Jobs:
    def __init__(self, whole: Refusing, jobs: Jobs) -> None:
        self._whole, self._jobs = whole, jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    async def extend(self, *args: Any) -> Extended:
        if not self._whole.extends:
            await asyncio.Event().wait()
        return await self._jobs.extend(*args)

    async def apply(self, transitions: list[Transition]) -> list[Verdict]:
        self._whole.tries.append(len(transitions))
        trouble = self._whole.trouble(transitions)
        if trouble is not None:
            raise trouble
        verdicts = iter(await self._jobs.apply([one for one in transitions if one.id not in self._whole.held]))
        return [Verdict.HELD if one.id in self._whole.held else next(verdicts) for one in transitions]


@pytest.fixture
def refusing(tmp_path: Path) -> Refusing:
    return Refusing(app_at(tmp_path / "jobs.db").store)


@pytest.fixture
async def troubled(refusing: Refusing) -> AsyncIterator[Windlass]:
    app = Windlass(store=cast("Store", refusing))

    @app.job(name="work")
    async def work(number: int) -> int:
        return number

    async with app:
        yield app


async def test_results_outlive_their_leases_while_the_store_is_away(tmp_path: Path) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF&timeout=0.2")
    runs: list[int] = []
    begun, go = asyncio.Event(), asyncio.Event()

    @app.job
    async def work(number: int) -> int:
        runs.append(number)
        if len(runs) == 10:
            begun.set()
        await go.wait()
        return number

    async with app, working(app, lease=ms(3000), heartbeat=ms(1000), rescue=ms(50)):
        handles = await app.enqueue_many(work.bind(n) for n in range(10))
        await begun.wait()
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None, timeout=10)) as other:
            other.execute("BEGIN IMMEDIATE")
            over = time.monotonic() + 4.5  # a lease and a half
            go.set()
            await until(lambda: time.monotonic() > over, "the leases to be over", within=10)
            other.execute("ROLLBACK")
        assert [await handle.result(20) for handle in handles] == list(range(10))
        assert sorted(runs) == list(range(10)), "none ran twice"
        assert {(await handle.job()).crashes for handle in handles} == {0}


async def test_an_error_that_may_pass_is_no_verdict_on_a_result(troubled: Windlass, refusing: Refusing) -> None:
    refusing.trouble = lambda _: SchemaMismatch("being migrated") if len(refusing.tries) < 4 else None
    async with working(troubled):
        handle = await troubled.enqueue("work", {"number": 7})
        assert await handle.result(20) == 7
    assert len(refusing.tries) >= 4


async def test_one_that_cannot_pass_now_does_not_hold_up_the_others(troubled: Windlass, refusing: Refusing) -> None:
    troubles = 0

    def trouble(transitions: list[Transition]) -> Exception | None:
        nonlocal troubles
        if any(transition.id == bad.id for transition in transitions) and not done:
            troubles += 1
            return SchemaMismatch("something is odd")
        return None

    done: list[bool] = []
    handles = await troubled.enqueue_many(_bound(troubled, n) for n in range(20))
    bad = handles[3]
    refusing.trouble = trouble
    async with working(troubled):
        for handle in handles:
            if handle is not bad:
                await handle.result(20)
        assert (await bad.job()).status is Status.PROCESSING
        done.append(True)
        assert await bad.result(20) == 3
    assert troubles > 1


def _bound(app: Windlass, number: int) -> Any:
    declaration = app.registry.get("work")
    work: JobFunction[Any, Any] = JobFunction(app.client, declaration, declaration.options)
    return work.bind(number)


async def test_only_a_value_that_the_store_cannot_keep_fails_its_job(troubled: Windlass, refusing: Refusing) -> None:
    refusing.trouble = lambda transitions: (
        ValueRefused("too large") if any(one.result_json == "5" for one in transitions) else None
    )
    handles = await troubled.enqueue_many(_bound(troubled, n) for n in range(10))
    async with working(troubled):
        ended = [await handle.wait(20) for handle in handles]
    assert [job.status for job in ended] == [Status.FAILED if n == 5 else Status.SUCCEEDED for n in range(10)]
    assert ended[5].error is not None
    assert ended[5].error.message == "the store refused the result: too large"


async def test_a_worker_that_stops_while_the_store_is_away_does_end(
    troubled: Windlass, refusing: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PATIENCE", 0.3)
    heard = Heard(troubled)
    refusing.trouble = lambda _: StoreUnavailable("gone")
    async with working(troubled, lease=2.0):
        handle = await troubled.enqueue("work", {"number": 1})
        await until(lambda: refusing.tries, "the end to be tried")
    [warned] = heard.all(WorkerWarned)
    assert (warned.about, "1 end of jobs" in warned.text) == ("results", True)
    assert not heard.all(ResultRefused)
    refusing.trouble = lambda _: None
    async with working(troubled):
        await until_status(handle, Status.SUCCEEDED, within=20)


async def test_a_batch_that_is_written_one_by_one_stops_where_the_store_went_away(
    troubled: Windlass, refusing: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PATIENCE", 0.3)
    heard = Heard(troubled)
    gone = asyncio.Event()

    def trouble(transitions: list[Transition]) -> Exception | None:
        if len(transitions) > 1 and not gone.is_set():
            gone.set()
            return ValueRefused("one of them is too large")
        return StoreUnavailable("gone") if gone.is_set() else None

    refusing.trouble = trouble
    handles = await troubled.enqueue_many(_bound(troubled, n) for n in range(20))
    async with working(troubled, lease=2.0):
        await asyncio.wait_for(gone.wait(), 10)
    [warned] = heard.all(WorkerWarned)
    assert "20 ends of jobs" in warned.text
    assert refusing.tries.count(1) < 20, "the store was gone at the first of them"
    refusing.trouble = lambda _: None
    async with working(troubled):
        assert [await handle.result(20) for handle in handles] == list(range(20))


async def test_ends_that_somebody_holds_hold_up_nobody(troubled: Windlass, refusing: Refusing) -> None:
    handles = await troubled.enqueue_many(_bound(troubled, n) for n in range(20))
    refusing.held = {handles[3].id}
    heard = Heard(troubled)
    async with working(troubled, concurrency=3):
        assert [await handle.result(20) for handle in handles if handle is not handles[3]] == [*range(3), *range(4, 20)]
        later = await troubled.enqueue("work", {"number": 20})
        assert await later.result(20) == 20
        assert (await handles[3].job()).status is Status.PROCESSING
        refusing.held = set()
        assert await handles[3].result(20) == 3
    assert not heard.all(ResultRefused)


async def test_a_worker_that_stops_while_somebody_holds_a_job_does_end(
    troubled: Windlass, refusing: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PATIENCE", 0.3)
    heard = Heard(troubled)
    handle = await troubled.enqueue("work", {"number": 1})
    refusing.held = {handle.id}
    async with working(troubled, lease=2.0):
        await until(lambda: len(refusing.tries) > 1, "the end to be tried again")
    [warned] = heard.all(WorkerWarned)
    assert warned.text.endswith(
        "1 end of jobs, which run again once their leases are over: somebody's open transaction holds them"
    )
    refusing.held = set()
    async with working(troubled):
        await until_status(handle, Status.SUCCEEDED, within=20)


async def test_a_worker_whose_leases_cannot_be_extended_still_shows_that_it_lives(
    troubled: Windlass, refusing: Refusing
) -> None:
    refusing.extends = False
    begun = asyncio.Event()

    @troubled.job
    async def stay() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with working(troubled, lease=6.0, heartbeat=0.2):
        await stay.enqueue()
        await begun.wait()
        [first] = await until(troubled.store.workers.list, "the worker to be seen")

        async def seen_again() -> bool:
            [now] = await troubled.store.workers.list()
            assert first.beat_at is not None
            assert now.beat_at is not None
            return now.running == 1 and now.beat_at > first.beat_at + ms(1500)

        # Not by the extension being given up, which takes a third of a lease.
        await until(seen_again, "the worker to be seen again and again", within=6)


class Wedged:
    """A store whose driver never answers those who keep leases, and swallows the first cancellation of a call."""

    def __init__(self, store: Store, made: list[Wedged], *, wedged: bool) -> None:
        self._store, self._made, self._wedged = store, made, wedged
        self.beats = 0
        self.closed = False
        self.workers = self

    def sibling(self) -> Wedged:
        self._made.append(Wedged(self._store.sibling(), self._made, wedged=not self._made))
        return self._made[-1]

    async def beat(self, worker: Any) -> Any:
        if self._wedged:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()
        self.beats += 1
        return await self._store.workers.beat(worker)

    async def close(self) -> None:
        self.closed = True
        await self._store.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def forget(self, ids: Any) -> None:
        await self._store.workers.forget(ids)


async def test_a_driver_that_never_answers_is_given_up_for_another(tmp_path: Path) -> None:
    made: list[Wedged] = []
    plain = app_at(tmp_path / "jobs.db")
    app = Windlass(store=cast("Store", Wedged(plain.store, made, wedged=False)))
    async with app, working(app, lease=0.3, heartbeat=0.05):
        await until(lambda: len(made) > 1 and made[1].beats, "another driver to show that the worker lives", 20)
        await until(lambda: made[0].closed, "the first driver to be closed")
    assert made[1].closed
    app.close()


async def test_a_worker_stops_although_a_driver_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "_LATE", 1_000)  # nothing is given up before the stop
    made: list[Wedged] = []
    plain = app_at(tmp_path / "jobs.db")
    app = Windlass(store=cast("Store", Wedged(plain.store, made, wedged=False)))
    began = time.monotonic()
    async with app:
        async with working(app, lease=0.3, heartbeat=0.05):
            await until(lambda: bool(made), "the worker to work")
        assert time.monotonic() - began < 15
    assert made[0].closed
    app.close()
