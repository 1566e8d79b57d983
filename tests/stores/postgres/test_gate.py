"""Claims of jobs that need a slot: what others hold is passed over as a whole, and rivals all go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import DONE, put, start, statuses
from tests.support.drafts import LONG, draft, want
from windlass.core.limit import Limit
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Claimed, Extended, Lease, Store, Verdict
from windlass.stores.postgres.store import PostgresStore

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


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
