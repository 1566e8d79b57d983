"""What the server refuses, or a user gets wrong, comes as a typed error, in time, in words a user can act on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from urllib.parse import quote

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from tests.contract.steps import get, put, settle, start
from tests.support.drafts import draft
from tests.support.servers import Server, start_postgres
from windlass import SchemaMismatch, SettingsError, StoreError, StoreUnavailable
from windlass.core.history import Happened
from windlass.stores.addresses import store_at
from windlass.stores.contract import Filter, Verdict
from windlass.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.xdist_group("postgres-refusals")

INTERNALS = ("asyncpg", "Traceback", "psycopg", "DETAIL", "s3cret", "Errno", "relation")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks `guest` and `reader` for the password s3cret."""
    with start_postgres(own=True) as server:
        access = server.nodes[0].data / "pg_hba.conf"
        asked = "".join(f"host all {name} 127.0.0.1/32 scram-sha-256\n" for name in ("guest", "reader", "nobody"))
        access.write_text(asked + access.read_text())
        yield server


@pytest.fixture
async def roles(guarded: Server) -> Server:
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(guarded.url)
    await db.execute("SELECT pg_reload_conf()")
    for name in ("guest", "reader"):
        if not await db.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
            await db.execute(f"CREATE ROLE {name} LOGIN PASSWORD 's3cret'")
    await db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    await db.execute("GRANT CREATE ON DATABASE postgres TO reader")
    await db.execute("ALTER ROLE reader SET default_transaction_read_only = on")
    await db.close()
    return guarded


def at(server: Server, user: str, password: str = "s3cret", rest: str = "postgres?timeout=3") -> str:
    return f"postgresql://{user}:{password}@127.0.0.1:{server.nodes[0].port}/{rest}"


async def refused(url: str, kind: type[StoreError] = StoreUnavailable, within: float = 5.0) -> str:
    began = time.monotonic()
    store = store_at(url)
    with pytest.raises(kind) as caught:
        await store.open()
    await store.close()
    assert time.monotonic() - began < within
    said = str(caught.value)
    assert not [word for word in INTERNALS if word in said], said
    return said


async def test_a_wrong_password(roles: Server) -> None:
    assert "password" in await refused(at(roles, "guest", "wrong"))


async def test_an_unknown_user(roles: Server) -> None:
    assert "user" in await refused(at(roles, "nobody"))


async def test_an_unknown_database(roles: Server) -> None:
    assert "database" in await refused(at(roles, "guest", rest="nowhere?timeout=3"))


async def test_a_server_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert "check" in await refused(f"postgresql://127.0.0.1:{taken.getsockname()[1]}/x?timeout=1")


async def test_a_server_that_never_answers() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        await refused(f"postgresql://127.0.0.1:{deaf.getsockname()[1]}/x?timeout=1", within=4)


async def test_a_user_without_the_right_to_create(roles: Server) -> None:
    assert "CREATE" in await refused(at(roles, "guest"))
    assert "CREATE" in await refused(at(roles, "guest", rest="postgres?timeout=3&schema=fresh"))
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(roles.url)
    left = await db.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'windlass%'")
    assert (left, await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = 'fresh'")) == ([], 0)
    await db.close()


async def test_a_server_that_only_reads(roles: Server) -> None:
    assert "read-only" in await refused(at(roles, "reader", rest="postgres?timeout=3&schema=fresh"))


@pytest.mark.new_place
async def test_tables_that_are_missing(place: PostgresPlace) -> None:
    store = place.store()
    await store.open(migrate=False)
    with pytest.raises(SchemaMismatch, match="migrate"):
        await store.views.find(Filter(), 5)
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://localhost:port/x",
        "postgresql://localhost/x?schema=",
        f"postgresql://localhost/x?schema={'s' * 64}",
        "postgresql://localhost/x?schema=a%00b",
        "postgresql://localhost/x?pooler=perhaps",
        "postgresql://localhost/x?timeout=soon",
        "postgresql://localhost/x?sslmode=perhaps",
    ],
)
async def test_a_url_that_cannot_be_used(url: str) -> None:
    with pytest.raises(SettingsError):
        await store_at(url).open()


@pytest.mark.parametrize("name", ['we"ird', "it's", "Spaß $1 % {x}", 'a"; DROP SCHEMA public; --'])
async def test_any_name_of_a_schema_is_only_a_name(place: PostgresPlace, name: str) -> None:
    store = store_at(f"{place.url}?schema={quote(name)}")
    await store.open()
    try:
        job = await start(store, draft(unique="k"))
        assert await settle(store, job) is Verdict.APPLIED
        assert await store.schema.verify() == []
        assert (await store.health())["rows"] >= 0
        assert [entry.happened for entry in await store.views.history(job.id)][-1] is Happened.SUCCEEDED
    finally:
        await store.close()
        await place.run(f'DROP SCHEMA "{name.replace(chr(34), chr(34) * 2)}" CASCADE')


BAD = {
    "NUL in a payload": draft()._replace(payload_json='{"a":"\x00"}'),
    "NUL in a key": draft()._replace(unique_queued="a\x00b"),
    "half a character": draft()._replace(payload_json='{"a":"\ud800"}'),
    "no JSON at all": draft()._replace(payload_json="{"),
    "a limit beyond any number": draft()._replace(limit_key="k", limit=2**80),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_value_that_cannot_be_kept_is_refused_and_nothing_is_written(store: PostgresStore, name: str) -> None:
    with pytest.raises(StoreError) as caught:
        await store.jobs.insert([draft(), BAD[name], draft()])
    assert not [word for word in INTERNALS if word in str(caught.value)]
    assert (await store.views.count(Filter())).n == 0
    await put(store)


# 58030: the disk below the server has failed for a moment; 53100: it is full.
@pytest.mark.parametrize("state", ["58030", "53100"])
async def test_a_disk_that_fails_is_no_verdict_on_a_result(
    store: PostgresStore, place: PostgresPlace, state: str
) -> None:
    job = await start(store)
    fail = f"BEGIN RAISE EXCEPTION 'could not read block 7' USING ERRCODE = '{state}'; END"
    await place.run(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${fail}$$")
    await place.run("CREATE TRIGGER fail BEFORE UPDATE ON windlass_jobs FOR EACH ROW EXECUTE FUNCTION fail()")
    with pytest.raises(StoreUnavailable, match=f"SQLSTATE {state}"):
        await settle(store, job)
    await place.run("DROP TRIGGER fail ON windlass_jobs")
    assert await settle(store, job) is Verdict.APPLIED


async def test_numbers_beyond_double_precision_come_back_as_they_went_in(store: PostgresStore) -> None:
    text = f'{{"big":{"9" * 400},"small":1e-999,"exact":0.1000000000000000055511151231257827}}'
    [id_] = await put(store, draft(payload=text))
    assert (await get(store, id_)).payload_json == text
