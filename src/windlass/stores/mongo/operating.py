"""Operate: what operators ask of jobs, recorded in the job's own history.

Of many jobs all are read in one step and written in another, each only if it is still as it was read. Those that moved
in between, and those that are deleted while others await them, are dealt with one by one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bson import ObjectId
from pymongo import DeleteOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, WriteConcernError

from windlass.core.blocked import Kind, lines
from windlass.core.errors import TransactionRefused
from windlass.core.history import Happened
from windlass.core.kept import Received, receive, signal_name
from windlass.core.status import WAITING, Status
from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.mongo.inserting import Find
from windlass.stores.mongo.joining import Write
from windlass.stores.mongo.notices import CANCEL, CHANGED, news_of
from windlass.stores.mongo.records import STATUSES, change, kept_at, kept_of, latest, line, marked, with_values
from windlass.stores.mongo.turns import without_part
from windlass.stores.mongo.unblocking import has_freed, lines_of, unblock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from windlass.stores.contract import Notice
    from windlass.stores.mongo.connection import Doc, Link
    from windlass.stores.mongo.joining import Asking, Wake

FIELDS: dict[str, int] = dict.fromkeys(
    (
        "status",
        "queue",
        "moves",
        "updated_at",
        "unique_queued",
        "limit_key",
        "unique_running",
        "cancel_requested_at",
        "rate_key",
        "fair_key",
        "next_id",
        "blocked_by",
        "user_id",
    ),
    1,
)


def _fields(orders: Sequence[Order]) -> dict[str, int]:
    return {**FIELDS, "kept": 1} if any(order.action is Action.SIGNAL for order in orders) else FIELDS


async def operate(link: Link, orders: Sequence[Order]) -> list[Answer]:
    """One answer per order, in order."""
    answers: dict[int, Answer] = {}
    if len({order.id for order in orders}) == len(orders) > 1:
        answers = await _together(link, orders)
    return [
        answers[number] if number in answers else await _operate_one(link, order) for number, order in enumerate(orders)
    ]


async def _together(link: Link, orders: Sequence[Order]) -> dict[int, Answer]:
    """The answers to those that could be carried out in one step, by the place of their orders."""
    docs = {doc["_id"]: doc for doc in await link.jobs.find(_these(orders), _fields(orders)).to_list()}
    apart, now, mark = await without_part(link, _queued(orders, docs)), await link.now(), ObjectId()
    keys = sorted({doc["unique_queued"] for doc in _retried(orders, docs) if "unique_queued" in doc})
    taken: set[str | None] = set()
    if keys:
        holding = link.jobs.find({"unique_key": {"$in": keys}}, {"unique_key": 1})
        taken = {doc["unique_key"] for doc in await holding.to_list()}
    answers: dict[int, Answer] = {}
    moves: dict[int, Move] = {}
    for number, order in enumerate(orders):
        doc = docs.get(order.id)
        if doc is None or not order.finds(doc.get("user_id")):
            answers[number] = Answer(Operated.MISSING)
        elif (move := decide(order, doc, latest(now, [doc]), apart, mark)).kind is None:
            answers[number] = move.answer
        elif not _alone(move, doc) and move.key not in taken:
            moves[number] = move
            taken |= {move.key} - {None}
    if moves:
        written = await write(link, list(moves.values()), mark)
        answers |= {number: move.answer for number, move in moves.items() if move.id in written}
        await let_go_on(link, [docs[move.id] for move in moves.values() if move.id in written and move.frees])
    return answers


def _alone(move: Move, doc: Doc) -> bool:
    return move.kind is DeleteOne and "next_id" in doc


async def write(link: Link, moves: Sequence[Move], mark: ObjectId) -> set[str]:
    """Write all of these in one step, under the mark in their lines of history; which of them are written."""
    notices = _notices(moves)
    operations = [move.operation() for move in moves[:-1]] + [moves[-1].operation(link.news(notices))]
    try:
        result = await link.surely(lambda: link.jobs.bulk_write(operations, ordered=False))
        all_are = result.modified_count + result.deleted_count == len(moves)
    except BulkWriteError as error:  # somebody else has taken the unique key of one of them, or no majority answered
        all_are = False
        if error.details["writeConcernErrors"]:
            await link.last_write_endures()
    link.tell(notices)
    ids = [move.id for move in moves]
    if all_are:
        return set(ids)
    # By their marks: one that was written may have moved on since.
    ours = await marked(link, ids, mark)
    if any(move.kind is DeleteOne for move in moves):
        there = {doc["_id"] for doc in await link.jobs.find({"_id": {"$in": ids}}, {"_id": 1}).to_list()}
        ours |= {move.id for move in moves if move.kind is DeleteOne and move.id not in there}
    return ours


async def let_go_on(link: Link, docs: Sequence[Doc]) -> int:
    """Look at those behind these: one that went may have been next in line, and nobody must wait for its end."""
    if not docs:
        return 0
    rates = (line for doc in docs for line in lines(rate=doc.get("rate_key")))
    freed = await unblock(link, lines_of(docs).union(rates))
    await has_freed(link, docs)
    return freed


async def _operate_one(link: Link, order: Order) -> Answer:
    # A job that moved between the look and the write is looked at again: the answer tells of the status it acted on.
    while True:
        doc = await link.jobs.find_one({"_id": order.id}, _fields([order]))
        if doc is None or not order.finds(doc.get("user_id")):
            return Answer(Operated.MISSING)
        answer = await _carry_out(link, order, doc)
        if answer is None:
            continue
        if answer.verdict is Operated.DONE and order.action is not Action.SIGNAL:
            await let_go_on(link, [doc])
        return answer


async def _carry_out(link: Link, order: Order, doc: Doc) -> Answer | None:
    now, mark = latest(await link.now(), [doc]), ObjectId()
    apart = await without_part(link, _queued([order], {order.id: doc}))
    move = decide(order, doc, now, apart, mark)
    if move.kind is None:
        return move.answer
    if _alone(move, doc):
        # The job that awaits it learns how it ended while it can still be asked. It is cancelled first: a process that
        # dies in between leaves that, and not a gap that looks like success.
        if not STATUSES[doc["status"]].finished:
            cancel = decide(replace(order, action=Action.CANCEL, only=None), doc, now, apart, mark)
            if not await _written(link, cancel, mark):
                return None
            doc = {**doc, "status": Status.CANCELLED.value, "moves": doc["moves"] + 1}
        await unblock(link, lines(flow=doc["next_id"]))
        move = move._replace(found=_as_it_is(doc))
    try:
        return move.answer if await _written(link, move, mark) else None
    except DuplicateKeyError:
        holder = await link.jobs.find_one({"unique_key": doc.get("unique_queued")}, {"_id": 1})
        return None if holder is None else Answer(Operated.DUPLICATE, STATUSES[doc["status"]], holder["_id"])


async def _written(link: Link, move: Move, mark: ObjectId) -> bool:
    notices = _notices([move])
    if move.kind is DeleteOne:
        done = bool((await link.jobs.delete_one(move.found)).deleted_count)
    else:
        done = await _changed(link, move, change(move.told, move.values, wake=link.news(notices)), mark)
    if done:
        link.tell(notices)
    return done


async def _changed(link: Link, move: Move, update: Doc, mark: ObjectId) -> bool:
    """Whether this is what changed the job, even if the answer that says so was lost and it has moved on since."""
    try:
        if (await link.surely(lambda: link.jobs.update_one(move.found, update))).modified_count:
            return True
    except WriteConcernError:
        await link.last_write_endures()
    return move.id in await marked(link, [move.id], mark)


# What becomes of one order.


_NOTHING: Doc = {}


class Move(NamedTuple):
    """The answer to an order and, where something is to be written, what: a change, or a delete."""

    id: str
    queue: str
    answer: Answer
    found: Doc
    """the job as it was read"""
    kind: type[UpdateOne | DeleteOne] | None = None
    told: Doc = _NOTHING
    """the line of history"""
    values: Doc = _NOTHING
    key: str | None = None
    """the unique key that it takes"""
    frees: bool = False
    """whether others may go on by it"""

    def operation(self, wake: str | None = None) -> UpdateOne | DeleteOne:
        """As one of many."""
        if self.kind is DeleteOne:
            return DeleteOne(self.found)
        return UpdateOne(self.found, change(self.told, self.values, wake=wake))


def _as_it_is(doc: Doc) -> Doc:
    return {"_id": doc["_id"], "status": doc["status"], "moves": doc["moves"]}


def _notices(moves: Sequence[Move]) -> list[Notice]:
    # A job that was asked to stop, or keeps an early signal, stands as before.
    moved = [move for move in moves if move.kind is UpdateOne and move.answer.verdict is not Operated.KEPT]
    told = news_of((move.told["status"], move.queue) for move in moved)
    asked = [CANCEL] * any(move.answer.verdict is Operated.REQUESTED for move in moves)
    return [*told, *asked] or [CHANGED]


def _these(orders: Sequence[Order]) -> Doc:
    return {"_id": {"$in": sorted({order.id for order in orders})}}


def _retried(orders: Sequence[Order], docs: Mapping[str, Doc]) -> list[Doc]:
    return [docs[order.id] for order in orders if order.action is Action.RETRY and order.id in docs]


def _queued(orders: Sequence[Order], docs: Mapping[str, Doc]) -> list[Doc]:
    """Those that may be queued at a new place."""
    waits = [docs[order.id] for order in orders if order.action is Action.SIGNAL and order.id in docs]
    return [*_retried(orders, docs), *[doc for doc in waits if Kind.SIGNAL.blocks(doc.get("blocked_by"))]]


_OUT_OF_LINE = {"blocked_by": None, "called": None, "begin_by": None}
_AFRESH = dict.fromkeys(
    (
        "result",
        "error",
        "progress",
        "finished_at",
        "started_at",
        "duration_ms",
        "wait_ms",
        "frees",
        "worker_id",
        "cancel_requested_at",
        "expires_at",
        "begin_by",
    )
)


def decide(order: Order, doc: Doc, now: datetime, apart: Collection[str], mark: ObjectId) -> Move:
    """What becomes of the job; `apart` are those to be told from others that take turns in their queue.

    The line of history carries the mark, by which its writer recognises it.
    """
    status = STATUSES[doc["status"]]
    move = Move(doc["_id"], doc["queue"], Answer(Operated.REFUSED, status), _as_it_is(doc))
    if not order.allows(status):
        return move
    if order.action is Action.CANCEL:
        move = _cancel(move, order, doc, status, now)
    elif order.action is Action.RETRY:
        move = _retry(move, order, doc, status, now, apart=doc["_id"] in apart)
    elif order.action is Action.SIGNAL:
        move = _signal(move, order, doc, status, now, apart=doc["_id"] in apart)
    elif status is not Status.PROCESSING:
        move = move._replace(answer=Answer(Operated.DONE, status), kind=DeleteOne, frees=True)
    return move._replace(told={**move.told, "mark": mark}) if move.kind is UpdateOne else move


def _signal(move: Move, order: Order, doc: Doc, status: Status, now: datetime, *, apart: bool) -> Move:
    signal = order.signal
    assert signal is not None  # noqa: S101  # an order of that action has one
    received = receive(status, doc.get("blocked_by"), kept_of(doc.get("kept", {})), signal)
    move = move._replace(answer=Answer(Operated(received.value), status))
    if received not in (Received.DONE, Received.KEPT):
        return move
    values: Doc = {kept_at(signal_name(signal.name)): signal.json}
    to = status
    if received is Received.DONE:
        to = Status.QUEUED
        values |= {"run_at": now, "queued_at": now, "blocked_by": None, **({"fair_key": ""} if apart else {})}
    told = line(now, Happened.SIGNALLED, to, by=order.actor, note=signal.name)
    return move._replace(kind=UpdateOne, told=told, values=values)


def _cancel(move: Move, order: Order, doc: Doc, status: Status, now: datetime) -> Move:
    done = move._replace(answer=Answer(Operated.DONE, status), kind=UpdateOne, frees=True)
    if status in WAITING:
        told = line(now, Happened.CANCELLED, Status.CANCELLED, by=order.actor, note=order.reason)
        values: Doc = {"finished_at": now, "cancel_requested_at": now, "unique_key": None, **_OUT_OF_LINE}
        values["frees"] = True if "next_id" in doc else None
        return done._replace(told=told, values=values)
    if status is Status.PROCESSING:
        told = line(now, Happened.CANCEL_REQUESTED, status, by=order.actor, note=order.reason)
        values = {"cancel_requested_at": doc.get("cancel_requested_at", now)}
        return done._replace(answer=Answer(Operated.REQUESTED, status), told=told, values=values, frees=False)
    return move


def _retry(move: Move, order: Order, doc: Doc, status: Status, now: datetime, *, apart: bool) -> Move:
    waits = status in (Status.SCHEDULED, Status.RETRYING) or Kind.PAYLOAD.blocks(doc.get("blocked_by"))
    if not waits and not status.finished:
        return move
    values: Doc = {"run_at": now, "queued_at": now, "blocked_by": None}
    if apart:
        values["fair_key"] = ""
    key = None if waits else doc.get("unique_queued")
    if not waits:
        values |= {**_AFRESH, "attempts": 0, "crashes": 0, "charged": None, "unique_key": key}
    told = line(now, Happened.RETRIED, Status.QUEUED, by=order.actor, note=order.reason)
    done = Answer(Operated.DONE, status)
    return move._replace(answer=done, kind=UpdateOne, told=told, values=values, key=key, frees=True)


# Inside the caller's own transaction.


def joining(orders: Sequence[Order], now: datetime, wake: Wake) -> Asking[list[Answer]]:
    """The orders as questions; what waited for these jobs is queued by the next promotion after the commit.

    Nothing is written before all is known: neither a refusal nor a key that another holds aborts the transaction.
    """
    rows: list[Doc] = yield Find("jobs", _these(orders), tuple(_fields(orders)))
    docs = {doc["_id"]: doc for doc in rows}
    yield from _refuse_awaited(orders, docs)
    retried, queued = _retried(orders, docs), _queued(orders, docs)
    queues = sorted({doc["queue"] for doc in queued if "fair_key" not in doc})
    rows = yield Find("queues", {"_id": {"$in": queues}, "fair": {"$exists": True}}, ("_id",))
    fair = {row["_id"] for row in rows}
    apart = {doc["_id"] for doc in queued if "fair_key" not in doc and doc["queue"] in fair}
    keys = sorted({doc["unique_queued"] for doc in retried if "unique_queued" in doc})
    rows = yield Find("jobs", {"unique_key": {"$in": keys}}, ("unique_key",))
    holders: dict[str, str] = {row["unique_key"]: row["_id"] for row in rows}
    moves: list[Move] = []
    answers = [_joined(order, docs, latest(now, docs.values()), apart, holders, moves) for order in orders]
    if moves:
        wakes = [None] * (len(moves) - 1) + [wake(_notices(moves))]
        yield Write([move.operation(woken) for move, woken in zip(moves, wakes, strict=True)])
    return answers


def _joined(
    order: Order,
    docs: dict[str, Doc],
    now: datetime,
    apart: Collection[str],
    holders: dict[str, str],
    moves: list[Move],
) -> Answer:
    """The answer to one of several orders; what it leaves is what the next one finds."""
    doc = docs.get(order.id)
    if doc is None or not order.finds(doc.get("user_id")):
        return Answer(Operated.MISSING)
    move = decide(order, doc, now, apart, ObjectId())
    if move.kind is None:
        return move.answer
    if move.key is not None and holders.get(move.key, order.id) != order.id:
        return Answer(Operated.DUPLICATE, STATUSES[doc["status"]], holders[move.key])
    moves.append(move)
    if move.frees:
        for key in [key for key, holder in holders.items() if holder == order.id]:
            del holders[key]
    if move.key is not None:
        holders[move.key] = order.id
    if move.kind is DeleteOne:
        del docs[order.id]
    else:
        docs[order.id] = with_values(doc, {**move.values, "status": move.told["status"], "moves": doc["moves"] + 1})
    return move.answer


def _refuse_awaited(orders: Sequence[Order], docs: Mapping[str, Doc]) -> Asking[None]:
    """A deleted job leaves no trace, and only what is committed can tell the one that awaits it."""
    deleted = [docs[order.id] for order in orders if order.action is Action.DELETE and order.id in docs]
    awaiting = {doc["next_id"]: doc["_id"] for doc in deleted if "next_id" in doc}
    waits: list[Doc] = yield Find("jobs", {"_id": {"$in": sorted(awaiting)}, "status": Status.BLOCKED.value}, ("_id",))
    for doc in waits:
        raise TransactionRefused(
            f"job {awaiting[doc['_id']]} is awaited by job {doc['_id']}, and MongoDB cannot delete such a one inside a"
            " transaction: cancel it there, or delete it after your commit"
        )
