"""Unblock: jobs that waited for a limit slot, a running key, a rate or other jobs go on, oldest first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.mongo import flows, rates
from windlass.stores.mongo.notices import claimable
from windlass.stores.mongo.records import change, latest, line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

_PAGE = 1000  # how many of one line are called at once


class Freed(NamedTuple):
    """How many jobs went on, and when the first of the rates that others wait for has room."""

    n: int
    next_room: datetime | None


def lines_of(docs: Iterable[Doc]) -> set[str]:
    """What others may be waiting for these jobs to give up, or to end."""
    waited: set[str] = set()
    for doc in docs:
        if "limit_key" in doc:
            waited.add(f"limit:{doc['limit_key']}")
        if "unique_running" in doc:
            waited.add(f"unique:{doc['unique_running']}")
        if "next_id" in doc:
            waited.add(f"flow:{doc['next_id']}")
    return waited


async def unblock(link: Link, waited: Iterable[str]) -> Freed:
    """Queue as many of each line as have room now; the claim tests them again."""
    lines: set[str] = set(waited)
    done, soonest = 0, None
    while lines:
        flowing = {by.split(":", 1)[1] for by in lines if by.startswith("flow:")}
        rated = {by for by in lines if by.startswith("rate:")}
        gates = [by for by in lines if not by.startswith(("flow:", "rate:"))]
        lines = set()
        if gates:
            done += await _open_gates(link, gates)
        if rated:
            called, soonest = await _call(link, rated)
            done += called
        if flowing:
            went_on, lines = await flows.settle(link, flowing)  # the end of one may free others in turn
            done += went_on
    return Freed(done, soonest)


async def _open_gates(link: Link, gates: Collection[str]) -> int:
    stages: list[Doc] = [{"$match": {"blocked_by": {"$in": list(gates)}}}, {"$group": {"_id": "$blocked_by"}}]
    there = await (await link.jobs.aggregate(stages)).to_list()
    done = 0
    for by in [row["_id"] for row in there]:
        done += await _queue(link, await _next_in_line(link, by))
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
    fields = {"moves": 1, "updated_at": 1, "limit_n": 1, "queue": 1}
    found = link.jobs.find({"status": "blocked", "blocked_by": by}, fields)
    return await found.sort([("queued_at", 1), ("_id", 1)]).limit(n).to_list()


async def _slots_taken(link: Link, limit_key: str) -> set[int]:
    docs = await link.jobs.find({"limit_key": limit_key, "slot": {"$gte": 0}}, {"_id": 0, "slot": 1}).to_list()
    return {doc["slot"] for doc in docs}


async def _call(link: Link, lines: Collection[str]) -> tuple[int, datetime | None]:
    """Call as many of each rate's line as have room; returns how many, and when there is room for those who still wait.

    They stay known as called, so that the claim lets them pass those who still stand there.
    """
    done = 0
    overs: list[datetime] = []
    for by, room, again in await rates.standing(link, lines):
        left = room
        while left > 0 and (docs := await _oldest(link, by, min(left, _PAGE))):
            done += await _queue(link, docs, by)
            left -= len(docs)
        if left <= 0 and again is not None:
            overs.append(again)
    return done, min(overs, default=None)


async def _queue(link: Link, docs: Sequence[Doc], called: str | None = None) -> int:
    alike: dict[int, list[Doc]] = defaultdict(list)
    for doc in docs:
        alike[doc["moves"]].append(doc)
    done = 0
    for moves, some in alike.items():
        told = line(latest(await link.now(), some), Happened.UNBLOCKED, Status.QUEUED)
        found: Doc = {"_id": {"$in": [doc["_id"] for doc in some]}, "status": "blocked", "moves": moves}
        notices = claimable(doc["queue"] for doc in some)
        values = {"blocked_by": None, **({"called": called} if called else {})}
        done += await link.update_many(found, change(told, values, wake=link.news(notices)))
        link.tell(notices)
    return done
