"""Sweep: promote what is due, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued, Retention
from windlass.stores.mongo.records import NO_HISTORY, change, job_of, latest, line, whole
from windlass.stores.mongo.settling import write
from windlass.stores.mongo.unblocking import LINES, lines_of, unblock

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

_TIMED = ["scheduled", "retrying"]


async def promote(link: Link, n: int) -> Promoted:
    """Queue what is due. One look tells of that, of the next that will be, and of what jobs are blocked by."""
    now = await link.now()
    rows = await (await link.jobs.aggregate(_due(link, now, n), batchSize=10_000)).to_list()
    due = [row for row in rows if "moves" in row]
    alike: dict[int, list[Doc]] = defaultdict(list)
    for doc in due:
        alike[doc["moves"]].append(doc)
    promoted = 0
    for moves, some in alike.items():
        promoted += await _queue(link, moves, some, now)
    unblocked = await unblock(link, [row["_id"] for row in rows if row.keys() == {"_id"}])
    if len(due) >= n:
        return Promoted(promoted, unblocked, timedelta(0))
    following = [row["run_at"] - now for row in rows if "run_at" in row]
    return Promoted(promoted, unblocked, following[0] if following else None)


def _due(link: Link, now: datetime, n: int) -> list[Doc]:
    first = [{"$sort": {"run_at": 1}}, {"$limit": 1}, {"$project": {"run_at": 1}}]
    later = [{"$match": {"status": {"$in": _TIMED}, "run_at": {"$gt": now}}}, *first]
    return [
        {"$match": {"status": {"$in": _TIMED}, "run_at": {"$lte": now}}},
        {"$sort": {"run_at": 1}},
        {"$limit": n},
        {"$project": {"moves": 1, "updated_at": 1}},
        {"$unionWith": {"coll": link.name("jobs"), "pipeline": later}},
        {"$unionWith": {"coll": link.name("jobs"), "pipeline": LINES}},
    ]


async def _queue(link: Link, moves: int, docs: list[Doc], now: datetime) -> int:
    at = latest(now, docs)
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": {"$in": _TIMED}, "moves": moves}
    update = change(line(at, Happened.PROMOTED, Status.QUEUED), {"queued_at": at}, wake=link.news())
    return await link.update_many(found, update)


async def rescue(link: Link, n: int) -> list[Rescued]:
    """Hand back what was lost. Status, token, version and expiry are tested in the write itself."""
    now = await link.now()
    lost: Doc = {"status": "processing", "lease_expires_at": {"$lte": now}}
    docs = await link.jobs.find(lost, NO_HISTORY).sort("lease_expires_at", 1).limit(n).to_list()
    jobs = [(job_of(doc), doc) for doc in docs]
    pairs = [(decide(job, Lost()), doc) for job, doc in jobs]
    written = {doc["_id"] for doc in await write(link, pairs, lost=True)}
    told = [(one, doc) for one, doc in pairs if doc["_id"] in written]
    if told:
        await unblock(link, lines_of(doc for _, doc in told))
    return [
        Rescued(doc["_id"], doc.get("worker_id"), (honour_cancel(one) if "cancel_requested_at" in doc else one).to)
        for one, doc in told
    ]


async def prune(link: Link, retention: Retention, n: int) -> int:
    """Delete finished jobs past their time. Figures, workers and locks go by themselves, by TTL indexes."""
    now = await link.now()
    own = sorted(retention.queues)
    removed = 0
    for status in sorted(FINISHED):
        rest = {"$nin": own} if own else {"$exists": True}
        removed += await _prune(link, status, now, retention.of(status), rest, n - removed)
        for queue, kept in retention.queues.items():
            removed += await _prune(link, status, now, kept.of(status), queue, n - removed)
    return removed


async def _prune(link: Link, status: Status, now: datetime, kept: timedelta, queue: object, n: int) -> int:
    if n < 1:
        return 0
    old: Doc = {
        "status": status.value,
        "finished_at": {"$lte": now - whole(kept)},
        "queue": queue,
        # A job is the memory of its idempotency key, and stays until the window is over.
        "idempotent_until": {"$not": {"$gt": now}},
    }
    docs = await link.jobs.find(old, {"_id": 1}).sort("_id", 1).limit(n).to_list()
    if not docs:
        return 0
    found = {**old, "_id": {"$in": [doc["_id"] for doc in docs]}}
    return (await link.surely(lambda: link.jobs.delete_many(found))).deleted_count
