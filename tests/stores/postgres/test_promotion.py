"""A standby that has not heard of every claim is promoted: what was handed out before is handed out to nobody again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest

from tests.contract.steps import DONE, put
from tests.faults.postgres_standby import promote, start_standby, until_streaming
from tests.support.drafts import draft, want
from tests.support.processes import HOST, Server
from tests.support.servers import start_postgres
from tests.support.until import until
from windlass.chaos.proxy import Proxy
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Granted, Lease, Store, Verdict

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("postgres-promotion")]

HOUR = timedelta(hours=1)
RECEIVED = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"


@pytest.fixture
def primary() -> Iterator[Server]:
    with start_postgres(own=True) as server:
        yield server


@asynccontextmanager
async def opened(server: Server, user: str = "postgres") -> AsyncGenerator[Store, None]:
    store = store_at(server.url.replace("postgres@", f"{user}@"))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def pair(primary: Server) -> AsyncIterator[tuple[Store, Server, Proxy]]:
    """A store on a primary, its standby, and the line between the two."""
    [node] = primary.nodes
    with Proxy(HOST, node.port) as line, await asyncio.to_thread(start_standby, primary, line.port) as standby:
        await until_streaming(primary, synchronous=False)
        async with opened(primary) as store:
            yield store, standby, line


async def cut(primary: Server, standby: Server, line: Proxy) -> None:
    """From now on the standby hears of nothing."""
    ours: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(primary.url)
    there: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(standby.url)
    written = await ours.fetchval("SELECT pg_current_wal_lsn()::text")

    async def received() -> bool:
        return bool(await there.fetchval(RECEIVED, written))

    await until(received, "the standby to have everything")
    line.silence()
    await ours.close()
    await there.close()


async def test_a_promoted_standby_hands_out_no_token_that_the_lost_server_did(
    primary: Server, pair: tuple[Store, Server, Proxy]
) -> None:
    store, standby, line = pair
    [id_] = await put(store, draft())
    [rescued_id] = await put(store, draft(queue="rescued"))
    [rescued] = await store.jobs.claim(want(1, queues={"rescued": 1}, lease=timedelta(0)))
    await cut(primary, standby, line)
    [unheard] = await store.jobs.claim(want(1, queues={"default": 1}, lease=HOUR))
    lock = await store.locks.acquire("unheard", "w1", HOUR)
    assert isinstance(lock, Granted)
    await store.jobs.rescue(10)
    [taken] = await store.jobs.claim(want(1, queues={"rescued": 1}, lease=HOUR))
    assert (unheard.id, taken.id) == (id_, rescued_id)
    await promote(standby)
    async with opened(standby) as after:
        assert [one.id for one in await after.jobs.rescue(10)] == [rescued_id]
        again = {job.id: job for job in await after.jobs.claim(want(2, worker="w2", lease=HOUR))}
        assert again[id_].lease_token > unheard.lease_token
        assert again[rescued_id].lease_token > taken.lease_token > rescued.lease_token
        assert await after.jobs.apply([decide(unheard, DONE), decide(taken, DONE)]) == [Verdict.STALE] * 2
        granted = await after.locks.acquire("unheard", "w2", HOUR)
        assert isinstance(granted, Granted)
        assert granted.token > lock.token
        await end(after, again[id_])


async def end(store: Store, job: Job) -> None:
    assert not (await store.jobs.extend("w2", [Lease(job.id, job.lease_token)], HOUR)).lost
    assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]
    [found] = await store.views.get([job.id])
    assert found is not None
    assert found.status is Status.SUCCEEDED


async def test_where_the_timeline_is_kept_from_a_user_tokens_are_counted(primary: Server) -> None:
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(primary.url)
    await db.execute("CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain")
    for name in ("plain", "kept"):
        async with opened(primary, "plain") as store:
            await put(store, draft())
            [job] = await store.jobs.claim(want(1))
            assert job.lease_token == 1, name
            assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]
        await db.execute("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
    await db.close()
