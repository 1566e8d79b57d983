"""What the server refuses comes as a typed error, in time, in words a user can act on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import BusyLoadingError, RedisError

from tests.contract.invariants import check
from tests.contract.steps import put, statuses
from tests.support.apps import completing_refused
from tests.support.drafts import LONG, draft, want
from tests.support.processes import HOST, Server, free_ports
from tests.support.servers import start_redis
from tests.support.until import until
from windlass import Windlass
from windlass.core.errors import SettingsError, StoreError, StoreUnavailable, TransactionRefused
from windlass.core.kept import Signal
from windlass.core.outcome import Succeeded, Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Action, Granted, Keep, Lease, Order, Store, Verdict

pytestmark = pytest.mark.xdist_group("redis-refusals")


@pytest.fixture
def server() -> Iterator[Server]:
    with start_redis(own=True) as server:
        yield server


def at(server: Server, timeout: float = 10) -> Store:
    return store_at(f"{server.url}?timeout={timeout:g}")


def tell(server: Server, *words: str | bytes) -> Any:
    driver: Any = Redis  # half of its methods have no types
    with driver.from_url(server.url) as client:
        return client.execute_command(*words)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_redis_that_would_evict_jobs_is_refused(server: Server, policy: str) -> None:
    tell(server, "CONFIG SET", "maxmemory-policy", policy)
    store = at(server)
    with pytest.raises(SettingsError, match="noeviction"):
        await store.open()
    tell(server, "CONFIG SET", "maxmemory-policy", "noeviction")
    await store.open()
    await store.close()


async def test_when_memory_is_full_a_running_job_keeps_values_and_signals_are_refused(server: Server) -> None:
    store = at(server)
    await store.open()
    ids = await put(store, draft(), draft(), draft(expires=timedelta(seconds=1), delay=LONG))
    waits, runs = await store.jobs.claim(want())
    signal = Order(id=waits.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1"))
    tell(server, "CONFIG SET", "maxmemory", "100000")
    assert await store.jobs.apply([decide(waits, Waiting("approved", timedelta(seconds=1)))]) == [Verdict.APPLIED]
    assert await store.jobs.keep([Keep(Lease(runs.id, runs.lease_token), "step:a", "1")]) == [Verdict.APPLIED]
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        await store.jobs.operate([signal])
    assert await statuses(store, ids) == [Status.BLOCKED, Status.PROCESSING, Status.SCHEDULED]

    async def is_over() -> bool:
        await store.jobs.promote(10)
        return await statuses(store, ids) == [Status.QUEUED, Status.PROCESSING, Status.CANCELLED]

    await until(is_over, "the time of the wait, and of the job that nobody took, to be over")
    assert [job.kept for job in await store.jobs.claim(want())] == [{"signal:approved": None}]
    tell(server, "CONFIG SET", "maxmemory", "0")
    await check(store)
    await store.close()


async def test_when_memory_is_full_new_work_is_refused_and_old_work_ends(server: Server) -> None:
    store = at(server)
    await store.open()
    ids = await put(store, *[draft() for _ in range(20)], draft(delay=LONG))
    running = await store.jobs.claim(want(5))
    tell(server, "CONFIG SET", "maxmemory", "100000")
    refused = draft(unique="k")
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        await store.jobs.insert([refused])
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        await store.jobs.insert([draft(), draft()])
    assert not (await store.jobs.extend("w1", [Lease(job.id, 1) for job in running], LONG)).lost
    assert await store.jobs.apply([decide(job, Succeeded("1")) for job in running]) == [Verdict.APPLIED] * 5
    more = await store.jobs.claim(want(50))
    assert len(more) == 15
    assert await store.jobs.apply([decide(job, Succeeded("1")) for job in more]) == [Verdict.APPLIED] * 15
    assert await statuses(store, ids) == [Status.SUCCEEDED] * 20 + [Status.SCHEDULED]
    tell(server, "CONFIG SET", "maxmemory", "0")
    assert (await store.views.get([refused.id])) == [None]
    await check(store)
    await put(store, refused)
    await store.close()


async def test_a_replica_is_refused_in_time_until_it_is_promoted(server: Server) -> None:
    store = at(server, 1)
    await store.open()
    [port] = free_ports(1)
    tell(server, "REPLICAOF", HOST, str(port))
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="read-only"):
        await put(store)
    assert time.monotonic() - began < 5
    waiting = asyncio.create_task(put(store))
    await asyncio.sleep(0.1)  # in which it is refused, and tries again
    tell(server, "REPLICAOF", "NO", "ONE")
    assert len(await waiting) == 1
    await store.close()


@pytest.mark.timeout(60)
async def test_a_killed_redis_has_what_it_acknowledged_when_it_is_back(server: Server) -> None:
    tell(server, "CONFIG SET", "appendfsync", "always")
    store = at(server)
    await store.open()
    assert "power cut" in store.capabilities.durability
    ids = await put(store, *[draft() for _ in range(50)])
    running = await store.jobs.claim(want(20))
    server.kill()
    ending = asyncio.create_task(store.jobs.apply([decide(job, Succeeded("1")) for job in running]))
    await asyncio.sleep(0.2)  # in which it finds nobody there, and tries again
    await asyncio.to_thread(server.restart)
    assert await ending == [Verdict.APPLIED] * 20
    assert await statuses(store, ids) == [Status.SUCCEEDED] * 20 + [Status.QUEUED] * 30
    await check(store)
    await store.close()


@pytest.mark.timeout(60)
async def test_a_server_that_lost_its_last_moments_hands_out_no_token_twice(server: Server) -> None:
    store = at(server)
    await store.open()
    ids = await put(store, *[draft() for _ in range(2)])
    before = (server.nodes[0].data / "appendonly.aof").read_bytes()
    [held, forgotten] = await store.jobs.claim(want(2))
    lock = await store.locks.acquire("l", "ann", LONG)
    server.kill()
    (server.nodes[0].data / "appendonly.aof").write_bytes(before)  # as if it had not reached the disk
    await asyncio.to_thread(server.restart)
    jobs = await store.jobs.claim(want(2))
    assert [job.id for job in jobs] == ids
    assert min(job.lease_token for job in jobs) > max(held.lease_token, forgotten.lease_token)
    assert await store.jobs.apply([decide(held, Succeeded("1"))]) == [Verdict.STALE]
    assert (await store.jobs.extend("w1", [Lease(forgotten.id, forgotten.lease_token)], LONG)).lost == {forgotten.id}
    assert await store.jobs.apply([decide(job, Succeeded("2")) for job in jobs]) == [Verdict.APPLIED] * 2
    again = await store.locks.acquire("l", "bob", LONG)
    assert isinstance(lock, Granted)
    assert isinstance(again, Granted)
    assert again.token > lock.token
    await check(store)
    await store.close()


@pytest.mark.timeout(60)
async def test_a_redis_that_still_reads_its_file_is_waited_for(server: Server) -> None:
    store, hasty = at(server), at(server, 0.7)
    await store.open()
    await hasty.open()
    ids = await put(store, *[draft() for _ in range(5)])
    for n in range(120):  # it answers while it reads, but not before it has read 2 MB more
        tell(server, "SET", f"big{n}", os.urandom(1 << 19))
    tell(server, "BGREWRITEAOF")  # or it would read commands, which cannot be slowed down
    await until(lambda: not tell(server, "INFO", "persistence")["aof_rewrite_in_progress"], "the file to be written")
    server.kill()
    [node] = server.nodes
    node.command = [*node.command, "--key-load-delay", "25000"]  # microseconds
    starting = asyncio.create_task(asyncio.to_thread(server.restart))
    await until(lambda: is_loading(server), "it to read its file")
    with pytest.raises(StoreUnavailable, match="LOADING"):
        await put(hasty)
    assert is_loading(server)
    waiting = asyncio.create_task(store.jobs.claim(want(5)))
    assert [job.id for job in await waiting] == ids[:5]
    await starting
    await store.close()
    await hasty.close()


def is_loading(server: Server) -> bool:
    try:
        tell(server, "PING")
    except BusyLoadingError:
        return True
    except (RedisError, OSError):
        pass
    return False


async def test_nobody_there_is_told_in_time() -> None:
    [port] = free_ports(1)
    store = store_at(f"redis://:s3cret@{HOST}:{port}/0?timeout=0.5")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as error:
        await store.open()
    assert time.monotonic() - began < 3
    assert "s3cret" not in str(error.value)
    assert "s3cret" not in store.address


async def test_a_server_that_hangs_is_told_in_time(server: Server) -> None:
    store = at(server, 0.5)
    await store.open()
    tell(server, "CLIENT PAUSE", "2000")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="did not answer"):
        await put(store)
    assert time.monotonic() - began < 2
    tell(server, "PING")
    await put(store)
    await store.close()


async def test_a_wrong_password_is_told_at_once(server: Server) -> None:
    tell(server, "CONFIG SET", "requirepass", "s3cret")
    store = at(server)
    with pytest.raises(StoreUnavailable, match="password") as error:
        await store.open()
    assert "s3cret" not in str(error.value)


def test_an_option_that_nobody_knows_is_refused() -> None:
    with pytest.raises(SettingsError, match="colour"):
        store_at("redis://localhost/0?colour=red")


async def test_a_store_that_is_not_open_says_so(server: Server) -> None:
    with pytest.raises(StoreError, match="not open"):
        await at(server).jobs.claim(want())


async def test_a_transaction_is_refused_with_its_alternatives(server: Server) -> None:
    with pytest.raises(TransactionRefused, match=r"idempotency key.*PostgreSQL"):
        await at(server).jobs.insert([draft()], object())


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appendfsync", "always", "survives a crash of Redis and a power cut"),
        ("appendfsync", "everysec", "a power cut may lose the last second"),
        ("appendfsync", "no", "half a minute"),
        ("appendonly", "no", "everything since its last snapshot"),
    ],
)
async def test_it_says_what_a_crash_can_lose(server: Server, name: str, value: str, told: str) -> None:
    tell(server, "CONFIG SET", name, value)
    store = at(server)
    await store.open()
    able, health = store.capabilities, await store.health()
    assert told in able.durability
    assert health["append-only file"] is (name != "appendonly")
    assert health["appendfsync"] == (value if name == "appendfsync" else "everysec")
    assert any("appendonly yes" in warning for warning in able.warnings) is (name == "appendonly")
    await store.close()


async def test_it_says_what_a_failover_can_lose_and_what_narrows_it(server: Server) -> None:
    store = at(server)
    await store.open()
    assert any("without bound" in one and "min-replicas-to-write 1" in one for one in store.capabilities.warnings)
    await store.close()
    tell(server, "CONFIG SET", "min-replicas-to-write", "1")
    tell(server, "CONFIG SET", "min-replicas-max-lag", "7")
    await store.open(migrate=False)
    assert any("up to some 7 s" in warning for warning in store.capabilities.warnings)
    assert (await store.health())["min-replicas-max-lag"] == "7"
    await store.close()


async def test_doctor_tells_all_of_it(server: Server) -> None:
    tell(server, "CONFIG SET", "appendonly", "no")
    tell(server, "CONFIG SET", "maxmemory", "1gb")
    async with Windlass(server.url):
        pass  # or there is nothing to look at
    doctor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", "--store", server.url, "doctor", "--json"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await doctor.communicate()
    found = [json.loads(line) for line in out.splitlines()]
    [durability] = [one for one in found if one["check"] == "durability"]
    assert "no append-only file" in durability["found"]
    failover, file = [one for one in found if one["check"] == "store"]
    assert "promoted replica" in failover["found"]
    assert "min-replicas-to-write 1" in failover["fix"]
    assert (file["level"], file["fix"]) == ("WARN", "set 'appendonly yes'")
    [memory] = [one for one in found if one["check"] == "memory"]
    assert memory["level"] == "PASS"


async def test_a_job_cannot_be_completed_in_a_transaction_and_its_handler_is_told_what_else_it_can_do(
    server: Server,
) -> None:
    told = await completing_refused(Windlass(server.url))
    assert "TransactionRefused" in told
    assert "idempotent by ctx.origin" in told
    assert "PostgreSQL or SQLite" in told
