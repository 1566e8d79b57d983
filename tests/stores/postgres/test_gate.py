"""Claims of jobs that need a slot: what others hold is passed over as a whole, and rivals all go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, put, start, statuses
from tests.support.drafts import LONG, draft, want
from tests.support.until import until
from tests.support.work import Work, metered
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Claimed, Extended, Lease, Store, Verdict
from windlass.stores.postgres.store import PostgresStore

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

EACH = 3
"""what it costs at most to walk over one job: an entry of the index, the row, some of their pages"""
WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = $1::regclass"


@pytest.fixture
async def db(place: PostgresPlace) -> AsyncIterator[Connection]:
    connection: Connection = await asyncpg.connect(place.url)
    yield connection
    await connection.close()


class Counted:
    """How many statements a store sends, and how many rows they bring."""

    def __init__(self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements = self.rows = 0
        fetch = asyncpg.Connection.fetch

        async def counting(connection: Any, *args: Any, **kwargs: Any) -> Any:
            rows = await fetch(connection, *args, **kwargs)
            self.statements += 1
            self.rows += len(rows)
            return rows

        monkeypatch.setattr(asyncpg.Connection, "fetch", counting)


async def hold_line(store: PostgresStore, db: Connection) -> None:
    """End a job of the line in a transaction that stays open."""
    job = await start(store, draft(limit=Limit("k", 3)))
    await db.execute("BEGIN")
    assert await store.jobs.complete(decide(job, DONE), db) is Verdict.APPLIED


@pytest.mark.parametrize("n", [200, 2_000])
async def test_a_line_that_somebody_holds_is_passed_over_as_a_whole(
    store: PostgresStore, db: Connection, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    await hold_line(store, db)
    behind = await put(store, *[draft(limit=Limit("k", 3)) for _ in range(n)])
    [plain] = await put(store)
    counted = Counted(store, monkeypatch)
    claimed = await store.jobs.claim(want(5))
    assert [job.id for job in claimed] == [plain]
    assert claimed.more, "the rest is held by somebody else"
    assert counted.statements <= 6
    assert counted.rows <= 200
    assert set(await statuses(store, behind)) == {Status.QUEUED}
    await db.execute("COMMIT")
    assert len(await store.jobs.claim(want(5))) == 3


async def test_nothing_is_locked_that_is_only_read(store: PostgresStore, db: Connection, place: PostgresPlace) -> None:
    await hold_line(store, db)
    await put(store, *[draft(limit=Limit("k", 3)) for _ in range(200)])
    [plain] = await put(store)
    [before] = await place.run("SELECT count(*) FROM windlass_jobs WHERE xmax <> 0")
    assert [job.id for job in await store.jobs.claim(want(5))] == [plain]
    [after] = await place.run("SELECT count(*) FROM windlass_jobs WHERE xmax <> 0")
    assert after[0] <= before[0] + 1, "the one that was taken"


async def test_rivals_for_one_limit_with_room_take_everything_without_a_fault(store: PostgresStore) -> None:
    stores = [store, *[store.sibling() for _ in range(3)]]
    for other in stores[1:]:
        await other.open()
    ids = await put(store, *[draft(limit=Limit("k", 10_000)) for _ in range(1_000)])
    taken: list[str] = []
    rounds = 0

    async def work(mine: Store, worker: str) -> None:
        nonlocal rounds
        claimed = Claimed(more=True)
        while claimed or claimed.more:
            claimed = await mine.jobs.claim(want(20, worker=worker))
            taken.extend(job.id for job in claimed)
            rounds += 1

    async with asyncio.timeout(18):
        await asyncio.gather(*[work(mine, f"w{at}") for at, mine in enumerate(stores)])
    assert sorted(taken) == sorted(ids)
    assert rounds <= 50 * 2, "most claims bring what they asked for"
    for other in stores[1:]:
        await other.close()


async def test_an_extension_that_was_not_written_is_told_as_held(
    store: PostgresStore, db: Connection, place: PostgresPlace
) -> None:
    held, free = await start(store), await start(store)
    leases = [Lease(job.id, job.lease_token) for job in (held, free)]
    await db.execute("BEGIN")
    await db.execute(f'SELECT FROM "{place.schema}".windlass_jobs WHERE id = $1 FOR UPDATE', held.id)
    found = await store.jobs.extend("w1", leases, LONG * 2)
    assert found == Extended(frozenset(), frozenset(), held=frozenset({held.id}))
    await db.execute("ROLLBACK")
    now, later = await store.views.get([held.id, free.id])
    assert now is not None
    assert later is not None
    assert now.lease_expires_at == held.lease_expires_at
    assert later.lease_expires_at is not None
    assert free.lease_expires_at is not None
    assert later.lease_expires_at > free.lease_expires_at
    assert await store.jobs.extend("w1", leases, LONG * 2) == Extended(frozenset(), frozenset())


async def test_a_line_that_somebody_holds_is_not_walked_by_every_claim(
    place: PostgresPlace, store: PostgresStore, db: Connection
) -> None:
    n, jobs = 5_000, 20

    async def claim_all() -> list[str]:
        found = list[str]()
        while len(found) < jobs:
            claimed = await store.jobs.claim(want(1))
            assert claimed or claimed.more
            found += [job.id for job in claimed]
        return found

    async with metered(place, store) as meter:
        await hold_line(store, db)
        await put(store, *[draft(limit=Limit("k", 3)) for _ in range(n)])
        plain = await put(store, *[draft() for _ in range(jobs)])
        work, found = await meter.during(claim_all)
    assert found == plain
    assert work.total <= 4 * n * EACH, dict(work.parts)
    await db.execute("COMMIT")
    claimed = Claimed(more=True)
    while claimed.more and not claimed:
        claimed = await store.jobs.claim(want(5))
    assert len(claimed) == 3, "found again once it is free"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("types", [0, 3_000])
async def test_one_claim_walks_a_bounded_part_of_a_line_that_somebody_holds(
    place: PostgresPlace, store: PostgresStore, db: Connection, types: int
) -> None:
    """Also where statistics are of another time: of many types each seems rare, and its index the better way."""
    n = 25_000
    if types:
        await put(store, *[draft(f"t{number}") for number in range(types)])
        await place.run("ANALYZE windlass_jobs")
        await place.run("TRUNCATE windlass_jobs")
    async with metered(place, store) as meter:
        await hold_line(store, db)
        for _ in range(n // 1_000):
            await put(store, *[draft(limit=Limit("k", 3)) for _ in range(1_000)])
        [plain] = await put(store)
        works, claimed = list[Work](), Claimed(more=True)
        while claimed.more and not claimed:
            work, claimed = await meter.during(lambda: store.jobs.claim(want(5)))
            works.append(work)
    assert [job.id for job in claimed] == [plain]
    assert len(works) == 3
    assert max(work.total for work in works) <= n // 2, works


async def test_what_is_queued_before_a_line_that_somebody_holds_is_found_while_it_is_passed_over(
    store: PostgresStore, db: Connection
) -> None:
    await hold_line(store, db)
    for _ in range(12):
        await put(store, *[draft(limit=Limit("k", 3)) for _ in range(1_000)])
    assert await store.jobs.claim(want(1)) == []
    [urgent] = await put(store, draft(priority=-5))
    [other] = await put(store, draft(queue="other"))
    found = list[str]()
    begun = time.monotonic()
    while len(found) < 2:
        claimed = await store.jobs.claim(want(1))
        assert claimed or claimed.more
        found += [job.id for job in claimed]
    assert set(found) == {urgent, other}
    assert time.monotonic() - begun < 5


async def test_one_claim_takes_few_locks_however_many_lines_wait(
    place: PostgresPlace, store: PostgresStore, db: Connection
) -> None:
    lines = [draft(limit=Limit(f"k{n}"), rate=Rate(5, LONG, f"r{n}"), queue=f"q{n % 50}") for n in range(2_000)]
    ids = await put(store, *lines)
    await db.execute("BEGIN")
    await db.execute(f'LOCK TABLE "{place.schema}".windlass_rates')
    claiming = asyncio.create_task(store.jobs.claim(want(600)))

    async def waits() -> bool:
        return bool(await db.fetch(WAITING, at))

    at = f'"{place.schema}".windlass_rates'
    await until(waits, "the claim to wait for the table")
    taken = await db.fetchval(f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid IN ({WAITING})", at)
    await db.execute("ROLLBACK")
    claimed = await claiming
    assert 0 < taken <= 500
    assert len(claimed) >= 100
    found = [job.id for job in claimed]
    while claimed.more or claimed:
        claimed = await store.jobs.claim(want(600))
        found += [job.id for job in claimed]
    assert sorted(found) == sorted(ids)
