from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from tests.contract.steps import near, passed, settle, start, told
from tests.support.drafts import want
from windlass.core.history import Happened
from windlass.stores.contract import Peer, Store, Verdict, WorkerInfo

WORKER = WorkerInfo(
    id="w1",
    host="web-1",
    pid=4711,
    version="1.2.3",
    queues=("mail", "default"),
    types=("a", "b"),
    slots=20,
    running=3,
    stuck=1,
    memory_mb=212.5,
    loop_lag_ms=1.25,
)


def described(worker: WorkerInfo) -> WorkerInfo:
    """Without what the store stamped."""
    return replace(worker, started_at=None, beat_at=None)


async def test_a_worker_is_listed_as_it_described_itself(store: Store, other: Store) -> None:
    assert await store.workers.list() == []
    await store.workers.beat(WORKER)
    [found] = await other.workers.list()
    assert described(found) == WORKER
    assert near(found.beat_at, await store.now())
    assert near(found.started_at, await store.now())


async def test_the_newest_beat_counts_and_the_start_stays(store: Store) -> None:
    await store.workers.beat(WORKER)
    [first] = await store.workers.list()
    assert first.beat_at is not None
    await passed(store, first.beat_at)
    stopping = replace(WORKER, running=0, stopping=True, memory_mb=None, loop_lag_ms=None)
    await store.workers.beat(stopping)
    [second] = await store.workers.list()
    assert described(second) == stopping
    assert second.beat_at is not None
    assert second.beat_at > first.beat_at
    assert second.started_at == first.started_at


async def test_workers_are_listed_by_id_and_forgotten_by_id(store: Store) -> None:
    for id_ in ("c", "a", "b"):
        await store.workers.beat(replace(WORKER, id=id_))
    assert [worker.id for worker in await store.workers.list()] == ["a", "b", "c"]
    await store.workers.forget(["b", "unheard", "c"])
    await store.workers.forget([])
    assert [worker.id for worker in await store.workers.list()] == ["a"]


async def test_a_forgotten_worker_may_come_back(store: Store) -> None:
    await store.workers.beat(WORKER)
    await store.workers.forget(["w1"])
    await store.workers.beat(WORKER)
    assert [described(worker) for worker in await store.workers.list()] == [WORKER]


async def test_a_forgotten_worker_still_owns_its_leases(store: Store) -> None:
    await store.workers.beat(WORKER)
    job = await start(store, wanted=want(lease=timedelta(minutes=5)))
    await store.workers.forget(["w1"])
    assert await store.jobs.rescue(10) == []
    assert await settle(store, job) is Verdict.APPLIED
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_a_beat_answers_who_else_is_there(store: Store, other: Store) -> None:
    assert seen(await store.workers.beat(WORKER)) == [("w1", ("mail", "default"))]
    await store.workers.beat(replace(WORKER, id="w0", queues=()))
    await other.workers.beat(replace(WORKER, id="w3", stopping=True))
    peers = await other.workers.beat(replace(WORKER, id="w2", queues=("mail",)))
    assert seen(peers) == [("w0", ()), ("w1", ("mail", "default")), ("w2", ("mail",))]
    await store.workers.forget(["w1"])
    assert [peer.id for peer in await store.workers.beat(replace(WORKER, id="w0"))] == ["w0", "w2"]


async def test_a_beat_tells_who_handles_the_same(store: Store, other: Store) -> None:
    await store.workers.beat(replace(WORKER, id="w1", types=("a", "b"), queues=()))
    await other.workers.beat(replace(WORKER, id="w2", types=("a",), queues=()))
    first, second, third = await other.workers.beat(replace(WORKER, id="w3", types=("a", "b")))
    assert first.handles == third.handles != second.handles


def seen(peers: Sequence[Peer]) -> list[tuple[str, tuple[str, ...]]]:
    return [(peer.id, peer.queues) for peer in peers]
