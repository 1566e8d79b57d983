"""Keeping: what jobs remember is written under their lease, and the time to wait for a signal runs out.

Signals themselves are orders; see `operating`. Each adds a line to its job's history, and so does a time that is up:
the second of the two finds that the job has moved.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pymongo
from pymongo import UpdateMany, UpdateOne
from pymongo.errors import PyMongoError

from windlass.core.blocked import BlockedBy
from windlass.core.history import Happened
from windlass.core.kept import NULL
from windlass.core.status import Status
from windlass.stores.contract import Keep, Lease, Verdict
from windlass.stores.mongo.connection import BY_ID
from windlass.stores.mongo.notices import CHANGED, claimable
from windlass.stores.mongo.records import change, kept_at, latest, line
from windlass.stores.mongo.schema import WAITS_FOR_SIGNAL
from windlass.stores.mongo.settling import MOMENT, in_a_moment, verdicts_on
from windlass.stores.mongo.turns import without_part

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

    Writes = Mapping[Lease, tuple[Doc, Doc]]


async def keep(link: Link, keeps: Sequence[Keep]) -> list[Verdict]:
    """Write the values of each job under its lease, all in one command; one verdict each.

    The same values again change nothing, so a command whose answer was lost is sent again.
    """
    values: dict[Lease, Doc] = {}
    for one in keeps:
        values.setdefault(one.lease, {})[kept_at(one.name)] = one.json
    now, wake = await link.now(), link.news([CHANGED])
    writes = {
        lease: (_held(lease), {"$set": {**kept, "wake": wake}, "$max": {"updated_at": now}})
        for lease, kept in values.items()
    }
    done, late = await _write(link, writes)
    link.tell([CHANGED])
    if done == len(writes):
        return [Verdict.APPLIED] * len(keeps)
    leases = list(writes)
    verdicts = dict(zip(leases, await verdicts_on(link, leases), strict=True))
    verdicts |= {lease: Verdict.HELD for lease in late if verdicts[lease] is Verdict.APPLIED}
    return [verdicts[one.lease] for one in keeps]


def _held(lease: Lease) -> Doc:
    return {"_id": lease.id, "status": Status.PROCESSING.value, "lease_token": lease.token}


async def _write(link: Link, writes: Writes) -> tuple[int, Collection[Lease]]:
    """How many were made together, and where that took too long, which ones somebody's transaction holds."""
    together = [UpdateOne(*write) for write in writes.values()]
    try:
        with pymongo.timeout(MOMENT):
            return (await link.jobs.bulk_write(together, ordered=False)).matched_count, ()
    except PyMongoError as error:
        if error.timeout:
            return 0, await _write_each(link, writes)
    return (await link.surely(lambda: link.jobs.bulk_write(together, ordered=False))).matched_count, ()


async def _write_each(link: Link, writes: Writes) -> list[Lease]:
    """Make each of these by itself; which ones cannot be made though the server answers."""

    async def alone(lease: Lease) -> bool:
        return await in_a_moment(link.jobs.update_one(*writes[lease]))

    late: list[Lease] = [*writes]
    answered = False
    while late and not answered:
        made = await asyncio.gather(*map(alone, late))
        late = [lease for lease, is_made in zip(late, made, strict=True) if not is_made]
        asked = time.monotonic()
        await link.last_write_endures()  # or it raises: then it is the server that does not answer, and nobody's hold
        answered = time.monotonic() < asked + MOMENT
    return late


# Waiting for a signal.


FIRST_WAIT: list[Doc] = [
    {"$match": WAITS_FOR_SIGNAL},
    {"$sort": {"run_at": 1}},
    {"$limit": 1},
    {"$project": {"_id": 0, "signal": "$run_at"}},
]
"""a look by the index: when the time to wait for a signal is up first"""
_WAITS = dict.fromkeys(("moves", "updated_at", "queue", "fair_key", "blocked_by"), 1)


async def time_out(link: Link, n: int, now: datetime) -> int:
    """Let go on at most `n` jobs whose signal has not come in time, and return how many did."""
    over = link.jobs.find({**WAITS_FOR_SIGNAL, "run_at": {"$lte": now}}, _WAITS).sort("run_at", 1)
    docs = await over.limit(n).hint("signals").to_list()
    if not docs:
        return 0  # others were first
    plain = await without_part(link, docs)
    alike: dict[tuple[str, int, bool], list[Doc]] = defaultdict(list)
    for doc in docs:
        alike[doc["blocked_by"], doc["moves"], doc["_id"] in plain].append(doc)
    notices = claimable(doc["queue"] for doc in docs)
    wake = link.news(notices)
    writes = [_timed_out(by, some, now, wake, apart=apart) for (by, _, apart), some in alike.items()]
    done = (await link.surely(lambda: link.jobs.bulk_write(writes, ordered=False))).modified_count
    link.written += done
    link.tell(notices)
    return done


def _timed_out(by: str, docs: list[Doc], now: datetime, wake: str, *, apart: bool) -> UpdateMany:
    at = latest(now, docs)
    ids = [doc["_id"] for doc in docs]
    found: Doc = {"_id": {"$in": ids}, "status": Status.BLOCKED.value, "moves": docs[0]["moves"]}
    note = f"the signal {BlockedBy.of(by).key} did not come in time"
    # What it is blocked by is also the name that the signal is kept under.
    values = {"blocked_by": None, "queued_at": at, kept_at(by): NULL, **({"fair_key": ""} if apart else {})}
    told = line(at, Happened.UNBLOCKED, Status.QUEUED, note=note)
    return UpdateMany(found, change(told, values, wake=wake), hint=BY_ID)
