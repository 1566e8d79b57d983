"""What only MongoDB has: servers without a replica set, users and their roles, change streams that break."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.database import AsyncDatabase

from tests.contract.places import MongoPlace, mongo_url
from tests.contract.steps import get, put, settle, take, told
from tests.support.drafts import draft, want
from tests.support.processes import HOST, Node, Server, free_ports, new_home
from tests.support.servers import listens, program, start_mongo
from tests.support.until import until
from windlass.core.errors import SettingsError, StoreError, StoreUnavailable, TransactionRefused, ValueRefused
from windlass.core.history import Happened
from windlass.core.outcome import Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Store, Verdict
from windlass.stores.given import store_of
from windlass.stores.mongo.claiming import Claiming
from windlass.stores.mongo.connection import Clock
from windlass.stores.mongo.store import MongoStore

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def launch(*args: str) -> Server:
    home, [port] = new_home("mongo"), free_ports(1)
    node = Node(name="mongo", port=port, home=home, command=[], ready=listens)
    node.data.mkdir()
    options = ["--bind_ip", HOST, "--port", str(port), "--dbpath", str(node.data), "--nounixsocket"]
    node.command = [str(program("mongo", "mongod")), *options, "--wiredTigerCacheSizeGB", "0.25", *args]
    return Server(name="mongo", url=f"mongodb://{HOST}:{port}/shop", nodes=[node], home=home).launch()


@pytest.fixture(scope="module")
def alone() -> Iterator[str]:
    """A standalone server."""
    with launch() as server:
        yield server.url


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A server that asks who is there, with a user who may write and one who may only read."""
    with launch("--auth") as server:
        client: MongoClient[dict[str, Any]] = MongoClient(server.url)
        with client:
            admin: dict[str, Any] = {"pwd": "p", "roles": [{"role": "root", "db": "admin"}]}
            client.admin.command("createUser", "root", **admin)
        users: MongoClient[dict[str, Any]] = MongoClient(server.url, username="root", password="p", authSource="admin")
        with users:
            users["shop"].command("createUser", "writer", pwd="p", roles=["readWrite"])
            users["shop"].command("createUser", "reader", pwd="p", roles=["read"])
        yield server.url


@pytest.fixture
async def store(place: MongoPlace) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


async def test_a_standalone_server_works_by_polling_and_says_so(alone: str) -> None:
    store = store_at(alone)
    await store.open()
    try:
        found = store.capabilities
        assert (found.transactions, found.push, len(found.warnings)) == (False, False, 1)
        [id_] = await put(store, draft(unique="k"))
        assert await settle(store, await take(store)) is Verdict.APPLIED
        assert (await get(store, id_)).status is Status.SUCCEEDED
        async with store.notices.subscribe(lambda _: None):
            assert not store.notices.healthy
        client: MongoClient[dict[str, Any]] = MongoClient(alone)
        with client, client.start_session() as session, pytest.raises(TransactionRefused):
            store.jobs.insert_now([draft()], session)
    finally:
        await store.close()


def as_user(url: str, name: str, password: str = "p") -> str:
    return url.replace("mongodb://", f"mongodb://{name}:{password}@")


async def test_a_user_who_may_write_in_the_one_database_is_enough(guarded: str) -> None:
    store = store_at(as_user(guarded, "writer"))
    await store.open()
    await put(store)
    assert await store.schema.verify() == []
    assert "p@" not in store.address
    await store.close()


@pytest.mark.parametrize(("user", "password"), [("writer", "wrong"), ("nobody", "p"), ("reader", "p")])
async def test_who_may_not_is_told_so_without_secrets(guarded: str, user: str, password: str) -> None:
    store = store_at(as_user(guarded, user, password))
    with pytest.raises(StoreUnavailable) as found:
        await store.open()
        await put(store)  # one who may only read is stopped at the first write
    await store.close()
    assert user not in str(found.value)
    assert "Topology" not in str(found.value)


async def test_a_server_that_is_not_there_is_told_of_within_the_timeout() -> None:
    [port] = free_ports(1)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as found:
        await store_at(f"mongodb://ann:secret@{HOST}:{port}/shop?timeout=0.5").open()
    assert time.monotonic() - began < 5
    assert "secret" not in str(found.value)
    assert "Topology" not in str(found.value)


@pytest.mark.parametrize("url", ["mongodb:///shop", "mongodb://h/a.b", "mongodb://h/a?timeout=x"])
def test_a_url_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(SettingsError):
        store_at(url)


@pytest.mark.parametrize(("asked", "most"), [("", 32), ("&maxPoolSize=7", 7)])
async def test_it_makes_a_few_connections_unless_it_is_told_otherwise(place: MongoPlace, asked: str, most: int) -> None:
    given = AsyncMongoClient[dict[str, Any]](place.url + asked)
    for store in (store_at(place.url + asked), store_of(given)):
        assert isinstance(store, MongoStore)
        await store.open()
        assert store.link.client.options.pool_options.max_pool_size == most
        await store.close()
    await given.close()


async def test_a_port_that_is_no_number_is_refused() -> None:
    with pytest.raises(SettingsError):
        await store_at("mongodb://h:port/shop").open()


async def test_a_store_that_is_not_open_says_so() -> None:
    with pytest.raises(StoreError, match="not open"):
        await store_at("mongodb://localhost/shop").views.get(["x"])


async def test_a_stream_whose_collection_is_dropped_opens_again(store: Store) -> None:
    rings: list[int] = []
    async with store.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: store.notices.healthy, "the stream")
        client: MongoClient[dict[str, Any]] = MongoClient(mongo_url())
        with client:
            client[urlsplit(store.address).path[1:]].drop_collection("windlass_jobs")
        await until(lambda: not store.notices.healthy, "the stream to break")
        await until(lambda: store.notices.healthy, "the stream to open again")
        other = store.sibling()
        await other.open()
        rings.clear()
        await put(other)
        await until(lambda: rings, "a wake-up")
        await other.close()


@pytest.fixture(scope="module")
def fragile() -> Iterator[str]:
    """A replica set of one whose commands can be made to fail."""
    with start_mongo(own=True, options=("--setParameter", "enableTestCommands=1")) as server:
        yield server.url


@contextmanager
def failing(url: str, commands: list[str], code: int, times: int) -> Generator[None]:
    """The next so many commands of windlass fail with this error."""
    client: MongoClient[dict[str, Any]] = MongoClient(url)
    data = {"failCommands": commands, "errorCode": code, "appName": "windlass"}
    with client:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": times}, data=data)
        yield
        client.admin.command("configureFailPoint", "failCommand", mode="off")


# ChangeStreamFatalError, ChangeStreamHistoryLost, CappedPositionLost, CursorNotFound, Interrupted
@pytest.mark.parametrize("code", [280, 286, 136, 43, 11601])
async def test_a_stream_that_breaks_wakes_everybody_and_opens_again(fragile: str, code: int) -> None:
    store = store_at(urlsplit(fragile)._replace(path=f"/t{secrets.token_hex(8)}").geturl())
    other = store.sibling()
    await store.open()
    await other.open()
    rings: list[int] = []
    async with store.notices.subscribe(lambda _: rings.append(1)):
        await until(lambda: store.notices.healthy, "the stream")
        rings.clear()
        # The driver opens the stream again by itself after errors that it thinks will pass: those must fail as well.
        with failing(fragile, ["getMore", "aggregate"], code, times=3):
            await until(lambda: rings, "a wake-up, because something may have been missed")
        await until(lambda: store.notices.healthy, "the stream to be open again")
        rings.clear()
        await put(other)
        await until(lambda: rings, "a wake-up by the new stream")
    await other.close()
    await store.close()


async def test_an_end_that_was_written_but_not_known_to_be_durable_is_asked_for_again(fragile: str) -> None:
    store = store_at(urlsplit(fragile)._replace(path=f"/t{secrets.token_hex(8)}").geturl())
    await store.open()
    [id_], job = await put(store), await take(store)
    await put(store)
    other = await take(store)
    client: MongoClient[dict[str, Any]] = MongoClient(fragile)
    with client:
        refused = {"failCommands": ["update"], "writeConcernError": {"code": 64, "errmsg": "waiting timed out"}}
        client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=refused)
        with pytest.raises(StoreUnavailable, match="majority"):
            await settle(store, job)
        client.admin.command("configureFailPoint", "failCommand", mode="off")
        assert (await get(store, id_)).status is Status.SUCCEEDED
        assert await settle(store, job) is Verdict.APPLIED
        # Asked for again by the call itself, where a majority answers soon enough.
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=refused)
        assert await settle(store, other) is Verdict.APPLIED
    for ended in (job, other):
        assert await told(store, ended.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    await store.close()


@pytest.mark.parametrize("result", ['"\ud800"', f'"{"x" * 17_000_000}"'], ids=["no text", "too large"])
async def test_a_result_that_cannot_be_kept_is_refused_as_such(store: Store, result: str) -> None:
    [id_] = await put(store)
    job = await take(store)
    with pytest.raises(ValueRefused, match="cannot keep a value"):
        await store.jobs.apply([decide(job, Succeeded(result))])
    assert (await get(store, id_)).status is Status.PROCESSING
    assert await settle(store, job) is Verdict.APPLIED


async def test_a_job_that_the_server_shows_twice_is_claimed_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Claiming._ask  # pyright: ignore[reportPrivateUsage]  # the one place where the server's rows come in

    async def twice(self: Claiming, *args: Any, told: bool) -> tuple[dict[str, int], list[dict[str, Any]]]:
        heads, rows = await ask(self, *args, told=told)
        return heads, [*rows, *[dict(row) for row in rows]]

    monkeypatch.setattr(Claiming, "_ask", twice)
    ids = await put(store, draft(), draft(), draft())
    assert [job.id for job in await store.jobs.claim(want())] == ids


def test_the_clock_is_never_ahead_of_the_server_nor_behind_what_it_showed() -> None:
    local = [100.0]
    clock = Clock(lambda: local[0])
    assert not clock.fresh
    clock.see(NOON, 100.0)
    assert (clock.fresh, clock()) == (True, NOON)
    local[0] += 1
    clock.see(NOON + timedelta(milliseconds=500), 100.5)  # a slow reply
    assert clock() == NOON + timedelta(seconds=1)
    clock.see(NOON + timedelta(milliseconds=1200), 101.0)
    assert clock() == NOON + timedelta(milliseconds=1200)
    clock.see(NOON, 100.9)  # set back: it should have shown more when it was asked
    assert clock() == NOON
    local[0] += 60
    assert not clock.fresh
    clock.see(NOON, 101.0)  # a very slow reply, but what was known is old
    assert clock() == NOON


async def test_a_router_is_told_of_with_what_it_cannot_keep(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = AsyncDatabase[Any].command

    async def answer(self: AsyncDatabase[Any], command: Any, *args: Any, **options: Any) -> Any:
        """What a mongos says of itself: the driver's answer, but for the two fields that tell."""
        said = await asked(self, command, *args, **options)
        if command == "hello":
            said = {**{name: value for name, value in said.items() if name != "setName"}, "msg": "isdbgrid"}
        return said

    monkeypatch.setattr(AsyncDatabase, "command", answer)
    routed = store.sibling()
    await routed.open()
    try:
        found = routed.capabilities
        assert (found.transactions, found.push, len(found.warnings)) == (True, True, 1)
        assert "behind mongos: leave windlass's collections unsharded" in found.warnings[0]
        assert "clocks of all routers" in found.warnings[0]
        assert (await routed.health())["topology"] == "sharded cluster"
    finally:
        await routed.close()
    assert (store.capabilities.warnings, (await store.health())["topology"]) == ((), "replica set")


async def test_figures_of_a_minute_are_counted_in_several_documents(store: Store) -> None:
    jobs = 24
    await put(store, *[draft() for _ in range(jobs)])
    for _ in range(jobs):
        assert await settle(store, await take(store, want(1))) is Verdict.APPLIED
    name = urlsplit(store.address).path[1:]
    with MongoClient[dict[str, Any]](mongo_url()) as client:
        minutes = client.get_database(name)["windlass_minutes"]
        await until(lambda: sum(row["n"] for row in minutes.find()) == jobs, "all of them to be counted")
        parts = [row["_id"]["part"] for row in minutes.find({}, {"_id": 1})]
    assert len(set(parts)) > 1, "those who count at the same moment would wait for each other at one document"
