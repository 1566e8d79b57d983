"""`expires` from end to end, on every store: at declaration, at enqueue, by name, by a schedule, in vain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.steps import get, passed
from tests.support.apps import until_status, working
from tests.support.drafts import INSTANT
from windlass import Handle, Happened, Job, SettingsError, Status, Windlass, cron
from windlass.core.admission import EXPIRED

pytestmark = pytest.mark.timeout(60)
MINUTE = timedelta(minutes=1)


def given(job: Job) -> timedelta | None:
    return None if job.expires_at is None else job.expires_at - job.created_at


async def expires(handle: Handle[Any]) -> timedelta | None:
    return given(await handle.job())


async def test_a_job_that_no_worker_took_in_time_never_runs_and_says_why(app: Windlass) -> None:
    ran: list[int] = []

    @app.job(expires=INSTANT)
    async def work(n: int) -> None:
        ran.append(n)

    late = await work.enqueue(1)
    await passed(app.store, (await late.job()).expires_at)
    fine = await work.using(expires=60).enqueue(2)
    async with working(app):
        await until_status(late, Status.CANCELLED)
        await until_status(fine, Status.SUCCEEDED)
    assert ran == [2]
    entry = (await app.jobs.history(late.id))[-1]
    assert (entry.happened, entry.actor, entry.note) == (Happened.CANCELLED, "windlass", EXPIRED)
    await app.jobs.retry(late)
    async with working(app):
        await until_status(late, Status.SUCCEEDED)
    assert ran == [2, 1], "an operator's retry gives it all the time"


async def test_what_is_asked_for_wins_over_what_is_declared(app: Windlass) -> None:
    @app.job(expires=60)
    async def work() -> None: ...

    assert await expires(await work.enqueue()) == MINUTE
    assert await expires(await work.using(expires=2 * MINUTE).enqueue()) == 2 * MINUTE
    assert await expires(await work.using(expires=None).enqueue()) is None


async def test_a_replay_is_not_bound_to_the_time_of_the_old_job(app: Windlass) -> None:
    @app.job(expires=INSTANT)
    async def work() -> None: ...

    late = await work.enqueue()
    await passed(app.store, (await late.job()).expires_at)
    await app.store.jobs.promote(10)
    assert await expires(await app.jobs.replay(late.id)) is None


async def test_the_jobs_of_a_schedule_expire_as_it_was_put(app: Windlass) -> None:
    @app.job(expires=60)
    async def work() -> None: ...

    rule = cron("0 0 1 1 *")
    await app.schedules.put("declared", work, rule)
    await app.schedules.put("own", work.using(expires=120).bind(), rule)
    await app.schedules.put("by name", "elsewhere", rule, expires=30)
    found = [await expires(await app.schedules.run_now(name)) for name in ("declared", "own", "by name")]
    assert found == [MINUTE, 2 * MINUTE, MINUTE / 2]


async def test_enqueued_by_name_it_expires_as_its_worker_declares(app: Windlass, another: Windlass) -> None:
    @app.job(expires=60)
    async def work() -> None: ...

    async with working(app):
        handle = await another.enqueue("work")
        assert given(await get(app.store, handle.id)) == MINUTE
    [told] = await another.types.list()
    assert told.declared.options["expires_ms"] == 60_000


@pytest.mark.parametrize("wrong", [0, -1, "10m", True, datetime(2030, 1, 1, tzinfo=UTC)])
async def test_an_expiry_that_is_no_duration_is_refused(app: Windlass, wrong: Any) -> None:
    @app.job
    async def work() -> None: ...

    with pytest.raises(SettingsError, match="expires is"):
        work.using(expires=wrong)


async def test_a_job_that_would_expire_before_it_may_begin_is_refused(app: Windlass) -> None:
    @app.job(expires=60)
    async def work() -> None: ...

    with pytest.raises(SettingsError, match=r"expires is 1 m 0 s and delay 2 m 0 s.*give a longer expires"):
        work.using(delay=120)
    assert (await (await work.using(delay=120, expires=300).enqueue()).job()).status is Status.SCHEDULED
