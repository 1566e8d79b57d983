"""Wanting: one aggregation reads the first jobs of the queues that a claim asks for, and which of these are paused."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from windlass.stores.mongo.connection import QUICK
from windlass.stores.mongo.records import in_utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Want
    from windlass.stores.mongo.connection import Doc, Link


class Read(NamedTuple):
    """What a claim read: the first jobs of some queues."""

    rows: list[Doc]
    names: list[str]
    """the queues that were read and may be claimed from"""
    share: int
    """how many of each, where there were so many"""
    next: int | None
    """the first priority of what waits in others"""


# An entry of the index for each queue where anything waits, and none for the others.
_HEADS: list[Doc] = [
    {"$match": {"status": "queued"}},
    {"$sort": {"status": 1, "queue": 1, "priority": 1, "run_at": 1, "_id": 1}},
    {"$group": {"_id": "$queue", "first": {"$first": "$priority"}}},
]


def foremost(heads: dict[str, int], n: int) -> list[str]:
    """The queues that come first, at most so many; of equal ones any."""
    if len(heads) <= n:
        return list(heads)
    return sorted(heads, key=lambda name: (heads[name], random.random()))[:n]


def share(names: Sequence[str], page: int) -> int:
    """How many jobs of each of these queues are read."""
    return max(1, -(-page // len(names))) if len(names) > 2 else page


def _first_of(queue: str, want: Want, page: int, skip: int, others: list[str]) -> list[Doc]:
    types = sorted(want.types)
    found: Doc = {"status": "queued", "queue": queue, "type": types[0] if len(types) == 1 else {"$in": types}}
    if others:
        found["_id"] = {"$nin": others}
    return [
        {"$match": found},
        {"$sort": {"priority": 1, "run_at": 1, "_id": 1}},
        *([{"$skip": skip}] if skip else []),
        {"$limit": page},
        {"$project": {"history": 0}},
    ]


async def ask(
    link: Link, want: Want, names: Sequence[str], page: int, skip: int, others: list[str], *, told: bool
) -> tuple[dict[str, int], list[Doc]]:
    """The first priority of each queue where anything waits that is not paused, and the first jobs of some.

    If the queues are told already, only which of them are not paused. `others` are jobs to be left out.
    """
    coll = link.name("jobs")
    pipelines = [] if told else [_HEADS]
    pipelines += [_first_of(name, want, share(names, page), skip, others) for name in names]
    stages: list[Doc] = [{"$match": {"paused_at": {"$exists": True}}}, {"$project": {"paused": "$_id"}}]
    stages += [{"$unionWith": {"coll": coll, "pipeline": pipeline}} for pipeline in pipelines]
    source = link.collection("queues").with_options(codec_options=QUICK)
    answers = await (await source.aggregate(stages, batchSize=10_000)).to_list()
    paused = {row["paused"] for row in answers if "paused" in row}
    heads = dict.fromkeys(names, 0) if told else {row["_id"]: row["first"] for row in answers if "first" in row}
    rows = [in_utc(row) for row in answers if "type" in row]
    return {name: first for name, first in heads.items() if name not in paused}, rows
