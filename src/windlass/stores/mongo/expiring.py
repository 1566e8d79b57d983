"""Expiring: what no worker has taken in time is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bson import ObjectId

from windlass.core.admission import EXPIRED
from windlass.stores.contract import Action, Order
from windlass.stores.mongo.operating import FIELDS, decide, let_go_on, write
from windlass.stores.mongo.records import latest
from windlass.stores.mongo.schema import NEVER_TAKEN

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
    {"$match": {**NEVER_TAKEN, "expires_at": {"$exists": True}}},
    {"$sort": {"expires_at": 1}},
    {"$limit": 1},
    {"$project": {"_id": 0, "expiry": "$expires_at"}},
]
"""a look by the index: when the time to begin is over first"""


async def expire(link: Link, n: int, now: datetime) -> Expired:
    """Cancel at most `n` jobs whose time to begin is over."""
    over = link.jobs.find({**NEVER_TAKEN, "expires_at": {"$lte": now}}, FIELDS).sort("expires_at", 1)
    docs = await over.limit(n).hint("expiry").to_list()
    return await cancel(link, docs, now) if docs else NONE_EXPIRED


async def cancel(link: Link, docs: Sequence[Doc], now: datetime) -> Expired:
    """Cancel these, except those that have moved since they were read: a worker may have taken them."""
    mark = ObjectId()
    moves = [decide(_order(doc["_id"]), doc, latest(now, [doc]), (), mark) for doc in docs]
    written = await write(link, moves, mark)
    gone = [doc for doc in docs if doc["_id"] in written]
    return Expired(tuple(doc["_id"] for doc in gone), await let_go_on(link, gone))


def _order(job_id: str) -> Order:
    return Order(id=job_id, action=Action.CANCEL, actor="windlass", reason=EXPIRED)
