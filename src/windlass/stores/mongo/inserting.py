"""Insert: drafts become documents, by themselves or inside the caller's transaction.

What is to be asked of the server to decide on one draft is said once, by `deciding`, a generator of questions. The
asynchronous store, a caller's asynchronous session and a synchronous one each answer them with their own driver.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from bson import ObjectId
from pymongo.errors import BulkWriteError, DuplicateKeyError

from windlass.core.admission import Holder, Known, Waiting, judge, replacement, status_of_new
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.draft import Draft
from windlass.core.errors import StoreUnavailable
from windlass.core.fields import Origin
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.columns import of_draft
from windlass.stores.contract import Created, Duplicate, Inserted, Notice, Replaced
from windlass.stores.mongo.connection import DUPLICATE_KEY, in_parts
from windlass.stores.mongo.notices import CHANGED, DUE, news_of
from windlass.stores.mongo.records import KEPT, STATUSES, asked_of, change, duration, line, present, whole
from windlass.stores.mongo.schema import LATER
from windlass.stores.mongo.turns import Turns, due_at, taken, tell_apart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from datetime import datetime

    from windlass.core.draft import Options
    from windlass.stores.mongo.connection import Doc, Link

_HOLDER = (
    "status",
    "unique_key",
    "idempotent",
    "idempotent_until",
    "created_at",
    "updated_at",
    "moves",
    "blocked_by",
    "queue",
    "fair_key",
    "lease_token",
)
_GATE = duration(10_000)
_KEYS = frozenset({"unique_key", "idempotent", "tick"})
"""what a job may meet another by"""


class Find(NamedTuple):
    """Which documents match; answered with a list."""

    of: str
    filter: Doc
    fields: tuple[str, ...] = ()


class Update(NamedTuple):
    """Change one job if it is still as it was; answered with how many were."""

    filter: Doc
    update: Doc
    notices: Sequence[Notice] = ()

    def waking(self, wake: Callable[[Sequence[Notice]], str]) -> Doc:
        """The update, which wakes listeners."""
        return (
            {**self.update, "$set": {**self.update["$set"], "wake": wake(self.notices)}}
            if self.notices
            else self.update
        )


class Insert(NamedTuple):
    """Write one new job."""

    doc: Doc
    notices: Sequence[Notice]


Question: TypeAlias = Find | Update | Insert
Depths: TypeAlias = dict[str, list[int]]
"""Of each queue with a largest depth: that depth, and how many wait."""


async def insert(link: Link, drafts: Sequence[Draft], now: datetime, extra: Doc | None = None) -> list[Inserted]:
    """One verdict per draft, in order. `extra` are fields that their documents have beside the drafts' own."""
    async with filling(link, drafts) as limits:
        depths = {queue: [most, await _depth(link, queue, most)] for queue, most in limits.items()}
        at_once = [draft for draft in first_of_each(drafts) if draft.options.queue not in depths]
        await tell_apart(link, fair_queues(drafts), now)
        turns = await taken(link, drafts, now)
        parts = await in_parts(at_once, lambda some: _insert_many(link, some, now, extra, turns))
        made = {job_id for part in parts for job_id in part}
        verdicts: list[Inserted] = []
        for draft in drafts:
            if draft.id in made:
                verdicts.append(Created(draft.id))
            else:
                verdicts.append(await _decide(link, draft, now, depths, extra or {}, turns))
        return verdicts


@asynccontextmanager
async def filling(link: Link, drafts: Sequence[Draft]) -> AsyncGenerator[dict[str, int], None]:
    """While these jobs' queues are filled: the largest depth of those that have one.

    Counting and filling are two steps, so clients that fill a limited queue do so one after the other.
    """
    limits = await open_queues(link, {draft.options.queue for draft in drafts}, fair_queues(drafts))
    async with AsyncExitStack() as gates:
        for queue in sorted(limits):
            await gates.enter_async_context(link.turns.setdefault(queue, asyncio.Lock()))
            await gates.enter_async_context(_turn(link, queue))
        yield limits


def first_of_each(drafts: Sequence[Draft]) -> list[Draft]:
    """Those that no earlier draft of the same insert can stand in the way of."""
    seen: set[str] = set()
    found: list[Draft] = []
    for draft in drafts:
        if draft.unique_queued is None and draft.idempotency_key is None:
            if draft.id not in seen:
                found.append(draft)
                seen.add(draft.id)
            continue
        keys = {draft.id}
        if draft.unique_queued is not None:
            keys.add(f"u:{draft.unique_queued}")
        if draft.idempotency_key is not None:
            keys.add(f"i:{draft.idempotency_key}")
        remembered = draft.idempotency_key is None or draft.options.idempotency_window is not None
        if remembered and not keys & seen:
            found.append(draft)
        seen |= keys
    return found


def fair_queues(drafts: Sequence[Draft]) -> set[str]:
    """Where some of these take turns."""
    return {draft.options.queue for draft in drafts if draft.fair_key is not None}


async def open_queues(link: Link, names: set[str], fair: set[str]) -> dict[str, int]:
    """Make sure that these queues are known, and those where jobs take turns; returns the largest depths there are."""
    if link.are_open(names) and fair <= link.fair.keys():
        return {}
    queues = link.collection("queues")
    rows = await queues.find({"_id": {"$in": sorted(names)}}).to_list()
    link.fair |= fair_since(rows)
    since, new = await link.now(), fair - link.fair.keys()
    for name in sorted(names - {row["_id"] for row in rows} | new):
        done = await queues.update_one({"_id": name}, opening(since if name in new else None), upsert=True)
        if name in new and done.upserted_id is not None:
            link.tell_apart_from[name] = math.inf  # nobody else has looked at it before
    link.fair |= dict.fromkeys(new, since)
    limits = limits_of(rows)
    link.saw_open(names - set(limits))
    return limits


def opening(fair: datetime | None) -> Doc:
    """The update that makes a queue known, and since when jobs take turns there."""
    known: Doc = {"$setOnInsert": {"known": True}}
    return {**known, "$max": {"fair": fair}} if fair is not None else known


def fair_since(rows: Sequence[Doc]) -> dict[str, datetime]:
    """Since when jobs take turns in these queues, where they do."""
    return {row["_id"]: row["fair"] for row in rows if "fair" in row}


def limits_of(rows: Sequence[Doc]) -> dict[str, int]:
    """The largest depths that these queues were given."""
    return {row["_id"]: row["max_depth"] for row in rows if "max_depth" in row}


async def _depth(link: Link, queue: str, most: int) -> int:
    """How many wait there, counted no further than it matters."""
    queued, later = counted_in(queue)
    n = await link.count(queued, most, hint="ready") if most > 0 else 0
    return n + await link.count(later, most - n, hint="later") if n < most else n


def counted_in(queue: str) -> tuple[Doc, Doc]:
    """What counts in a queue's depth, by the index that tells of it."""
    return {"status": "queued", "queue": queue}, {"queue": queue, "status": {"$in": LATER}}


@asynccontextmanager
async def _turn(link: Link, queue: str) -> AsyncGenerator[None, None]:
    queues, mine = link.collection("queues"), ObjectId()
    deadline = time.monotonic() + link.place.timeout
    while True:
        now = await link.now()
        free = {"_id": queue, "$or": [{"turn": {"$exists": False}}, {"turn.until": {"$lte": now}}]}
        taken = await queues.update_one(free, {"$set": {"turn": {"of": mine, "until": now + _GATE}}})
        if taken.modified_count:
            break
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"too many fill the queue {queue!r} at once: try again")
        await asyncio.sleep(random.uniform(0.001, 0.01))
    try:
        yield
    finally:
        await queues.update_one({"_id": queue, "turn.of": mine}, {"$unset": {"turn": ""}})


async def _insert_many(link: Link, drafts: Sequence[Draft], now: datetime, extra: Doc | None, turns: Turns) -> set[str]:
    """The ids of those that are in the store now; the others met somebody's key."""
    again = False
    docs: list[Doc] = []
    notices: dict[str, list[Notice]] = {}

    async def write() -> None:
        # A key that was held at the first try may be free at the next: the job is born then, and not before.
        nonlocal docs, notices, again
        docs = documents(drafts, max(now, await link.now()) if again else now, extra, turns, link.fair)
        again = True
        # One that can meet nobody's key is there afterwards for sure, and wakes for all of them.
        sure = next((doc for doc in reversed(docs) if _KEYS.isdisjoint(doc)), None)
        notices = {sure["_id"]: news_of_new(docs)} if sure else {doc["_id"]: news_of_new([doc]) for doc in docs}
        for doc in [sure] if sure else docs:
            doc["wake"] = link.news(notices[doc["_id"]])
        await link.jobs.insert_many(docs, ordered=False)

    try:
        await link.surely(write)
    except BulkWriteError as error:
        errors: list[Doc] = error.details["writeErrors"]
        if not errors or error.details["writeConcernErrors"] or any(one["code"] != DUPLICATE_KEY for one in errors):
            raise
        # The same id again is the same job; any other key needs a closer look.
        keyed: set[str] = {docs[one["index"]]["_id"] for one in errors if "_id" not in one["keyPattern"]}
        docs = [doc for doc in docs if doc["_id"] not in keyed]
    made = {doc["_id"] for doc in docs}
    for job_id in made & notices.keys():
        link.tell(notices[job_id])
    return made


def news_of_new(docs: Sequence[Doc]) -> list[Notice]:
    """What to tell of these new jobs; that one expires is something to happen at a time."""
    return news_of(map(itemgetter("status", "queue"), docs), due=any("expires_at" in doc for doc in docs))


async def _decide(link: Link, draft: Draft, now: datetime, depths: Depths, extra: Doc, turns: Turns) -> Inserted:
    # The holder of a key may end between the look and the write: look again until it is decided.
    while True:
        now = max(now, await link.now())  # it is created after the holder of its key has ended
        asking = deciding(draft, now, depths, extra, turns, link.fair)
        try:
            verdict = await _answered(link, asking)
        except DuplicateKeyError as error:
            met = await _tick_met(link, draft, error)
            if met is not None:
                return met
            continue
        if verdict is not None:
            return verdict


async def _tick_met(link: Link, draft: Draft, error: DuplicateKeyError) -> Inserted | None:
    if "tick" not in (error.details or {}).get("keyPattern", {}):
        return None
    made = await link.jobs.find_one({"schedule": draft.options.schedule, "tick": draft.options.tick}, {"_id": 1})
    return None if made is None else Duplicate(made["_id"], f"{draft.options.schedule}@{draft.options.tick}")


async def _answered(link: Link, asking: Generator[Question, Any, Inserted | None]) -> Inserted | None:
    answer: Any = None
    while True:
        try:
            question = asking.send(answer)
        except StopIteration as done:
            verdict: Inserted | None = done.value
            return verdict
        if isinstance(question, Find):
            answer = await link.collection(question.of).find(question.filter, question.fields or None).to_list()
        elif isinstance(question, Update):
            answer = (await link.jobs.update_one(question.filter, question.waking(link.news))).modified_count
            link.tell(question.notices if answer else ())
        else:
            answer = await link.jobs.insert_one({**question.doc, "wake": link.news(question.notices)})
            link.tell(question.notices)


def deciding(
    draft: Draft, now: datetime, depths: Depths, extra: Doc, turns: Turns, fair: Collection[str]
) -> Generator[Question, Any, Inserted | None]:
    """What to ask about one draft; returns its verdict, or None when the store changed meanwhile: ask again."""
    key, idempotent = draft.unique_queued, draft.idempotency_key
    looks: list[Doc] = [{"_id": draft.id}]
    looks += [{"idempotent": idempotent}] * (idempotent is not None)
    looks += [{"unique_key": key}] * (key is not None)
    found: list[Doc] = yield Find("jobs", {"$or": looks}, _HOLDER)
    is_there = any(doc["_id"] == draft.id for doc in found)
    same = next((doc for doc in found if idempotent is not None and doc.get("idempotent") == idempotent), None)
    if same is not None and not is_there and same["idempotent_until"] <= now:
        over = {"_id": same["_id"], "idempotent": idempotent, "idempotent_until": same["idempotent_until"]}
        yield Update(over, {"$unset": {"idempotent": "", "idempotent_until": ""}})
        same = None
    holder = next((doc for doc in found if key is not None and doc.get("unique_key") == key), None)
    depth = depths.get(draft.options.queue)
    known = Known(
        is_there=is_there,
        same=None if same is None else same["_id"],
        holder=None if holder is None else Holder(holder["_id"], STATUSES[holder["status"]]),
        depth=0 if depth is None else depth[1],
        most=None if depth is None else depth[0],
    )
    verdict = judge(draft, known)
    if isinstance(verdict, Replaced) and holder is not None:
        replaced: int = yield _replacing(draft, holder, now, fair)
        return verdict if replaced else None
    if verdict is not None:
        return verdict
    if depth is not None:
        depth[1] += 1
    docs = documents([draft], now, extra, turns, fair)
    yield Insert(docs[0], news_of_new(docs))
    return Created(draft.id)


def _replacing(draft: Draft, holder: Doc, now: datetime, fair: Collection[str]) -> Update:
    found = {"_id": holder["_id"], "moves": holder["moves"], "status": holder["status"]}
    waiting = Waiting(holder.get("blocked_by"), now - holder["created_at"])
    to, wait = replacement(draft.options, waiting, due_at(draft.options, now) - now)
    told = line(max(now, holder["updated_at"]), Happened.REPLACED, to)
    expires_at = _expiry(draft.options, now)
    values: Doc = {"payload": draft.payload_json, "priority": draft.options.priority, "expires_at": expires_at}
    values["kept"] = None  # it was made of the payload that goes
    values["begin_by"] = None if holder["lease_token"] else expires_at
    if wait is None:
        return Update(found, change(told, values), [CHANGED] if expires_at is None else [CHANGED, DUE])
    values |= {
        "run_at": now + whole(wait),
        "queued_at": now if to is Status.QUEUED else None,
        "blocked_by": None,
        "called": None,
    }
    if "fair_key" not in holder and holder["queue"] in fair:
        values["fair_key"] = ""
    return Update(found, change(told, values), news_of([(to.value, holder["queue"])], due=expires_at is not None))


def _expiry(options: Options, now: datetime) -> datetime | None:
    return None if options.expires is None else now + whole(options.expires)


_OWN, _ASKED = KEPT.of(Origin.DRAFT), KEPT.of(Origin.OPTIONS)
_FIRST_KEY = Draft._fields.index("options") + 1  # from here on a draft has its keys and what comes after it
_NO_KEYS = (None,) * (len(Draft._fields) - _FIRST_KEY)


def documents(
    drafts: Sequence[Draft], now: datetime, extra: Doc | None, turns: Turns, fair: Collection[str]
) -> list[Doc]:
    """The jobs as they are born; `fair` are the queues where jobs take turns."""
    options: Options | None = None
    alike: Doc = {}
    made: list[Doc] = []
    for draft in drafts:
        if draft.options is not options:  # many jobs of one kind share theirs, and what follows from them
            options = draft.options
            alike = {**_from_options(options, now), **(extra or {})}
            if options.queue in fair:
                alike["fair_key"] = ""  # of one that takes no part
        doc = {"_id": draft.id, "type": draft.type, "payload": draft.payload_json, **alike}
        if draft[_FIRST_KEY:] != _NO_KEYS:
            doc |= _from_keys(draft, now)
            doc["run_at"] = turns.get(draft.id, doc["run_at"])
        if draft.options.awaits is not None:
            doc["blocked_by"] = BlockedBy(Kind.FLOW, draft.id).text
        made.append(doc)
    return made


def _from_keys(draft: Draft, now: datetime) -> Doc:
    doc = present(dict(zip(_OWN, of_draft(draft), strict=True)))
    if draft.unique_queued is not None:
        doc["unique_key"] = draft.unique_queued
    if draft.idempotency_key is not None and draft.options.idempotency_window is not None:
        doc["idempotent"] = draft.idempotency_key
        doc["idempotent_until"] = now + whole(draft.options.idempotency_window)
    return doc


def _from_options(options: Options, now: datetime) -> Doc:
    run_at = due_at(options, now)
    status = status_of_new(options, later=run_at > now)
    note = f"replay of {options.replay_of}" if options.replay_of else None
    return {
        "status": status.value,
        "run_at": run_at,
        "attempts": 0,
        "crashes": 0,
        "created_at": now,
        "updated_at": now,
        "lease_token": 0,
        "moves": 1,
        "history": [line(now, Happened.ENQUEUED, status, note=note)],
        **present({"queued_at": None if status is Status.SCHEDULED else now}),
        **({} if options.expires is None else dict.fromkeys(("expires_at", "begin_by"), _expiry(options, now))),
        **present(dict(zip(_ASKED, asked_of(options), strict=True))),
    }
