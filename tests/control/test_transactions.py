"""Operating inside the caller's own transaction, on every store that has them; and what the others say."""

from __future__ import annotations

import pytest

from tests.contract.places import Place
from tests.contract.steps import HOUR
from tests.support.apps import Heard, working
from tests.support.drafts import draft
from tests.support.until import until
from windlass import JobNotFound, MoveRefused, Status, TransactionRefused, Windlass
from windlass.core.events import JobOperated, JobOperatedInTransaction
from windlass.core.history import Happened

pytestmark = pytest.mark.timeout(60)


async def waiting(app: Windlass, n: int = 1) -> list[str]:
    drafts = [draft(delay=HOUR) for _ in range(n)]
    await app.store.jobs.insert(drafts)
    return [one.id for one in drafts]


async def status(app: Windlass, job_id: str) -> Status:
    return (await app.jobs.get(job_id)).status


async def test_orders_count_on_commit_and_are_gone_on_rollback(app: Windlass, place: Place) -> None:
    heard = Heard(app)
    first, second, third = await waiting(app, 3)
    async with place.transaction() as transaction:
        tx = transaction.tx
        if not app.capabilities.transactions:
            for order in (app.jobs.cancel, app.jobs.retry, app.jobs.delete):
                with pytest.raises(TransactionRefused, match="cancel, retry, delete or signal after your commit"):
                    await order(first, tx=tx)
            return
        assert await app.jobs.cancel(first, tx=tx, actor="ada", reason="no order") is True
        await app.jobs.retry(second, tx=tx)
        await app.jobs.delete(third, tx=tx)
        assert [await status(app, one) for one in (first, second, third)] == [Status.SCHEDULED] * 3
        await transaction.commit()
    assert await status(app, first) is Status.CANCELLED
    assert (await app.jobs.history(first))[-1].note == "no order"
    assert await status(app, second) is Status.QUEUED
    with pytest.raises(JobNotFound):
        await app.jobs.get(third)
    async with place.transaction() as transaction:
        await app.jobs.retry(first, tx=transaction.tx)
        await transaction.rollback()
    assert await status(app, first) is Status.CANCELLED
    assert heard.all(JobOperated) == [], "whether they came true is not known to who gave them"
    assert heard.all(JobOperatedInTransaction) == [
        JobOperatedInTransaction(first, "cancel", "ada", "no order"),
        JobOperatedInTransaction(second, "retry", "operator"),
        JobOperatedInTransaction(third, "delete", "operator"),
        JobOperatedInTransaction(first, "retry", "operator"),
    ]


async def test_a_refusal_is_raised_and_the_transaction_goes_on(app: Windlass, place: Place) -> None:
    if not app.capabilities.transactions:
        return
    [over, good] = await waiting(app, 2)
    await app.jobs.cancel(over)
    async with place.transaction() as transaction:
        with pytest.raises(MoveRefused):
            await app.jobs.cancel(over, good, tx=transaction.tx)
        await transaction.commit()
    assert await status(app, good) is Status.CANCELLED


async def test_everything_below_within_joins(app: Windlass, place: Place) -> None:
    if not app.capabilities.transactions:
        return
    first, second, third = await waiting(app, 3)
    async with place.transaction() as transaction:
        with app.within(transaction.tx):
            await app.jobs.cancel(first)
            assert (await app.jobs.cancel_all(type="noop", limit=1)).done == 1
        assert {await status(app, one) for one in (first, second, third)} == {Status.SCHEDULED}
        await transaction.rollback()
    assert {await status(app, one) for one in (first, second, third)} == {Status.SCHEDULED}


async def test_synchronous_code_joins_on_its_own_thread(app: Windlass, place: Place) -> None:
    first, second, third = await waiting(app, 3)
    with place.transaction_now() as transaction:
        if not app.capabilities.transactions:
            with pytest.raises(TransactionRefused, match="after your commit"):
                app.jobs.cancel_sync(first, tx=transaction.tx)
            return
        assert app.jobs.cancel_sync(first, second, tx=transaction.tx) == [True, True]
        with app.within(transaction.tx):
            app.jobs.retry_sync(second)
            app.jobs.delete_sync(third)
            with pytest.raises(MoveRefused):
                app.jobs.cancel_sync(first)
        assert {await status(app, one) for one in (first, second, third)} == {Status.SCHEDULED}
        await transaction.commit()
    assert [await status(app, one) for one in (first, second)] == [Status.CANCELLED, Status.QUEUED]
    told = [entry.happened for entry in await app.jobs.history(second)]
    assert told == [Happened.ENQUEUED, Happened.CANCELLED, Happened.RETRIED]
    with pytest.raises(JobNotFound):
        await app.jobs.get(third)


async def test_a_job_retried_in_a_transaction_runs_after_the_commit(app: Windlass, place: Place) -> None:
    if not app.capabilities.transactions:
        return

    @app.job
    async def noop() -> None: ...

    handle = await noop.using(delay=3600).enqueue()
    async with working(app), place.transaction() as transaction:
        await app.jobs.retry(handle, tx=transaction.tx)
        await transaction.commit()

        async def ran() -> bool:
            return await status(app, handle.id) is Status.SUCCEEDED

        await until(ran, "the job to run")
