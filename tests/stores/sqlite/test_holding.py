"""What a file that is kept locked, a clock that was set back and a caller who went away do to leases."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.contract.steps import DONE, get, put, settle, start, take
from tests.stores.sqlite.conftest import engine_of
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass.core.errors import ValueRefused
from windlass.core.job import Job
from windlass.core.outcome import Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import ANYTHING, About, Lease, Notice
from windlass.stores.sqlite.engine import Clock
from windlass.stores.sqlite.news import News, Told, queued
from windlass.stores.sqlite.store import SqliteStore

SHORT = timedelta(milliseconds=200)
HOUR = timedelta(hours=1)


@contextmanager
def locked(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Somebody else's write transaction, as of a process that stands still in the middle of it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("ROLLBACK")


@asynccontextmanager
async def opened(path: Path, clock: Callable[[], int] | None = None) -> AsyncGenerator[SqliteStore, None]:
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_a_holder_who_was_kept_from_extending_goes_before_who_would_rescue(file: SqliteStore, path: Path) -> None:
    async with opened(path) as rescuer:
        for _ in range(4):
            job = await start(file, draft())
            await file.jobs.extend("w1", [Lease(job.id, job.lease_token)], SHORT)
            ends = (await get(file, job.id)).lease_expires_at
            with locked(path):
                extends = asyncio.create_task(file.jobs.extend("w1", [Lease(job.id, job.lease_token)], HOUR))
                await over(file, ends)
                rescues = asyncio.create_task(rescuer.jobs.rescue(10))
                await asyncio.sleep(0)
            assert (await extends).lost == frozenset()
            assert await rescues == []
            assert await settle(file, job, DONE) == "applied"


async def over(store: SqliteStore, ends: datetime | None) -> None:
    """Wait for the end of a lease."""

    async def passed() -> bool:
        return ends is not None and await store.now() > ends

    await until(passed, "the end of the lease")


async def test_who_really_is_gone_is_rescued_all_the_same_after_the_file_was_locked(
    file: SqliteStore, path: Path
) -> None:
    job = await take_short(file)
    with locked(path):
        await over(file, job.lease_expires_at)
        rescues = asyncio.create_task(file.jobs.rescue(10))
        await asyncio.sleep(0)
    assert [found.id for found in await rescues] == [job.id]


async def take_short(store: SqliteStore) -> Job:
    await put(store)
    return await take(store, want(lease=SHORT))


async def test_what_comes_first_goes_before_all_that_waits_with_it(file: SqliteStore, path: Path) -> None:
    order: list[str] = []
    engine = engine_of(file)

    def note(name: str) -> Callable[[sqlite3.Connection, int], None]:
        return lambda _db, _now: order.append(name)

    with locked(path):
        tasks = [asyncio.create_task(engine.write(note(name))) for name in ("taken", "later")]
        tasks.append(asyncio.create_task(engine.write(note("first"), first=True)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order.index("first") < order.index("later")


def set_to(seconds: float) -> Clock:
    began = time.monotonic()
    return Clock(lambda: seconds + time.monotonic() - began)


async def test_after_the_clock_was_set_back_old_and_new_processes_agree_on_time(path: Path) -> None:
    shown = time.time()
    async with opened(path, set_to(shown)) as old:
        await put(old)
        async with opened(path, set_to(shown - 60)) as new:  # the host's clock was set back, then this one began
            job = await take(new, want(lease=timedelta(seconds=30)))
            assert job.lease_expires_at is not None
            assert job.lease_expires_at > await old.now()
            assert await old.jobs.rescue(10) == []
            assert abs(await new.now() - await old.now()) < timedelta(seconds=5)


class Host:
    """A host whose time passes when it is told to, and whose clock can be set."""

    def __init__(self) -> None:
        self._wall, self._monotonic = time.time(), 0.0

    def clock(self) -> Clock:
        """That of a process that starts now."""
        return Clock(lambda: self._wall, lambda: self._monotonic)

    def pass_by(self, seconds: float) -> None:
        self._wall += seconds
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        self._wall -= seconds


async def test_a_lease_that_is_shorter_than_an_old_process_was_silent_is_not_taken_from_its_holder(path: Path) -> None:
    host = Host()
    async with opened(path, host.clock()) as old:
        await put(old)
        host.set_back(60)
        async with opened(path, host.clock()) as new:
            host.pass_by(10)  # the old one wrote nothing meanwhile, so the new one is behind it by that
            job = await take(new, want(lease=timedelta(seconds=2)))
            assert await old.jobs.rescue(10) == []
            held = [Lease(job.id, job.lease_token)]
            assert (await new.jobs.extend("w1", held, timedelta(seconds=2))).lost == frozenset()
            assert await new.now() == await old.now(), "by now it has heard of the old one's clock"
            assert await old.jobs.rescue(10) == []
            host.pass_by(30)
            await old.jobs.age(HOUR, 0, 1)  # the old one writes again
            assert await until_lost(old, host) == [job.id], "who really is gone is rescued, if late"


async def until_lost(store: SqliteStore, host: Host) -> list[str]:
    for _ in range(5):
        if lost := await store.jobs.rescue(10):
            return [found.id for found in lost]
        host.pass_by(10)
    return []


async def test_what_only_reads_or_joins_goes_by_the_clock_of_the_file(path: Path) -> None:
    host = Host()
    async with opened(path, host.clock()) as old:
        host.set_back(60)
        async with opened(path, host.clock()) as new:
            [waiting] = await put(old, draft(delay=timedelta(seconds=5)))
            assert (await new.jobs.promote(10)).next_due == timedelta(seconds=5)
        async with opened(path, host.clock()) as joining:
            with closing(sqlite3.connect(path)) as db:
                made = draft()
                await joining.jobs.insert([made], db)
                db.commit()
            assert (await get(old, made.id)).created_at == (await get(old, waiting)).created_at


async def test_a_clock_that_was_years_ahead_is_not_followed(path: Path) -> None:
    shown = time.time()
    async with opened(path, set_to(shown + 10 * 365 * 86_400)) as wrong:
        await put(wrong)
    async with opened(path, set_to(shown)) as right:
        await put(right)
        assert abs((await right.now()).timestamp() - shown) < 60


async def test_a_claim_whose_caller_gave_up_before_it_began_leases_nothing(file: SqliteStore, path: Path) -> None:
    [waiting] = await put(file)
    with locked(path):
        claims = asyncio.create_task(file.jobs.claim(want()))
        await asyncio.sleep(0)
        claims.cancel()
        with suppress(asyncio.CancelledError):
            await claims
    await engine_of(file).write(lambda _db, _now: None)  # behind it in the writer's line
    assert (await get(file, waiting)).status is Status.QUEUED
    assert (await take(file)).id == waiting


async def test_what_a_claim_leased_whose_caller_did_not_wait_is_handed_over_by_the_next(
    file: SqliteStore, path: Path
) -> None:
    ids = await put(file, *[draft() for _ in range(3)])
    claims = asyncio.create_task(file.jobs.claim(want(2, lease=SHORT)))
    await asyncio.sleep(0)
    _wait_here(path)  # the loop stands still, so the answer cannot have come
    claims.cancel()
    with suppress(asyncio.CancelledError):
        await claims
    await file.jobs.claim(want(2, worker="w2", types={"other"}))
    [first] = await file.jobs.claim(want(1))
    [second] = await file.jobs.claim(want(1))
    assert {first.id, second.id} < set(ids)
    assert (first.lease_token, second.lease_token) == (1, 1)
    assert first.lease_expires_at is not None
    assert first.lease_expires_at > await file.now() + SHORT
    [third] = await file.jobs.claim(want(5))
    assert {first.id, second.id, third.id} == set(ids)


def _wait_here(path: Path) -> None:
    deadline = time.monotonic() + 10
    with closing(sqlite3.connect(path)) as db:
        while not db.execute("SELECT 1 FROM windlass_jobs WHERE status = 'processing'").fetchone():
            assert time.monotonic() < deadline, "the writer never took the jobs"


@pytest.mark.parametrize("result", ['"\ud800"', f'"{"x" * 2_000_000}"'], ids=["half a character", "too long"])
async def test_a_value_that_cannot_be_kept_is_refused_and_the_job_stays_as_it_was(
    file: SqliteStore, result: str
) -> None:
    await engine_of(file).write(lambda db, _: db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000))
    job = await start(file)
    with pytest.raises(ValueRefused):
        await file.jobs.apply([decide(job, Succeeded(result))])
    assert await get(file, job.id) == job
    assert await settle(file, job) == "applied"


def told(seen: Told, *news: News) -> Told:
    for more in news:
        since = seen.since if more.queue is not None and more.queue == seen.queue else seen.told + 1
        seen = seen._replace(
            told=seen.told + 1,
            claimable=seen.claimable + more.claimable,
            queue=more.queue,
            since=since,
            changed=seen.changed + more.changed,
            anything=seen.anything + more.anything,
        )
    return seen


BEGUN = Told(7, 40, "mail", 3, 0, 2, 9, 0)


def test_who_missed_several_tellings_hears_them_as_one() -> None:
    both = told(BEGUN, queued(["mail", "mail"]), queued(["mail"]))
    assert both.after(BEGUN) == [Notice(About.CLAIMABLE, "mail", 3, 40)]
    other = told(BEGUN, queued(["mail"]), queued(["print"]))
    assert other.after(BEGUN) == [Notice(About.CLAIMABLE, None, 2, 40)]


def test_who_hears_one_after_the_other_goes_on_where_the_first_ended() -> None:
    first = told(BEGUN, queued(["mail", "mail"]))
    second = told(first, queued(["print", "mail"]))
    assert second.after(first) == [Notice(About.CLAIMABLE, None, 2, 42)]


def test_a_hint_of_anything_says_all() -> None:
    assert told(BEGUN, queued(["mail"]), News(anything=1)).after(BEGUN) == [ANYTHING]
    assert BEGUN.after(BEGUN) == []


def test_news_of_several_queues_name_none() -> None:
    assert queued(["a"]).joined(queued(["b"])).queue is None
    assert queued(["a"]).joined(News(changed=1)) == News(1, "a", changed=1)
    assert not queued([])
