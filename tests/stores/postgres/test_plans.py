"""What runs all the time reads a handful of rows for each job, beside a million that wait and have ended.

The server's own counters tell what the store's statements have read, of which index, and how each row was rewritten: no
statement is repeated here. They are complete once the connections that caused them have gone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import asyncpg
import pytest

from tests.contract.steps import DONE, HOUR, get, passed, put, take
from tests.scale.lines import OWN
from tests.scale.scenes import HELD, claim_all, end, insert
from tests.support.drafts import INSTANT, LONG, draft, want
from tests.support.servers import Server, start_postgres
from tests.support.until import until
from windlass.core.job import Progress
from windlass.core.kept import Signal
from windlass.core.outcome import Gathering, Waiting
from windlass.core.rate import Rate
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import (
    Action,
    Filter,
    Full,
    Keep,
    Lease,
    Operated,
    Order,
    Report,
    Retention,
    Store,
)

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("postgres-plans")]

MANY = 200_000
"""far more than any call may read; `script/bench --scale` counts beside a million"""
QUEUES = 20
BATCH = 100

# Half of them wait, spread over queues; half have ended.
FILL = """
INSERT INTO plans.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, queued_at,
    finished_at, user_id, correlation_id, entity_name, entity_id, history
)
SELECT '01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 't' || i % 7, 'q' || i % $2::int, '{"n":1}',
    CASE WHEN i / $2::int % 2 = 0 THEN 'queued' ELSE 'succeeded' END, 100, now(), 5, 3, now(), now(), now(),
    CASE WHEN i / $2::int % 2 = 1 THEN now() END, 'u' || i / 50, 'c' || i / 50, 'e', (i / 50)::text,
    '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(1, $1::int) AS i
"""
# Jobs without a turn, in the queue of those that have one, and before them.
FILL_FAIR = """
INSERT INTO control.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, history
)
SELECT '01900001-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 't', 'fair', '{}', 'queued', 100,
    now() - interval '1 hour', 5, 3, now(), now(), '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(1, $1::int) AS i
"""
# A job that runs and one that waits for it, of each of many limits.
FILL_LINES = """
INSERT INTO lines.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, queued_at,
    worker_id, lease_token, lease_expires_at, limit_key, limit_n, blocked_by, history
)
SELECT '01900002-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 't', 'q', '{}',
    CASE WHEN i % 2 = 0 THEN 'processing' ELSE 'blocked' END, 100, now(), 5, 3, now(), now(), now(),
    CASE WHEN i % 2 = 0 THEN 'w1' END, 1 - i % 2, CASE WHEN i % 2 = 0 THEN now() + interval '1 hour' END,
    'k' || i / 2, 1, CASE WHEN i % 2 = 1 THEN 'limit:k' || i / 2 END,
    '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(0, 2 * $1::int - 1) AS i
"""
# Jobs of a type that nobody handles any more, before all others of their queue; in another order than their rows lie.
FILL_RETIRED = """
INSERT INTO retired.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, history
)
SELECT '01900003-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 'nobody handles it', 'q', '{}', 'queued', 100,
    now() - i * 7919 % 3600 * interval '1 second', 5, 3, now(), now(),
    '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(1, $1::int) AS i
"""
# Jobs that run, some of which end in a moment.
FILL_RUNNING = """
INSERT INTO held.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, worker_id,
    lease_token, lease_expires_at, started_at, history
)
SELECT '01900004-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 't', 'q', '{}', 'processing', 100, now(), 5, 3, now(),
    now(), 'w1', 1, now() + interval '1 hour', now() - interval '1 hour',
    '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(1, $1::int) AS i
"""
END_RUNNING = """
UPDATE held.windlass_jobs SET status = 'succeeded', finished_at = now(), lease_expires_at = NULL WHERE id > $1::text
"""
# Jobs that wait, each for a signal of its own, and as many that nobody has taken yet and that expire later.
FILL_STEPS = """
INSERT INTO steps.windlass_jobs (
    id, type, queue, payload, status, priority, run_at, max_attempts, max_crashes, created_at, updated_at, queued_at,
    lease_token, blocked_by, kept, expires_at, history
)
SELECT '01900005-0000-7000-8000-' || lpad(to_hex(i), 12, '0'), 't', 'q', '{}',
    CASE WHEN i % 2 = 0 THEN 'blocked' ELSE 'scheduled' END, 100, now() + interval '1 hour', 5, 3, now(), now(), now(),
    1 - i % 2, CASE WHEN i % 2 = 0 THEN 'signal:s' || i END, CASE WHEN i % 2 = 0 THEN '{"step:a":"1"}'::jsonb END,
    CASE WHEN i % 2 = 1 THEN now() + interval '2 hours' END, '{"n":1,"at":0,"what":"enqueued","status":"queued"}'
FROM generate_series(0, 2 * $1::int - 1) AS i
"""
TYPES = frozenset(f"t{n}" for n in range(7)) | {"noop"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    settings = ("fsync=off", "synchronous_commit=off", "autovacuum=off", "max_wal_size=4GB")
    with start_postgres(*[word for setting in settings for word in ("-c", setting)]) as server:
        asyncio.run(fill(server.url))
        yield server


async def fill(url: str) -> None:
    store = store_at(f"{url}?schema=plans")
    await store.open()
    await store.close()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url)
    await db.execute(FILL, MANY, QUEUES, timeout=200)
    await db.execute(
        "INSERT INTO plans.windlass_queues SELECT 'q' || i FROM generate_series(0, $1::int - 1) AS i", QUEUES
    )
    await db.execute("VACUUM ANALYZE plans.windlass_jobs", timeout=200)
    await db.close()


class Counters:
    """What the server has counted of one schema's jobs."""

    def __init__(self, url: str, schema: str) -> None:
        self._url, self.schema = url, schema

    def store(self) -> Store:
        return store_at(f"{self._url}?schema={self.schema}")

    async def during(self, call: Callable[[Store], Awaitable[object]]) -> Counter[str]:
        """Rows read by each index, and by none, and rows rewritten, while this ran."""
        before = await self._read()
        store = self.store()
        await store.open()
        try:
            await call(store)
        finally:
            await store.close()
        return await self._read() - before

    async def _read(self) -> Counter[str]:
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self._url)
        try:
            await until(lambda: _alone(db), "the store's connections to be gone")
            indexes = await db.fetch(
                "SELECT indexrelname, idx_tup_read, idx_scan FROM pg_stat_user_indexes WHERE schemaname = $1",
                self.schema,
            )
            [table] = await db.fetch(
                "SELECT seq_tup_read, n_tup_upd, n_tup_hot_upd, heap_blks_read + heap_blks_hit"
                " FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid, schemaname, relname)"
                " WHERE schemaname = $1 AND relname = 'windlass_jobs'",
                self.schema,
            )
        finally:
            await db.close()
        counted = {row[0].removeprefix("windlass_"): row[1] for row in indexes if "jobs" in row[0]}
        counted["looks"] = sum(row[2] for row in indexes if "jobs" in row[0])
        names = ("whole table", "rewritten", "in place", "pages")
        return Counter({**counted, **dict(zip(names, table, strict=True))})


@pytest.fixture
def counters(server: Server) -> Counters:
    return Counters(server.url, "plans")


def read(counted: Counter[str]) -> int:
    return sum(n for name, n in counted.items() if name.startswith("jobs_"))


@pytest.mark.parametrize("queues", [{"q1": BATCH}, {"q1": BATCH, "q3": BATCH}])
async def test_a_claim_reads_what_it_takes(counters: Counters, queues: dict[str, int]) -> None:
    async def claim(store: Store) -> None:
        for _ in range(10):
            assert len(await store.jobs.claim(want(BATCH, types=TYPES, queues=queues))) == BATCH

    counted = await counters.during(claim)
    assert counted["whole table"] == 0
    # Those taken before are passed over, dead, until a vacuum: no more than all of these.
    assert read(counted) <= 10 * BATCH * (len(queues) + 1) * 8, counted
    assert counted["jobs_ready"] >= 10 * BATCH


async def test_a_claim_from_every_queue_reads_no_more_than_their_first(counters: Counters) -> None:
    async def claim(store: Store) -> None:
        for _ in range(3):
            assert len(await store.jobs.claim(want(BATCH, types=TYPES))) == BATCH

    counted = await counters.during(claim)
    assert counted["whole table"] == 0
    assert read(counted) <= 3 * BATCH * (QUEUES + 2) * 3, counted


@pytest.mark.parametrize("named", [False, True])
async def test_jobs_that_nobody_handles_are_passed_over_without_a_look_at_their_rows(
    server: Server, named: bool
) -> None:
    counters = Counters(server.url, "retired")
    store = counters.store()
    await store.open()
    await store.close()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
    if await db.fetchval("SELECT current_setting('server_version_num')::int") < 170_000:
        pytest.skip("a list of types is looked for in this index from PostgreSQL 17 on")
    await db.execute("TRUNCATE retired.windlass_jobs")
    await db.execute(FILL_RETIRED, 20_000, timeout=100)
    await db.execute("VACUUM ANALYZE retired.windlass_jobs")
    await db.close()

    async def claim(store: Store) -> None:
        for _ in range(5):
            [id_] = await put(store, draft(queue="q"))
            [job] = await store.jobs.claim(want(5, types=TYPES, queues={"q": 5} if named else None))
            assert job.id == id_

    counted = await counters.during(claim)
    assert counted["whole table"] == 0
    assert counted["pages"] <= 500, counted


@pytest.mark.parametrize("named", [False, True])
async def test_queues_that_have_nothing_cost_nothing(server: Server, named: bool) -> None:
    counters = Counters(server.url, f"names_{named}".lower())
    names = [f"e{n}" for n in range(5_000)]

    async def claim(store: Store) -> None:
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
        await db.execute(f"INSERT INTO {counters.schema}.windlass_queues SELECT unnest($1::text[])", names)
        await db.close()
        await put(store, *[draft(queue=f"e{n}") for n in range(0, 100, 10)])
        queues = dict.fromkeys(names, 5) if named else None
        assert len(await store.jobs.claim(want(5, queues=queues))) == 5

    store = counters.store()
    await store.open()
    await store.close()
    counted = await counters.during(claim)
    assert counted["looks"] <= 150, counted
    assert read(counted) <= 300, counted


async def test_a_depth_is_counted_no_further_than_to_its_limit(counters: Counters) -> None:
    async def insert(store: Store) -> None:
        await store.queues.limit_depth("q7", 50)
        try:
            [answer] = await store.jobs.insert([draft(queue="q7")])
        finally:
            await store.queues.limit_depth("q7", None)
        assert isinstance(answer, Full)

    counted = await counters.during(insert)
    assert counted["whole table"] == 0
    assert read(counted) <= 200, counted


async def test_settling_finds_each_job_by_its_id(counters: Counters) -> None:
    async def settle(store: Store) -> None:
        for n in range(5):
            jobs = await store.jobs.claim(want(BATCH, types=TYPES, queues={f"q{5 + n}": BATCH}))
            await store.jobs.apply([decide(job, DONE) for job in jobs])

    counted = await counters.during(settle)
    assert counted["whole table"] == 0
    assert counted["jobs_running"] == 0
    assert counted["jobs_pkey"] <= 5 * BATCH * 3


async def test_heartbeats_progress_and_kept_values_touch_no_index(server: Server) -> None:
    counters = Counters(server.url, "beats")
    held: list[Lease] = []

    async def begin(store: Store) -> None:
        await put(store, *[draft() for _ in range(50)])
        held.extend(Lease(job.id, job.lease_token) for job in await store.jobs.claim(want(50)))
        # A page that is full moves its rows once; from then on there is room.
        for _ in range(2):
            await store.jobs.extend("w1", held, LONG)

    async def beat(store: Store) -> None:
        for n in range(6):
            assert not (await store.jobs.extend("w1", held, LONG)).lost
            await store.jobs.report([Report(lease, Progress(done=n)) for lease in held])
            await store.jobs.keep([Keep(lease, "saved", str(n)) for lease in held])

    store = counters.store()
    await store.open()
    await store.close()
    await counters.during(begin)
    counted = await counters.during(beat)
    assert counted["rewritten"] == 6 * 3 * 50
    assert counted["in place"] >= 0.9 * counted["rewritten"]


async def test_chores_and_views_read_a_bounded_number_of_rows(counters: Counters) -> None:
    calls: dict[str, tuple[int, Callable[[Store], Awaitable[object]]]] = {
        "promote": (100, lambda store: store.jobs.promote(100)),
        "rescue": (200, lambda store: store.jobs.rescue(100)),
        "prune nothing": (300, lambda store: store.jobs.prune(Retention(), 500)),
        "prune": (3_000, lambda store: store.jobs.prune(Retention(succeeded=timedelta(0)), 500)),
        "due": (10, lambda store: store.schedules.due(10)),
        "newest": (200, lambda store: store.views.find(Filter(), 50)),
        "by queue": (200, lambda store: store.views.find(Filter(queue="q3"), 50)),
        "by type": (200, lambda store: store.views.find(Filter(type="t3"), 50)),
        "by status": (200, lambda store: store.views.find(Filter(status=Status.SUCCEEDED), 50)),
        "by type and status": (200, lambda store: store.views.find(Filter(type="t3", status=Status.FAILED), 50)),
        "of queue and status": (200, lambda store: store.views.count(Filter(queue="q3", status=Status.RETRYING))),
        "by user": (300, lambda store: store.views.find(Filter(user_id="u77"), 50)),
        "by correlation": (300, lambda store: store.views.find(Filter(correlation_id="c77"), 50)),
        "by entity": (300, lambda store: store.views.find(Filter(entity_name="e", entity_id="77"), 50)),
        "by several statuses": (300, lambda store: store.views.find(Filter(status=FINISHED), 50)),
        "oldest first": (200, lambda store: store.views.find(Filter(queue="q3"), 50, oldest_first=True)),
        "by unique key": (10, lambda store: store.views.find(Filter(unique_key="nobody's"), 50)),
        "since": (10, lambda store: store.views.find(Filter(created_since=datetime.now(UTC) + HOUR), 50)),
        "by tag": (12_000, lambda store: store.views.find(Filter(tags=frozenset({"none"})), 50)),
        "by next": (200, lambda store: store.views.find(Filter(next_id="nobody"), 50)),
        "age": (1_000, lambda store: store.jobs.age(timedelta(0), 50, 100)),
        "one": (10, lambda store: store.views.get(["01900000-0000-7000-8000-000000000abc"])),
    }
    for name, (most, call) in calls.items():
        counted = await counters.during(call)
        assert counted["whole table"] == 0, name
        del counted["jobs_running"]  # all that runs is looked at: the tests before this one have claimed some
        assert read(counted) <= most, (name, counted)


async def test_behind_an_old_snapshot_a_rescue_looks_at_what_runs_and_a_look_for_cancels_at_what_is_cancelled(
    server: Server,
) -> None:
    counters = Counters(server.url, "held")
    store = counters.store()
    await store.open()
    await store.close()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
    old: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)

    async def rescue(store: Store) -> None:
        assert await store.jobs.rescue(100) == []
        [long] = await put(store, draft())
        [lost] = await store.jobs.claim(want(1, lease=timedelta(0)))
        assert [one.id for one in await store.jobs.rescue(100)] == [lost.id], "claimed since the first look"
        [again] = await store.jobs.claim(want(1, worker="w2"))
        assert again.id == long
        first = "01900004-0000-7000-8000-000000000001"
        await db.execute("UPDATE held.windlass_jobs SET lease_expires_at = now() WHERE id = $1", first)
        [found] = await store.jobs.rescue(100)
        assert found.id.endswith("000000000001"), "ran at the first look"
        assert await store.jobs.cancels("w1") == frozenset()

    async with old.transaction(isolation="repeatable_read"):
        await old.execute("SELECT")
        await db.execute(FILL_RUNNING, 100_000, timeout=100)
        await db.execute(END_RUNNING, "01900004-0000-7000-8000-000000000014", timeout=100)
        await db.execute("ANALYZE held.windlass_jobs")
        counted = await counters.during(rescue)
    await db.close()
    await old.close()
    assert counted["whole table"] == 0
    assert read(counted) <= 110_000, "more than the first look went by all that has ended"


async def test_promote_looks_at_a_few_lines_of_very_many_whose_holders_go_on(server: Server) -> None:
    counters = Counters(server.url, "lines")

    async def promote(store: Store) -> None:
        for _ in range(3):
            assert (await store.jobs.promote(100)).unblocked == 0

    store = counters.store()
    await store.open()
    await store.close()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
    await db.execute(FILL_LINES, 3_000)
    await db.close()
    counted = await counters.during(promote)
    assert counted["whole table"] == 0
    assert counted["looks"] <= 3 * 500, counted


async def test_plans_made_while_there_was_nothing_still_serve_when_there_is_much(server: Server) -> None:
    counters = Counters(server.url, "grown")

    async def grow(store: Store) -> None:
        for _ in range(10):
            assert await store.jobs.claim(want(BATCH, types=TYPES)) == []
        one = [draft()]
        await put(store, *one)
        [job] = await store.jobs.claim(want())
        await store.jobs.apply([decide(job, DONE)])
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
        await db.execute(FILL.replace("plans.", "grown."), 100_000, 1, timeout=100)
        await db.execute("INSERT INTO grown.windlass_queues VALUES ('q0')")
        await db.close()
        for _ in range(5):
            jobs = await store.jobs.claim(want(BATCH, types=TYPES))
            assert len(jobs) == BATCH
            await store.jobs.apply([decide(job, DONE) for job in jobs])

    store = counters.store()
    await store.open()
    await store.close()
    counted = await counters.during(grow)
    assert counted["whole table"] == 0
    assert read(counted) <= 5 * BATCH * 20


async def control(store: Store) -> None:
    """A few jobs with a rate, a turn and a flow, through their whole lives."""
    last = draft(awaits="success", queue="side")
    some = [draft(rate=Rate(5, timedelta(hours=1), "r"), queue="side") for _ in range(4)]
    some += [draft(user_id="u1", fair_by="user_id", queue="fair") for _ in range(4)]
    await put(store, last, *some, *[draft(next_id=last.id, queue="side") for _ in range(4)])
    while jobs := await store.jobs.claim(want(5, types=TYPES, queues={"side": 5})):
        await store.jobs.apply([decide(job, DONE) for job in jobs])
        await store.jobs.promote(10)
    assert len((await store.views.find(Filter(next_id=last.id), 10)).jobs) == 4


async def test_rates_turns_and_flows_read_little_beside_much_that_came_later(server: Server) -> None:
    counters = Counters(server.url, "control")

    async def grow(store: Store) -> None:
        await control(store)
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
        await db.execute(FILL.replace("plans.", "control."), 100_000, 1, timeout=100)
        await db.execute(FILL_FAIR, 20_000, timeout=100)
        await db.execute("INSERT INTO control.windlass_queues VALUES ('q0')")
        await db.close()
        await control(store)

    store = counters.store()
    await store.open()
    await store.close()
    counted = await counters.during(grow)
    assert counted["whole table"] == 0
    assert read(counted) <= 5_000, counted


async def steps(store: Store) -> None:
    """A job that keeps a value, waits for a signal, for its time and for its child; and one that nobody takes."""
    await put(store, draft(queue="steps"))
    job = await take(store, OF_STEPS)
    await store.jobs.keep([Keep(Lease(job.id, job.lease_token), "step:a", "1")])
    await store.jobs.apply([decide(job, Waiting("approved", HOUR))])
    order = Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=Signal("approved", "1"))
    assert (await store.jobs.operate([order]))[0].verdict is Operated.DONE
    await store.jobs.apply([decide(await take(store, OF_STEPS), Waiting("paid", timedelta(0)))])
    assert (await store.jobs.promote(100)).unblocked == 1
    job = await take(store, OF_STEPS)
    [child] = await put(store, draft(queue="steps", next_id=job.id, expires=INSTANT))
    await store.jobs.apply([decide(job, Gathering("all"))])
    await passed(store, (await get(store, child)).expires_at)
    assert await store.jobs.claim(OF_STEPS) == []
    assert (await store.jobs.promote(100)).expired == (child,)
    await store.jobs.apply([decide(await take(store, OF_STEPS), DONE)])


OF_STEPS = want(5, queues={"steps": 5})


async def test_steps_read_little_beside_many_that_came_later_and_wait_or_expire(server: Server) -> None:
    counters = Counters(server.url, "steps")

    async def grow(store: Store) -> None:
        for _ in range(3):
            await steps(store)
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
        await db.execute(FILL_STEPS, 20_000, timeout=100)
        await db.close()
        for _ in range(3):
            await steps(store)

    store = counters.store()
    await store.open()
    await store.close()
    counted = await counters.during(grow)
    assert counted["whole table"] == 0
    assert read(counted) <= 3_000, counted


async def _reads(db: asyncpg.Connection[asyncpg.Record], schema: str) -> Counter[str]:
    indexes = "SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1"
    tables = "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = $1"
    return Counter({name: n or 0 for query in (indexes, tables) for name, n in await db.fetch(query, schema)})


async def _vacuum(db: asyncpg.Connection[asyncpg.Record], schema: str) -> None:
    for (table,) in await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema):
        await db.execute(f'VACUUM ANALYZE "{schema}"."{table}"')


async def _bar(store: Store, kind: str, numbers: range) -> None:
    """Jobs that are each barred by a gate of their own, one that holds it and one that is put aside."""
    for _ in range(2):
        await insert(store, [draft(HELD, **OWN[kind](n)) for n in numbers])
        claimed = await claim_all(store)
        await end(store, [job for job in claimed if job.rate_key is not None])
    await store.jobs.promote(100)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("when", ["never analyzed", "analyzed while empty", "analyzed while small"])
async def test_plans_that_were_made_while_the_tables_were_small_are_good_when_they_have_grown(
    server: Server, kind: str, when: str
) -> None:
    schema, many = f"small {kind} {when}", 500
    store = store_at(f"{server.url}?schema={quote(schema)}")
    await store.open()
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(server.url)
    for (table,) in await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema):
        await db.execute(f'ALTER TABLE "{schema}"."{table}" SET (autovacuum_enabled = off)')
    if when == "analyzed while empty":
        await _vacuum(db, schema)
    if when == "analyzed while small":
        await insert(store, [draft(HELD, **OWN[kind](n)) for n in range(-20, 0)])
        await _vacuum(db, schema)
    await _bar(store, kind, range(-20, 0))
    before = await _reads(db, schema)
    await _bar(store, kind, range(many))
    await store.close()
    await until(lambda: _alone(db), "the store's connections to be gone")
    after = await _reads(db, schema)
    await db.execute(f'DROP SCHEMA "{schema}" CASCADE')
    await db.close()
    assert (after - before).total() <= 40 * many, (after - before).most_common(3)


async def _alone(db: asyncpg.Connection[asyncpg.Record]) -> bool:
    return bool(await db.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'windlass'") == 0)
