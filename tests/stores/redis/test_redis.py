"""What only the Redis store has: its scripts, its keys, lost answers, its channel."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from tests.contract.invariants import check
from tests.contract.places import RedisPlace
from tests.contract.steps import DONE, finish, get, put, start, told
from tests.support.drafts import LONG, draft, want
from tests.support.until import until
from windlass.core.history import Happened
from windlass.core.outcome import Snoozed, Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Action, Created, Filter, Granted, Held, Lease, Order, Verdict
from windlass.stores.redis.records import FIELDS
from windlass.stores.redis.records import LONG as LONG_PAYLOAD
from windlass.stores.redis.store import RedisStore

SCRIPTS = files("windlass.stores.redis") / "scripts"


def test_the_scripts_know_the_fields_by_the_same_places() -> None:
    text = (SCRIPTS / "records.lua").read_text(encoding="utf-8")
    places: dict[str, int] = {}
    for names, numbers in re.findall(r"^local ([A-Z_, ]+) = ([0-9, ]+)$", text, re.MULTILINE):
        places |= dict(zip(names.split(", "), map(int, numbers.split(", ")), strict=True))
    known = {name: place for name, place in places.items() if name.lower() in FIELDS}
    assert len(known) > 35
    assert known == {name: FIELDS.index(name.lower()) + 1 for name in known}
    assert places["REST"] == FIELDS.index("apart") + 2


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
    assert [key.decode().partition(":")[2] for key in left] == ["queues"]


async def test_a_queued_job_takes_little_memory(store: RedisStore) -> None:
    options = draft().options
    jobs = [draft()._replace(options=options) for _ in range(3000)]
    before = (await store.health())["bytes"]
    await store.jobs.insert(jobs)
    assert ((await store.health())["bytes"] - before) / len(jobs) < 700


async def test_a_record_deleted_by_hand_stops_nobody(store: RedisStore) -> None:
    gone, due, kept = draft(), draft(delay=LONG), draft()
    await put(store, gone, due, kept)
    await store.link.command("DEL", store.link.key(f"j:{gone.id}"), store.link.key(f"j:{due.id}"))
    assert [job.id for job in await store.jobs.claim(want())] == [kept.id]
    assert await store.jobs.claim(want()) == []
    await store.jobs.promote(10)
    assert [job.id for job in (await store.views.find(Filter(), 10)).jobs] == [kept.id]
    assert [queue.name for queue in await store.queues.list()] == ["default"]


class Wire:
    """Between a store and the server: can let a question through and lose its answer."""

    def __init__(self) -> None:
        self.url = ""
        self.lose = 0
        self._open: set[asyncio.StreamWriter] = set()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        there, back = await asyncio.open_connection(host, port)
        self._open |= {writer, back}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, back, answers=False))
                both.create_task(self._pass(there, writer, answers=True))
        except* OSError:
            pass
        finally:
            writer.close()
            back.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        while data := await reader.read(65536):
            if answers and self.lose:
                self.lose -= 1
                raise ConnectionResetError
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # ends the other direction, too


@asynccontextmanager
async def wire(place: RedisPlace) -> AsyncGenerator[tuple[Wire, RedisStore], None]:
    between, parts = Wire(), urlsplit(place.url)
    assert parts.hostname
    assert parts.port
    host, port = parts.hostname, parts.port
    server = await asyncio.start_server(lambda r, w: between.join(r, w, host, port), "127.0.0.1", 0)
    store = store_at(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}{parts.path}", namespace=place.namespace)
    assert isinstance(store, RedisStore)
    await store.open()
    try:
        yield between, store
    finally:
        await store.close()
        server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await server.wait_closed()


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
        assert isinstance(await store.locks.acquire("l", "ann", LONG), Held)
        assert await store.locks.release("l", granted.token)


async def test_connections_that_were_cut_are_made_anew(store: RedisStore) -> None:
    job = await start(store)
    for _ in range(3):
        await store.link.command("CLIENT KILL", "TYPE", "normal", "SKIPME", "no")
        assert not (await store.jobs.extend("w1", [Lease(job.id, 1)], LONG)).lost
    assert await store.jobs.apply([decide(job, DONE)]) == [Verdict.APPLIED]


async def test_a_cancelled_command_does_not_leave_its_answer_to_another(store: RedisStore) -> None:
    ids = await put(store, *[draft() for _ in range(50)])
    for n in range(50):
        asking = asyncio.create_task(store.views.get(ids))
        await asyncio.sleep(0.0001 * (n % 10))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert (await store.views.count(Filter())).n == 50
        assert (await get(store, ids[n])).id == ids[n]


async def test_a_command_that_is_cancelled_at_any_step_ends_so(store: RedisStore) -> None:
    for steps in range(40):
        asking = asyncio.create_task(store.link.command("PING"))
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.cancel():
            await asyncio.wait([asking])
            assert asking.cancelled()


async def test_the_channel_is_opened_again(store: RedisStore) -> None:
    rings: list[int] = []
    async with store.notices.subscribe(lambda: rings.append(1)):
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
