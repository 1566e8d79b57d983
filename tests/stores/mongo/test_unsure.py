"""What was written but not acknowledged: nobody loses by it, and it counts as soon as that is known."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient

from tests.contract.steps import DONE, get, put, start
from tests.faults.mongo_failover import ReplicaSet
from tests.support.drafts import draft, want
from tests.support.processes import HOST
from tests.support.servers import start_mongo
from tests.support.until import until
from windlass import StoreUnavailable, Windlass
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Waiting
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import (
    Action,
    Answer,
    Filter,
    Keep,
    Lease,
    Operated,
    Order,
    Store,
    Verdict,
)

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("mongo-unsure")]

SHORT = timedelta(seconds=2)


class Majority:
    """A replica set of three whose followers can be made to acknowledge nothing, while its primary stays primary."""

    def __init__(self, replica: ReplicaSet) -> None:
        self._replica = replica

    def url(self) -> str:
        return self._replica.url(f"t{secrets.token_hex(8)}")

    @contextmanager
    def silent(self) -> Generator[None, None, None]:
        followers = self._replica.others(self._replica.wait_for_primary())
        for node in followers:
            self._ask(node.port, "fsync", lock=True)
        try:
            yield
        finally:
            for node in followers:
                self._ask(node.port, "fsyncUnlock")

    def _ask(self, port: int, command: str, **options: Any) -> None:
        with closing(MongoClient[dict[str, Any]](HOST, port, directConnection=True)) as client:
            client.admin.command(command, **options)


@pytest.fixture(scope="module")
def majority() -> Iterator[Majority]:
    with start_mongo(members=3, own=True) as server:
        yield Majority(ReplicaSet(server))


@pytest.fixture
async def store(majority: Majority) -> AsyncIterator[Store]:
    store = store_at(f"{majority.url()}&timeout=2")
    await store.open()
    yield store
    await store.close()


async def processing(store: Store) -> int:
    return (await store.views.count(Filter(status=Status.PROCESSING))).n


async def test_what_no_majority_acknowledged_is_handed_over_when_one_does(majority: Majority, store: Store) -> None:
    ids = await put(store, *[draft(max_crashes=1) for _ in range(40)])
    with majority.silent():
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.jobs.claim(want(20, lease=SHORT))
            assert await processing(store) == 20, "no more than it asked for at once"
    jobs: list[Job] = list(await store.jobs.claim(want(20)))
    assert [(job.id, job.crashes, job.attempts) for job in jobs] == [(id_, 0, 1) for id_ in ids[:20]]
    assert await store.jobs.apply([decide(job, DONE) for job in jobs]) == [Verdict.APPLIED] * 20
    assert [job.id for job in await store.jobs.claim(want(20))] == ids[20:]


async def test_a_worker_fails_nothing_while_no_majority_acknowledges_for_longer_than_a_lease(
    majority: Majority,
) -> None:
    app = Windlass(f"{majority.url()}&timeout=2")
    begun: list[int] = []

    @app.job(max_crashes=1)
    async def work(n: int) -> None:
        begun.append(n)

    async def longer_than_a_lease() -> bool:
        leased = (await app.jobs.find(status=Status.PROCESSING)).jobs
        now = await app.store.now()
        return any(job.started_at is not None and now - job.started_at > 1.5 * SHORT for job in leased)

    often: Any = {"lease": SHORT, "heartbeat": SHORT / 3}
    async with app:
        await app.enqueue_many(work.bind(n) for n in range(100))
        with majority.silent():
            async with asyncio.timeout(100), app.worker(concurrency=20, **often):
                await until(longer_than_a_lease, "a lease to be over if it was not renewed", within=30)
        async with app.worker(concurrency=20, drain=True, **often) as worker:
            await worker.wait()
        jobs = (await app.jobs.find(limit=200)).jobs
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert {job.crashes for job in jobs} == {0}
    assert sorted(begun) == list(range(100))


@pytest.fixture(scope="module")
def fragile() -> Iterator[str]:
    """A replica set of one whose commands can be made to fail."""
    with start_mongo(own=True, options=("--setParameter", "enableTestCommands=1")) as server:
        yield server.url


@contextmanager
def unacknowledged(url: str, mode: object = "alwaysOn") -> Generator[None, None, None]:
    """Updates are carried out, and their acknowledgement fails."""
    data = {
        "appName": "windlass",
        "failCommands": ["update"],
        "writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"},
    }
    with closing(MongoClient[dict[str, Any]](url)) as client:
        client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
        try:
            yield
        finally:
            client.admin.command("configureFailPoint", "failCommand", mode="off")


@pytest.fixture
async def doubtful(fragile: str) -> AsyncIterator[Store]:
    store = store_at(urlsplit(fragile)._replace(path=f"/t{secrets.token_hex(8)}").geturl())
    await store.open()
    yield store
    await store.close()


async def test_a_claim_in_doubt_is_handed_to_its_worker_alone_and_once(fragile: str, doubtful: Store) -> None:
    ids = await put(doubtful, *[draft() for _ in range(6)])
    with unacknowledged(fragile), pytest.raises(StoreUnavailable):
        await doubtful.jobs.claim(want(4))
    # After trouble claims keep away from the first jobs, where everybody is: it may be either of those left.
    [others] = await doubtful.jobs.claim(want(1, worker="w2"))
    assert others.id in ids[4:]
    first = await doubtful.jobs.claim(want(3))
    assert ([job.id for job in first], {job.worker_id for job in first}) == (ids[:3], {"w1"})
    assert [job.id for job in await doubtful.jobs.claim(want(3))] == ids[3:4]
    assert [job.id for job in await doubtful.jobs.claim(want(3))] == [id_ for id_ in ids[4:] if id_ != others.id]


@pytest.mark.parametrize("n", [1, 2], ids=["alone", "of many"])
async def test_a_signal_whose_answer_was_lost_is_not_taken_for_an_earlier_one(
    fragile: str, doubtful: Store, n: int
) -> None:
    jobs = [await start(doubtful) for _ in range(n)]
    await doubtful.jobs.apply([decide(job, Waiting("approved", timedelta(hours=1))) for job in jobs])
    sent = [Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1")) for job in jobs]
    with unacknowledged(fragile, {"times": 1}):
        assert await doubtful.jobs.operate(sent) == [Answer(Operated.DONE, Status.BLOCKED)] * n
    assert [(await get(doubtful, job.id)).kept for job in jobs] == [{"signal:approved": 1}] * n
    assert [answer.verdict for answer in await doubtful.jobs.operate(sent)] == [Operated.DUPLICATE] * n


async def test_a_value_whose_answer_was_lost_is_kept_once_it_is_told_again(fragile: str, doubtful: Store) -> None:
    job = await start(doubtful)
    kept = [Keep(Lease(job.id, job.lease_token), "step:a", "1")]
    with unacknowledged(fragile), pytest.raises(StoreUnavailable):
        await doubtful.jobs.keep(kept)
    assert await doubtful.jobs.keep(kept) == [Verdict.APPLIED]
    assert (await get(doubtful, job.id)).kept == {"step:a": 1}
