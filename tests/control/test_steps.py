"""Durable steps from end to end, on every store: signals by callers, what replays share, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.places import Place
from tests.support.apps import Heard, until_status, working
from tests.support.until import until
from windlass import (
    Ctx,
    Happened,
    JobNotFound,
    MoveRefused,
    SettingsError,
    SignalExists,
    SignalTooMuch,
    Status,
    TransactionRefused,
    Windlass,
    events,
)
from windlass.core.draft import make_id
from windlass.core.kept import LARGEST, MOST_BYTES

pytestmark = pytest.mark.timeout(60)


def steps_of(app: Windlass) -> Any:
    @app.job
    async def child(n: int) -> int:
        return n * n

    @app.job
    async def order(ctx: Ctx, n: int) -> list[Any]:
        number = await ctx.step("number", make, n)
        await ctx.save((ctx.saved or 0) + 1)
        approved = await ctx.wait("approved", timedelta(days=1))
        return [number, approved, *await ctx.gather("squares", [child.bind(n) for n in range(3)]), ctx.origin]

    return order


async def make(n: int) -> dict[str, int]:
    return {"number": n}


async def test_a_job_goes_through_steps_a_signal_and_children(app: Windlass) -> None:
    order = steps_of(app)
    heard = Heard(app)
    handle = await order.enqueue(7)
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        assert await app.jobs.signal(handle.id, "approved", {"by": "eve"}, actor="eve") is True
        assert await handle.result(30) == [{"number": 7}, {"by": "eve"}, 0, 1, 4, handle.id]
    [signalled] = [entry for entry in await handle.history() if entry.happened is Happened.SIGNALLED]
    assert (signalled.actor, signalled.note) == ("eve", "approved")
    assert heard.all(events.JobSignalled) == [events.JobSignalled(handle.id, "approved", "eve", freed=True)]
    job = await handle.job()
    assert job.kept["step:number"] == {"number": 7}
    assert job.attempts == 1


async def test_a_signal_before_anybody_waits_is_kept_and_the_first_counts(app: Windlass) -> None:
    order = steps_of(app)
    handle = await order.enqueue(7)
    assert await app.jobs.signal(handle, "approved", "first") is False
    with pytest.raises(SignalExists, match="has had the signal 'approved'") as error:
        await app.jobs.signal(handle, "approved", "second")
    assert (error.value.job_id, error.value.signal) == (handle.id, "approved")
    async with working(app):
        assert (await handle.result(30))[1] == "first"
    with pytest.raises(MoveRefused, match="is succeeded"):
        await app.jobs.signal(handle, "other")


async def test_a_signal_that_comes_when_the_time_was_up_is_refused(app: Windlass) -> None:
    @app.job
    async def impatient(ctx: Ctx) -> Any:
        told = await ctx.wait("approved", 0.05)
        await ctx.wait("never")
        return told

    handle = await impatient.enqueue()
    async with working(app):
        await until_status(handle, Status.BLOCKED)

        async def second() -> bool:
            return (await handle.job()).blocked_by == "signal:never"

        await until(second, "the time of the first wait to be up")
        with pytest.raises(SignalExists):
            await app.jobs.signal(handle, "approved", "late")


async def test_a_signal_that_cannot_be_sent_says_why(app: Windlass) -> None:
    order = steps_of(app)
    handle = await order.enqueue(7)
    for n in range(MOST_BYTES // LARGEST):
        await app.jobs.signal(handle, f"big-{n}", "x" * (LARGEST - 100))
    with pytest.raises(SignalTooMuch, match="no room for the signal 'more'"):
        await app.jobs.signal(handle, "more", "x" * 1_000)
    with pytest.raises(JobNotFound):
        await app.jobs.signal(make_id(1_700_000_000_000, 1), "approved")
    with pytest.raises(SettingsError):
        await app.jobs.signal(handle, "not a name\n")


def test_code_without_a_loop_signals_too(place: Place) -> None:
    app = Windlass(store=place.store())
    try:
        order = steps_of(app)
        handle = order.enqueue_sync(7)
        assert app.jobs.signal_sync(handle, "approved", 1) is False
        with pytest.raises(SignalExists):
            app.jobs.signal_sync(handle.id, "approved", 1)
    finally:
        app.close()


async def test_a_signal_in_a_transaction_counts_on_commit(app: Windlass, place: Place) -> None:
    order, heard = steps_of(app), Heard(app)
    handle = await order.enqueue(7)
    for commits in (False, True):
        async with place.transaction() as transaction:
            if not app.capabilities.transactions:
                with pytest.raises(TransactionRefused):
                    await app.jobs.signal(handle, "approved", 1, tx=transaction.tx)
                return
            assert await app.jobs.signal(handle, "approved", 1, actor="eve", tx=transaction.tx) is False
            await (transaction.commit() if commits else transaction.rollback())
        assert ("signal:approved" in (await handle.job()).kept) is commits
    told = heard.all(events.JobOperatedInTransaction)
    assert [(one.action, one.reason, one.actor) for one in told] == [("signal", "approved", "eve")] * 2


async def test_a_replay_starts_with_nothing_and_has_the_origin_of_the_first(app: Windlass) -> None:
    order = steps_of(app)
    first = await order.enqueue(7)
    await app.jobs.signal(first, "approved")
    async with working(app):
        assert (await first.result(30))[-1] == first.id
        second = await app.jobs.replay(first.id)
        await app.jobs.signal(second, "approved")
        assert (await second.result(30))[-1] == first.id
        third = await app.jobs.replay(second.id)
        await app.jobs.signal(third, "approved")
        assert (await third.result(30))[-1] == first.id
    job = await third.job()
    assert (job.origin, job.replay_of) == (first.id, second.id)


async def test_a_handle_waits_across_suspensions(app: Windlass) -> None:
    order = steps_of(app)
    handle = await order.enqueue(7)
    seen: list[Any] = []
    async with working(app):
        async for event in handle.events():
            seen.append(getattr(event, "happened", None))
            if seen[-1] is Happened.SUSPENDED and seen.count(Happened.SUSPENDED) == 1:
                await app.jobs.signal(handle, "approved")
    assert seen.count(Happened.SUSPENDED) == 2
    assert seen[-1] is Happened.SUCCEEDED
