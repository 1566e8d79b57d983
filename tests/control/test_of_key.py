"""Finding and cancelling by unique key, on every store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.places import Place
from tests.support.apps import working
from tests.support.until import until
from windlass import JobNotFound, SettingsError, Status, Unique, Windlass
from windlass.core.history import Happened

pytestmark = pytest.mark.timeout(60)


async def test_the_holder_of_a_key_is_found_and_cancelled_without_its_id(app: Windlass) -> None:
    handle = await app.enqueue("send", {}, unique="receipt:42", delay=60)
    await app.enqueue("send", {}, unique="receipt:43", delay=60)
    holder = await app.jobs.of_key("receipt:42")
    assert holder is not None
    assert (holder.id, holder.unique_key) == (handle.id, "receipt:42")
    assert await app.jobs.cancel(unique="receipt:42", actor="ada", reason="paid twice") is True
    assert await app.jobs.of_key("receipt:42") is None
    entry = (await app.jobs.history(handle.id))[-1]
    assert (entry.happened, entry.actor, entry.note) == (Happened.CANCELLED, "ada", "paid twice")
    with pytest.raises(JobNotFound, match="no job holds the unique key 'receipt:42'") as caught:
        await app.jobs.cancel(unique="receipt:42")
    assert caught.value.unique_key == "receipt:42"
    assert await app.jobs.of_key("receipt:43") is not None


async def test_a_running_holder_is_asked_to_stop(app: Windlass) -> None:
    @app.job(unique=Unique(queued="q:{n}", running="r:{n}"))
    async def wait(n: int) -> None:
        await asyncio.Event().wait()

    async with working(app):
        handle = await wait.enqueue(7)
        await until(lambda: app.jobs.of_key("r:7"), "the job to hold its running key")
        assert await app.jobs.of_key("q:7") is None
        assert await app.jobs.cancel(unique="r:7") is False
        job = await handle.wait(20)
    assert job.status is Status.CANCELLED


async def test_synchronous_code_cancels_by_key_also_in_its_transaction(app: Windlass, place: Place) -> None:
    for key in ("a", "b"):
        await app.enqueue("send", {}, unique=key, delay=60)
    assert await asyncio.to_thread(lambda: app.jobs.cancel_sync(unique="a")) is True
    if app.capabilities.transactions:
        with place.transaction_now() as transaction:
            assert app.jobs.cancel_sync(unique="b", tx=transaction.tx) is True
            assert await app.jobs.of_key("b") is not None
            await transaction.commit()
        assert await app.jobs.of_key("b") is None


async def test_a_key_and_ids_at_once_and_no_key_are_refused(app: Windlass) -> None:
    handle = await app.enqueue("send", {}, unique="k", delay=60)
    both: Any = {"unique": "k"}
    with pytest.raises(SettingsError, match="jobs and a unique key were given"):
        await app.jobs.cancel(handle, **both)
    with pytest.raises(SettingsError, match="unique_key is ''"):
        await app.jobs.cancel(unique="")
    assert (await handle.job()).status is Status.SCHEDULED
