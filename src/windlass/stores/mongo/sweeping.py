"""Sweep: promote what is due, raise what waited long, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import FINISHED, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Rescued, Retention
from windlass.stores.mongo.notices import claimable
from windlass.stores.mongo.records import NO_HISTORY, change, job_of, latest, line, whole
from windlass.stores.mongo.settling import write
from windlass.stores.mongo.unblocking import lines_of, unblock

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
    lines = [row["_id"] for row in rows if row.keys() == {"_id"}]
    _remember(link, lines)
    freed = await unblock(link, lines)
    if len(due) >= n:
        return Promoted(promoted, freed.n, timedelta(0))
    following = [row["run_at"] for row in rows if "run_at" in row]
    following += [freed.next_room] if freed.next_room is not None else []
    next_due = max(timedelta(0), min(following) - now) if following else None
    return Promoted(promoted, freed.n, next_due)


def _due(link: Link, now: datetime, n: int) -> list[Doc]:
    first = [{"$sort": {"run_at": 1}}, {"$limit": 1}, {"$project": {"run_at": 1}}]
    later = [{"$match": {"status": {"$in": _TIMED}, "run_at": {"$gt": now}}}, *first]
    return [
        {"$match": {"status": {"$in": _TIMED}, "run_at": {"$lte": now}}},
        {"$sort": {"run_at": 1}},
        {"$limit": n},
        {"$project": {"moves": 1, "updated_at": 1, "queue": 1}},
        {"$unionWith": {"coll": link.name("jobs"), "pipeline": later}},
        *[{"$unionWith": {"coll": link.name("jobs"), "pipeline": _lines(link, kind)}} for kind in _due_lines(link)],
    ]


# What jobs are blocked by, and how many of a kind one promotion looks at: a way may have become free that no ending
# freed. Each goes on where the last one stopped, so that none is passed over for ever. A flow's line is one job, and to
# ask about it takes a look of its own: where more than a few wait, only once a second.
_LINES = {"flow": 50, "limit": 1000, "rate": 1000, "unique": 1000}
_FEW = 10
_REST = 1.0


def _due_lines(link: Link) -> list[str]:
    rests = time.monotonic() < link.flows_rest_until
    return [kind for kind in _LINES if not rests or kind != "flow"]


def _lines(link: Link, kind: str) -> list[Doc]:
    after = link.swept.get(kind, f"{kind}:")
    waiting = {"$match": {"blocked_by": {"$gt": after, "$lt": f"{kind};"}}}
    last: list[Doc] = [{"$sort": {"_id": 1}}, {"$limit": _LINES[kind]}]
    if kind == "flow":
        return [waiting, {"$sort": {"blocked_by": 1}}, last[1], {"$project": {"_id": "$blocked_by"}}]
    return [waiting, {"$group": {"_id": "$blocked_by"}}, *last]


def _remember(link: Link, lines: list[str]) -> None:
    for kind in _due_lines(link):
        seen = [by for by in lines if by.startswith(f"{kind}:")]
        link.swept.pop(kind, None)
        if len(seen) >= _LINES[kind]:
            link.swept[kind] = max(seen)
        if kind == "flow" and len(seen) > _FEW:
            link.flows_rest_until = time.monotonic() + _REST


async def _queue(link: Link, moves: int, docs: list[Doc], now: datetime) -> int:
    at = latest(now, docs)
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": {"$in": _TIMED}, "moves": moves}
    notices = claimable(doc["queue"] for doc in docs)
    update = change(line(at, Happened.PROMOTED, Status.QUEUED), {"queued_at": at}, wake=link.news(notices))
    done = await link.update_many(found, update)
    link.tell(notices)
    return done


async def age(link: Link, after: timedelta, to: int, n: int) -> int:
    """Raise what has stood so long, one later priority after the other."""
    before = await link.now() - whole(after)
    raised = 0
    for queue in [row["_id"] for row in await link.collection("queues").find({}, {"_id": 1}).to_list()]:
        level = await _level(link, queue, to)
        while level is not None and raised < n:
            raised += await _raise(
                link, {"status": "queued", "queue": queue, "priority": level}, before, to, n - raised
            )
            level = await _level(link, queue, level)
    return raised


async def _level(link: Link, queue: str, above: int) -> int | None:
    later: Doc = {"status": "queued", "queue": queue, "priority": {"$gt": above}}
    found = await link.jobs.find_one(later, {"_id": 0, "priority": 1}, sort=[("priority", 1)])
    return None if found is None else int(found["priority"])


async def _raise(link: Link, standing: Doc, before: datetime, to: int, n: int) -> int:
    old = link.jobs.find({**standing, "run_at": {"$lte": before}}, {"updated_at": 1})
    docs = await old.sort([("run_at", 1), ("_id", 1)]).limit(n).to_list()
    if not docs:
        return 0
    note = f"priority {standing['priority']} to {to}"
    told = line(latest(await link.now(), docs), Happened.AGED, Status.QUEUED, note=note)
    found: Doc = {**standing, "_id": {"$in": [doc["_id"] for doc in docs]}}
    return await link.update_many(found, change(told, {"priority": to}))


async def rescue(link: Link, n: int) -> list[Rescued]:
    """Hand back what was lost. Status, token, version and expiry are tested in the write itself."""
    # Looked at now: by what a clock showed before it was set back, every lease granted since would be over.
    now = await link.look()
    lost: Doc = {"status": "processing", "lease_expires_at": {"$lte": now}}
    docs = await link.jobs.find(lost, NO_HISTORY).sort("lease_expires_at", 1).limit(n).to_list()
    pairs = [(decide(job_of(doc), Lost(confirmed=doc.get("confirmed") == doc["lease_token"])), doc) for doc in docs]
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
        for queues, most in [(rest, retention.most), *[(queue, of.most) for queue, of in retention.queues.items()]]:
            removed += await _prune_beyond(link, status, now, most, queues, n - removed)
    return removed


async def _prune(link: Link, status: Status, now: datetime, kept: timedelta, queue: object, n: int) -> int:
    past: Doc = {"status": status.value, "queue": queue, "finished_at": {"$lte": now - whole(kept)}}
    return await _remove(link, past, now, n) if n > 0 else 0


async def _prune_beyond(link: Link, status: Status, now: datetime, most: int | None, queue: object, n: int) -> int:
    """Only the newest so many stay."""
    if most is None or n < 1:
        return 0
    ended: Doc = {"status": status.value, "queue": queue}
    first = await link.jobs.find(ended, {"_id": 1}).sort("_id", -1).skip(most).limit(1).to_list()
    return await _remove(link, {**ended, "_id": {"$lte": first[0]["_id"]}}, now, n) if first else 0


async def _remove(link: Link, old: Doc, now: datetime, n: int) -> int:
    # A job is the memory of its idempotency key, and stays until the window is over.
    old = {**old, "idempotent_until": {"$not": {"$gt": now}}}
    docs = await link.jobs.find(old, {"_id": 1}).sort("_id", 1).limit(n).to_list()
    if not docs:
        return 0
    found = {**old, "_id": {"$in": [doc["_id"] for doc in docs]}}
    return (await link.surely(lambda: link.jobs.delete_many(found))).deleted_count
