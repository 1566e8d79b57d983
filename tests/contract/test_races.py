"""Real concurrency: several stores on one place, each with connections and threads of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

from tests.contract.invariants import check
from tests.contract.places import Place
from tests.contract.steps import (
    BOOM,
    DONE,
    HOUR,
    NEVER_AGAIN,
    cancel,
    everything,
    finish,
    get,
    operate,
    passed,
    put,
    running,
    settle,
    start,
    statuses,
    told,
)
from tests.support.drafts import INSTANT, LONG, draft, want
from tests.support.until import until
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.limit import Limit
from windlass.core.outcome import Failed, Outcome
from windlass.core.schedule import cron
from windlass.core.status import LIVE, Status
from windlass.core.transition import decide
from windlass.stores.contract import (
    Action,
    Created,
    Duplicate,
    Filter,
    Fired,
    Firing,
    Granted,
    Lease,
    Operated,
    Schedule,
    Store,
    Verdict,
)

ENDINGS = {Happened.SUCCEEDED, Happened.FAILED, Happened.LOST, Happened.RETRYING}


async def ends(store: Store, job_id: str) -> list[Happened]:
    return [happened for happened in await told(store, job_id) if happened in ENDINGS]


async def in_threads(store: Store, n: int, work: Callable[[Store], Awaitable[None]]) -> None:
    """Do the work n times at once, each in a thread with an event loop and a store of its own."""

    async def alone() -> None:
        mine = store.sibling()
        await mine.open()
        try:
            await work(mine)
        finally:
            await mine.close()

    await asyncio.gather(*[asyncio.to_thread(asyncio.run, alone()) for _ in range(n)])


async def test_claimers_never_share_a_job(crowd: list[Store]) -> None:
    ids = await put(crowd[0], *[draft() for _ in range(200)])
    claimed: list[tuple[str, int]] = []

    async def claim(store: Store, worker: str) -> None:
        while jobs := await store.jobs.claim(want(7, worker=worker)):
            claimed.extend((job.id, job.lease_token) for job in jobs)
            assert {job.worker_id for job in jobs} == {worker}

    await asyncio.gather(*[claim(store, f"w{n}") for n, store in enumerate(crowd * 2)])
    assert sorted(claimed) == [(id_, 1) for id_ in ids]
    _, histories = await check(crowd[0])
    assert {len(history) for history in histories} == {2}


async def test_claimers_in_threads_of_their_own_never_share_a_job(store: Store) -> None:
    ids = await put(store, *[draft() for _ in range(200)])
    claimed: list[str] = []

    async def claim(mine: Store) -> None:
        while jobs := await mine.jobs.claim(want(9, worker=str(id(mine)))):
            claimed.extend(job.id for job in jobs)

    await in_threads(store, 4, claim)
    assert sorted(claimed) == ids
    await check(store)


async def test_everything_inserted_at_once_is_done_once(crowd: list[Store]) -> None:
    done: list[str] = []
    total = 5 * 40

    async def produce(store: Store) -> None:
        for _ in range(8):
            await put(store, *[draft() for _ in range(5)])

    async def consume(store: Store) -> None:
        while len(done) < total:
            for job in await store.jobs.claim(want(6, worker=store.address)):
                assert await settle(store, job) is Verdict.APPLIED
                done.append(job.id)

    async with asyncio.timeout(15):
        await asyncio.gather(*[produce(store) for store in crowd], *[consume(store) for store in crowd])
    assert len(set(done)) == len(done) == total
    _, histories = await check(crowd[0])
    assert {len(history) for history in histories} == {3}


async def test_two_settlers_of_one_token_have_one_effect(crowd: list[Store]) -> None:
    store = crowd[0]
    await put(store, *[draft() for _ in range(30)])
    jobs = await store.jobs.claim(want(30))

    async def both(n: int, job: Job) -> None:
        outcomes: list[Outcome] = [DONE, NEVER_AGAIN, Failed(BOOM, after=HOUR)]
        tries = [settle(crowd[(n + m) % len(crowd)], job, outcome) for m, outcome in enumerate(outcomes)]
        assert await asyncio.gather(*tries) == [Verdict.APPLIED] * 3

    await asyncio.gather(*[both(n, job) for n, job in enumerate(jobs)])
    for job in jobs:
        [ended] = await ends(store, job.id)
        assert (await get(store, job.id)).status.value == ended.value
    await check(store)
    minutes = (await store.views.stats(timedelta(minutes=5))).minutes
    assert sum(minute.n for minute in minutes) == 30


async def test_a_settlement_repeated_within_a_larger_one_is_counted_once(store: Store) -> None:
    await put(store, *[draft() for _ in range(40)])
    jobs = await store.jobs.claim(want(40))
    transitions = [decide(job, DONE) for job in jobs]
    for one, two in zip(transitions[::2], transitions[1::2], strict=True):
        await asyncio.gather(store.jobs.apply([one]), store.jobs.apply([one, two]))
    minutes = (await store.views.stats(timedelta(minutes=5))).minutes
    assert sum(minute.n for minute in minutes) == 40
    await check(store)


async def test_a_rescuer_and_a_settler_never_both_win(crowd: list[Store]) -> None:
    store, *others = crowd
    await put(store, *[draft() for _ in range(60)])
    jobs = await store.jobs.claim(want(60, lease=INSTANT))
    await passed(store, jobs[-1].lease_expires_at)
    verdicts: dict[str, Verdict] = {}
    rescued: list[str] = []

    async def settle_all(mine: Store, some: list[Job]) -> None:
        for job in some:
            verdicts[job.id] = await settle(mine, job)

    async def rescue_all(mine: Store) -> None:
        while found := await mine.jobs.rescue(3):
            rescued.extend(one.id for one in found)

    settlers = [settle_all(others[0], jobs[::2]), settle_all(others[1], jobs[1::2])]
    await asyncio.gather(*settlers, rescue_all(others[2]), rescue_all(others[3]))
    assert len(set(rescued)) == len(rescued)
    for job in jobs:
        won = verdicts[job.id] is Verdict.APPLIED
        assert won != (job.id in rescued)
        assert await ends(store, job.id) == [Happened.SUCCEEDED if won else Happened.LOST]
        assert (Happened.REFUSED in await told(store, job.id)) != won
    await check(store)


async def test_a_rescuer_and_an_extension_never_both_win(crowd: list[Store]) -> None:
    store, *others = crowd
    await put(store, *[draft() for _ in range(30)])
    jobs = await store.jobs.claim(want(30, lease=INSTANT))
    await passed(store, jobs[-1].lease_expires_at)
    lost: set[str] = set()
    rescued: set[str] = set()

    async def extend(mine: Store) -> None:
        for job in reversed(jobs):
            lost.update((await mine.jobs.extend("w1", [Lease(job.id, job.lease_token)], LONG)).lost)

    async def rescue(mine: Store) -> None:
        while found := await mine.jobs.rescue(1):
            rescued.update(one.id for one in found)

    await asyncio.gather(extend(others[0]), rescue(others[1]), rescue(others[2]))
    assert lost == rescued
    for job in jobs:
        assert (await get(store, job.id)).status is (Status.QUEUED if job.id in rescued else Status.PROCESSING)
    await check(store)


async def test_a_cancel_and_a_claim_agree(crowd: list[Store]) -> None:
    store, *others = crowd
    ids = await put(store, *[draft() for _ in range(40)])
    answers: dict[str, Operated] = {}
    claimed: set[str] = set()

    async def cancel_all(mine: Store) -> None:
        for id_ in reversed(ids):
            answers[id_] = (await operate(mine, id_, Action.CANCEL)).verdict

    async def claim_all(mine: Store) -> None:
        while jobs := await mine.jobs.claim(want(1)):
            claimed.update(job.id for job in jobs)

    await asyncio.gather(cancel_all(others[0]), claim_all(others[1]))
    for id_ in ids:
        assert answers[id_] is (Operated.REQUESTED if id_ in claimed else Operated.DONE)
        assert (Happened.CLAIMED in await told(store, id_)) == (id_ in claimed)
    await check(store)


async def test_many_inserts_of_one_unique_key_leave_one_holder_that_all_are_told_of(crowd: list[Store]) -> None:
    drafts = [draft(unique="k") for _ in range(64)]
    found = await asyncio.gather(*[crowd[n % 5].jobs.insert([one]) for n, one in enumerate(drafts)])
    verdicts = [verdict for [verdict] in found]
    [holder] = [verdict for verdict in verdicts if isinstance(verdict, Created)]
    assert verdicts.count(Duplicate(holder.id, "k")) == 63
    assert [job.id for job in await everything(crowd[0])] == [holder.id]
    assert await told(crowd[0], holder.id) == [Happened.ENQUEUED]
    await check(crowd[0])


async def test_many_inserts_of_the_same_work_leave_one_job(crowd: list[Store]) -> None:
    drafts = [draft(idempotency_window=HOUR) for _ in range(64)]
    found = await asyncio.gather(*[crowd[n % 5].jobs.insert([one]) for n, one in enumerate(drafts)])
    counted = Counter(type(verdict) for [verdict] in found)
    assert counted == {Created: 1, Duplicate: 63}
    assert len(await everything(crowd[0])) == 1


async def test_one_insert_sent_many_times_is_one_job(crowd: list[Store]) -> None:
    one = draft(unique="k", idempotency_window=HOUR)
    found = await asyncio.gather(*[store.jobs.insert([one]) for store in crowd * 5])
    assert found == [[Created(one.id)]] * 25
    assert await told(crowd[0], one.id) == [Happened.ENQUEUED]


async def test_a_key_handed_on_while_many_insert_has_one_holder_at_any_time(crowd: list[Store]) -> None:
    store, runner, *others = crowd
    created: list[str] = []
    named: set[str] = set()
    inserting = len(others)

    async def insert(mine: Store) -> None:
        nonlocal inserting
        for _ in range(25):
            [verdict] = await mine.jobs.insert([draft(unique="k")])
            if isinstance(verdict, Created):
                created.append(verdict.id)
            elif isinstance(verdict, Duplicate):
                named.add(verdict.id)
            holders = [job.id for job in await everything(mine) if job.status in LIVE]
            assert len(holders) <= 1
        inserting -= 1

    async def run() -> None:
        while inserting or (await runner.views.count(Filter(status=Status.QUEUED))).n:
            for job in await runner.jobs.claim(want()):
                await settle(runner, job)

    await asyncio.gather(*[insert(mine) for mine in others], run())
    assert len(set(created)) == len(created)
    assert named <= set(created)
    assert {job.id for job in await everything(store)} == set(created)
    await check(store)


async def test_a_limit_is_never_exceeded_and_everyone_gets_a_turn(crowd: list[Store]) -> None:
    ids = await put(crowd[0], *[draft(limit=Limit("k", 2)) for _ in range(40)])
    most = 0

    async def work(mine: Store, worker: str) -> None:
        nonlocal most
        while (await mine.views.count(Filter(status=Status.SUCCEEDED))).n < len(ids):
            for job in await mine.jobs.claim(want(3, worker=worker)):
                most = max(most, (await mine.views.count(Filter(status=Status.PROCESSING))).n)
                await settle(mine, job)

    async with asyncio.timeout(15):
        await asyncio.gather(*[work(mine, f"w{n}") for n, mine in enumerate(crowd)])
    assert 1 <= most <= 2
    assert set(await statuses(crowd[0], ids)) == {Status.SUCCEEDED}
    await check(crowd[0])


async def test_a_running_key_is_never_shared_and_everyone_gets_a_turn(crowd: list[Store]) -> None:
    ids = await put(crowd[0], *[draft(unique=running("k")) for _ in range(30)])

    async def work(mine: Store, worker: str) -> None:
        while (await mine.views.count(Filter(status=Status.SUCCEEDED))).n < len(ids):
            for job in await mine.jobs.claim(want(3, worker=worker)):
                assert (await mine.views.count(Filter(status=Status.PROCESSING))).n == 1
                await settle(mine, job)

    async with asyncio.timeout(15):
        await asyncio.gather(*[work(mine, f"w{n}") for n, mine in enumerate(crowd)])
    assert set(await statuses(crowd[0], ids)) == {Status.SUCCEEDED}
    await check(crowd[0])


async def test_a_tick_fired_by_many_makes_one_job(crowd: list[Store]) -> None:
    store = crowd[0]
    tick = (await store.now()).replace(second=0, microsecond=0) - HOUR
    for n in range(10):
        at = tick + n * timedelta(minutes=1)
        await store.schedules.put(
            [Schedule(name=f"s{n}", cron=cron("* * * * *"), type="noop", payload_json="{}", queue="q", next_tick=at)]
        )
        firings = [
            Firing(name=f"s{n}", expected=at, next_tick=at + HOUR, draft=draft(schedule=f"s{n}", tick=at))
            for _ in crowd
        ]
        found = await asyncio.gather(*[mine.schedules.fire([one]) for mine, one in zip(crowd, firings, strict=True)])
        assert Counter(fired for [fired] in found) == {Fired.FIRED: 1, Fired.STALE: 4}
        [job] = await everything(store, Filter(schedule=f"s{n}"))
        assert [(one.tick, one.job_id) for one in await store.schedules.ticks(f"s{n}")] == [(at, job.id)]
        assert await told(store, job.id) == [Happened.ENQUEUED]


async def test_a_lock_wanted_by_many_is_granted_to_one(crowd: list[Store]) -> None:
    found = await asyncio.gather(*[store.locks.acquire("l", f"o{n}", HOUR) for n, store in enumerate(crowd * 4)])
    assert sum(isinstance(one, Granted) for one in found) == 1


async def test_a_full_queue_takes_no_more_than_its_depth_from_many(crowd: list[Store]) -> None:
    await crowd[0].queues.limit_depth("small", 10)
    drafts = [draft(queue="small") for _ in range(40)]
    found = await asyncio.gather(*[crowd[n % 5].jobs.insert([one]) for n, one in enumerate(drafts)])
    assert sum(isinstance(verdict, Created) for [verdict] in found) == 10
    assert len(await everything(crowd[0])) == 10


async def test_retries_by_many_operators_of_jobs_with_one_key_queue_one(crowd: list[Store]) -> None:
    ended = [await finish(crowd[0], draft(unique="k")) for _ in range(5)]
    answers = await asyncio.gather(
        *[operate(store, job.id, Action.RETRY) for store, job in zip(crowd, ended, strict=True)]
    )
    assert Counter(answer.verdict for answer in answers) == {Operated.DONE: 1, Operated.DUPLICATE: 4}
    [holder] = await everything(crowd[0], Filter(status=Status.QUEUED))
    assert {answer.holder for answer in answers} == {None, holder.id}
    await check(crowd[0])


async def test_migrators_in_threads_of_their_own_make_one_schema(place: Place) -> None:
    versions: list[int] = []

    async def migrate(mine: Store) -> None:
        assert await mine.schema.migrate() == []
        versions.append(await mine.schema.version())
        assert await mine.schema.verify() == []

    await in_threads(place.store(), 4, migrate)
    assert len(set(versions)) == 1


async def test_a_worker_asked_to_stop_by_another_process_is_told(crowd: list[Store]) -> None:
    job = await start(crowd[0])
    await cancel(crowd[1], job.id)

    async def asked() -> bool:
        return job.id in await crowd[0].jobs.cancels("w1")

    await until(asked, "the request to arrive")
    assert await told(crowd[0], job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.CANCEL_REQUESTED]
