"""Durable steps and expiry, as only Redis has them: keys of their own, lost answers, older workers, full memory."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.contract.invariants import check
from tests.contract.places import RedisPlace
from tests.contract.steps import HOUR, cancel, expired, get, operate, passed, put, settle, start, status, take, told
from tests.stores.redis.test_lines import commands
from tests.stores.redis.test_redis import wire
from tests.support.drafts import INSTANT, LONG, draft, want
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Gathering, Waiting
from windlass.core.status import Status
from windlass.stores.contract import Action, Answer, Keep, Lease, Operated, Order, Store, Verdict
from windlass.stores.redis.schema import MIGRATIONS
from windlass.stores.redis.store import RedisStore

WAITS = Waiting("approved", HOUR)
PASSED_OVER = 500
"""how many expired jobs one claim passes over"""


def keep(job: Job, name: str = "step:a", text: str = "1") -> Keep:
    return Keep(Lease(job.id, job.lease_token), name, text)


async def signal(store: Store, job_id: str) -> Answer:
    order = Order(id=job_id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "true"))
    [answer] = await store.jobs.operate([order])
    return answer


async def test_a_value_whose_answer_was_lost_is_kept_once(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        job = await start(store)
        between.lose = 1
        assert await store.jobs.keep([keep(job), keep(job, text="2")]) == [Verdict.APPLIED] * 2
        assert (await get(store, job.id)).kept == {"step:a": 2}


@pytest.mark.parametrize("waits", [True, False])
async def test_a_signal_whose_answer_was_lost_is_no_duplicate_of_itself(place: RedisPlace, waits: bool) -> None:
    async with wire(place) as (between, store):
        job = await start(store)
        if waits:
            await settle(store, job, WAITS)
        between.lose = 1
        verdict = Operated.DONE if waits else Operated.KEPT
        assert await signal(store, job.id) == Answer(verdict, Status.BLOCKED if waits else Status.PROCESSING)
        assert (await told(store, job.id)).count(Happened.SIGNALLED) == 1
        assert (await signal(store, job.id)).verdict is Operated.DUPLICATE


@pytest.mark.parametrize("there", [True, False])
async def test_a_wait_whose_answer_was_lost_begins_once(place: RedisPlace, there: bool) -> None:
    async with wire(place) as (between, store):
        job = await start(store)
        if there:
            await signal(store, job.id)
        between.lose = 1
        assert await settle(store, job, WAITS) is Verdict.APPLIED
        assert await status(store, job.id) is (Status.QUEUED if there else Status.BLOCKED)
        assert (await told(store, job.id)).count(Happened.SUSPENDED) == 1
        await check(store)


async def test_what_a_job_keeps_is_not_written_again_with_every_move(store: RedisStore) -> None:
    job = await start(store)
    large = json.dumps("x" * 10_000)
    await store.jobs.keep([keep(job, text=large)])
    await settle(store, job)
    record = await store.link.command("GET", store.link.key(f"j:{job.id}"))
    assert len(record) < 1000
    assert (await get(store, job.id)).kept_json == json.dumps({"step:a": large})


async def test_a_claim_hands_over_a_long_payload_beside_what_was_kept(store: RedisStore) -> None:
    payload = json.dumps({"text": "x" * 1000})
    job = await start(store, draft(payload=payload))
    await store.jobs.keep([keep(job, "saved", "7")])
    await settle(store, job, Waiting("approved", HOUR))
    await signal(store, job.id)
    again = await take(store)
    assert (again.payload_json, again.kept) == (payload, {"saved": 7, "signal:approved": True})
    assert await get(store, job.id) == again


@pytest.mark.parametrize("expires", [None, HOUR])
async def test_a_job_with_steps_that_is_deleted_leaves_no_keys(
    store: RedisStore, place: RedisPlace, expires: None
) -> None:
    with place.client() as client:
        await start(store)
        before = set(client.scan_iter(f"*{place.namespace}*", count=1000))
        job = await start(store, draft("other", expires=expires))
        await store.jobs.keep([keep(job)])
        await settle(store, job, WAITS)
        late = draft("other", expires=HOUR, delay=HOUR)
        await put(store, late)
        for job_id in (job.id, late.id):
            assert (await operate(store, job_id, Action.DELETE)).verdict is Operated.DONE
        left = set(client.scan_iter(f"*{place.namespace}*", count=1000)) - before
        left = {key for key in left if client.ttl(key) < 0}  # marks and figures go by themselves
    assert {key.decode().partition(":")[2] for key in left} <= {"minutes"}


async def test_what_has_expired_is_passed_over_once(store: RedisStore) -> None:
    ids = await put(store, *[draft(expires=INSTANT) for _ in range(PASSED_OVER + 100)])
    await passed(store, (await get(store, ids[-1])).expires_at)
    plain = await put(store)
    first, second = await store.jobs.claim(want()), await store.jobs.claim(want())
    assert (list(first), first.more) == ([], True), "so many are enough for one claim"
    assert [job.id for job in second] == plain
    await commands(store)
    assert await store.jobs.claim(want()) == []
    assert await commands(store) < 20
    assert {await status(store, job_id) for job_id in ids} == {Status.QUEUED}
    assert sorted((await store.jobs.promote(1000)).expired) == sorted(ids)
    assert {await status(store, job_id) for job_id in ids} == {Status.CANCELLED}
    await check(store)


async def test_no_more_expire_at_a_time_than_asked_for(store: RedisStore) -> None:
    ids = await put(store, *[draft(expires=INSTANT) for _ in range(7)])
    await passed(store, (await get(store, ids[-1])).expires_at)
    assert [len((await store.jobs.promote(3)).expired) for _ in range(4)] == [3, 3, 1, 0]


async def test_many_that_expire_are_inserted_by_one_script(store: RedisStore) -> None:
    await put(store, draft(expires=HOUR))  # the server has the text now
    options = draft(expires=HOUR).options
    made = [draft()._replace(options=options) for _ in range(200)]
    await store.link.command("CONFIG RESETSTAT")
    await put(store, *made)
    used = await store.link.command("INFO", "commandstats")
    assert used["cmdstat_evalsha"]["calls"] == 1
    assert used["cmdstat_zadd"]["calls"] <= 5
    assert {(await get(store, one.id)).expires_at for one in made[::50]} == {(await get(store, made[0].id)).expires_at}


async def test_jobs_that_wait_are_in_no_line_that_a_sweep_looks_at(store: RedisStore) -> None:
    job = await start(store)
    await settle(store, job, WAITS)
    assert await store.link.command("EXISTS", store.link.key("blocked")) == 0


async def test_an_older_worker_that_moved_a_waiting_job_leaves_nothing_to_be_done_twice(store: RedisStore) -> None:
    job = await start(store)
    await settle(store, job, Waiting("approved", INSTANT))
    await signal(store, job.id)
    [taken] = await put(store, draft("other", expires=HOUR))
    running = await take(store, want(types={"other"}))
    for name, job_id in (("due", job.id), ("expiring", taken)):
        await store.link.command("ZADD", store.link.key(name), 1, job_id)
    promoted = await store.jobs.promote(10)
    assert (promoted.promoted, promoted.unblocked, promoted.expired, promoted.next_due) == (0, 0, (), None)
    assert await status(store, job.id) is Status.QUEUED
    assert await get(store, taken) == running


async def test_a_layout_from_before_steps_is_migrated(store: RedisStore, place: RedisPlace) -> None:
    await place.pretend_version(1)
    later = list(MIGRATIONS[1:])
    assert later[0] == "0002_steps"
    assert await store.schema.pending() == later
    assert f"schema {len(MIGRATIONS)}" in store.schema.statements(1)
    assert await store.schema.migrate() == later
    assert await store.schema.pending() == []
    assert await store.schema.verify() == []


async def test_the_last_child_may_end_while_its_parent_begins_to_wait(store: RedisStore) -> None:
    for _ in range(10):
        parent = await start(store)
        child = await start(store, draft("child", next_id=parent.id))
        await asyncio.gather(settle(store, parent, Gathering("sizes")), settle(store, child))
        again = await take(store)
        assert again.id == parent.id
        await settle(store, again)


async def test_a_value_beside_a_rescue_is_kept_or_told_as_stale(store: RedisStore) -> None:
    for _ in range(10):
        job = await expired(store)
        [verdict], rescued = await asyncio.gather(store.jobs.keep([keep(job)]), store.jobs.rescue(10))
        assert [one.job.id for one in rescued] == [job.id]
        again = await take(store)
        assert again.kept == ({"step:a": 1} if verdict is Verdict.APPLIED else {})
        await settle(store, again)


async def test_a_signal_beside_the_wait_for_it_is_never_lost(store: RedisStore) -> None:
    for _ in range(10):
        job = await start(store)
        verdict, answer = await asyncio.gather(settle(store, job, WAITS), signal(store, job.id))
        assert verdict is Verdict.APPLIED
        assert answer.verdict in (Operated.DONE, Operated.KEPT)
        again = await take(store)
        assert (again.id, again.kept) == (job.id, {"signal:approved": True})
        await settle(store, again)


async def test_a_job_that_is_replaced_while_it_waits_for_a_signal_is_due_no_more(store: RedisStore) -> None:
    job = await start(store, draft(unique="u", delay=None))
    await settle(store, job, WAITS)
    await store.jobs.insert([draft(unique="u", on_conflict="replace", delay=LONG)])
    assert await status(store, job.id) is Status.SCHEDULED
    await cancel(store, job.id)
    assert (await store.jobs.promote(10)).next_due is None
