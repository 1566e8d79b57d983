"""Expiring: what no worker has taken in time is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bson import ObjectId

from windlass.core.admission import EXPIRED
from windlass.core.status import WAITING
from windlass.stores.contract import Action, Order
from windlass.stores.mongo.operating import FIELDS, decide, let_go_on, write
from windlass.stores.mongo.records import STATUSES, latest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link


class Expired(NamedTuple):
    """What was cancelled, and how many jobs went on that had waited for it."""

    ids: tuple[str, ...]
    freed: int


NONE_EXPIRED = Expired((), 0)
FIRST_EXPIRY: list[Doc] = [
    {"$match": {"begin_by": {"$exists": True}}},
    {"$sort": {"begin_by": 1}},
    {"$limit": 1},
    {"$project": {"_id": 0, "expiry": "$begin_by"}},
]
"""a look by the index: when the time to begin is over first"""


async def expire(link: Link, n: int, now: datetime) -> Expired:
    """Cancel at most `n` jobs whose time to begin is over."""
    over = link.jobs.find({"begin_by": {"$lte": now}}, {**FIELDS, "lease_token": 1}).sort("begin_by", 1)
    docs = await over.limit(n).hint("expiry").to_list()
    expired = [doc for doc in docs if not doc["lease_token"] and STATUSES[doc["status"]] in WAITING]
    if len(expired) < len(docs):
        await _forget(link, [doc["_id"] for doc in docs if doc not in expired])
    return await cancel(link, expired, now) if expired else NONE_EXPIRED


async def _forget(link: Link, ids: list[str]) -> None:
    """Let these be looked at no more: a worker of an earlier version took or cancelled them, and left the field."""
    await link.update_many({"_id": {"$in": ids}}, {"$unset": {"begin_by": ""}})


async def cancel(link: Link, docs: Sequence[Doc], now: datetime) -> Expired:
    """Cancel these, except those that have moved since they were read: a worker may have taken them."""
    mark = ObjectId()
    moves = [decide(_order(doc["_id"]), doc, latest(now, [doc]), (), mark) for doc in docs]
    written = await write(link, moves, mark)
    gone = [doc for doc in docs if doc["_id"] in written]
    return Expired(tuple(doc["_id"] for doc in gone), await let_go_on(link, gone))


def _order(job_id: str) -> Order:
    return Order(id=job_id, action=Action.CANCEL, actor="windlass", reason=EXPIRED)
