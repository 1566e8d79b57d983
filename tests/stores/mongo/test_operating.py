"""Many orders in one step: each job is written only if it is still as it was read, and who was not is known."""

from __future__ import annotations

from typing import Any, cast

from bson import ObjectId

from tests.contract.places import Place
from tests.contract.steps import HOUR, cancel, put, status, told
from tests.support.drafts import draft
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.contract import Action, Order
from windlass.stores.mongo import operating
from windlass.stores.mongo.store import MongoStore

MARK = ObjectId()


async def opened(place: Place) -> MongoStore:
    store = cast("MongoStore", place.store())
    await store.open()
    return store


async def moves(store: MongoStore, action: Action, ids: list[str]) -> list[operating.Move]:
    docs: list[dict[str, Any]] = await store.link.jobs.find({"_id": {"$in": ids}}).sort("_id", 1).to_list()
    orders = [Order(id=doc["_id"], action=action, actor="ann", reason="enough") for doc in docs]
    now = await store.now()
    return [operating.decide(order, doc, now, (), MARK) for order, doc in zip(orders, docs, strict=True)]


async def test_one_that_moved_meanwhile_is_told_from_those_that_were_written(place: Place) -> None:
    store = await opened(place)
    ids = await put(store, *[draft(delay=HOUR) for _ in range(4)])
    decided = await moves(store, Action.CANCEL, ids)
    await cancel(store, ids[1])
    assert await operating.write(store.link, decided, MARK) == {ids[0], ids[2], ids[3]}
    assert {await status(store, one) for one in ids} == {Status.CANCELLED}
    assert await told(store, ids[1]) == [Happened.ENQUEUED, Happened.CANCELLED], "once, by who came first"
    await store.close()


async def test_a_key_that_was_taken_meanwhile_keeps_none_of_the_others_from_being_written(place: Place) -> None:
    store = await opened(place)
    keyed = await put(store, draft(unique="k", delay=HOUR), draft(delay=HOUR), draft(delay=HOUR))
    for one in keyed:
        await cancel(store, one)
    decided = await moves(store, Action.RETRY, keyed)
    [holder] = await put(store, draft(unique="k", delay=HOUR))
    assert await operating.write(store.link, decided, MARK) == set(keyed[1:])
    assert await status(store, keyed[0]) is Status.CANCELLED
    assert await status(store, holder) is Status.SCHEDULED
    await store.close()


async def test_one_that_moved_meanwhile_is_not_deleted(place: Place) -> None:
    store = await opened(place)
    ids = await put(store, *[draft(delay=HOUR) for _ in range(3)])
    decided = await moves(store, Action.DELETE, ids)
    await cancel(store, ids[0])
    assert await operating.write(store.link, decided, MARK) == set(ids[1:])
    assert await status(store, ids[0]) is Status.CANCELLED
    await store.close()
