"""Orders for many jobs in the background, on every store: what they are about, and that a crash is not felt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.conftest import Crew
from tests.support.apps import until_status, working
from tests.support.until import until
from windlass import QueueFull, SettingsError, Status, Windlass
from windlass.stores.contract import AuditEntry

pytestmark = pytest.mark.timeout(60)
MANY = 1_200
"""more than two batches"""


async def failed(app: Windlass, n: int) -> None:
    """So many failed jobs of ann's, and one of bob's."""

    @app.job(retry=1)
    async def fail(n: int) -> None:
        raise ValueError(n)

    await app.enqueue_many(fail.using(user="ann").bind(one) for one in range(n))
    await fail.using(user="bob").enqueue(-1)
    await app.worker(drain=True).run()
    assert await count(app, status="failed") == n + 1


async def count(app: Windlass, **search: object) -> int:
    return (await app.jobs.count(**search)).n  # type: ignore[arg-type]  # words of a search


async def test_any_worker_retries_replays_and_deletes_by_a_filter(app: Windlass) -> None:
    await failed(app, 20)
    hers = app.operations.only("ann")
    async with working(app, exclude=["fail"]):
        told = await hers.count("retry", status="failed")
        assert (told.of, told.dry_run) == (20, True)
        retried = await (await hers.begin("retry", status="failed", limit=5, actor="ann")).handle.result(20)
        assert (retried["done"], retried["matched"]) == (5, 5)
        assert await count(app, status="queued", user="ann") == 5
        replayed = await (await hers.begin("replay", type="fail", rate=2.0)).handle.result(20)
        assert replayed["done"] == 15
        again = await (await hers.begin("replay", type="fail")).handle.result(20)
        assert (again["done"], again["refused"]) == (0, 15)
        last = max(job.run_at for job in (await app.jobs.find(status="scheduled", limit=20)).jobs)
        assert last - datetime.now(UTC) > timedelta(seconds=5)  # the fifteenth of two a second
        gone = await (await hers.begin("delete", everything=True)).handle.result(20)
        assert gone["done"] == 35
    assert (await count(app, type="fail", user="ann"), await count(app, type="fail", user="bob")) == (0, 1)
    history = await app.jobs.history((await app.jobs.find(type="fail")).jobs[0].id)
    assert all(entry.actor != "ann" for entry in history)


async def test_what_moves_after_it_was_asked_for_is_left_alone(app: Windlass) -> None:
    await failed(app, 3)
    begun = await app.operations.begin("retry", type="fail", user="ann")
    first, *_ = (await app.jobs.find(type="fail", user="ann")).jobs
    await app.jobs.retry(first.id)
    await app.worker(drain=True, exclude=["fail"]).run()
    assert (await begun.handle.result(5))["refused"] == 1
    assert len([one for one in await app.jobs.history(first.id) if one.happened.value == "retried"]) <= 1


async def test_it_goes_on_where_a_killed_process_was(app: Windlass, crew: Crew) -> None:
    """Killed with the orders of a batch given and not yet counted: each job is met once, and the figures are whole."""
    await failed(app, MANY)
    begun = await app.operations.begin("retry", status="failed", user="ann", actor="ann")
    doomed = crew.start("operator", "700")
    await until(lambda: doomed.poll() is not None, "the process to be killed", within=30)
    assert 500 < await count(app, status="queued", type="fail") < MANY
    async with app.worker(queues=["windlass"], poll=0.2, rescue=0.2):
        result = await begun.handle.result(30)
    assert (result["done"], result["refused"], result["missing"]) == (MANY, 0, 0)
    moved = [job async for job in app.jobs.each(type="fail", user="ann")]
    assert {job.status for job in moved} == {Status.QUEUED}
    [told] = [entry for entry in (await app.audit.list()).entries if entry.action == "bulk.retry.ended"]
    assert (told.actor, told.object) == ("ann", f"operation:{begun.handle.id}")


async def test_one_that_is_cancelled_half_way_leaves_the_rest(app: Windlass, crew: Crew) -> None:
    await failed(app, MANY)
    begun = await app.operations.begin("retry", status="failed", user="ann")
    doomed = crew.start("operator", "700")
    await until(lambda: doomed.poll() is not None, "the process to be killed", within=30)
    half = await count(app, status="queued", type="fail")
    assert await app.jobs.cancel(begun.handle.id) is False  # it is its worker's, as far as anybody knows
    async with app.worker(queues=["windlass"], poll=0.2, rescue=0.2):
        await until_status(begun.handle, Status.CANCELLED, within=30)

        async def noted() -> Sequence[AuditEntry]:
            return (await app.audit.list(object_=f"operation:{begun.handle.id}")).entries

        [told] = await until(noted, "its end in the audit trail", within=30)
    assert half == await count(app, status="queued", type="fail") < MANY
    assert told.action == "bulk.retry.cancelled"
    assert json.loads(told.details_json or "")["done"] == 500  # the batch that its worker died in was not counted


async def test_so_many_of_one_user_and_no_more(app: Windlass) -> None:
    hers = app.operations.only("ann")
    for _ in range(5):
        await hers.begin("cancel", type="x")
    with pytest.raises(QueueFull):
        await hers.begin("cancel", type="x")
    await app.operations.begin("cancel", type="x")


async def test_it_is_no_surprise(app: Windlass) -> None:
    """It is none of the application's types, and a worker that consumes other queues leaves it alone."""
    await app.operations.begin("cancel", type="x")
    await app.worker(drain=True, queues=["mail"]).run()
    assert (await count(app, type="windlass.bulk", status="queued"), len(app.registry)) == (1, 0)
    async with working(app):
        assert [one.type for one in await app.types.overview()] == []
        await until(app.workers.list, "the worker to describe itself")
        [worker] = await app.workers.list()
        assert worker.types == ("windlass.bulk",)  # so that a waiting one is not told to have no worker
    with pytest.raises(SettingsError, match="no filter"):
        await app.operations.begin("cancel")
    with pytest.raises(SettingsError, match="explode"):
        await app.operations.begin("explode", type="x")
