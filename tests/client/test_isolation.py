"""`app.jobs.only(user)`: the jobs of others are as if they were not there, whatever is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.apps import working
from windlass import JobNotFound, SettingsError, Status, Windlass
from windlass.client.dead_letters import DeadLettersRoom
from windlass.client.jobs import JobsRoom

ORDERS: dict[str, Callable[[JobsRoom, str], Awaitable[Any]]] = {
    "get": lambda jobs, job_id: jobs.get(job_id),
    "look": lambda jobs, job_id: jobs.look(job_id),
    "history": lambda jobs, job_id: jobs.history(job_id),
    "explain": lambda jobs, job_id: jobs.explain(job_id),
    "cancel": lambda jobs, job_id: jobs.cancel(job_id),
    "retry": lambda jobs, job_id: jobs.retry(job_id),
    "delete": lambda jobs, job_id: jobs.delete(job_id),
    "signal": lambda jobs, job_id: jobs.signal(job_id, "s"),
    "replay": lambda jobs, job_id: jobs.replay(job_id),
    "by its key": lambda jobs, _: jobs.cancel(unique="bobs"),
}


async def both(app: Windlass) -> tuple[str, str]:
    """A job of ann's and one of bob's."""
    anns = await app.enqueue("noop", {}, user="ann", unique="anns", correlation="c", entity=("order", 1))
    bobs = await app.enqueue("noop", {}, user="bob", unique="bobs", correlation="c", entity=("order", 1))
    return anns.id, bobs.id


@pytest.mark.parametrize("name", ORDERS)
async def test_a_job_of_another_is_not_there(app: Windlass, name: str) -> None:
    _, bobs = await both(app)
    before = await app.jobs.look(bobs)
    with pytest.raises(JobNotFound):
        await ORDERS[name](app.jobs.only("ann"), bobs)
    assert await app.jobs.look(bobs) == before


async def test_only_ones_own_are_found_and_counted(app: Windlass) -> None:
    anns, bobs = await both(app)
    room = app.jobs.only("ann")
    assert [job.id for job in (await room.find()).jobs] == [anns]
    assert [job.id async for job in room.each(queue="default")] == [anns]
    assert (await room.count()).n == 1
    assert [job.id for job in await room.about("order", 1)] == [anns]
    assert [job.id for job in await room.of(correlation="c")] == [anns]
    assert await room.of(correlation=bobs) == []
    assert await room.of_key("bobs") is None
    assert (await room.find(user="ann")).jobs == (await room.find()).jobs
    with pytest.raises(SettingsError, match="only the jobs of 'ann'"):
        await room.find(user="bob")


async def test_an_order_for_all_is_for_ones_own(app: Windlass) -> None:
    anns, bobs = await both(app)
    done = await app.jobs.only("ann").cancel_all(everything=True)
    assert (done.of, done.done) == (1, 1)
    assert ((await app.jobs.get(anns)).status, (await app.jobs.get(bobs)).status) == (Status.CANCELLED, Status.QUEUED)
    assert (await app.jobs.only("ann").delete_all(everything=True)).done == 1
    assert (await app.jobs.get(bobs)).status is Status.QUEUED


async def test_ones_own_is_explained_without_a_word_of_others(app: Windlass) -> None:
    anns, _ = await both(app)
    room = app.jobs.only("ann")
    assert (await room.explain(anns)).text == "It waits for its turn."
    await room.cancel(anns)
    assert (await room.explain(anns)).text.startswith("It is finished: it was cancelled at ")


async def failed(app: Windlass, user: str) -> str:
    async def fail() -> None:
        raise ValueError(user)

    job = app.job(name=f"fail-{user}", retry=1)(fail)
    handle = await job.using(user=user).enqueue()
    async with working(app):
        await handle.wait()
    return handle.id


async def test_dead_letters_of_others_are_not_there(app: Windlass) -> None:
    anns, bobs = await failed(app, "ann"), await failed(app, "bob")
    room: DeadLettersRoom = app.dead_letters.only("ann")
    assert [group.count for group in (await room.groups()).groups] == [1]
    assert [job.id for job in (await room.find()).jobs] == [anns]
    for order in (room.discard, room.replay):
        with pytest.raises(JobNotFound):
            await order(bobs)
    assert (await room.discard_all(everything=True)).discarded == 1
    assert (await app.jobs.get(bobs)).status is Status.FAILED
