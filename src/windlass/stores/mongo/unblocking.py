"""Unblock: jobs that waited for a limit slot or a running key go back to the queue, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.mongo.records import change, latest, line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.stores.mongo.connection import Doc, Link

# What jobs are blocked by: a way may have become free that no ending freed.
LINES: list[dict[str, Any]] = [
    {"$match": {"blocked_by": {"$exists": True}}},
    {"$group": {"_id": "$blocked_by"}},
    {"$limit": 1000},
]


def lines_of(docs: Iterable[Doc]) -> set[str]:
    """What others may be waiting for these jobs to give up."""
    waited: set[str] = set()
    for doc in docs:
        if "limit_key" in doc:
            waited.add(f"limit:{doc['limit_key']}")
        if "unique_running" in doc:
            waited.add(f"unique:{doc['unique_running']}")
    return waited


async def unblock(link: Link, waited: Iterable[str]) -> int:
    """Queue as many of each line as have room now; the claim tests them again."""
    asked = list(waited)
    if not asked:
        return 0
    stages: list[Doc] = [{"$match": {"blocked_by": {"$in": asked}}}, {"$group": {"_id": "$blocked_by"}}]
    there = await (await link.jobs.aggregate(stages)).to_list()
    done = 0
    for by in [row["_id"] for row in there]:
        for doc in await _next_in_line(link, by):
            told = line(latest(await link.now(), [doc]), Happened.UNBLOCKED, Status.QUEUED)
            found = {"_id": doc["_id"], "status": "blocked", "moves": doc["moves"]}
            update = change(told, {"blocked_by": None}, wake=link.news())
            done += (await link.jobs.update_one(found, update)).modified_count
    return done


async def _next_in_line(link: Link, by: str) -> list[Doc]:
    kind, key = by.split(":", 1)
    first = await _oldest(link, by, 1)
    if not first:
        return []
    if kind == "unique":
        return [] if await link.jobs.find_one({"unique_key": key}, {"_id": 1}) else first
    room = (first[0].get("limit_n") or 1) - len(await _slots_taken(link, key))
    return first if room == 1 else await _oldest(link, by, room) if room > 0 else []


async def _oldest(link: Link, by: str, n: int) -> list[Doc]:
    fields = {"moves": 1, "updated_at": 1, "limit_n": 1}
    found = link.jobs.find({"status": "blocked", "blocked_by": by}, fields)
    return await found.sort([("queued_at", 1), ("_id", 1)]).limit(n).to_list()


async def _slots_taken(link: Link, limit_key: str) -> set[int]:
    docs = await link.jobs.find({"limit_key": limit_key, "slot": {"$gte": 0}}, {"_id": 0, "slot": 1}).to_list()
    return {doc["slot"] for doc in docs}
