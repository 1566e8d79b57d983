"""What only the Redis store has: its scripts, its keys, lost answers, its channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from tests.contract.invariants import check
from tests.contract.places import RedisPlace
from tests.contract.steps import DONE, finish, get, put, start, told
from tests.support.drafts import LONG, draft, want
from tests.support.forwarder import Forwarder, forwarder
from tests.support.processes import HOST
from tests.support.until import until
from windlass.core.errors import StoreError, ValueRefused
from windlass.core.history import Happened
from windlass.core.outcome import Snoozed, Succeeded
from windlass.core.schedule import Cron
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import (
    ANYTHING,
    About,
    Action,
    Created,
    Filter,
    Fired,
    Firing,
    Granted,
    Held,
    Lease,
    Notice,
    Operated,
    Order,
    Schedule,
    Verdict,
)
from windlass.stores.redis.notices import coalesced
from windlass.stores.redis.records import LONG as LONG_PAYLOAD
from windlass.stores.redis.store import RedisStore

SCRIPTS = files("windlass.stores.redis") / "scripts"


async def test_a_script_that_the_server_forgot_is_sent_again(store: RedisStore) -> None:
    await start(store)
    await store.link.command("SCRIPT FLUSH")
    job = await finish(store)
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    await check(store)


async def test_all_keys_lie_in_one_slot_of_a_cluster(store: RedisStore, place: RedisPlace) -> None:
    await finish(store, draft(user_id="u", entity_name="e", entity_id="1", correlation_id="c{x}", unique="k{y}"))
    await put(store, draft(payload=f'{{"a":"{"x" * LONG_PAYLOAD}"}}', queue="q{z}"))
    with place.client() as client:
        keys = [key.decode() for key in client.scan_iter(f"*{place.namespace}*", count=1000)]
    assert len(keys) > 10
    assert {key[: len(place.namespace) + 3] for key in keys} == {f"{{{place.namespace}}}:"}


async def test_no_view_walks_through_the_key_space(store: RedisStore) -> None:
    await store.link.command("CONFIG RESETSTAT")
    await finish(store, draft(user_id="u", schedule="s", parent_id="p"))
    for filter_ in (Filter(), Filter(user_id="u"), Filter(schedule="s", queue="default"), Filter(parent_id="p")):
        assert len((await store.views.find(filter_, 5)).jobs) == (await store.views.count(filter_)).n == 1
    await store.queues.list()
    used = await store.link.command("INFO", "commandstats")
    assert not {"cmdstat_scan", "cmdstat_keys", "cmdstat_sscan", "cmdstat_hscan", "cmdstat_zscan"} & used.keys()


async def test_a_long_payload_is_not_written_again_with_every_move(store: RedisStore) -> None:
    payload = f'{{"text":"{"x" * LONG_PAYLOAD}"}}'
    job = await finish(store, draft(payload=payload))
    assert job.payload_json == payload
    record = await store.link.command("GET", store.link.key(f"j:{job.id}"))
    assert len(record) < LONG_PAYLOAD
    assert [one.payload_json for one in (await store.views.find(Filter(), 5)).jobs] == [payload]


async def test_a_replaced_payload_may_become_long_and_short_again(store: RedisStore) -> None:
    payload = f'{{"text":"{"x" * LONG_PAYLOAD}"}}'
    held = draft(unique="k")
    await put(store, held)
    for text in (payload, '{"a":1}', payload):
        await store.jobs.insert([draft(payload=text, unique="k", on_conflict="replace")])
        assert (await get(store, held.id)).payload_json == text
    [job] = await store.jobs.claim(want())
    assert job.payload_json == payload


async def test_as_many_priorities_as_jobs_are_claimed_in_order(store: RedisStore) -> None:
    jobs = [draft(priority=-n, queue=f"q{n % 3}") for n in range(250)]
    await put(store, *jobs)
    claimed = await store.jobs.claim(want(120)) + await store.jobs.claim(want(200))
    assert [job.priority for job in claimed] == sorted(job.options.priority for job in jobs)
    await check(store)


async def test_queued_and_processing_jobs_are_told_apart_page_by_page(store: RedisStore) -> None:
    ids = await put(store, *[draft(priority=n % 3, queue=f"q{n % 2}") for n in range(24)])
    running = {job.id for job in await store.jobs.claim(want(11))}
    await store.jobs.extend("w1", [Lease(id_, 1) for id_ in sorted(running)[::2]], 2 * LONG)
    for status, expected in ((Status.PROCESSING, running), (Status.QUEUED, set(ids) - running), (None, set(ids))):
        found: list[str] = []
        after: str | None = None
        while True:
            page = await store.views.find(Filter(status=status), 3, after)
            found += [job.id for job in page.jobs]
            if (after := page.next) is None:
                break
        assert found == sorted(expected, reverse=True)
    assert await store.schema.verify() == []


async def test_jobs_that_look_alike_keep_what_is_their_own(store: RedisStore) -> None:
    options = draft().options
    jobs = [draft(payload=f'{{"n":{n}}}')._replace(options=options, limit_key=f"l{n}", limit=1) for n in range(6)]
    await put(store, *jobs)
    claimed = await store.jobs.claim(want(6))
    assert [(job.payload_json, job.limit_key) for job in claimed] == [(one.payload_json, one.limit_key) for one in jobs]
    ends = [Succeeded(f"{n}") if n % 2 else Snoozed(n * LONG) for n in range(6)]
    await store.jobs.apply([decide(job, end) for job, end in zip(claimed, ends, strict=True)])
    for n, one in enumerate(jobs):
        job = await get(store, one.id)
        assert (job.payload_json, job.limit_key) == (one.payload_json, one.limit_key)
        assert job.result_json == (f"{n}" if n % 2 else None)
        assert job.attempts == n % 2
    await check(store)


async def test_what_is_deleted_leaves_no_keys(store: RedisStore, place: RedisPlace) -> None:
    with place.client() as client:
        before = set(client.scan_iter(f"*{place.namespace}*", count=1000))
        one = draft(user_id="u", entity_name="e", entity_id="1", correlation_id="c", parent_id="p", unique="k")
        [id_] = await put(store, one)
        await store.jobs.operate([Order(id=id_, action=Action.DELETE, actor="ann")])
        left = set(client.scan_iter(f"*{place.namespace}*", count=1000)) - before
        left = {key for key in left if client.ttl(key) < 0}  # the mark of this call goes by itself
    assert [key.decode().partition(":")[2] for key in left] == ["queues"]


async def test_a_queued_job_takes_little_memory(store: RedisStore) -> None:
    options = draft().options
    jobs = [draft()._replace(options=options) for _ in range(3000)]
    before = (await store.health())["bytes"]
    await store.jobs.insert(jobs)
    assert ((await store.health())["bytes"] - before) / len(jobs) < 700


@pytest.mark.parametrize("keyed", [False, True])
async def test_all_that_is_inserted_together_is_one_script(store: RedisStore, keyed: bool) -> None:
    await put(store, draft(unique="first") if keyed else draft())  # the server has the text now
    await store.link.command("CONFIG RESETSTAT")
    options = draft().options
    made = [draft(unique=f"k{n}") if keyed else draft()._replace(options=options) for n in range(3500)]
    assert await store.jobs.insert(made) == [Created(one.id) for one in made]
    used = await store.link.command("INFO", "commandstats")
    assert used["cmdstat_evalsha"]["calls"] == 1
    await check(store)


async def test_more_than_one_script_can_take_is_refused(store: RedisStore) -> None:
    with pytest.raises(StoreError, match="at most 10000"):
        await store.jobs.insert([draft()] * 10_001)
    assert (await store.views.count(Filter())).n == 0


async def test_a_record_deleted_by_hand_stops_nobody(store: RedisStore) -> None:
    gone, due, kept = draft(), draft(delay=LONG), draft()
    await put(store, gone, due, kept)
    await store.link.command("DEL", store.link.key(f"j:{gone.id}"), store.link.key(f"j:{due.id}"))
    assert [job.id for job in await store.jobs.claim(want())] == [kept.id]
    assert await store.jobs.claim(want()) == []
    await store.jobs.promote(10)
    assert [job.id for job in (await store.views.find(Filter(), 10)).jobs] == [kept.id]
    assert [queue.name for queue in await store.queues.list()] == ["default"]


@asynccontextmanager
async def wire(place: RedisPlace) -> AsyncGenerator[tuple[Forwarder, RedisStore], None]:
    parts = urlsplit(place.url)
    assert parts.port
    async with forwarder(parts.port) as between:
        store = store_at(f"redis://{HOST}:{between.port}{parts.path}", namespace=place.namespace)
        assert isinstance(store, RedisStore)
        await store.open()
        try:
            yield between, store
        finally:
            await store.close()


async def test_a_claim_whose_answer_was_lost_gets_the_same_jobs(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        ids = await put(store, *[draft() for _ in range(5)])
        between.lose = 1
        claimed = await store.jobs.claim(want(3))
        assert [(job.id, job.lease_token) for job in claimed] == [(id_, 1) for id_ in ids[:3]]
        assert [job.id for job in await store.jobs.claim(want(3))] == ids[3:]
        await check(store)


async def test_an_insert_and_an_end_whose_answers_were_lost_happen_once(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        one = draft(unique="k", idempotency_window=LONG)
        await put(store)
        between.lose = 1
        assert await store.jobs.insert([one]) == [Created(one.id)]
        jobs = await store.jobs.claim(want())
        between.lose = 1
        assert await store.jobs.apply([decide(job, Succeeded("1")) for job in jobs]) == [Verdict.APPLIED] * 2
        assert await told(store, one.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
        await check(store)


async def test_a_lock_whose_grant_was_lost_is_the_callers(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        await put(store)
        between.lose = 1
        granted = await store.locks.acquire("l", "ann", LONG)
        assert isinstance(granted, Granted)
        assert isinstance(await store.locks.acquire("l", "bob", LONG), Held)
        assert await store.locks.release("l", granted.token)


@pytest.mark.parametrize("action", [Action.CANCEL, Action.RETRY, Action.DELETE])
async def test_an_order_whose_answer_was_lost_is_said_to_be_done(place: RedisPlace, action: Action) -> None:
    async with wire(place) as (between, store):
        [id_] = await put(store, draft(delay=LONG))
        before = len(await told(store, id_))
        between.lose = 1
        [answer] = await store.jobs.operate([Order(id=id_, action=action, actor="ann")])
        assert (answer.verdict, answer.status) == (Operated.DONE, Status.SCHEDULED)
        assert len(await told(store, id_)) == (0 if action is Action.DELETE else before + 1)
        await check(store)


async def test_what_was_asked_of_a_running_job_is_asked_once(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        job = await start(store)
        between.lose = 1
        [answer] = await store.jobs.operate([Order(id=job.id, action=Action.CANCEL, actor="ann")])
        assert (answer.verdict, answer.status) == (Operated.REQUESTED, Status.PROCESSING)
        assert (await told(store, job.id)).count(Happened.CANCEL_REQUESTED) == 1


async def test_a_tick_whose_firing_was_lost_on_the_way_back_is_the_callers(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        now = await store.now()
        tick, following = now - LONG, now + LONG
        rule = Schedule(
            name="s", cron=Cron("* * * * *", tz="UTC"), type="t", payload_json="{}", queue="default", next_tick=tick
        )
        await store.schedules.put([rule])
        made = draft(schedule="s", tick=tick)
        between.lose = 1
        fired = await store.schedules.fire([Firing(name="s", expected=tick, next_tick=following, draft=made)])
        assert fired == [Fired.FIRED]
        assert [one.fired for one in await store.schedules.ticks("s")] == [Fired.FIRED]
        between.lose = 1
        assert await store.schedules.remove(["s"]) == 1


async def test_a_lock_whose_release_was_lost_on_the_way_back_is_said_to_be_given_back(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        granted = await store.locks.acquire("l", "ann", LONG)
        assert isinstance(granted, Granted)
        between.lose = 1
        assert await store.locks.release("l", granted.token)
        assert isinstance(await store.locks.acquire("l", "bob", LONG), Granted)
        assert not await store.locks.release("l", granted.token)


async def test_connections_that_were_cut_are_made_anew(store: RedisStore) -> None:
    job = await start(store)
    for _ in range(3):
        await store.link.command("CLIENT KILL", "TYPE", "normal", "SKIPME", "no")
        assert not (await store.jobs.extend("w1", [Lease(job.id, 1)], LONG)).lost
    assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]


async def test_a_cancelled_command_does_not_leave_its_answer_to_another(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        ids = await put(store, *[draft() for _ in range(50)])
        for n in range(20):
            between.hold_answers()
            asking = asyncio.create_task(store.views.get(ids))
            await until(lambda: between.held, "the answer to be on its way")
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            next_one = asyncio.create_task(store.views.get([ids[n]]))
            await asyncio.sleep(0)  # it has taken its connection before the late answer comes
            between.let_go()
            assert [job.id for job in await next_one if job] == [ids[n]]


async def test_a_script_that_is_cancelled_does_not_leave_its_answer_to_another(place: RedisPlace) -> None:
    async with wire(place) as (between, store):
        for n in range(20):
            between.hold_answers()
            asking = asyncio.create_task(store.locks.acquire(f"a{n}", "me", LONG))
            await until(lambda: between.held, "the answer to be on its way")
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            next_one = asyncio.create_task(store.link.run("cancels", ["w"]))
            await asyncio.sleep(0)  # it has taken its connection before the late answer comes
            between.let_go()
            assert await next_one == []


@pytest.mark.parametrize("script", [True, False], ids=["script", "command"])
async def test_a_command_that_is_cancelled_at_any_step_ends_so(store: RedisStore, script: bool) -> None:
    for steps in range(40):
        call = store.link.run("cancels", ["w"]) if script else store.link.command("PING")
        asking = asyncio.create_task(call)
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.cancel():
            await asyncio.wait([asking])
            assert asking.cancelled()


async def test_the_channel_is_opened_again(store: RedisStore) -> None:
    rings: list[int] = []
    async with store.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: store.notices.healthy, "the notices to be healthy")
        await store.link.command("CLIENT KILL", "TYPE", "pubsub")
        await until(lambda: not store.notices.healthy, "the loss to be noticed")
        await until(lambda: store.notices.healthy, "the notices to be healthy again")
        rings.clear()
        await put(store)
        await until(lambda: rings, "a wake-up")


@pytest.mark.parametrize("moves", [99, 100, 101, 130])
async def test_a_history_keeps_its_newest_lines(store: RedisStore, moves: int) -> None:
    [id_] = await put(store, draft(payload='{"a": "x\\ny"}', delay=LONG, metadata_json='{\n"m": 1\n}'))
    for n in range(moves - 1):
        if claimed := await store.jobs.claim(want()):
            await store.jobs.apply([decide(claimed[0], DONE)])
        else:
            await store.jobs.operate([Order(id=id_, action=Action.RETRY, actor="ann", reason=f"line\n{n}")])
    job = await get(store, id_)
    history = await store.views.history(id_)
    assert len(history) == min(100, history[-1].number)
    assert [entry.number for entry in history] == list(range(history[0].number, history[-1].number + 1))
    assert job.metadata_json == '{\n"m": 1\n}'


@pytest.mark.parametrize("result", ["1\0", '"\ud800"'])
async def test_a_value_that_cannot_be_kept_is_refused_as_such_and_nothing_is_written(
    store: RedisStore, result: str
) -> None:
    await put(store, draft(), draft())
    one, two = await store.jobs.claim(want())
    with pytest.raises(ValueRefused, match="cannot keep a value"):
        await store.jobs.apply([decide(one, DONE), decide(two, Succeeded(result))])
    assert [(await get(store, job.id)).status for job in (one, two)] == [Status.PROCESSING] * 2


def test_notices_of_a_moment_are_told_together_but_each_draw_for_itself() -> None:
    changed, due = Notice(About.CHANGED), Notice(About.DUE)
    drawn = [Notice(About.CLAIMABLE, "mail", 2, draw) for draw in range(5)]
    assert coalesced([changed, drawn[0], changed, due, drawn[1], due]) == [drawn[0], drawn[1], changed, due]
    [all_] = coalesced([*drawn, *drawn, *drawn, *drawn])
    assert (all_.queue, all_.n) == ("mail", 40)
    [all_] = coalesced([*drawn * 4, Notice(About.CLAIMABLE, "news", 1, 7)])
    assert (all_.queue, all_.n) == (None, 41)


async def test_a_word_of_an_older_worker_is_a_hint_of_anything(store: RedisStore) -> None:
    notices: list[Notice] = []
    async with store.notices.subscribe(notices.append):
        await until(lambda: notices and store.notices.healthy, "the notices to be healthy")
        notices.clear()
        await store.link.command("PUBLISH", store.link.key("notices"), "")
        await until(lambda: notices == [ANYTHING], "the hint")


async def test_a_schedule_put_by_who_does_not_know_of_the_index_is_due(store: RedisStore) -> None:
    tick = await store.now() - LONG
    rule = Schedule(
        name="s", cron=Cron("* * * * *", tz="UTC"), type="t", payload_json="{}", queue="default", next_tick=tick
    )
    await store.schedules.put([rule])
    await store.link.command("DEL", store.link.key("upcoming"))
    assert [found.name for found in (await store.schedules.due(5)).schedules] == ["s"]
