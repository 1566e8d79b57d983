"""A cluster of real nodes: any of them leads to the one that has the keys, wherever that is by now."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.invariants import check
from tests.contract.steps import finish, put, statuses, told
from tests.faults.ledger import Trial
from tests.faults.redis_cluster import Cluster, ask, start_cluster
from tests.support.drafts import draft, want
from tests.support.until import until
from windlass import Windlass
from windlass.core.errors import SettingsError, StoreUnavailable
from windlass.core.history import Happened
from windlass.core.outcome import Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Verdict

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("redis-cluster")]

WORKERS = 3
RESUMED_WITHIN = 5.0
"""seconds from when the keys are at home again until every worker has begun a job"""


@pytest.fixture(scope="module")
def whole() -> Iterator[Cluster]:
    made = start_cluster()
    with made.server:
        yield made


@pytest.fixture
def cluster(whole: Cluster) -> Cluster:
    whole.heal()
    return whole


@pytest.fixture
def trial(cluster: Cluster, tmp_path: Path) -> Iterator[Trial]:
    made = Trial(cluster.url(cluster.nodes[1]), tmp_path)
    yield made
    made.stop_workers()


@pytest.fixture
def namespace() -> str:
    return f"t{secrets.token_hex(4)}"


@pytest.mark.parametrize("number", range(4))
async def test_any_node_leads_to_the_keys(cluster: Cluster, namespace: str, number: int) -> None:
    url = cluster.url(cluster.nodes[number])
    store, other = (store_at(url, namespace=namespace) for _ in range(2))
    await store.open()
    await other.open()
    rings: list[int] = []
    async with other.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: other.notices.healthy, "the notices to be healthy")
        rings.clear()
        job = await finish(store, draft(user_id="u", unique="k"))
        await until(lambda: rings, "a wake-up")
    assert await told(other, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    assert [one.id for one in (await other.views.find(Filter(user_id="u"), 5)).jobs] == [job.id]
    assert [queue.name for queue in await other.queues.list()] == ["default"]
    await check(store)
    await store.close()
    await other.close()


async def test_once_found_the_node_is_asked_directly(cluster: Cluster, namespace: str) -> None:
    owner = cluster.owner(namespace)
    seed = next(node for node in cluster.nodes if node is not owner)
    store = store_at(cluster.url(seed), namespace=namespace)
    await store.open()
    for node in (seed, owner):
        ask(node, "CONFIG", "RESETSTAT")
    for _ in range(10):
        await put(store)
    assert ask(owner, "INFO", "commandstats")["cmdstat_evalsha"]["calls"] == 10
    assert "cmdstat_evalsha" not in ask(seed, "INFO", "commandstats")
    assert "errorstat_MOVED" not in ask(seed, "INFO", "errorstats")
    await store.close()


async def test_a_database_other_than_0_is_refused_with_the_reason(cluster: Cluster) -> None:
    store = store_at(cluster.url(cluster.nodes[0], database=1))
    with pytest.raises(SettingsError, match="database 0 only"):
        await store.open()


async def test_while_keys_are_on_their_way_nothing_is_done_to_half_of_them(cluster: Cluster) -> None:
    """A script that ran on either node would miss the keys that are on the other."""
    source = cluster.owner()
    target = next(node for node in cluster.primaries() if node is not source)
    store = store_at(f"{cluster.url(source)}?timeout=0.5")
    await store.open()
    ids = await put(store, *[draft() for _ in range(200)])
    moving = asyncio.create_task(asyncio.to_thread(cluster.move, target, hold=2.0))
    await until(lambda: ask(target, "CLUSTER", "COUNTKEYSINSLOT", str(cluster.slot())) > 0, "keys to move")
    with pytest.raises(StoreUnavailable, match="moving the keys"):
        await put(store)
    with pytest.raises(StoreUnavailable, match="moving the keys"):
        await store.jobs.claim(want())
    assert await moving > len(ids)
    await store.close()
    store = store_at(cluster.url(target))  # with time enough for all that follows
    await store.open()
    jobs = await store.jobs.claim(want(500))
    assert [job.id for job in jobs] == ids
    assert await store.jobs.apply([decide(job, Succeeded("1")) for job in jobs]) == [Verdict.APPLIED] * len(ids)
    assert await statuses(store, ids) == [Status.SUCCEEDED] * len(ids)
    await check(store)
    await store.close()


async def test_no_job_is_lost_when_the_keys_move_to_another_node_while_workers_run(
    cluster: Cluster, trial: Trial, tell: Callable[[str], None]
) -> None:
    async with Windlass(trial.url) as client:
        await trial.fill(client, 300, 0.2)
        for _ in range(WORKERS):
            trial.start_worker("--concurrency", "8")
        await trial.until_all_resumed(0, within=60)
        async with trial.producing(client, producers=4, pause=0.1, seconds=0.2):
            for _ in range(2):
                source = cluster.owner()
                target = next(node for node in cluster.primaries() if node is not source)
                began = time.monotonic()
                keys = await asyncio.to_thread(cluster.move, target, hold=1.0)
                home = time.monotonic()
                resumed = await trial.until_all_resumed(home, within=20)
                assert cluster.owner() is target
                assert max(resumed.values()) < RESUMED_WITHIN
                tell(f"slot moved: {keys} keys in {home - began:.2f} s, workers resumed {_told(resumed)} s later")
        found = await trial.judged(client, within=60)
        tell(f"slot moved twice: {found}")
        found.insist()
        await check(client.store)


async def test_workers_and_notices_find_the_replica_that_took_over(
    cluster: Cluster, trial: Trial, tell: Callable[[str], None]
) -> None:
    first = cluster.owner()
    trial.url = cluster.url(first)  # the very node that goes away is the one address that is known
    async with Windlass(trial.url) as client:
        await trial.fill(client, 300, 0.2)
        for _ in range(WORKERS):
            trial.start_worker("--concurrency", "8")
        await trial.until_all_resumed(0, within=60)
        rings: list[int] = []
        # It does nothing but listen, so that no operation finds the new node for it.
        listener = client.store.sibling()
        await listener.open()
        async with (
            listener.notices.subscribe(lambda _: rings.append(1)),
            trial.producing(client, producers=4, pause=0.05, seconds=0.2),
        ):
            await until(lambda: rings, "a wake-up")
            struck = time.monotonic()
            await asyncio.to_thread(first.kill)
            await until(lambda: cluster.owner() is not first, "the replica to take over", within=20)
            able = time.monotonic()
            resumed = await trial.until_all_resumed(able, within=20)
            await until(lambda: listener.notices.healthy, "the notices to be healthy again")
            rings.clear()
            await until(lambda: rings, "a wake-up from the new node")
            acknowledged_then = len(trial.acknowledged)
            await until(lambda: len(trial.acknowledged) > acknowledged_then + 20, "producers to go on")
        await listener.close()
        found = await trial.judged(client, within=60)
        tell(f"cluster failover after {able - struck:.2f} s: {found}, workers resumed {_told(resumed)} s later")
        # What the replica had not received when its primary died may be lost; all else must have ended.
        assert not trial.lost_before(found, struck - 1)
        assert not found.unfinished
        assert not found.wrong
        assert max(resumed.values()) < RESUMED_WITHIN


def _told(resumed: dict[int, float]) -> str:
    return ", ".join(f"{seconds:.2f}" for seconds in sorted(resumed.values()))
