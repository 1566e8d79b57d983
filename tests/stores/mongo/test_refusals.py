"""What the server or the driver refuses comes as a typed error, in time, in words a user can act on."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect

from tests.support.apps import completing_refused, nothing_left
from tests.support.drafts import draft, want
from tests.support.processes import HOST, Node, Server, free_ports, new_home
from tests.support.servers import MONGOD, elect, listens, program, start_mongo
from tests.support.until import until_sync
from windlass import PayloadInvalid, StoreError, StoreUnavailable, Windlass
from windlass.stores.addresses import store_at
from windlass.stores.contract import Created, Filter, Store

pytestmark = [pytest.mark.timeout(60), pytest.mark.xdist_group("mongo-refusals")]

INTERNALS = (
    "pymongo",
    "Topology",
    "ServerDescription",
    "servers:",
    "Traceback",
    "OperationFailure",
    "errmsg",
    "{",
    "s3cret",
)
TIMEOUT = 2


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_mongo() as server:
        yield server


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks who is there: root, a writer and a reader, all with the password s3cret."""
    if os.environ.get("WINDLASS_TEST_MONGO_URL") and not os.environ.get("WINDLASS_TEST_MONGO_BIN"):
        pytest.skip("a borrowed server (WINDLASS_TEST_MONGO_URL) has no users of ours")
    mongod, home, [port] = program("mongo", "mongod"), new_home("mongo"), free_ports(1)
    (home / "key").write_text("a key that members share between themselves".replace(" ", ""))
    (home / "key").chmod(0o600)
    node = Node(name="mongo", port=port, home=home, command=[], ready=listens)
    node.data.mkdir()
    node.command = [
        *(str(mongod), "--bind_ip", HOST, "--port", str(port), "--dbpath", str(node.data), *MONGOD),
        *("--keyFile", str(home / "key")),
    ]
    server = Server(name="mongo", url=f"mongodb://{HOST}:{port}/windlass?replicaSet=rs0", nodes=[node], home=home)
    server.settle = lambda: admit(node)
    with server.launch():
        yield server


def admit(node: Node) -> None:
    elect([node])
    root: MongoClient[dict[str, Any]] = MongoClient(HOST, node.port, directConnection=True)
    with root:

        def made() -> bool:
            try:
                root.admin.command("createUser", "root", pwd="s3cret", roles=["root"])
            except AutoReconnect:
                return False
            return True

        until_sync(made, "the first user to be made")
    address = f"mongodb://root:s3cret@{HOST}:{node.port}/?directConnection=true"
    known: MongoClient[dict[str, Any]] = MongoClient(address)
    with known:
        for name, role in (("writer", "readWrite"), ("reader", "read")):
            known.admin.command("createUser", name, pwd="s3cret", roles=[{"role": role, "db": "shop"}])


def as_user(server: Server, user: str, password: str = "s3cret") -> str:
    parts = urlsplit(server.url)
    return f"mongodb://{user}:{password}@{parts.netloc}/shop?replicaSet=rs0&authSource=admin&timeout={TIMEOUT}"


def patient(url: str, database: str) -> str:
    parts = urlsplit(url)
    query = "&".join([*filter(None, [parts.query]), f"timeout={TIMEOUT}"])
    return parts._replace(path=f"/{database}", query=query).geturl()


def check_words(error: StoreError) -> str:
    said = str(error)
    assert [word for word in INTERNALS if word in said] == [], said
    return said


async def refusal(url: str, *, migrate: bool = True) -> StoreError:
    """What opening says, twice: a refusal leaves nothing behind that would make the next try hang."""
    async with nothing_left():
        store = store_at(url)
        with pytest.raises(StoreError):
            await store.open(migrate=migrate)
        begun = time.monotonic()
        with pytest.raises(StoreError) as caught:
            await store.open(migrate=migrate)
        assert time.monotonic() - begun < TIMEOUT + 3
        with pytest.raises(StoreError, match="not open"):
            await store.jobs.insert([draft()])
        check_words(caught.value)
        assert "s3cret" not in store.address
        return caught.value


@asynccontextmanager
async def opened(url: str, *, migrate: bool = True) -> AsyncGenerator[Store, None]:
    async with nothing_left():
        store = store_at(url)
        await store.open(migrate=migrate)
        yield store
        await store.close()


async def test_a_wrong_password_or_user_is_told_of(guarded: Server) -> None:
    for url in (as_user(guarded, "writer", "wrong"), as_user(guarded, "nobody")):
        error = await refusal(url)
        assert isinstance(error, StoreUnavailable)
        assert "password" in str(error)


async def test_a_server_that_asks_who_is_there_is_told_of(guarded: Server) -> None:
    error = await refusal(patient(guarded.url, "shop"))
    assert isinstance(error, StoreUnavailable)


async def test_nobody_there_is_told_of_in_time() -> None:
    [port] = free_ports(1)
    error = await refusal(f"mongodb://{HOST}:{port}/shop?timeout={TIMEOUT}")
    assert isinstance(error, StoreUnavailable)
    assert str(port) in str(error)


async def test_a_name_that_leads_nowhere_is_told_of_in_time() -> None:
    assert isinstance(await refusal(f"mongodb://nowhere.invalid/shop?timeout={TIMEOUT}"), StoreUnavailable)


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server((HOST, 0)) as silent:
        port = silent.getsockname()[1]
        error = await refusal(f"mongodb://writer:s3cret@{HOST}:{port}/shop?timeout={TIMEOUT}")
        assert isinstance(error, StoreUnavailable)


async def test_a_replica_set_of_another_name_is_told_of_in_time(server: Server) -> None:
    url = patient(server.url, "shop").replace("replicaSet=rs0", "replicaSet=another")
    assert isinstance(await refusal(url), StoreError)


async def test_a_user_who_may_only_read_can_look_and_is_refused_the_rest(guarded: Server) -> None:
    async with opened(as_user(guarded, "writer")) as store:
        await store.jobs.insert([one := draft()])
    async with opened(as_user(guarded, "reader"), migrate=False) as store:
        assert (await store.views.count(Filter())).n == 1
        assert (await store.views.get([one.id]))[0] is not None
        for call in (store.jobs.insert([draft()]), store.jobs.claim(want())):
            begun = time.monotonic()
            with pytest.raises(StoreError) as caught:
                await call
            assert time.monotonic() - begun < TIMEOUT + 3
            assert "role readWrite" in check_words(caught.value)
        assert (await store.views.count(Filter())).n == 1


async def test_a_user_who_may_only_read_cannot_make_the_schema(guarded: Server) -> None:
    url = as_user(guarded, "reader")
    parts = urlsplit(url)
    error = await refusal(parts._replace(path="/elsewhere").geturl())
    assert "readWrite" in str(error)


async def test_a_job_too_large_for_a_document_is_refused_before_it_is_sent(server: Server) -> None:
    url = patient(server.url, f"large_{time.time_ns()}")
    large = {"text": "x" * 17_000_000}
    client: MongoClient[dict[str, Any]] = MongoClient(server.url)
    with client:

        def received() -> int:
            return int(client.admin.command("serverStatus")["network"]["bytesIn"])

        async with Windlass(url) as app:
            before = received()
            with pytest.raises(PayloadInvalid):
                await app.enqueue("noop", large)
            assert received() - before < 1_000_000
            # A store is never handed such a draft by the client; a caller of its own gets the store's own refusal.
            with pytest.raises(StoreError) as caught:
                await app.store.jobs.insert([draft(payload=json.dumps(large))])
            check_words(caught.value)
            assert not isinstance(caught.value, StoreUnavailable), "trying again would not help"
            assert (await app.store.views.count(Filter())).n == 0
            small = draft()
            assert await app.store.jobs.insert([small]) == [Created(small.id)], "the connection is as good as before"


@pytest.mark.parametrize("name", ["$set", "a.b", ".", "$", "$where", "a.$.b", "__proto__", "_id", ""])
async def test_any_member_name_of_a_payload_survives(server: Server, name: str) -> None:
    payload = {"data": {name: {name: [1, {name: None}]}}}
    database = f"names_{time.time_ns()}"
    app = Windlass(patient(server.url, database))
    got: list[dict[str, Any]] = []

    @app.job()
    async def keep(data: dict[str, Any]) -> dict[str, Any]:
        got.append(data)
        return data

    async with app:
        handle = await keep.enqueue(payload["data"])
        await app.worker(drain=True).run()
        job = await handle.job()
        assert job.payload == payload
        assert job.result == payload["data"] == got[0]


async def test_a_job_cannot_be_completed_in_a_transaction_and_its_handler_is_told_what_else_it_can_do(
    server: Server,
) -> None:
    told = await completing_refused(Windlass(server.url))
    assert "TransactionRefused" in told
    assert "idempotent by ctx.origin" in told
    assert "PostgreSQL or SQLite" in told
