"""Jobs that keep, wait, gather and expire, two stores at one moment: nothing is missed, and nothing counts twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient

from tests.contract.places import MongoPlace
from tests.contract.steps import HOUR, NEVER_AGAIN, RELEASED, get, passed, put, settle, start, status, take, told
from tests.contract.steps import cancel as cancel_job
from tests.support.drafts import INSTANT, draft, want
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Gathering, Waiting
from windlass.core.status import Status
from windlass.stores.contract import Action, Answer, Keep, Lease, Operated, Order, Verdict
from windlass.stores.mongo import operating
from windlass.stores.mongo.expiring import cancel
from windlass.stores.mongo.store import MongoStore

T = TypeVar("T")
U = TypeVar("U")
ROUNDS = 25
WAITS = Waiting("approved", HOUR)


async def opened(place: MongoPlace) -> MongoStore:
    store = place.store()
    assert isinstance(store, MongoStore)
    await store.open()
    return store


@pytest.fixture
async def store(place: MongoPlace) -> AsyncIterator[MongoStore]:
    store = await opened(place)
    yield store
    await store.close()


@pytest.fixture
async def other(place: MongoPlace) -> AsyncIterator[MongoStore]:
    """A store of another process."""
    store = await opened(place)
    yield store
    await store.close()


def order(job_id: str, text: str = "true", name: str = "approved") -> Order:
    return Order(id=job_id, action=Action.SIGNAL, actor="ann", signal=Signal(name, text))


async def signal(store: MongoStore, job_id: str, text: str = "true") -> Answer:
    [answer] = await store.jobs.operate([order(job_id, text)])
    return answer


def keep(job: Job, text: str = "1") -> Keep:
    return Keep(Lease(job.id, job.lease_token), "step:a", text)


async def together(one: Coroutine[Any, Any, T], two: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Both at one moment, now the one a little earlier and now the other."""

    async def soon(work: Coroutine[Any, Any, Any]) -> Any:
        await asyncio.sleep(random.choice((0, 0, 0.001, 0.002)))  # the moment itself is the subject
        return await work

    first, second = await asyncio.gather(soon(one), soon(two))
    return first, second


async def test_a_signal_beside_the_suspension_is_not_missed(store: MongoStore, other: MongoStore) -> None:
    for _ in range(ROUNDS):
        job = await start(store)
        verdict, answer = await together(settle(store, job, WAITS), signal(other, job.id))
        assert verdict is Verdict.APPLIED
        assert answer.verdict in (Operated.DONE, Operated.KEPT)
        moves = await told(store, job.id)
        assert sorted(moves[2:]) == [Happened.SIGNALLED, Happened.SUSPENDED]
        again = await take(store)
        assert (again.id, again.kept, again.attempts) == (job.id, {"signal:approved": True}, 1)
        await settle(store, again)


async def test_a_signal_beside_the_end_of_its_time_counts_or_is_refused(store: MongoStore, other: MongoStore) -> None:
    for _ in range(ROUNDS):
        job = await start(store)
        await settle(store, job, Waiting("approved", INSTANT))
        await passed(store, (await get(store, job.id)).run_at)
        answer, _ = await together(signal(store, job.id), other.jobs.promote(10))
        came = answer.verdict is Operated.DONE
        assert came or answer.verdict is Operated.DUPLICATE
        again = await take(store)
        assert again.kept == {"signal:approved": True if came else None}
        assert (await told(store, job.id))[3:-1] == [Happened.SIGNALLED if came else Happened.UNBLOCKED]
        await settle(store, again)


async def test_the_last_child_s_end_beside_the_gathering_lets_it_go_on_at_once(
    store: MongoStore, other: MongoStore
) -> None:
    for _ in range(ROUNDS):
        job = await start(store)
        await put(other, draft("child", next_id=job.id))
        child = await take(other, want(types={"child"}))
        ends = await together(settle(store, job, Gathering("sizes")), settle(other, child))
        assert ends == (Verdict.APPLIED, Verdict.APPLIED)
        again = await take(store)  # no promotion in between
        assert (again.id, again.attempts) == (job.id, 1)
        assert (await told(store, job.id))[2:-1] == [Happened.SUSPENDED, Happened.UNBLOCKED]
        await settle(store, again)


async def test_a_gathering_whose_process_died_behind_its_write_is_found(store: MongoStore) -> None:
    job = await start(store)
    blocked = {"status": "blocked", "blocked_by": f"flow:{job.id}", "awaits": "end"}
    await store.link.jobs.update_one({"_id": job.id}, {"$set": blocked})
    await store.jobs.promote(10)
    assert await status(store, job.id) is Status.QUEUED


async def test_a_value_kept_beside_a_rescue_is_there_or_refused(store: MongoStore, other: MongoStore) -> None:
    for _ in range(ROUNDS):
        job = await start(store, wanted=want(lease=INSTANT))
        await passed(store, job.lease_expires_at)
        verdicts, _ = await together(store.jobs.keep([keep(job)]), other.jobs.rescue(10))
        while await status(store, job.id) is not Status.QUEUED:
            await other.jobs.rescue(10)
        again = await take(store)
        assert verdicts[0] in (Verdict.APPLIED, Verdict.STALE)
        # A verdict of stale may come late: the value was kept, and its worker had lost the job since.
        assert verdicts[0] is Verdict.STALE or again.kept == {"step:a": 1}
        assert await store.jobs.keep([keep(job, "2")]) == [Verdict.STALE]
        assert (await get(store, job.id)).kept == again.kept
        await settle(store, again)


async def test_a_job_that_expires_beside_a_claim_is_leased_or_cancelled(store: MongoStore, other: MongoStore) -> None:
    for _ in range(ROUNDS):
        [job_id] = await put(store, draft(expires=timedelta(milliseconds=5)))
        claimed, promoted = await together(store.jobs.claim(want()), other.jobs.promote(10))
        while await status(store, job_id) is Status.QUEUED:
            promoted = await other.jobs.promote(10)
        leased = [job.id for job in claimed] == [job_id]
        assert promoted.expired == (() if leased else (job_id,))
        assert await status(store, job_id) is (Status.PROCESSING if leased else Status.CANCELLED)


async def test_what_a_worker_has_had_meanwhile_does_not_expire(store: MongoStore) -> None:
    job = await start(store, draft(expires=HOUR))
    before = await store.link.jobs.find_one({"_id": job.id})
    assert before is not None
    await settle(store, job, RELEASED)
    read_before = {**before, "status": "queued", "moves": before["moves"] - 1}
    assert (await cancel(store.link, [read_before], await store.now())).ids == ()
    assert await status(store, job.id) is Status.QUEUED


async def test_what_a_worker_of_an_earlier_version_took_is_not_looked_at_for_ever(store: MongoStore) -> None:
    job = await start(store, draft(expires=INSTANT * 200))
    jobs = store.link.jobs
    await jobs.update_one({"_id": job.id}, {"$set": {"begin_by": job.expires_at}})
    await passed(store, job.expires_at)
    assert (await store.jobs.promote(10)).expired == ()
    assert await status(store, job.id) is Status.PROCESSING
    assert await jobs.find_one({"begin_by": {"$exists": True}}) is None


async def test_no_job_that_has_left_or_begun_is_looked_at_as_one_that_may_expire(store: MongoStore) -> None:
    last = draft(awaits="success", expires=HOUR)
    first = draft("child", next_id=last.id, expires=HOUR)
    [taken, cancelled] = await put(store, draft(expires=HOUR), draft("other", expires=HOUR))
    await put(store, last, first)
    await take(store)
    await cancel_job(store, cancelled)
    await settle(store, await take(store, want(types={"child"})), NEVER_AGAIN)
    assert await status(store, last.id) is Status.CANCELLED
    assert (await get(store, taken)).expires_at is not None
    assert await store.link.jobs.count_documents({"begin_by": {"$exists": True}}) == 0
    assert (await store.jobs.promote(10)).next_due is None


async def test_a_claim_whose_clock_is_behind_leases_nothing_that_has_expired(store: MongoStore) -> None:
    [job_id] = await put(store, draft(expires=INSTANT))
    await passed(store, (await get(store, job_id)).expires_at)
    await store.link.look()
    vars(store.link.clock)["_ahead"] -= 0.5
    assert await store.jobs.claim(want()) == []
    assert await status(store, job_id) is Status.QUEUED


async def test_one_claim_passes_over_a_bounded_number_that_have_expired(store: MongoStore) -> None:
    ids = await put(store, *[draft(expires=INSTANT) for _ in range(1100)], draft())
    await passed(store, (await get(store, ids[-2])).expires_at)
    first = await store.jobs.claim(want(200))
    assert (list(first), first.more) == ([], True)
    while (await store.jobs.promote(500)).expired:
        pass
    assert [job.id for job in await store.jobs.claim(want())] == ids[-1:]


async def test_what_expired_before_a_free_job_is_passed_in_one_claim(store: MongoStore) -> None:
    ids = await put(store, *[draft(expires=INSTANT) for _ in range(350)], draft())
    await passed(store, (await get(store, ids[-2])).expires_at)
    assert [job.id for job in await store.jobs.claim(want())] == ids[-1:]


async def test_two_who_send_the_same_signals_are_told_apart(store: MongoStore, other: MongoStore) -> None:
    jobs = [await start(store) for _ in range(20)]
    for job in jobs:
        await settle(store, job, WAITS)
    orders = [order(job.id) for job in jobs]
    first, second = await together(store.jobs.operate(orders), other.jobs.operate(orders))
    for one, two in zip(first, second, strict=True):
        assert sorted((one.verdict, two.verdict)) == [Operated.DONE, Operated.DUPLICATE]


async def test_signals_that_are_written_again_are_known_again_though_their_jobs_have_gone_on(store: MongoStore) -> None:
    job = await start(store)
    await settle(store, job, WAITS)
    doc = await store.link.jobs.find_one({"_id": job.id})
    assert doc is not None
    mark = ObjectId()
    move = operating.decide(order(job.id), doc, await store.now(), (), mark)
    assert await operating.write(store.link, [move], mark) == {job.id}
    await take(store)
    assert await operating.write(store.link, [move], mark) == {job.id}, "as after an answer that was lost"
    assert await operating.write(store.link, [move], ObjectId()) == set()


async def test_a_signal_joins_the_callers_transaction(store: MongoStore, place: MongoPlace) -> None:
    job = await start(store)
    await settle(store, job, WAITS)
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(place.url)
    twice = [order(job.id, "1"), order(job.id, "2"), order(job.id, "3", "a.$b")]
    async with client, client.start_session() as session:
        for end in (session.abort_transaction, session.commit_transaction):
            await session.start_transaction()
            answers = await store.jobs.operate(twice, session)
            assert [answer.verdict for answer in answers] == [Operated.DONE, Operated.DUPLICATE, Operated.KEPT]
            assert await status(store, job.id) is Status.BLOCKED
            await end()
    again = await take(store)
    assert again.kept == {"signal:approved": 1, "signal:a.$b": 3}
    assert (await told(store, job.id))[3:] == [Happened.SIGNALLED, Happened.SIGNALLED, Happened.CLAIMED]
