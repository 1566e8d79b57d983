"""Turns: where a job with a fair key is put among the others that wait. An order only: nobody waits for its time.

Clients that insert at the same moment may take the same turn: such jobs stand beside each other, in the order of their
ids.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from windlass.stores.mongo.records import whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from windlass.core.draft import Draft, Options
    from windlass.stores.mongo.connection import Doc, Link

Line: TypeAlias = tuple[str, int]
"""a queue and a priority"""
Turns: TypeAlias = "Mapping[str, datetime]"
"""of each job that takes one, by its id"""
_AFTER = timedelta(milliseconds=1)


def due_at(options: Options, now: datetime) -> datetime:
    """When a job may run by its own options."""
    if options.delay is not None:
        return now + whole(options.delay)
    if options.run_at is None:
        return now
    return options.run_at.replace(microsecond=options.run_at.microsecond // 1000 * 1000)


def fair_lines(drafts: Sequence[Draft], now: datetime) -> dict[Line, list[Draft]]:
    """Those that take a turn, by the line they stand in."""
    lines: dict[Line, list[Draft]] = {}
    for draft in drafts:
        options = draft.options
        if draft.fair_key is not None and options.awaits is None and due_at(options, now) <= now:
            lines.setdefault((options.queue, options.priority), []).append(draft)
    return lines


def looks(line: Line, drafts: Sequence[Draft]) -> tuple[list[Doc], list[Doc], list[Doc]]:
    """Stages for the last of each of these keys in a line, for the first of any, and for the last without one.

    Looks and not one with a union, which a transaction does not allow.
    """
    queue, priority = line
    standing: Doc = {"status": "queued", "queue": queue, "priority": priority}
    keys = sorted({str(draft.fair_key) for draft in drafts})
    last: list[Doc] = [
        {"$match": {**standing, "fair_key": {"$in": keys}}},
        {"$sort": {"fair_key": -1, "run_at": -1}},
        {"$group": {"_id": "$fair_key", "run_at": {"$first": "$run_at"}}},
    ]
    first: list[Doc] = [
        {"$match": {**standing, "fair_key": {"$gt": ""}}},
        {"$sort": {"run_at": 1}},
        {"$limit": 1},
        {"$project": {"_id": 0, "run_at": 1}},
    ]
    plain: list[Doc] = [
        {"$match": {**standing, "fair_key": ""}},
        {"$sort": {"run_at": -1}},
        {"$limit": 1},
        {"$project": {"_id": 0, "plain": "$run_at"}},
    ]
    return last, first, plain


def places(drafts: Sequence[Draft], rows: Sequence[Doc], now: datetime, since: datetime) -> dict[str, datetime]:
    """Where these stand, one after the other: beside the first that waits, but behind the last of the same key.

    And behind all that take no part: those that come later would be before them for ever. What was queued before jobs
    took turns there, which they have done `since`, is not told from the others.
    """
    last: dict[str, datetime] = {row["_id"]: row["run_at"] for row in rows if "_id" in row}
    first: datetime = next((row["run_at"] for row in rows if row.keys() == {"run_at"}), now)
    first = max(first, since, *[row["plain"] + _AFTER for row in rows if "plain" in row])
    turns: dict[str, datetime] = {}
    for draft in drafts:
        key = str(draft.fair_key)
        turns[draft.id] = last[key] = max(first, last[key] + _AFTER) if key in last else first
    return turns


async def taken(link: Link, drafts: Sequence[Draft], now: datetime) -> Turns:
    """The turns of these."""
    turns: dict[str, datetime] = {}
    for line, some in fair_lines(drafts, now).items():
        rows = [row for stages in looks(line, some) for row in await (await link.jobs.aggregate(stages)).to_list()]
        turns |= places(some, rows, now, link.fair[line[0]])
    return turns


_UNHEARD = timedelta(seconds=2)  # how long others that looked at a queue may not know that jobs take turns there
_LATEST = timedelta(seconds=10)  # when the last that they queued in that time has been written, too


async def tell_apart(link: Link, queues: Collection[str], now: datetime) -> None:
    """Tell also those from fair jobs that somebody queued just after these queues had become theirs, unknowing.

    In the first seconds of that; where many are to be looked at, it takes no more than half of the time.
    """
    for name in queues:
        began, since = time.monotonic(), link.fair[name]
        if began < link.tell_apart_from.get(name, 0.0):
            continue
        window: Doc = {"$gte": since - _UNHEARD, "$lte": since + _UNHEARD}
        unknown: Doc = {"status": "queued", "queue": name, "run_at": window, "fair_key": {"$exists": False}}
        await link.surely(partial(link.jobs.update_many, unknown, {"$set": {"fair_key": ""}}, hint="ready"))
        ended = time.monotonic()
        link.tell_apart_from[name] = math.inf if now > since + _LATEST else 2 * ended - began


async def without_part(link: Link, docs: Iterable[Doc]) -> set[str]:
    """Which of these, about to be queued at a new place, are to be told from others that take turns there."""
    plain = {doc["_id"]: doc["queue"] for doc in docs if "fair_key" not in doc}
    if not plain:
        return set()
    fair: Doc = {"_id": {"$in": sorted(set(plain.values()))}, "fair": {"$exists": True}}
    names = {row["_id"] for row in await link.collection("queues").find(fair, {"_id": 1}).to_list()}
    return {job_id for job_id, queue in plain.items() if queue in names}
