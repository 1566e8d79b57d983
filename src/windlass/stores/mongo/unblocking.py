"""Unblock: jobs that waited for a limit slot, a running key, a rate or other jobs go on, oldest first."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from windlass.core.blocked import BlockedBy, Kind, lines
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.mongo import flows, rates
from windlass.stores.mongo.connection import AT_ONCE, BY_ID
from windlass.stores.mongo.notices import claimable
from windlass.stores.mongo.records import change, latest, line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

_PAGE = 1000  # how many of one line are called at once
_FEW_SLOTS = 256  # of a limit with more than these the server tells only how many are taken, and no further than full


def lines_of(docs: Iterable[Doc]) -> set[str]:
    """What others may be waiting for these jobs to give up, or to end."""
    waited: set[str] = set()
    for doc in docs:
        keys = doc.get("limit_key"), doc.get("unique_running"), doc.get("next_id")
        waited.update(lines(limit=keys[0], unique=keys[1], flow=keys[2]))
    return waited


async def unblock(link: Link, waited: Iterable[str]) -> int:
    """Queue as many of each line as have room now, and return how many; the claim tests them again."""
    left: set[str] = set(waited)
    done = 0
    while left:
        flowing = {by.removeprefix(Kind.FLOW.prefix) for by in left if Kind.FLOW.blocks(by)}
        rated = {by for by in left if Kind.RATE.blocks(by)}
        gates = [by for by in left if Kind.LIMIT.blocks(by) or Kind.UNIQUE.blocks(by)]
        left = set()
        if gates:
            done += await _open_gates(link, gates)
        if rated:
            done += await _call(link, rated)
        if flowing:
            went_on, left = await flows.settle(link, flowing)  # the end of one may free others in turn
            done += went_on
    return done


async def has_freed(link: Link, docs: Sequence[Doc]) -> None:
    """These have ended, and what awaited them has been looked at."""
    ids = [doc["_id"] for doc in docs if "next_id" in doc]
    if ids:
        # Not waited for: a process that finds a lost mark looks once more.
        jobs = link.jobs.with_options(write_concern=AT_ONCE)
        await jobs.update_many({"_id": {"$in": ids}}, {"$unset": {"frees": ""}}, hint=BY_ID)


async def free_left_over(link: Link) -> tuple[int, bool]:
    """Look at what awaits jobs whose end was written by somebody who died before doing so.

    Returns how many went on, and whether there may be more such jobs than were looked at.
    """
    docs = await link.jobs.find({"frees": True}, {"next_id": 1}).hint("frees").limit(_PAGE).to_list()
    if not docs:
        return 0, False
    freed = await unblock(link, lines_of(docs))
    await has_freed(link, docs)
    return freed, len(docs) >= _PAGE


async def _open_gates(link: Link, gates: Collection[str]) -> int:
    """Queue as many of each of these lines as have room: one look tells which have."""
    first: list[Doc] = [
        {"$match": {"blocked_by": {"$in": list(gates)}}},
        {"$sort": {"blocked_by": 1, "queued_at": 1, "_id": 1}},
        {"$group": {"_id": "$blocked_by", "limit_n": {"$first": "$limit_n"}}},
    ]
    rows = await (await link.jobs.aggregate(first)).to_list()
    if not rows:
        return 0
    most = {BlockedBy.of(row["_id"]): row.get("limit_n") or 1 for row in rows}
    limits = {by.key: limit for by, limit in most.items() if by.kind is Kind.LIMIT}
    running = await _running(link, limits)
    keys = [by.key for by in most if by.kind is Kind.UNIQUE]
    held: set[str] = set()
    if keys:
        found = link.jobs.find({"unique_key": {"$in": keys}}, {"_id": 0, "unique_key": 1})
        held = {doc["unique_key"] for doc in await found.to_list()}
    done = 0
    for by, limit in most.items():
        room = limit - running[by.key] if by.kind is Kind.LIMIT else int(by.key not in held)
        if room > 0:
            done += await _queue(link, await _oldest(link, by.text, room))
    return done


async def _running(link: Link, limits: Mapping[str, int]) -> Counter[str]:
    """How many slots of each of these limits are taken: one look tells of all small ones."""
    large = [key for key, limit in limits.items() if limit > _FEW_SLOTS]
    small = [key for key, limit in limits.items() if limit <= _FEW_SLOTS]
    running: Counter[str] = Counter()
    if small:
        found = link.jobs.find(
            {"limit_key": {"$in": small}, "slot": {"$gte": 0}}, {"_id": 0, "limit_key": 1, "slot": 1}
        )
        running.update([doc["limit_key"] for doc in await found.hint("slots").to_list()])
    counts = [link.count({"limit_key": key, "slot": {"$gte": 0}}, limits[key], "slots") for key in large]
    running.update(dict(zip(large, await asyncio.gather(*counts), strict=True)))
    return running


async def _oldest(link: Link, by: str, n: int) -> list[Doc]:
    fields = {"moves": 1, "updated_at": 1, "limit_n": 1, "queue": 1}
    found = link.jobs.find({"status": "blocked", "blocked_by": by}, fields)
    return await found.sort([("queued_at", 1), ("_id", 1)]).limit(n).to_list()


async def _call(link: Link, rated: Collection[str]) -> int:
    """Call as many of each rate's line as have room, and write down when there is room for those that still wait.

    They stay known as called, so that the claim lets them pass the jobs that still stand there.
    """
    done = 0
    waiting: dict[str, datetime] = {}
    for by, room, again, known in await rates.standing(link, rated):
        left = room
        while left > 0 and (docs := await _oldest(link, by, min(left, _PAGE))):
            done += await _queue(link, docs, by)
            left -= len(docs)
        if left <= 0 and not known:
            waiting[BlockedBy.of(by).key] = again
    await rates.look_again(link, waiting)
    return done


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
