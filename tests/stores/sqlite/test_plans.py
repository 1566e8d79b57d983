"""The statements that run all the time find their rows by the index made for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.stores.sqlite.conftest import engine_of
from tests.support.drafts import draft, want
from windlass.core.status import Status
from windlass.stores.contract import Filter, Retention, cursor_after
from windlass.stores.sqlite.store import SqliteStore


class Traced:
    """The statements a store runs, with their values filled in, as SQLite itself reports them."""

    def __init__(self, store: SqliteStore) -> None:
        self.engine = engine_of(store)
        self.seen: list[str] = []

    async def during(self, call: Callable[[], Any]) -> list[str]:
        """The plans of every statement on the jobs that the call runs."""
        await self.engine.write(lambda db, _: db.set_trace_callback(self.seen.append))
        await self.engine.read(lambda db, _: db.set_trace_callback(self.seen.append))
        self.seen.clear()
        await call()
        seen = [one for one in self.seen if "windlass_jobs" in one and not one.startswith("--")]
        await self.engine.write(lambda db, _: db.set_trace_callback(None))
        await self.engine.read(lambda db, _: db.set_trace_callback(None))
        assert seen, "it ran no statement on the jobs"
        plans: list[str] = []
        for one in seen:
            rows = await self.engine.read(lambda db, _, one=one: db.execute(f"EXPLAIN QUERY PLAN {one}").fetchall())  # type: ignore[misc]  # bound
            plans += [str(row[3]) for row in rows]
        return plans


@pytest.fixture
async def traced(file: SqliteStore) -> Traced:
    drafts = [
        draft(user_id=f"u{n % 5}", entity_name="order", entity_id=str(n), correlation_id=str(n)) for n in range(50)
    ]
    await file.jobs.insert([*drafts, *(draft(delay=timedelta(hours=1)) for _ in range(20))])
    return Traced(file)


def scans(plans: list[str]) -> list[str]:
    # A scan of a partial index is a walk over just the rows it was made for; a scan of the table is not.
    return [plan for plan in plans if re.match(r"SCAN windlass_jobs(?! USING)", plan)]


async def test_a_claim_walks_its_index_in_order(file: SqliteStore, traced: Traced) -> None:
    plans = await traced.during(lambda: file.jobs.claim(want(n=10)))
    assert any("windlass_jobs_claim (queue=?" in plan for plan in plans)
    assert scans(plans) == []
    assert not [plan for plan in plans if "TEMP B-TREE FOR ORDER BY" in plan]


async def test_an_idle_claim_only_reads_its_index(file: SqliteStore, traced: Traced) -> None:
    nothing = want(types={"nothing"})
    await file.jobs.claim(nothing)
    plans = await traced.during(lambda: file.jobs.claim(nothing))
    assert all("windlass_jobs_claim" in plan for plan in plans if "windlass_jobs" in plan)


async def test_chores_look_only_at_what_is_due(file: SqliteStore, traced: Traced) -> None:
    await file.jobs.claim(want(n=5))
    plans = await traced.during(lambda: file.jobs.promote(10))
    assert any("windlass_jobs_due" in plan for plan in plans)
    assert scans(plans) == []
    plans = await traced.during(lambda: file.jobs.rescue(10))
    assert any("windlass_jobs_leases" in plan for plan in plans)
    assert scans(plans) == []


@pytest.mark.parametrize(
    ("filter_", "index"),
    [
        (Filter(status=Status.QUEUED), "windlass_jobs_status"),
        (Filter(status=frozenset({Status.QUEUED, Status.FAILED})), "windlass_jobs_status"),
        (Filter(tags=frozenset({"t"}), user_id="u1"), "windlass_jobs_user"),
        (Filter(tags=frozenset({"t"})), "windlass_jobs_id"),
        (Filter(user_id="u1"), "windlass_jobs_user"),
        (Filter(entity_name="order", entity_id="3"), "windlass_jobs_entity"),
        (Filter(correlation_id="3"), "windlass_jobs_correlation"),
        (Filter(type="noop"), "windlass_jobs_type"),
        (Filter(parent_id="x"), "windlass_jobs_parent"),
        (Filter(type="noop", status=Status.QUEUED), "windlass_jobs_status"),
        (Filter(queue="default", status=Status.FAILED), "windlass_jobs_status"),
    ],
)
async def test_each_way_to_find_jobs_has_its_index(
    file: SqliteStore, traced: Traced, filter_: Filter, index: str
) -> None:
    for after in (None, cursor_after(draft().id, oldest_first=False)):
        plans = await traced.during(lambda after=after: file.views.find(filter_, 10, after))  # type: ignore[misc]  # bound
        assert any(index in plan for plan in plans), plans
        assert not [plan for plan in plans if "TEMP B-TREE" in plan]
        assert scans(plans) == []


async def test_who_holds_a_key_is_found_by_it(file: SqliteStore, traced: Traced) -> None:
    for call in (lambda: file.views.find(Filter(unique_key="k"), 10), lambda: file.views.count(Filter(unique_key="k"))):
        plans = await traced.during(call)
        assert any("windlass_jobs_unique" in plan for plan in plans), plans


async def test_the_newest_jobs_are_found_without_sorting(file: SqliteStore, traced: Traced) -> None:
    plans = await traced.during(lambda: file.views.find(Filter(), 10))
    assert not [plan for plan in plans if "TEMP B-TREE" in plan]


async def test_queues_are_listed_without_a_walk_over_the_jobs_they_once_had(file: SqliteStore, traced: Traced) -> None:
    plans = await traced.during(file.queues.list)
    walked = [plan for plan in plans if "windlass_jobs" in plan]
    assert all("windlass_jobs_claim (queue=?" in plan or "windlass_jobs_leases" in plan for plan in walked), plans


async def test_what_runs_of_a_queue_or_a_type_is_found_by_its_lease(file: SqliteStore, traced: Traced) -> None:
    for filter_ in (Filter(queue="default", status=Status.PROCESSING), Filter(type="noop", status=Status.PROCESSING)):
        for call in (lambda one=filter_: file.views.find(one, 10), lambda one=filter_: file.views.count(one)):
            plans = await traced.during(call)
            assert any("windlass_jobs_leases" in plan for plan in plans), plans


async def test_what_is_past_its_retention_is_found_by_the_time_it_ended(file: SqliteStore, traced: Traced) -> None:
    plans = await traced.during(lambda: file.jobs.prune(Retention(), 10))
    assert any("windlass_jobs_finished" in plan for plan in plans), plans
    assert scans(plans) == []


async def test_how_deep_a_limited_queue_is_is_counted_by_two_indexes(file: SqliteStore, traced: Traced) -> None:
    await file.queues.limit_depth("default", 5)
    plans = await traced.during(lambda: file.jobs.insert([draft()]))
    assert any("windlass_jobs_claim (queue=?" in plan for plan in plans), plans
    assert any("windlass_jobs_depth (queue=? AND status=?" in plan for plan in plans), plans
    assert scans(plans) == []


async def test_whom_a_worker_should_stop_is_found_without_a_walk_over_what_runs(
    file: SqliteStore, traced: Traced
) -> None:
    plans = await traced.during(lambda: file.jobs.cancels("w1"))
    assert any("windlass_jobs_cancels (worker_id=?" in plan for plan in plans), plans
