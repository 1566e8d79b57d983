"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token.

An end is one update of all jobs that end alike. Its minute is counted and those that waited for it are queued right
after: a process that dies in between leaves a minute uncounted, and blocked jobs to the next promotion.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from bson import ObjectId
from pymongo import UpdateMany, UpdateOne

from windlass.core.history import HISTORY_LIMIT, Happened
from windlass.core.status import Status
from windlass.core.transition import honour_cancel
from windlass.stores.contract import Extended, Lease, Report, Verdict
from windlass.stores.mongo.records import (
    STATUSES,
    appended,
    as_ms,
    error_json,
    in_ms,
    latest,
    line,
    marked,
    progress_json,
    whole,
)
from windlass.stores.mongo.unblocking import lines_of, unblock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from windlass.core.transition import Transition
    from windlass.stores.mongo.connection import Doc, Link

    Pair = tuple[Transition, Doc]

_PROCESSING = Status.PROCESSING.value


async def extend(link: Link, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
    """Renew what is still the worker's and say what is not."""
    alike: dict[int, list[str]] = defaultdict(list)
    for one in leases:
        alike[one.token].append(one.id)
    until = [{"$set": {"lease_expires_at": {"$add": ["$$NOW", as_ms(lease)]}}}]
    for token, ids in alike.items():
        held = {"_id": {"$in": ids}, "status": _PROCESSING, "lease_token": token, "worker_id": worker_id}
        await link.update_many(held, until)
    ours: Doc = {"_id": {"$in": [one.id for one in leases]}, "status": _PROCESSING, "worker_id": worker_id}
    docs = await link.jobs.find(ours, {"lease_token": 1, "cancel_requested_at": 1}).to_list()
    found = {(doc["_id"], doc["lease_token"]): "cancel_requested_at" in doc for doc in docs}
    return Extended(
        lost=frozenset(one.id for one in leases if (one.id, one.token) not in found),
        cancels=frozenset(one.id for one in leases if found.get((one.id, one.token))),
    )


async def cancels(link: Link, worker_id: str) -> frozenset[str]:
    """What this worker should stop."""
    asked: Doc = {"status": _PROCESSING, "worker_id": worker_id, "cancel_requested_at": {"$exists": True}}
    return frozenset([doc["_id"] async for doc in link.jobs.find(asked, {"_id": 1})])


async def report(link: Link, reports: Sequence[Report]) -> list[Verdict]:
    """Write progress, one verdict each."""
    verdicts: list[Verdict] = []
    for one in reports:
        held = {"_id": one.lease.id, "status": _PROCESSING, "lease_token": one.lease.token}
        update = [{"$set": {"progress": {"$literal": progress_json(one.progress)}, "updated_at": "$$NOW"}}]
        if (await link.jobs.update_one(held, update)).matched_count:
            verdicts.append(Verdict.APPLIED)
        else:
            there = await link.jobs.find_one({"_id": one.lease.id}, {"_id": 1})
            verdicts.append(Verdict.STALE if there else Verdict.MISSING)
    return verdicts


_STANDING = dict.fromkeys(
    (
        "status",
        "lease_token",
        "moves",
        "updated_at",
        "started_at",
        "wait_ms",
        "queue",
        "type",
        "cancel_requested_at",
        "limit_key",
        "unique_running",
    ),
    1,
)


async def apply(link: Link, transitions: Sequence[Transition]) -> list[Verdict]:
    """Write every transition whose token still is its job's; one verdict each, in order."""
    verdicts: dict[int, Verdict] = {}
    ended: list[Doc] = []
    while len(verdicts) < len(transitions):
        open_ = [(n, one) for n, one in enumerate(transitions) if n not in verdicts]
        ids = list({one.id for _, one in open_})
        docs = {doc["_id"]: doc for doc in await link.jobs.find({"_id": {"$in": ids}}, _STANDING).to_list()}
        standing: dict[str, int] = {}
        for n, one in open_:
            doc = docs.get(one.id)
            if doc is None:
                verdicts[n] = Verdict.MISSING
            elif doc["lease_token"] != one.token:
                await _refuse(link, one, doc)
                verdicts[n] = Verdict.STALE
            elif doc["status"] == _PROCESSING:
                standing.setdefault(one.id, n)  # the same again is looked at when this one is written
            else:
                # Only the holder of a token can end its attempt, so the same token on a job that has moved on means
                # that this very ending was written before, by a call whose answer was lost.
                verdicts[n] = Verdict.APPLIED
        pairs = [(transitions[n], docs[job_id]) for job_id, n in standing.items()]
        for doc in await write(link, pairs):
            verdicts[standing[doc["_id"]]] = Verdict.APPLIED
            ended.append(doc)
    if ended:
        await unblock(link, lines_of(ended))
    return [verdicts[n] for n in range(len(transitions))]


async def write(link: Link, pairs: Sequence[Pair], *, lost: bool = False) -> list[Doc]:
    """Write transitions on jobs that have not moved since they were read; returns the documents of those it was for.

    Counts them in their minute. Where a lease was lost the token moves on, and only if it is still over.
    """
    if not pairs:
        return []
    told = [(one if "cancel_requested_at" not in doc else honour_cancel(one), doc) for one, doc in pairs]
    clock, mark = await link.now(), ObjectId()
    now = latest(clock, [doc for _, doc in told])
    writes = [_update(some, now, mark, clock if lost else None) for some in _alike(told)]
    if len(writes) == 1:
        done = await link.update_many(*writes[0])
    else:
        many = [UpdateMany(*one) for one in writes]
        done = (await link.surely(lambda: link.jobs.bulk_write(many, ordered=False))).modified_count
    if done != len(told):
        ours = await marked(link, [doc["_id"] for _, doc in told], mark)
        told = [(one, doc) for one, doc in told if doc["_id"] in ours]
    await _tally(link, told, now)
    return [doc for _, doc in told]


def _alike(pairs: Iterable[Pair]) -> list[list[Pair]]:
    groups: dict[Any, list[Pair]] = defaultdict(list)
    for one, doc in pairs:
        key = (one.to, one.happened, one.note, one.error, one.give_back, one.crashed, one.delay, one.token)
        groups[*key, doc["moves"]].append((one, doc))
    return list(groups.values())


def _update(pairs: list[Pair], now: datetime, mark: ObjectId, over: datetime | None) -> tuple[Doc, list[Doc]]:
    one, doc = pairs[0]
    ids = [doc["_id"] for _, doc in pairs]
    found: Doc = {
        "_id": ids[0] if len(ids) == 1 else {"$in": ids},
        "status": _PROCESSING,
        "lease_token": one.token,
        "moves": doc["moves"],
    }
    if over is not None:
        found["lease_expires_at"] = {"$lte": over}
    values: Doc = {
        "status": one.to.value,
        "updated_at": now,
        "duration_ms": {"$subtract": [now, "$started_at"]},
        "attempts": {"$subtract": ["$attempts", int(one.give_back)]},
        "crashes": {"$add": ["$crashes", int(one.crashed)]},
        "lease_token": one.token + (over is not None),
        "moves": doc["moves"] + 1,
        "history": appended(line(now, one.happened, one.to, token=one.token, note=one.note, mark=mark)),
        "lease_expires_at": "$$REMOVE",
        "slot": "$$REMOVE",
        **(_finish(pairs, now) if one.to.finished else _requeue(one, now)),
    }
    return found, [{"$set": values}]


def _finish(pairs: list[Pair], now: datetime) -> Doc:
    error = error_json(pairs[0][0].error)
    return {
        "finished_at": now,
        "unique_key": "$$REMOVE",
        "error": "$$REMOVE" if error is None else {"$literal": error},
        "result": _result(pairs),
    }


def _result(pairs: list[Pair]) -> Any:
    results = [one.result_json for one, _ in pairs]
    if len(set(results)) > 1:
        # Each looks its own up by its place in the list, so that different results are still one update.
        place = {"$indexOfArray": [{"$literal": [doc["_id"] for _, doc in pairs]}, "$_id"]}
        return {"$arrayElemAt": [{"$literal": results}, place]}
    return "$$REMOVE" if results[0] is None else {"$literal": results[0]}


def _requeue(one: Transition, now: datetime) -> Doc:
    error = error_json(one.error)
    values: Doc = {"worker_id": "$$REMOVE", "queued_at": now if one.to is Status.QUEUED else "$$REMOVE"}
    if one.delay is not None:
        values["run_at"] = now + whole(one.delay)
    if error is not None:
        values["error"] = {"$literal": error}
    return values


async def _refuse(link: Link, one: Transition, doc: Doc) -> None:
    note = f"late {one.to.value} of lease {one.token}, the lease is {doc['lease_token']} now: not applied"
    told = line(doc["updated_at"], Happened.REFUSED, STATUSES[doc["status"]], token=one.token, note=note)
    # The status is the one it has when this is written: a line of history tells of that moment.
    entry = {**{name: {"$literal": value} for name, value in told.items()}, "at": "$updated_at", "status": "$status"}
    history = {"$slice": [{"$concatArrays": ["$history", [entry]]}, -HISTORY_LIMIT]}
    await link.jobs.update_one(
        {"_id": one.id},
        [
            {"$set": {"updated_at": {"$max": ["$$NOW", "$updated_at"]}}},
            {"$set": {"moves": {"$add": ["$moves", 1]}, "history": history}},
        ],
    )


async def _tally(link: Link, pairs: Sequence[Pair], now: datetime) -> None:
    minute = now.replace(second=0, microsecond=0)
    figures: dict[tuple[str, str, str, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for one, doc in pairs:
        ran = max(0, in_ms(now - doc["started_at"]))
        sums = figures[doc["queue"], doc["type"], one.to.value, min(32, ran.bit_length())]
        sums[0] += 1
        sums[1] += ran
        sums[2] += doc.get("wait_ms") or 0
    writes = [
        UpdateOne(
            {"_id": {"minute": minute, "queue": queue, "type": type_, "status": status, "bucket": bucket}},
            {"$inc": {"n": n, "duration_ms": ran, "wait_ms": waited}, "$setOnInsert": {"minute": minute}},
            upsert=True,
        )
        for (queue, type_, status, bucket), (n, ran, waited) in figures.items()
    ]
    if writes:
        await link.collection("minutes").bulk_write(writes, ordered=False)
