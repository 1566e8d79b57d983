"""What runs all the time finds its documents by the index made for it, however many have ended.

The server's own profiler tells what each command of the store examined and by which index: no query is repeated here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.write_concern import WriteConcern

from tests.contract.steps import DONE, finish, passed, put, settle, take
from tests.support.apps import nothing_left
from tests.support.drafts import INSTANT, draft, new_id, want
from tests.support.servers import Server, start_mongo
from windlass.core.draft import make_id
from windlass.core.job import Job
from windlass.core.kept import Signal
from windlass.core.outcome import Waiting
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.addresses import store_at
from windlass.stores.contract import MOST_LOOKED_AT, Action, Filter, Keep, Lease, Order, Store, cursor_after
from windlass.stores.mongo.jobs import MongoJobs

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("mongo-plans")]

FINISHED = 200_000
"""far more than any call may look at; `script/bench --scale` counts beside a million"""
EACH = 50
"""finished jobs of each user, entity and correlation"""


@dataclass
class Looked:
    """What one command did."""

    command: str
    documents: int
    keys: int
    plan: dict[str, Any]

    def stages(self) -> list[dict[str, Any]]:
        return list(_stages(self.plan))


def _stages(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "stage" in plan:
        yield plan
    for name in ("inputStage", "thenStage", "elseStage", "outerStage", "innerStage"):
        if name in plan:
            yield from _stages(plan[name])
    for name in ("inputStages", "shards"):
        for inner in plan.get(name, ()):
            yield from _stages(inner)


class Profiled:
    """One database with many finished jobs, whose profiler is asked what a call of the store cost."""

    def __init__(self, store: Store, database: Database[dict[str, Any]]) -> None:
        self.store = store
        self._database = database

    async def during(self, call: Callable[[], Awaitable[object]]) -> list[Looked]:
        """Every command on the jobs that the call sent."""
        since = self._database.client.admin.command("hello")["localTime"]
        self._database.command("profile", 2)
        try:
            await call()
        finally:
            self._database.command("profile", 0)
        asked = {"appName": "windlass", "ts": {"$gte": since}}
        seen = self._database.get_collection("system.profile").find(asked).sort("$natural", 1).to_list()
        looked: list[Looked] = []
        for one in seen:
            if one["ns"] == f"{self._database.name}.windlass_jobs":
                found = one.get("docsExamined", 0), one.get("keysExamined", 0), one.get("execStats", {})
                looked.append(Looked(one["op"], *found))
            looked += [self._explained(pipeline) for pipeline in _joined(one.get("command", {}))]
        assert looked, "it sent no command about the jobs"
        return looked

    def _explained(self, pipeline: list[dict[str, Any]]) -> Looked:
        """What a part of an aggregation costs now: the profiler tells only of the whole."""
        aggregate: dict[str, Any] = {"aggregate": "windlass_jobs", "pipeline": pipeline, "cursor": {}}
        told: dict[str, Any] = self._database.command("explain", aggregate, verbosity="executionStats")
        first: dict[str, Any] = told["stages"][0]["$cursor"] if "stages" in told else told
        stats: dict[str, Any] = first["executionStats"]
        return Looked("aggregate", stats["totalDocsExamined"], stats["totalKeysExamined"], stats["executionStages"])


def _joined(command: dict[str, Any]) -> list[list[dict[str, Any]]]:
    unions = [stage["$unionWith"] for stage in command.get("pipeline", ()) if "$unionWith" in stage]
    return [union["pipeline"] for union in unions if union["coll"] == "windlass_jobs"]


def indexes(looked: list[Looked]) -> set[str]:
    return {stage["indexName"] for one in looked for stage in one.stages() if "indexName" in stage}


def documents(looked: list[Looked]) -> int:
    return sum(one.documents for one in looked)


def assert_no_scan(looked: list[Looked]) -> None:
    assert not [stage for one in looked for stage in one.stages() if stage["stage"] == "COLLSCAN"]


def assert_no_sort(looked: list[Looked]) -> None:
    assert not [stage for one in looked for stage in one.stages() if stage["stage"] == "SORT"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_mongo(cache_gb=1) as server:
        yield server


@pytest.fixture(scope="module")
def model(server: Server) -> Iterator[Database[dict[str, Any]]]:
    """A database to which the first test adds the many finished jobs."""
    client: MongoClient[dict[str, Any]] = MongoClient(server.url)
    with client:
        database = client.get_database(f"plans_{time.time_ns()}")
        yield database
        client.drop_database(database.name)


@asynccontextmanager
async def opened(server: Server, name: str) -> AsyncGenerator[Store, None]:
    async with nothing_left():
        store = store_at(urlsplit(server.url)._replace(path=f"/{name}").geturl())
        await store.open()
        yield store
        await store.close()


def multiply(database: Database[dict[str, Any]], job_id: str) -> None:
    """Copy a finished job, as the store wrote it, many times."""
    jobs = database.get_collection("windlass_jobs", write_concern=WriteConcern(w=1))
    model = jobs.find_one({"_id": job_id})
    assert model is not None
    for start in range(0, FINISHED, 10_000):
        copies: list[dict[str, Any]] = []
        for number in range(start, start + 10_000):
            group = str(number // EACH)
            of = {"user_id": f"u{group}", "entity_id": group, "correlation_id": group}
            assert of.keys() <= model.keys()
            copies.append({**model, **of, "_id": make_id(1_600_000_000_000 + number, number)})
        jobs.insert_many(copies, ordered=False)


@pytest.fixture
async def profiled(server: Server, model: Database[dict[str, Any]]) -> AsyncGenerator[Profiled, None]:
    async with opened(server, model.name) as store:
        if await store.views.get([FIRST]) == [None]:
            about = {"user_id": "u1", "entity_name": "order", "entity_id": "1", "correlation_id": "1"}
            await finish(store, draft(id=FIRST, **about))
            await asyncio.to_thread(multiply, model, FIRST)  # the driver must hear from its server meanwhile
        yield Profiled(store, model)


FIRST = new_id()


async def test_a_claim_examines_at_most_two_documents_for_each_job(profiled: Profiled) -> None:
    await put(profiled.store, *(draft() for _ in range(300)))
    await profiled.store.jobs.claim(want(n=10))
    claimed: list[Any] = []

    async def claim() -> None:
        claimed.extend(await profiled.store.jobs.claim(want(n=100)))

    looked = await profiled.during(claim)
    assert len(claimed) == 100
    assert documents(looked) <= 2 * len(claimed), looked
    assert "ready" in indexes(looked)
    assert_no_scan(looked)
    assert_no_sort(looked)


async def test_a_claim_behind_another_examines_none_of_the_other_s(profiled: Profiled) -> None:
    jobs = profiled.store.jobs
    assert isinstance(jobs, MongoJobs)
    await jobs.claim(want(n=1000))  # what is left of other tests
    ids = await put(profiled.store, *(draft() for _ in range(300)))
    # As if another claim were about to lease the first hundred.
    jobs._claiming._writing.update(ids[:100])  # pyright: ignore[reportPrivateUsage]  # nobody else can see it
    claimed: list[Job] = []

    async def claim() -> None:
        claimed.extend(await jobs.claim(want(n=100)))

    looked = await profiled.during(claim)
    assert [job.id for job in claimed] == ids[100:200]
    assert documents(looked) <= 2 * len(claimed), looked
    assert_no_scan(looked)
    assert_no_sort(looked)


async def test_an_idle_claim_examines_no_document(profiled: Profiled) -> None:
    await put(profiled.store, *(draft() for _ in range(50)))
    nothing = want(types={"nothing"})
    await profiled.store.jobs.claim(nothing)
    looked = await profiled.during(lambda: profiled.store.jobs.claim(nothing))
    assert documents(looked) == 0, looked
    assert_no_scan(looked)


async def test_the_end_of_an_attempt_examines_its_own_job(profiled: Profiled) -> None:
    looked = await profiled.during(lambda: finish(profiled.store, draft("ending")))
    assert documents(looked) <= 6, looked  # claimed, read back and ended: each finds it by its id
    assert_no_scan(looked)


async def test_chores_look_only_at_what_is_due(profiled: Profiled) -> None:
    later = [draft(delay=timedelta(hours=1)) for _ in range(100)]
    due = [draft("due", delay=timedelta(milliseconds=300)) for _ in range(20)]
    await put(profiled.store, *later, *due)
    await passed(profiled.store, await profiled.store.now() + timedelta(milliseconds=400))
    promoted: list[int] = []

    async def promote() -> None:
        promoted.append((await profiled.store.jobs.promote(1000)).promoted)

    looked = await profiled.during(promote)
    assert promoted == [20]
    assert documents(looked) <= 3 * 20 + 5, looked
    assert "due" in indexes(looked)
    assert_no_scan(looked)

    lost = await profiled.store.jobs.claim(want(n=20, types={"due"}, lease=INSTANT))
    await passed(profiled.store, lost[0].lease_expires_at)
    rescued: list[int] = []

    async def rescue() -> None:
        rescued.append(len(await profiled.store.jobs.rescue(1000)))

    running = await profiled.store.views.count(Filter(status=Status.PROCESSING))
    looked = await profiled.during(rescue)
    assert rescued == [20]
    assert documents(looked) <= running.n + 2 * 20, looked  # those that run are few, and all are looked at
    assert "status" in indexes(looked)
    assert_no_scan(looked)


async def test_waits_that_are_over_and_what_has_expired_are_found_beside_many_that_are_not(profiled: Profiled) -> None:
    store, hour = profiled.store, timedelta(hours=1)
    await put(store, *(draft("waits") for _ in range(120)))
    jobs = await store.jobs.claim(want(n=120, types={"waits"}))
    waits = [Waiting("approved", hour if n < 100 else INSTANT) for n in range(120)]
    await store.jobs.apply([decide(job, wait) for job, wait in zip(jobs, waits, strict=True)])
    # Fewer than a page of the views: other tests count on it that few jobs are cancelled.
    await put(store, *(draft("waits", expires=hour if n < 100 else INSTANT) for n in range(105)))
    await passed(store, await store.now() + timedelta(milliseconds=50))
    moved: list[tuple[int, int]] = []

    async def promote() -> None:
        promoted = await store.jobs.promote(1000)
        moved.append((promoted.unblocked, len(promoted.expired)))

    looked = await profiled.during(promote)
    assert moved == [(20, 5)]
    assert documents(looked) <= 2 * (20 + 5) + 10, looked  # read and written, and when the next is due
    assert {"signals", "expiry"} <= indexes(looked)
    assert_no_scan(looked)
    assert_no_sort(looked)


async def test_a_value_costs_one_write_by_id_and_a_signal_one_look_more(profiled: Profiled) -> None:
    store = profiled.store
    await put(store, *(draft("keeps") for _ in range(10)))
    jobs = await store.jobs.claim(want(n=10, types={"keeps"}))
    keeps = [Keep(Lease(job.id, job.lease_token), "step:a", "1") for job in jobs]
    looked = await profiled.during(lambda: store.jobs.keep(keeps))
    assert {one.command for one in looked} == {"update"}
    assert documents(looked) == 10, looked
    await store.jobs.apply([decide(job, Waiting("approved", timedelta(hours=1))) for job in jobs])
    orders = [Order(id=job.id, action=Action.SIGNAL, actor="a", signal=Signal("approved", "1")) for job in jobs]
    looked = await profiled.during(lambda: store.jobs.operate(orders))
    assert documents(looked) == 20, looked
    assert [one.command for one in looked if one.command != "update"] == ["query"], "all are read in one step"
    assert_no_scan(looked)


@pytest.mark.parametrize(
    ("filter_", "index"),
    [
        (Filter(), "_id_"),
        (Filter(status=Status.SUCCEEDED), "status"),
        (Filter(status=Status.FAILED), "status"),
        (Filter(status=frozenset({Status.FAILED, Status.CANCELLED})), "status"),
        (Filter(user_id="u3"), "user"),
        (Filter(entity_name="order", entity_id="3"), "entity"),
        (Filter(correlation_id="3"), "correlation"),
        (Filter(type="rare"), "type"),
        (Filter(queue="rare"), "queue"),
        (Filter(parent_id="x"), "parent"),
        (Filter(schedule="x"), "schedule"),
        (Filter(next_id="x"), "next"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_way_to_find_jobs_has_its_index(profiled: Profiled, filter_: Filter, index: str) -> None:
    for after in (None, cursor_after(new_id(), oldest_first=False)):
        looked = await profiled.during(lambda after=after: profiled.store.views.find(filter_, 10, after))  # type: ignore[misc]  # bound
        # Where nearly every job matches, walking the ids is as cheap, and the planner may choose either.
        assert indexes(looked) <= {index, "_id_"}
        if filter_.status is not Status.SUCCEEDED:
            assert index in indexes(looked)
        assert documents(looked) <= 11, looked  # one more tells that there is a next page
        assert_no_scan(looked)
        assert_no_sort(looked)


async def test_who_holds_a_key_is_found_by_it(profiled: Profiled) -> None:
    looked = await profiled.during(lambda: profiled.store.views.find(Filter(unique_key="nobody's"), 10))
    assert indexes(looked) == {"unique"}
    assert documents(looked) == 0, looked
    assert_no_scan(looked)


@pytest.mark.parametrize("filter_", [Filter(tags=frozenset({"none"})), Filter(worker_id="none", user_id="u3")], ids=str)
async def test_what_has_no_index_is_looked_for_in_a_bounded_walk(profiled: Profiled, filter_: Filter) -> None:
    looked = await profiled.during(lambda: profiled.store.views.find(filter_, 10))
    assert documents(looked) <= 2 * MOST_LOOKED_AT, looked
    assert_no_sort(looked)


@pytest.mark.parametrize(
    "filter_",
    [Filter(), Filter(status=Status.SUCCEEDED), Filter(type="rare"), Filter(queue="rare"), Filter(user_id="u3")],
    ids=str,
)
async def test_jobs_are_counted_in_an_index_and_no_further_than_the_cap(profiled: Profiled, filter_: Filter) -> None:
    looked = await profiled.during(lambda: profiled.store.views.count(filter_, 500))
    assert {stage["stage"] for one in looked for stage in one.stages()} == {"COUNT", "COUNT_SCAN"}
    assert sum(one.keys for one in looked) <= 502, looked  # one more tells that there are more, and one ends the walk


async def test_running_jobs_are_found_among_the_running(profiled: Profiled) -> None:
    await put(profiled.store, *(draft("running") for _ in range(20)))
    await profiled.store.jobs.claim(want(n=20, types={"running"}))
    running = (await profiled.store.views.count(Filter(status=Status.PROCESSING))).n
    looked = await profiled.during(lambda: profiled.store.views.find(Filter(status=Status.PROCESSING), 10))
    assert documents(looked) <= running, looked
    assert_no_scan(looked)


async def test_the_end_of_one_of_many_that_are_awaited_looks_at_few(profiled: Profiled) -> None:
    last = draft("many", awaits="success")
    await put(profiled.store, last, *(draft("many", next_id=last.id) for _ in range(200)))
    jobs = await profiled.store.jobs.claim(want(n=200, types={"many"}))
    await profiled.store.jobs.apply([decide(job, DONE) for job in jobs[:198]])
    for job in jobs[198:]:
        looked = await profiled.during(lambda job=job: settle(profiled.store, job))  # type: ignore[misc]  # bound
        assert documents(looked) <= 8, looked
        assert {"awaited", "spoiled"} <= indexes(looked)
        assert_no_scan(looked)
    assert (await take(profiled.store, want(types={"many"}))).id == last.id


async def test_a_promotion_looks_at_the_first_of_each_line(profiled: Profiled) -> None:
    rates = [Rate(1, timedelta(hours=1), f"r{n % 3}") for n in range(150)]
    await put(profiled.store, *(draft("rated", rate=rate) for rate in rates))
    assert len(await profiled.store.jobs.claim(want(n=150, types={"rated"}))) == 3
    looked = await profiled.during(lambda: profiled.store.jobs.promote(100))
    assert documents(looked) <= 3 + 10, looked  # and when the next is due of each kind
    assert_no_scan(looked)


async def test_a_turn_is_found_without_looking_at_those_that_wait(profiled: Profiled) -> None:
    # In a queue that nobody knew before: else those are looked for, for some seconds, who had not heard of turns there.
    fair = [draft("fair", queue="turns", user_id=f"u{n % 3}", fair_by="user_id") for n in range(150)]
    await put(profiled.store, *fair)
    one = draft("fair", queue="turns", user_id="u1", fair_by="user_id")
    looked = await profiled.during(lambda: put(profiled.store, one))
    assert documents(looked) <= 3, looked
    assert sum(looking.keys for looking in looked) <= 10, looked
    assert_no_scan(looked)


async def test_jobs_without_a_rate_a_turn_or_a_flow_send_nothing_about_them(profiled: Profiled) -> None:
    looked = await profiled.during(lambda: put(profiled.store, *(draft("plain") for _ in range(20))))
    assert [one.command for one in looked] == ["insert"]
    jobs: list[Job] = []

    async def claim() -> None:
        jobs.extend(await profiled.store.jobs.claim(want(n=20, types={"plain"})))

    looked = await profiled.during(claim)
    assert [one.command for one in looked if one.command != "aggregate"] == ["update"]
    looked = await profiled.during(lambda: profiled.store.jobs.apply([decide(job, DONE) for job in jobs]))
    assert {one.command for one in looked} == {"update"}
    assert not indexes(looked) & {"front", "fair", "called", "awaited", "spoiled", "next"}
