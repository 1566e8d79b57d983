"""Claims whose answers did not come: what they took is handed over, and one that was given up takes nothing more."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.contract.invariants import check
from tests.contract.places import RedisPlace
from tests.contract.steps import DONE, everything, get, put, settle
from tests.support.drafts import LONG, draft, want
from tests.support.forwarder import Forwarder, forwarder
from tests.support.processes import HOST
from tests.support.servers import start_redis
from tests.support.until import until
from windlass.core.errors import StoreUnavailable
from windlass.core.status import Status
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Lease, Store
from windlass.stores.redis.store import RedisStore

PROCESSING = Filter(status=Status.PROCESSING)
SHORT = "timeout=0.3"


@asynccontextmanager
async def impatient(place: RedisPlace) -> AsyncGenerator[tuple[Forwarder, RedisStore], None]:
    """A store that gives up soon, and the line that leads it to its server."""
    parts = urlsplit(place.url)
    assert parts.port
    async with forwarder(parts.port) as between:
        store = store_at(f"redis://{HOST}:{between.port}{parts.path}?{SHORT}", namespace=place.namespace)
        assert isinstance(store, RedisStore)
        await store.open()
        assert await store.jobs.claim(want()) == []  # it is connected, and the server knows the script
        try:
            yield between, store
        finally:
            await store.close()


async def running(store: Store) -> list[str]:
    return sorted(job.id for job in await everything(store, PROCESSING))


async def test_what_a_claim_took_whose_answer_never_came_is_handed_over_with_a_new_lease(
    place: RedisPlace, store: RedisStore
) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft(max_crashes=1) for _ in range(9)])
        between.hold_answers()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await doubtful.jobs.claim(want(3))
        assert await running(store) == ids[:3], "never more in doubt than were asked for at once"
        before = await get(store, ids[0])
        between.let_go()
        claimed = await doubtful.jobs.claim(want(3))
        assert [(job.id, job.lease_token) for job in claimed] == [(id_, 1) for id_ in ids[:3]]
        assert claimed.more
        assert claimed[0].lease_expires_at is not None
        assert before.lease_expires_at is not None
        assert claimed[0].lease_expires_at > before.lease_expires_at
        assert [job.id for job in await doubtful.jobs.claim(want(3))] == ids[3:6]
        for job in claimed:
            await settle(store, job, DONE)
        await check(store)


async def test_no_more_is_handed_over_than_is_wanted_and_the_rest_next_time(
    place: RedisPlace, store: RedisStore
) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft() for _ in range(8)])
        await in_doubt(between, doubtful, 7)
        handed = await doubtful.jobs.claim(want(2))
        assert [(job.id, job.lease_token) for job in handed] == [(id_, 1) for id_ in ids[:2]]
        assert handed.more
        await in_doubt(between, doubtful, 3)  # what is handed over may be in doubt again, and so may the rest
        between.lose = 1  # this one is asked for again
        for n, expected in ((2, ids[2:4]), (2, ids[4:6]), (9, ids[6:7]), (9, ids[7:]), (9, [])):
            assert [job.id for job in await doubtful.jobs.claim(want(n))] == expected
        assert await running(store) == ids
        assert {job.attempts for job in await everything(store, PROCESSING)} == {1}


async def in_doubt(between: Forwarder, store: RedisStore, n: int) -> None:
    """A claim that is carried out, and not answered in time."""
    between.hold_answers()
    with pytest.raises(StoreUnavailable):
        await store.jobs.claim(want(n))
    between.let_go()


async def test_what_a_cancelled_claim_took_is_handed_over(place: RedisPlace, store: RedisStore) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft() for _ in range(4)])
        between.hold_answers()
        claiming = asyncio.create_task(doubtful.jobs.claim(want(2)))
        await until(lambda: running(store), "the claim to be carried out")
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        between.let_go()
        assert [job.id for job in await doubtful.jobs.claim(want(2))] == ids[:2]
        assert [job.id for job in await doubtful.jobs.claim(want(2))] == ids[2:]


async def test_what_is_another_attempt_by_now_is_not_handed_over(place: RedisPlace, store: RedisStore) -> None:
    async with impatient(place) as (between, doubtful):
        [id_] = await put(store)
        between.hold_answers()
        with pytest.raises(StoreUnavailable):
            await doubtful.jobs.claim(want(1))
        assert not (await store.jobs.extend("w1", [Lease(id_, 1)], -LONG)).lost
        await store.jobs.rescue(10)
        [again] = await store.jobs.claim(want(1))  # the same worker, through another store
        between.let_go()
        assert await doubtful.jobs.claim(want(1)) == []
        assert await settle(store, again) == "applied"


async def test_a_claim_that_arrives_after_it_was_given_up_leases_nothing(place: RedisPlace, store: RedisStore) -> None:
    async with impatient(place) as (between, doubtful):
        ids = await put(store, *[draft() for _ in range(6)])
        between.hold()
        with pytest.raises(StoreUnavailable):
            await doubtful.jobs.claim(want(2))
        doubtful.link.nodes.at = place.url  # the next one takes another way, and comes first
        assert [job.id for job in await doubtful.jobs.claim(want(2))] == ids[:2]
        calls = await scripts_run(store)
        between.let_go()
        await until(lambda: more_than(store, calls), "the late claim to arrive")
        assert await running(store) == ids[:2]
        assert [job.id for job in await doubtful.jobs.claim(want(9))] == ids[2:]


async def scripts_run(store: RedisStore) -> int:
    used = await store.link.command("INFO", "commandstats")
    return int(used["cmdstat_evalsha"]["calls"])


async def more_than(store: RedisStore, calls: int) -> bool:
    return await scripts_run(store) > calls


async def test_claims_that_lie_in_the_buffers_of_a_frozen_server_fail_no_job() -> None:
    with start_redis(own=True) as server:
        pid = server.nodes[0].pid
        store = store_at(f"{server.url}?{SHORT}")
        await store.open()
        try:
            # Connections that stand, and a script that is known: the claims themselves lie in the buffers.
            await asyncio.gather(*[store.jobs.claim(want(worker=f"x{n}")) for n in range(6)])
            ids = await put(store, *[draft(max_crashes=1) for _ in range(40)])
            os.kill(pid, signal.SIGSTOP)
            for _ in range(4):
                with pytest.raises(StoreUnavailable):
                    await store.jobs.claim(want(5))
            os.kill(pid, signal.SIGCONT)
            ran: list[str] = []
            while len(ran) < len(ids):
                claimed = await store.jobs.claim(want(5))
                assert await running(store) == sorted(job.id for job in claimed), "none is leased that nobody knows of"
                assert await store.jobs.rescue(100) == []
                for job in claimed:
                    await settle(store, job)
                ran += [job.id for job in claimed]
            assert sorted(ran) == sorted(ids)
            ended, _ = await check(store)
            assert {(job.status, job.crashes, job.attempts) for job in ended} == {(Status.SUCCEEDED, 0, 1)}
        finally:
            os.kill(pid, signal.SIGCONT)
            await store.close()
