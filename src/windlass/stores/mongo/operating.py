"""Operate: what operators ask of jobs, recorded in the job's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo.errors import DuplicateKeyError

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.status import WAITING, Status
from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.mongo.notices import CANCEL, CHANGED, news_of
from windlass.stores.mongo.records import STATUSES, change, latest, line
from windlass.stores.mongo.turns import without_part
from windlass.stores.mongo.unblocking import has_freed, lines_of, unblock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc, Link

_FIELDS = dict.fromkeys(
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
    ),
    1,
)


async def operate(link: Link, orders: Sequence[Order]) -> list[Answer]:
    """One answer per order, in order."""
    return [await _operate_one(link, order) for order in orders]


async def _operate_one(link: Link, order: Order) -> Answer:
    # A job that moved between the look and the write is looked at again: the answer tells of the status it acted on.
    while True:
        doc = await link.jobs.find_one({"_id": order.id}, _FIELDS)
        if doc is None:
            return Answer(Operated.MISSING)
        answer = await _carry_out(link, order, doc)
        if answer is None:
            continue
        if answer.verdict is Operated.DONE:
            # The one that went may have been next in line: those behind it must not wait for its end.
            await unblock(link, lines_of([doc]).union(lines(rate=doc.get("rate_key"))))
            await has_freed(link, [doc])
        return answer


async def _carry_out(link: Link, order: Order, doc: Doc) -> Answer | None:
    found = STATUSES[doc["status"]]
    if not order.allows(found):
        return Answer(Operated.REFUSED, found)
    now = latest(await link.now(), [doc])
    if order.action is Action.CANCEL:
        return await _cancel(link, order, doc, now)
    if order.action is Action.RETRY:
        return await _retry(link, order, doc, now)
    return await _delete(link, order, doc, now)


async def _written(link: Link, doc: Doc, told: Doc, values: Doc) -> bool:
    found = {"_id": doc["_id"], "status": doc["status"], "moves": doc["moves"]}
    notices = news_of([(told["status"], doc["queue"])])
    if told["status"] == Status.PROCESSING:
        notices.append(CANCEL)
    done = await link.jobs.update_one(found, change(told, values, wake=link.news(notices)))
    if done.modified_count:
        link.tell(notices)
    return bool(done.modified_count)


_OUT_OF_LINE = {"blocked_by": None, "called": None}


async def _cancel(link: Link, order: Order, doc: Doc, now: datetime) -> Answer | None:
    found = STATUSES[doc["status"]]
    if found in WAITING:
        told = line(now, Happened.CANCELLED, Status.CANCELLED, by=order.actor, note=order.reason)
        values: Doc = {"finished_at": now, "cancel_requested_at": now, "unique_key": None, **_OUT_OF_LINE}
        values["frees"] = True if "next_id" in doc else None
        return Answer(Operated.DONE, found) if await _written(link, doc, told, values) else None
    if found is Status.PROCESSING:
        told = line(now, Happened.CANCEL_REQUESTED, found, by=order.actor, note=order.reason)
        values = {"cancel_requested_at": doc.get("cancel_requested_at", now)}
        return Answer(Operated.REQUESTED, found) if await _written(link, doc, told, values) else None
    return Answer(Operated.REFUSED, found)


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
    )
)


async def _retry(link: Link, order: Order, doc: Doc, now: datetime) -> Answer | None:
    found = STATUSES[doc["status"]]
    told = line(now, Happened.RETRIED, Status.QUEUED, by=order.actor, note=order.reason)
    waits = found in (Status.SCHEDULED, Status.RETRYING) or Kind.PAYLOAD.blocks(doc.get("blocked_by"))
    if not waits and not found.finished:
        return Answer(Operated.REFUSED, found)
    values: Doc = {"run_at": now, "queued_at": now, "blocked_by": None}
    if await without_part(link, [doc]):
        values["fair_key"] = ""
    if not waits:
        key = doc.get("unique_queued")
        values |= {**_AFRESH, "attempts": 0, "crashes": 0, "charged": None, "unique_key": key}
    try:
        return Answer(Operated.DONE, found) if await _written(link, doc, told, values) else None
    except DuplicateKeyError:
        holder = await link.jobs.find_one({"unique_key": doc.get("unique_queued")}, {"_id": 1})
        return None if holder is None else Answer(Operated.DUPLICATE, found, holder["_id"])


async def _delete(link: Link, order: Order, doc: Doc, now: datetime) -> Answer | None:
    found = STATUSES[doc["status"]]
    if found is Status.PROCESSING:
        return Answer(Operated.REFUSED, found)
    if "next_id" in doc:
        # The job that awaits it learns how it ended while it can still be asked. It is cancelled first: who dies in
        # between leaves that, and not a gap that looks like success.
        if not found.finished:
            if await _cancel(link, order, doc, now) is None:
                return None
            doc = {**doc, "status": Status.CANCELLED.value, "moves": doc["moves"] + 1}
        await unblock(link, lines(flow=doc["next_id"]))
    done = await link.jobs.delete_one({"_id": doc["_id"], "status": doc["status"], "moves": doc["moves"]})
    link.tell([CHANGED])
    return Answer(Operated.DONE, found) if done.deleted_count else None
