"""Asked for one user's jobs, a store shows and changes no other's: to that question they are not there."""

from __future__ import annotations

import pytest

from tests.contract.steps import get, last_entry, put, start, status
from tests.support.drafts import draft, new_id
from windlass.core.kept import Signal
from windlass.core.status import Status
from windlass.stores.contract import Action, Answer, Looked, Operated, Order, Store

ORDERS = [(action, Signal("s", "1") if action is Action.SIGNAL else None) for action in Action]


async def three(store: Store) -> list[str]:
    """A job of ann's, one of bob's, and one of nobody's."""
    return await put(store, draft(user_id="ann"), draft(user_id="bob"), draft())


async def test_jobs_of_others_are_not_got(store: Store) -> None:
    anns, bobs, nobodys = await three(store)
    found = await store.views.get([nobodys, bobs, anns, new_id(), anns], user="ann")
    assert [job.id if job else None for job in found] == [None, None, anns, None, anns]
    assert [job.id if job else None for job in await store.views.get([anns, bobs], user="")] == [None, None]


async def test_jobs_of_others_are_not_looked_at(store: Store) -> None:
    anns, bobs, nobodys = await three(store)
    assert await store.views.look(anns, user="ann") == Looked(await get(store, anns), await store.views.history(anns))
    assert await store.views.look(bobs, user="ann") is None
    assert await store.views.look(nobodys, user="ann") is None
    assert await store.views.history(anns, user="ann") == await store.views.history(anns)
    assert await store.views.history(bobs, user="ann") == []
    assert await store.views.history(nobodys, user="ann") == []


@pytest.mark.parametrize(("action", "signal"), ORDERS, ids=[action.value for action, _ in ORDERS])
async def test_an_order_on_a_job_of_another_finds_none(store: Store, action: Action, signal: Signal | None) -> None:
    ids = await three(store)
    anns, *others = ids
    before = [await store.views.look(job_id) for job_id in others]
    orders = [Order(id=one, action=action, actor="ann", signal=signal, user="ann") for one in (*ids, new_id())]
    answers = await store.jobs.operate(orders)
    assert answers[1:] == [Answer(Operated.MISSING)] * 3
    assert answers[0].status is Status.QUEUED
    assert [await store.views.look(job_id) for job_id in others] == before
    [alone] = await store.jobs.operate([Order(id=others[0], action=action, actor="ann", signal=signal, user="ann")])
    assert alone == Answer(Operated.MISSING)
    assert anns is not None


async def test_an_order_on_ones_own_is_carried_out(store: Store) -> None:
    anns, bobs, _ = await three(store)
    orders = [Order(id=one, action=Action.CANCEL, actor="ann", user="ann") for one in (anns, bobs)]
    assert await store.jobs.operate(orders) == [Answer(Operated.DONE, Status.QUEUED), Answer(Operated.MISSING)]
    assert (await status(store, anns), await status(store, bobs)) == (Status.CANCELLED, Status.QUEUED)
    assert (await last_entry(store, anns)).actor == "ann"


async def test_a_running_job_of_another_is_not_asked_to_stop(store: Store) -> None:
    job = await start(store, draft(user_id="bob"))
    order = Order(id=job.id, action=Action.CANCEL, actor="ann", user="ann")
    assert await store.jobs.operate([order]) == [Answer(Operated.MISSING)]
    assert (await get(store, job.id)).cancel_requested_at is None
