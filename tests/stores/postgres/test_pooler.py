"""Behind a pooler that gives out another server connection with every transaction."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.contract.invariants import check
from tests.contract.places import PostgresPlace, postgres_url
from tests.contract.steps import DONE, HOUR, finish, get, passed, put, settle, start, status, take
from tests.support.apps import until_status
from tests.support.drafts import INSTANT, LONG, draft, want
from tests.support.processes import HOST, Node, Server, free_ports, give, new_home, not_root
from tests.support.servers import listens
from windlass import Status, Windlass
from windlass.core.kept import Signal
from windlass.core.limit import Limit
from windlass.core.outcome import Gathering, Waiting
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import Action, Created, Duplicate, Granted, Keep, Lease, Operated, Order, Verdict
from windlass.stores.postgres.store import PostgresStore

pytestmark = [pytest.mark.timeout(60), pytest.mark.xdist_group("postgres-pooler")]

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@pytest.fixture(scope="module")
def pooler() -> Iterator[str]:
    """The tests' server through PgBouncer in transaction mode, with so few connections that they are shared."""
    if PGBOUNCER is None:
        pytest.skip("no pgbouncer here: script/setup tests installs it as root on Debian and its kin")
    server = postgres_url()
    home, [port] = new_home("pgbouncer"), free_ports(1)
    node = Node(name="pgbouncer", port=port, home=home, command=[], ready=listens)
    node.account = not_root()
    node.data.mkdir(mode=0o700)
    at = server.rpartition("@")[2].partition("/")[0]
    host, _, there = at.partition(":")
    (node.data / "pgbouncer.ini").write_text(
        "[databases]\n"
        f"postgres = host={host} port={there} dbname=postgres user=postgres\n"
        "[pgbouncer]\n"
        f"listen_addr = {HOST}\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 3\nserver_round_robin = 1\n"
    )
    give(node.data, node.account)
    give(node.data / "pgbouncer.ini", node.account)
    node.command = [PGBOUNCER, str(node.data / "pgbouncer.ini")]
    with Server(
        name="pgbouncer", url=f"postgresql://postgres@{HOST}:{port}/postgres", nodes=[node], home=home
    ).launch():
        yield f"postgresql://postgres@{HOST}:{port}/postgres"


@pytest.fixture
async def pooled(pooler: str, place: PostgresPlace) -> AsyncIterator[PostgresStore]:
    store = store_at(f"{pooler}?schema={place.schema}")
    assert isinstance(store, PostgresStore)
    await store.open()
    yield store
    await store.close()


async def test_a_pooler_is_noticed_and_told_of(pooled: PostgresStore, store: PostgresStore) -> None:
    assert not pooled.capabilities.push
    assert any("pooler" in warning for warning in pooled.capabilities.warnings)
    assert store.capabilities.push
    assert not any("pooler" in warning for warning in store.capabilities.warnings)
    async with pooled.notices.subscribe(lambda _: None):
        assert not pooled.notices.healthy


async def test_everything_works_through_a_pooler(pooled: PostgresStore) -> None:
    stores = [pooled, *[pooled.sibling() for _ in range(3)]]
    for one in stores[1:]:
        await one.open()
    try:
        await put(pooled, *[draft(limit=Limit(f"l{n % 3}", 2)) for n in range(30)], *[draft() for _ in range(70)])
        done: list[str] = []

        async def work(store: PostgresStore, name: str) -> None:
            while len(done) < 100:
                jobs = await store.jobs.claim(want(7, worker=name))
                leases = [Lease(job.id, job.lease_token) for job in jobs]
                assert not (await store.jobs.extend(name, leases, LONG)).lost
                assert set(await store.jobs.apply([decide(job, DONE) for job in jobs])) <= {Verdict.APPLIED}
                done.extend(job.id for job in jobs)

        async with asyncio.timeout(30):
            await asyncio.gather(*[work(store, f"w{n}") for n, store in enumerate(stores)])
        assert len(set(done)) == len(done) == 100
        await check(pooled)
    finally:
        for one in stores[1:]:
            await one.close()


async def test_keys_schedules_and_operators_through_a_pooler(pooled: PostgresStore) -> None:
    [held] = await put(pooled, draft(unique="k", delay=HOUR))
    other = draft(unique="k")
    assert await pooled.jobs.insert([other]) == [Duplicate(held, "k")]
    assert isinstance(await pooled.locks.acquire("l", "me", HOUR), Granted)
    assert (await pooled.jobs.promote(10)).next_due is not None
    job = await finish(pooled)
    assert await settle(pooled, job) is Verdict.APPLIED
    assert await status(pooled, held) is Status.SCHEDULED
    assert (await get(pooled, job.id)).result == "done"


async def test_steps_through_a_pooler(pooled: PostgresStore) -> None:
    job = await start(pooled)
    keep = Keep(Lease(job.id, job.lease_token), "step:a", "1")
    assert await pooled.jobs.keep([keep]) == [Verdict.APPLIED]
    assert await settle(pooled, job, Waiting("approved", HOUR)) is Verdict.APPLIED
    order = Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "true"))
    assert [answer.verdict for answer in await pooled.jobs.operate([order])] == [Operated.DONE]
    again = await take(pooled)
    assert again.kept == {"step:a": 1, "signal:approved": True}
    [child] = await put(pooled, draft(next_id=again.id, expires=INSTANT))
    assert await settle(pooled, again, Gathering("all")) is Verdict.APPLIED
    await passed(pooled, (await get(pooled, child)).expires_at)
    assert (await pooled.jobs.promote(10)).expired == (child,)
    assert (await take(pooled)).id == again.id


async def test_a_worker_runs_behind_a_pooler_by_polling(pooler: str, place: PostgresPlace) -> None:
    app = Windlass(f"{pooler}?schema={place.schema}")

    @app.job()
    async def work(n: int) -> int:
        return n + 1

    async with app.worker():
        handle = await work.enqueue(1)
        assert (await until_status(handle, Status.SUCCEEDED)).result == 2
    app.close()


async def test_a_transaction_through_a_pooler_carries_an_enqueue(
    pooled: PostgresStore, pooler: str, store: PostgresStore
) -> None:
    import psycopg

    one = draft(unique="x")
    with psycopg.connect(pooler, prepare_threshold=None) as db:
        assert pooled.jobs.insert_now([one], db) == [Created(one.id)]
    assert await status(store, one.id) is Status.QUEUED


async def test_doctor_says_that_notices_do_not_pass_the_pooler(
    pooled: PostgresStore, pooler: str, place: PostgresPlace
) -> None:
    assert await pooled.schema.version()
    assert "no notice passes the connection pooler" in await notices_told(f"{pooler}?schema={place.schema}")
    assert await notices_told(f"{place.url}?schema={place.schema}") == "changes arrive by push"


async def notices_told(url: str) -> str:
    doctor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", "--store", url, "doctor", "--json"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await doctor.communicate()
    [found] = [one["found"] for one in map(json.loads, out.splitlines()) if one["check"] == "notices"]
    return str(found)
