"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token.

An end is one update of all jobs that end alike, and needs no read before it if this store claimed them. Its minute is
counted and those that waited for it are queued right after: a process that dies in between leaves a minute uncounted,
and blocked jobs to the next promotion. One that others await is marked until those have been looked at.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pymongo
from bson import ObjectId
from pymongo import UpdateMany, UpdateOne
from pymongo.errors import PyMongoError

from windlass.core.blocked import Kind, lines
from windlass.core.history import HISTORY_LIMIT, Happened
from windlass.core.spread import spread_of
from windlass.core.status import Status
from windlass.core.transition import go_on, honour_cancel, refuse
from windlass.stores.contract import Extended, Lease, Report, Verdict
from windlass.stores.mongo.connection import AT_ONCE, BY_ID, in_parts
from windlass.stores.mongo.flows import is_gathering
from windlass.stores.mongo.notices import CHANGED, news_of
from windlass.stores.mongo.records import (
    STATUSES,
    as_ms,
    as_pipeline,
    change,
    in_ms,
    keeps,
    kept_at,
    latest,
    line,
    marked,
    waited,
    whole,
)
from windlass.stores.mongo.unblocking import has_freed, lines_of, unblock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from windlass.core.spread import Spread
    from windlass.core.transition import Transition
    from windlass.stores.mongo.connection import Doc, Link

    Pair = tuple[Transition, Doc]

_PROCESSING = Status.PROCESSING.value
_PARTS = 8  # documents for the same figures of a minute, so that concurrent counts do not wait for each other
SPREAD = -1
"""the bucket of documents that hold whole spreads: to earlier versions they are one bucket more"""
_RESULTS = 4_000_000  # characters of results in one update: the server takes no more than 16 MB
MOMENT = 0.5  # seconds that ends are tried together, and then as long each by itself: what is not written is held
_LEAST = 0.1  # seconds
_PATIENCE = 1 / 10  # of a lease: for so long all are renewed together, and then as long each by itself


async def extend(link: Link, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
    """Renew and confirm what is still the worker's, and say what is not."""
    alike: dict[int, list[str]] = defaultdict(list)
    for one in leases:
        alike[one.token].append(one.id)
    renewal = [{"$set": {"lease_expires_at": {"$add": ["$$NOW", as_ms(lease)]}, "confirmed": "$lease_token"}}]
    held: set[str] = set()
    fences = {token: {"status": _PROCESSING, "lease_token": token, "worker_id": worker_id} for token in alike}
    patience = max(_LEAST, lease.total_seconds() * _PATIENCE)
    for token, ids in alike.items():
        held |= await _renew(link, ids, fences[token], renewal, patience)
    if held:
        await link.last_write_endures()  # or it raises: then it is the server that does not answer, and nobody's hold
    ours: Doc = {"_id": {"$in": [one.id for one in leases]}, "status": _PROCESSING, "worker_id": worker_id}
    docs = await link.jobs.find(ours, {"lease_token": 1, "cancel_requested_at": 1}).to_list()
    found = {(doc["_id"], doc["lease_token"]): "cancel_requested_at" in doc for doc in docs}
    lost = frozenset(one.id for one in leases if (one.id, one.token) not in found)
    for job_id in lost:
        link.held.pop(job_id, None)
    return Extended(
        lost=lost,
        cancels=frozenset(one.id for one in leases if found.get((one.id, one.token))),
        held=frozenset(held - lost),
    )


async def _renew(link: Link, ids: list[str], fence: Doc, renewal: list[Doc], patience: float) -> set[str]:
    """Change all of these together; if that takes too long each by itself, and say which ones a transaction holds.

    One command waits at the first document that an open transaction has changed, and does not come to those after it.
    """
    try:
        with pymongo.timeout(patience):
            done = await link.jobs.update_many({"_id": {"$in": ids}, **fence}, renewal, hint=BY_ID)
    except PyMongoError as error:
        if not error.timeout:
            await link.update_many({"_id": {"$in": ids}, **fence}, renewal)
            return set()
    else:
        link.written += done.modified_count
        return set()

    async def alone(job_id: str) -> str | None:
        try:
            with pymongo.timeout(patience):
                link.written += (await link.jobs.update_one({"_id": job_id, **fence}, renewal)).modified_count
        except PyMongoError as error:
            if not error.timeout:
                raise
            return job_id
        return None

    return {job_id for job_id in await asyncio.gather(*map(alone, ids)) if job_id is not None}


async def cancels(link: Link, worker_id: str) -> frozenset[str]:
    """What this worker should stop."""
    asked: Doc = {"status": _PROCESSING, "worker_id": worker_id, "cancel_requested_at": {"$exists": True}}
    return frozenset([doc["_id"] async for doc in link.jobs.find(asked, {"_id": 1}).hint("cancels")])


async def report(link: Link, reports: Sequence[Report]) -> list[Verdict]:
    """Write progress, one verdict each."""
    if not reports:
        return []
    wake = link.news([CHANGED])
    writes = [
        UpdateOne(
            {"_id": one.lease.id, "status": _PROCESSING, "lease_token": one.lease.token},
            [
                {
                    "$set": {
                        "progress": {"$literal": one.progress.text()},
                        "updated_at": {"$max": ["$$NOW", "$updated_at"]},
                        "wake": wake,
                    }
                }
            ],
        )
        for one in reports
    ]
    done = await link.surely(lambda: link.jobs.bulk_write(writes, ordered=False))
    link.tell([CHANGED])
    if done.matched_count == len(reports):
        return [Verdict.APPLIED] * len(reports)
    return await verdicts_on(link, [one.lease for one in reports])


async def verdicts_on(link: Link, leases: Sequence[Lease]) -> list[Verdict]:
    """What became of writes under these leases, of which some found their job no more."""
    ids = {"_id": {"$in": [lease.id for lease in leases]}}
    docs = await link.jobs.find(ids, {"lease_token": 1, "status": 1}).to_list()
    tokens = {doc["_id"]: doc["lease_token"] if doc["status"] == _PROCESSING else None for doc in docs}
    held = {True: Verdict.APPLIED, False: Verdict.STALE}
    return [held[tokens[of.id] == of.token] if of.id in tokens else Verdict.MISSING for of in leases]


_STANDING = dict.fromkeys(
    (
        "status",
        "lease_token",
        "moves",
        "updated_at",
        "started_at",
        "wait_ms",
        "queued_at",
        "queue",
        "type",
        "cancel_requested_at",
        "limit_key",
        "unique_running",
        "next_id",
        "charged",
        # what an ending removes, if it is there
        "lease_expires_at",
        "slot",
        "unique_key",
        "duration_ms",
        "worker_id",
        "error",
        "result",
    ),
    1,
)


async def apply(link: Link, transitions: Sequence[Transition]) -> list[Verdict]:
    """Write every transition whose token still is its job's; one verdict each, in order."""
    verdicts: dict[int, Verdict] = {}
    ended: list[Doc] = []

    def note(standing: Mapping[str, int], written: Written) -> None:
        for doc in written.docs:
            n = standing[doc["_id"]]
            instead = "cancel_requested_at" in doc and not transitions[n].to.finished
            verdicts[n] = Verdict.CANCELLED if instead else Verdict.APPLIED
            ended.append(doc)
        verdicts.update(
            {n: Verdict.HELD for n, one in enumerate(transitions) if n not in verdicts and one.id in written.held}
        )

    known = {n: doc for n, one in enumerate(transitions) if (doc := _held(link, one)) is not None}
    mine = {doc["_id"]: n for n, doc in known.items()}
    note(mine, await write(link, [(transitions[n], known[n]) for n in mine.values()]))
    while len(verdicts) < len(transitions):
        # What this store did not claim, or what somebody else has touched since: a job asked to cancel, for one.
        open_ = [(n, one) for n, one in enumerate(transitions) if n not in verdicts]
        ids = list({one.id for _, one in open_})
        fields = {**_STANDING, **_signals_of(one for _, one in open_)}
        docs = {doc["_id"]: doc for doc in await link.jobs.find({"_id": {"$in": ids}}, fields).to_list()}
        standing: dict[str, int] = {}
        before: list[Doc] = []
        for n, one in open_:
            doc = docs.get(one.id)
            if doc is None:
                verdicts[n] = Verdict.MISSING
            elif doc["lease_token"] != one.token:
                verdicts[n] = await _refuse(link, one, doc)
            elif doc["status"] == _PROCESSING:
                standing.setdefault(one.id, n)  # the same again is looked at when this one is written
            else:
                # Only the holder of a token can end its attempt, so the same token on a job that has moved on means
                # that this very ending was written before, by a call whose answer was lost.
                verdicts[n] = Verdict.APPLIED
                before.append(doc)
        if before:
            await link.last_write_endures()
            ended += before  # that call may not have got as far as freeing the jobs that wait
        pairs = [(transitions[n], docs[job_id]) for job_id, n in standing.items()]
        note(standing, await write(link, pairs))
    if ended:
        # Who gathers may have no child left to wait for: they ended before it, and found nobody who waits.
        suspended = [one for one in transitions if one.blocked_by is not None]
        gathers = {by for one in suspended if is_gathering(one) for by in lines(flow=one.id)}
        await unblock(link, lines_of(ended) | gathers)
        await has_freed(link, ended)
    return [verdicts[n] for n in range(len(transitions))]


def _signals_of(transitions: Iterable[Transition]) -> Doc:
    """Where the signals are kept that these would wait for."""
    return {kept_at(one.blocked_by): 1 for one in transitions if one.blocked_by and Kind.SIGNAL.blocks(one.blocked_by)}


def _held(link: Link, one: Transition) -> Doc | None:
    doc = link.held.pop(one.id, None)
    return doc if doc is not None and doc["lease_token"] == one.token else None


class Written(NamedTuple):
    """What became of some transitions; the jobs of all others had moved since they were read."""

    docs: list[Doc]
    """of those that were written"""
    held: set[str]
    """ids of jobs that a transaction of somebody else has changed"""


async def write(link: Link, pairs: Sequence[Pair], *, lost: bool = False) -> Written:
    """Write transitions on jobs that have not moved since they were read.

    Counts them in their minute. Where a lease was lost the token moves on, and only if it is still over.
    """
    told = [
        (one if one.blocked_by is None and "cancel_requested_at" not in doc else _as_it_stands(one, doc), doc)
        for one, doc in pairs
    ]
    clock = await link.now()
    now = latest(clock, [doc for _, doc in told])
    parts = await in_parts(told, lambda some: _write_part(link, some, now, clock if lost else None))
    written = [pair for pairs, _ in parts for pair in pairs]
    await _tally(link, written, now)
    return Written([doc for _, doc in written], {id_ for _, held in parts for id_ in held})


def _as_it_stands(one: Transition, doc: Doc) -> Transition:
    """The transition to apply to a job that was asked to cancel, or that has the signal it would wait for.

    Both add to its `moves`: a change that was not seen here is seen by the write, which then changes nothing.
    """
    if "cancel_requested_at" in doc:
        return honour_cancel(one)
    is_there = one.blocked_by is not None and Kind.SIGNAL.blocks(one.blocked_by) and keeps(doc, one.blocked_by)
    return go_on(one) if is_there else one


async def _write_part(
    link: Link, told: Sequence[Pair], now: datetime, over: datetime | None
) -> tuple[Sequence[Pair], set[str]]:
    """Those that were written, and the ids of those that a transaction holds."""
    waits = [one for one, _ in told if one.blocked_by is not None and one.delay is not None]
    notices = news_of(((one.to.value, doc["queue"]) for one, doc in told), due=bool(waits))
    mark, wake = ObjectId(), link.news(notices)
    writes = [_update(some, now, mark, over) for some in _alike(told[:-1])]
    # The last one wakes listeners, for all of them.
    writes.append(_update([told[-1]], now, mark, over, wake))
    many = [UpdateMany(*one, hint=BY_ID) for one in writes]
    late: set[str] = set()
    done = 0
    try:
        with pymongo.timeout(MOMENT):
            done = (await link.jobs.bulk_write(many, ordered=False)).modified_count
    except PyMongoError as error:
        if error.timeout:
            # It waits at the first document that an open transaction has changed.
            each = {doc["_id"]: _update([(one, doc)], now, mark, over, wake) for one, doc in told}
            late = await _write_each(link, each, mark)
        else:
            done = (await link.surely(lambda: link.jobs.bulk_write(many, ordered=False))).modified_count
    link.written += done
    link.tell(notices)
    if done == len(told):
        return told, set()
    ours = await marked(link, [doc["_id"] for _, doc in told], mark)
    return [(one, doc) for one, doc in told if doc["_id"] in ours], late - ours


async def _write_each(link: Link, writes: Mapping[str, tuple[Doc, Doc | list[Doc]]], mark: ObjectId) -> set[str]:
    """Make each of these writes by itself; the ids of those that cannot be made though the server answers."""

    async def alone(job_id: str) -> bool:
        return await in_a_moment(link.jobs.update_one(*writes[job_id]))

    late: list[str] = [*writes]
    while late:
        made = await asyncio.gather(*map(alone, late))
        late = [job_id for job_id, is_made in zip(late, made, strict=True) if not is_made]
        asked = time.monotonic()
        await link.last_write_endures()  # or it raises: then it is the server that does not answer, and nobody's hold
        answered = time.monotonic() < asked + MOMENT
        ours = await marked(link, late, mark)
        late = [job_id for job_id in late if job_id not in ours]
        if answered:
            break
    return set(late)


async def in_a_moment(work: Awaitable[object]) -> bool:
    """Whether it was done so soon."""
    try:
        with pymongo.timeout(MOMENT):
            await work
    except PyMongoError as error:
        if not error.timeout:
            raise
        return False
    return True


def _alike(pairs: Iterable[Pair]) -> list[list[Pair]]:
    groups: dict[Any, list[Pair]] = defaultdict(list)
    for one, doc in pairs:
        key = (one.to, one.happened, one.note, one.error, one.give_back, one.crashed, one.delay, one.token)
        groups[*key, one.blocked_by, doc["moves"], "next_id" in doc].append((one, doc))
    return [some for group in groups.values() for some in _within_reach(group)]


def _within_reach(pairs: list[Pair]) -> list[list[Pair]]:
    """The same in parts whose results fit into one update each."""
    parts: list[list[Pair]] = [[]]
    size = 0
    for one, doc in pairs:
        length = len(one.result_json or "")
        if parts[-1] and size + length > _RESULTS:
            parts.append([])
            size = 0
        parts[-1].append((one, doc))
        size += length
    return parts


def _update(
    pairs: list[Pair], now: datetime, mark: ObjectId, over: datetime | None, wake: str | None = None
) -> tuple[Doc, Doc | list[Doc]]:
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
    told = line(now, one.happened, one.to, token=one.token, note=one.note, mark=mark)
    more = {"attempts": -int(one.give_back), "crashes": int(one.crashed), "lease_token": int(over is not None)}
    values, looked_up = _finish(pairs, now) if one.to.finished else _requeue(one, now)
    if over is not None and one.crashed:
        values["charged"] = one.token
    of = [doc for _, doc in pairs]
    update = change(told, {"lease_expires_at": None, "slot": None, **values}, more=more, wake=wake, of=of)
    return found, as_pipeline(update, looked_up) if looked_up else update


def _finish(pairs: list[Pair], now: datetime) -> tuple[Doc, Doc]:
    error = pairs[0][0].error
    values: Doc = {
        "frees": True if "next_id" in pairs[0][1] else None,
        "finished_at": now,
        "unique_key": None,
        "duration_ms": None,
        "error": error.text() if error else None,
        "result": pairs[0][0].result_json,
    }
    results = [one.result_json for one, _ in pairs]
    if len(set(results)) == 1:
        return values, {}
    # Each looks its own up by its place in the list, so that different results are still one update.
    place = {"$indexOfArray": [{"$literal": [doc["_id"] for _, doc in pairs]}, "$_id"]}
    return values, {"result": {"$arrayElemAt": [{"$literal": results}, place]}}


def _requeue(one: Transition, now: datetime) -> tuple[Doc, Doc]:
    values: Doc = {"worker_id": None}
    if one.to is Status.BLOCKED:
        values["blocked_by"] = one.blocked_by
        values |= {"awaits": "end"} if is_gathering(one) else {}
    else:
        values["queued_at"] = now if one.to is Status.QUEUED else None
    if one.delay is not None:
        values["run_at"] = now + whole(one.delay)
    if one.error is not None:
        values["error"] = one.error.text()
    waited_ms = {"$ifNull": ["$wait_ms", {"$subtract": ["$started_at", "$queued_at"]}]}
    return values, {"duration_ms": {"$subtract": [now, "$started_at"]}, "wait_ms": waited_ms}


async def _refuse(link: Link, one: Transition, doc: Doc) -> Verdict:
    """Record a late transition; where its lost lease was counted as a crash, that is taken back in the same write."""

    async def record() -> None:
        if not await _record(link, one, doc, charged=doc.get("charged")):
            await _record(link, one, doc, charged=None)  # somebody else has taken it back, or an operator forgot it

    if await in_a_moment(record()):
        return Verdict.STALE
    await link.last_write_endures()
    return Verdict.HELD


async def _record(link: Link, one: Transition, doc: Doc, *, charged: int | None) -> bool:
    note, acquits = refuse(one, doc["lease_token"], charged)
    told = line(doc["updated_at"], Happened.REFUSED, STATUSES[doc["status"]], token=one.token, note=note)
    # The status is the one it has when this is written: a line of history tells of that moment.
    entry = {**{name: {"$literal": value} for name, value in told.items()}, "at": "$updated_at", "status": "$status"}
    history = {"$slice": [{"$concatArrays": ["$history", [entry]]}, -HISTORY_LIMIT]}
    taken_back: Doc = {"crashes": {"$subtract": ["$crashes", 1]}, "charged": "$$REMOVE"} if acquits else {}
    done = await link.jobs.update_one(
        {"_id": one.id, **({"charged": charged} if acquits else {})},
        [
            {"$set": {"updated_at": {"$max": ["$$NOW", "$updated_at"]}}},
            {"$set": {"moves": {"$add": ["$moves", 1]}, "history": history, **taken_back}},
        ],
    )
    return bool(done.matched_count) or not acquits


async def _tally(link: Link, pairs: Sequence[Pair], now: datetime) -> None:
    minute = now.replace(second=0, microsecond=0)
    of = {"minute": minute, "part": random.randrange(_PARTS)}
    took: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    waits: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for one, doc in pairs:
        kind = doc["queue"], doc["type"], one.to.value
        took[kind].append(in_ms(now - doc["started_at"]))
        waits[kind].append(waited(doc) or 0)
    writes = [
        UpdateOne(
            {"_id": {**of, "queue": kind[0], "type": kind[1], "status": kind[2], "bucket": SPREAD}},
            {**_added(spread_of(took[kind]), spread_of(waits[kind])), "$setOnInsert": {"minute": minute}},
            upsert=True,
        )
        for kind in took
    ]
    if writes:
        # A figure, not a promise: it need not wait for the disk, and a repeated count would be worse than a lost one.
        await link.collection("minutes").with_options(write_concern=AT_ONCE).bulk_write(writes, ordered=False)


def _added(run: Spread, wait: Spread) -> Doc:
    """The sums as earlier versions know them, and the rest of both spreads."""
    both = ("run", run), ("wait", wait)
    return {
        "$inc": {
            "n": run.n,
            "duration_ms": run.total_ms,
            "wait_ms": wait.total_ms,
            **{f"{name}.{bucket}": n for name, spread in both for bucket, n in spread.buckets.items()},
        },
        "$min": {f"least_{name}": spread.least_ms for name, spread in both},
        "$max": {f"most_{name}": spread.most_ms for name, spread in both},
    }
