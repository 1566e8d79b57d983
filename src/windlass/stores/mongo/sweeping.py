"""Sweep: promote what is due, raise what waited long, rescue what was lost, prune what has been kept long enough."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pymongo import UpdateMany

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.outcome import Lost
from windlass.core.status import FINISHED, LIVE, Status
from windlass.core.transition import decide, honour_cancel
from windlass.stores.contract import Promoted, Pruned, Rescued, Retention
from windlass.stores.mongo import rates
from windlass.stores.mongo.connection import BY_ID
from windlass.stores.mongo.expiring import FIRST_EXPIRY, NONE_EXPIRED, expire
from windlass.stores.mongo.keeping import FIRST_WAIT, time_out
from windlass.stores.mongo.notices import claimable
from windlass.stores.mongo.records import NO_HISTORY, STATUSES, change, job_of, latest, line, whole
from windlass.stores.mongo.settling import write
from windlass.stores.mongo.turns import without_part
from windlass.stores.mongo.unblocking import free_left_over, has_freed, lines_of, unblock

if TYPE_CHECKING:
    from windlass.stores.mongo.connection import Doc, Link

_TIMED = ["scheduled", "retrying"]
_LIVE = sorted(status.value for status in LIVE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def promote(link: Link, n: int) -> Promoted:
    """Queue what is due. One look tells of that, of the next that will be, and of what jobs are blocked by."""
    now = await link.now()
    rows = await (await link.jobs.aggregate(_due(link, now, n), batchSize=10_000)).to_list()
    due = [row for row in rows if "moves" in row]
    queues = await _queue_due(link, due, now)
    timed_out = await time_out(link, n, now) if _is_due(rows, "signal", now) else 0
    expired = await expire(link, n, now) if _is_due(rows, "expiry", now) else NONE_EXPIRED
    lines = [row["_id"] for row in rows if row.keys() == {"_id"}]
    _remember(link, lines)
    keys = [row["rate"] for row in rows if "rate" in row]
    await rates.opened(link, keys, now)
    lines += [BlockedBy(Kind.RATE, key).text for key in keys]
    unblocked = await unblock(link, lines)
    went_on, more = await free_left_over(link)
    freed = timed_out + expired.freed + unblocked + went_on
    # What comes behind waits and expiries that were over has not been looked at.
    if len(due) >= n or timed_out or expired.ids or more or len(keys) >= _MOST_DUE:
        return Promoted(queues.total(), freed, timedelta(0), queues, expired.ids)
    instants = [row[when] for row in rows for when in ("run_at", "signal", "expiry") if when in row]
    following = [at for at in instants if at > now]
    following += [now + _NEXT_LINES] if Kind.RATE in link.swept else []
    following += await rates.next_look(link) if any(Kind.RATE.blocks(by) for by in lines) else []
    next_due = max(timedelta(0), min(following) - now) if following else None
    return Promoted(queues.total(), freed, next_due, queues, expired.ids)


def _due(link: Link, now: datetime, n: int) -> list[Doc]:
    first = [{"$sort": {"run_at": 1}}, {"$limit": 1}, {"$project": {"run_at": 1}}]
    later = [{"$match": {"status": {"$in": _TIMED}, "run_at": {"$gt": now}}}, *first]
    looks = [later, FIRST_WAIT, FIRST_EXPIRY]
    looks += [_lines(link, kind) for kind in _due_lines(link)]
    return [
        {"$match": {"status": {"$in": _TIMED}, "run_at": {"$lte": now}}},
        {"$sort": {"run_at": 1}},
        {"$limit": n},
        {"$project": {"moves": 1, "updated_at": 1, "queue": 1, "fair_key": 1}},
        {"$unionWith": {"coll": link.name("rates"), "pipeline": rates.due_lines(now, _MOST_DUE)}},
        *[{"$unionWith": {"coll": link.name("jobs"), "pipeline": look}} for look in looks],
    ]


def _is_due(rows: list[Doc], when: str, now: datetime) -> bool:
    return any(when in row and row[when] <= now for row in rows)


async def _queue_due(link: Link, due: list[Doc], now: datetime) -> Counter[str]:
    plain = await without_part(link, due)
    alike: dict[tuple[int, bool], list[Doc]] = defaultdict(list)
    for doc in due:
        alike[doc["moves"], doc["_id"] in plain].append(doc)
    queues: Counter[str] = Counter()
    for (moves, apart), some in alike.items():
        done = await _queue(link, moves, some, now, {"fair_key": ""} if apart else {})
        # Of what others promoted at the same moment it is not known which it was: the sum is right all the same.
        queues.update(doc["queue"] for doc in some[:done])
    return queues


# What jobs are blocked by, and how many of a kind one promotion looks at. Endings free those behind them, so only few
# ways become free otherwise; each looks where the last one stopped, so that none is passed over for ever. To ask about
# a flow takes a look of its own: where more than a few wait, only once a second.
# The claim that puts jobs aside notes when their rate has room, so that their line is looked at in time. Where
# somebody died before that, it is found in turn: where there are more lines than were looked at, the next are soon.
_LINES = {Kind.FLOW: 50, Kind.LIMIT: 50, Kind.RATE: 100, Kind.UNIQUE: 50}
_MOST_DUE = 1000
_NEXT_LINES = timedelta(milliseconds=250)
_FEW = 10
_REST = 1.0


def _due_lines(link: Link) -> list[Kind]:
    rests = time.monotonic() < link.flows_rest_until
    return [kind for kind in _LINES if not rests or kind is not Kind.FLOW]


def _lines(link: Link, kind: Kind) -> list[Doc]:
    after = link.swept.get(kind, kind.prefix)
    waiting = {"$match": {"blocked_by": {"$gt": after, "$lt": kind.end}}}
    # So many entries of the index, and not so many lines: to find those the server would walk all there are.
    return [waiting, {"$sort": {"blocked_by": 1}}, {"$limit": _LINES[kind]}, {"$project": {"_id": "$blocked_by"}}]


def _remember(link: Link, lines: list[str]) -> None:
    for kind in _due_lines(link):
        seen = [by for by in lines if kind.blocks(by)]
        link.swept.pop(kind, None)
        if len(seen) >= _LINES[kind]:
            link.swept[kind] = max(seen)
        if kind is Kind.FLOW and len(seen) > _FEW:
            link.flows_rest_until = time.monotonic() + _REST


async def _queue(link: Link, moves: int, docs: list[Doc], now: datetime, values: Doc) -> int:
    at = latest(now, docs)
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": {"$in": _TIMED}, "moves": moves}
    notices = claimable(doc["queue"] for doc in docs)
    update = change(line(at, Happened.PROMOTED, Status.QUEUED), {"queued_at": at, **values}, wake=link.news(notices))
    done = await link.update_many(found, update)
    link.tell(notices)
    return done


_PASSED_OVER = 1000  # how many that took their turn beside those who stood there, and have not stood there themselves


async def age(link: Link, after: timedelta, to: int, n: int) -> int:
    """Raise what has stood so long. One look goes from each later priority of a queue to the next, by the index."""
    before = await link.now() - whole(after)
    docs = await _stood(link, {"status": "queued", "priority": {"$gt": to}, "run_at": {"$lte": before}}, before, n)
    alike: dict[int, list[Doc]] = defaultdict(list)
    for doc in docs:
        alike[doc["priority"]].append(doc)
    if not alike:
        return 0
    now = await link.now()
    writes = [_raised(level, to, some, now) for level, some in alike.items()]
    raised = (await link.surely(lambda: link.jobs.bulk_write(writes, ordered=False))).modified_count
    link.written += raised
    return raised


async def _stood(link: Link, old: Doc, before: datetime, n: int) -> list[Doc]:
    """The first of these that were there before. The next call goes on behind a queue where too many were not."""
    if link.aged_to:
        old = {**old, "queue": {"$gt": link.aged_to}}
    look = link.jobs.find(old, dict.fromkeys(("queue", "priority", "updated_at", "created_at"), 1)).hint("ready")
    docs = await look.limit(n).to_list()
    link.aged_to, whole_page = "", len(docs) == n
    stood = [doc for doc in docs if doc["created_at"] <= before]
    if whole_page and len(stood) < n:
        more = await look.clone().skip(n).limit(_PASSED_OVER).to_list()
        stood += [doc for doc in more if doc["created_at"] <= before]
        if len(stood) < n and len(more) == _PASSED_OVER:
            link.aged_to = more[-1]["queue"]
    return stood[:n]


def _raised(level: int, to: int, docs: list[Doc], now: datetime) -> UpdateMany:
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "queued", "priority": level}
    told = line(latest(now, docs), Happened.AGED, Status.QUEUED, note=f"priority {level} to {to}")
    return UpdateMany(found, change(told, {"priority": to}), hint=BY_ID)


async def rescue(link: Link, n: int) -> list[Rescued]:
    """Hand back what was lost. Status, token, version and expiry are tested in the write itself."""
    # Looked at now: by what a clock showed before it was set back, every lease granted since would be over.
    now = await link.look()
    lost: Doc = {"status": "processing", "lease_expires_at": {"$lte": now}}
    docs = await link.jobs.find(lost, NO_HISTORY).sort("lease_expires_at", 1).limit(n).to_list()
    pairs = [(decide(job_of(doc), Lost(confirmed=doc.get("confirmed") == doc["lease_token"])), doc) for doc in docs]
    written = {doc["_id"] for doc in (await write(link, pairs, lost=True)).docs}
    told = [(one, doc) for one, doc in pairs if doc["_id"] in written]
    if told:
        await unblock(link, lines_of(doc for _, doc in told))
        await has_freed(link, [doc for _, doc in told])
    return [Rescued(job_of(doc), (honour_cancel(one) if "cancel_requested_at" in doc else one).to) for one, doc in told]


async def prune(link: Link, retention: Retention, n: int) -> Pruned:
    """Delete finished jobs past their time. Figures, workers and locks go by themselves, by TTL indexes."""
    now, removed = await link.now(), 0
    found = link.collection("queues").find({"_id": {"$gt": link.pruned_to}}, {"_id": 1}).sort("_id", 1)
    names = [row["_id"] for row in await found.limit(_QUEUES_PRUNED).to_list()]
    for row in await (await link.jobs.aggregate(_first_ended(link, names))).to_list() if names else []:
        status, queue = STATUSES[row["status"]], row["queue"]
        before = now - whole(retention.queues.get(queue, retention).of(status))
        if row["finished_at"] <= before:
            removed += await _prune(link, status, queue, before, n - removed)
    if removed < n:  # else there may be more in these
        link.pruned_to = names[-1] if len(names) >= _QUEUES_PRUNED else ""
    removed += await _prune_to_numbers(link, retention, n - removed)
    return Pruned(removed, more=removed >= n or bool(link.pruned_to))


_QUEUES_PRUNED = 50  # at how many queues one call looks; the next one goes on behind them


def _first_ended(link: Link, names: list[str]) -> list[Doc]:
    """Of each of these queues the first that ended so: one entry of the index each, however many are kept."""
    parts: list[list[Doc]] = [
        [
            {"$match": {"status": status.value, "queue": name}},
            {"$sort": {"finished_at": 1}},
            {"$limit": 1},
            {"$project": {"_id": 0, "status": 1, "queue": 1, "finished_at": 1}},
        ]
        for status in sorted(FINISHED)
        for name in names
    ]
    return [*parts[0], *[{"$unionWith": {"coll": link.name("jobs"), "pipeline": part}} for part in parts[1:]]]


async def _prune_to_numbers(link: Link, retention: Retention, n: int) -> int:
    mosts = [most for most in (retention.most, *[of.most for of in retention.queues.values()]) if most is not None]
    # Where there are not so many jobs at all nothing needs to be counted. The server knows that figure by heart.
    if not mosts or await link.jobs.estimated_document_count() <= min(mosts):
        return 0
    removed = 0
    for status in sorted(FINISHED):
        rest = {"$nin": sorted(retention.queues)} if retention.queues else {"$exists": True}
        ended: Doc = {"status": status.value, "queue": rest}
        removed += await _prune_beyond(link, ended, "_id", retention.most, n - removed)
        for queue, of in retention.queues.items():
            removed += await _prune_beyond(link, {**ended, "queue": queue}, "finished_at", of.most, n - removed)
    return removed


_PASSED = 1000  # how many that must stay, though their time is over, one call passes beside those it removes
_OLD = dict.fromkeys(("finished_at", "next_id", "idempotent_until"), 1)


async def _prune(link: Link, status: Status, queue: str, before: datetime, n: int) -> int:
    """Remove the first of those that ended before, and go on next time behind those that had to stay."""
    if n < 1:
        return 0
    place = (status.value, queue)
    since, skip = link.pruned.get(place, (_EPOCH, 0))
    old: Doc = {"status": status.value, "queue": queue, "finished_at": {"$gte": since, "$lte": before}}
    found = link.jobs.find(old, _OLD).sort("finished_at", 1).hint("ended")
    docs = await found.skip(skip).limit(n + _PASSED).to_list()
    stay = await _must_stay(link, docs)
    goes = [doc for doc in docs if doc["_id"] not in stay][:n]
    removed = await _remove(link, goes)
    if len(docs) < n + _PASSED or len(goes) >= n:
        link.pruned.pop(place, None)
    else:
        last = docs[-1]["finished_at"]
        passed = sum(doc["finished_at"] == last for doc in docs if doc["_id"] in stay)
        link.pruned[place] = last, passed + (skip if last == since else 0)
    return removed


async def _prune_beyond(link: Link, ended: Doc, order: str, most: int | None, n: int) -> int:
    """Only the newest so many stay."""
    if most is None or n < 1:
        return 0
    index = "status" if order == "_id" else "ended"
    found = link.jobs.find(ended, {**_OLD, "status": 1}).sort(order, -1).hint(index)
    docs = await found.skip(most).limit(n + _PASSED).to_list()
    stay = await _must_stay(link, docs)
    return await _remove(link, [doc for doc in docs if doc["_id"] not in stay][-n:])


async def _must_stay(link: Link, docs: list[Doc]) -> set[str]:
    """Those that a live job awaits. And a job is the memory of its idempotency key until the window is over."""
    now = await link.now()
    awaiting = {doc["next_id"] for doc in docs if "next_id" in doc}
    live: set[str] = set()
    if awaiting:
        asked: Doc = {"_id": {"$in": sorted(awaiting)}, "status": {"$in": _LIVE}}
        live = {doc["_id"] for doc in await link.jobs.find(asked, {"_id": 1}).hint(BY_ID).to_list()}
    return {doc["_id"] for doc in docs if doc.get("next_id") in live or doc.get("idempotent_until", now) > now}


async def _remove(link: Link, docs: list[Doc]) -> int:
    if not docs:
        return 0
    # One that an operator has queued again meanwhile is not the one that was read.
    latest_end = max(doc["finished_at"] for doc in docs)
    found: Doc = {"_id": {"$in": [doc["_id"] for doc in docs]}, "finished_at": {"$lte": latest_end}}
    done = await link.surely(lambda: link.jobs.delete_many(found, hint=BY_ID))
    return done.deleted_count
