"""Questions inside a transaction: the caller's own, on a session of either pymongo client, or the store's.

Inside a transaction a duplicate key would abort all that the caller did, so each draft is looked for first, in the same
session. Only somebody who commits the same key at the same moment still makes the server abort the transaction.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pymongo import DeleteOne, UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.synchronous.client_session import ClientSession

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Created, Inserted, Notice
from windlass.stores.mongo.connection import DURABLE, OPTIONS
from windlass.stores.mongo.flows import in_order
from windlass.stores.mongo.inserting import (
    Depths,
    Find,
    Insert,
    Question,
    Update,
    counted_in,
    deciding,
    documents,
    fair_queues,
    fair_since,
    filling,
    first_of_each,
    insert,
    limits_of,
    news_of_new,
    opening,
)
from windlass.stores.mongo.turns import fair_lines, looks, places
from windlass.stores.mongo.unblocking import unblock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from datetime import datetime

    from windlass.core.draft import Draft
    from windlass.stores.mongo.connection import Doc, Link

Session: TypeAlias = AsyncClientSession | ClientSession


class Count:
    """How many jobs match, counted no further than `most`."""

    def __init__(self, asked: Doc, most: int, index: str) -> None:
        self.filter, self.most, self.index = asked, most, index


class Aggregate:
    """What these stages give of the jobs."""

    def __init__(self, stages: list[Doc]) -> None:
        self.stages = stages


class InsertMany:
    """Write new jobs."""

    def __init__(self, docs: list[Doc]) -> None:
        self.docs = docs

    def waking(self, wake: Callable[[Sequence[Notice]], str]) -> list[Doc]:
        """The same writes, the last of which wakes the listeners."""
        self.docs[-1]["wake"] = wake(news_of_new(self.docs))
        return self.docs


class OpenQueue:
    """Let a queue be known, outside of the transaction: that does no harm if it is rolled back."""

    def __init__(self, name: str, fair: datetime | None) -> None:
        self.name, self.update = name, opening(fair)


class Write:
    """Change and delete jobs, one after the other."""

    def __init__(self, operations: Sequence[UpdateOne | DeleteOne]) -> None:
        self.operations = operations


T = TypeVar("T")
Asked: TypeAlias = Question | Count | Aggregate | InsertMany | OpenQueue | Write
Asking: TypeAlias = "Generator[Asked, Any, T]"
Wake: TypeAlias = "Callable[[Sequence[Notice]], str]"


def session_of(tx: object, link: Link, *, awaited: bool) -> Session:
    """The session that carries it, if it can."""
    if isinstance(tx, ClientSession) or (awaited and isinstance(tx, AsyncClientSession)):
        if link.standalone:
            raise TransactionRefused(f"{link.place.address} is a standalone server, which has no transactions")
        return tx
    if isinstance(tx, AsyncClientSession):
        raise TransactionRefused("tx is an asynchronous session: await the call, or give a session of MongoClient")
    raise TransactionRefused(
        f"tx is a {type(tx).__module__}.{type(tx).__name__}: with a MongoDB store give a pymongo session of a client"
        f" of {link.place.address}"
    )


async def insert_joined(
    link: Link, drafts: Sequence[Draft], session: AsyncClientSession, told: list[Notice] | None = None
) -> list[Inserted]:
    """One verdict per draft, inside the session's transaction: the caller's, or the store's own, which hears of it.

    In that case `told` is to become what this store's listeners are told after the commit.
    """

    def wake(notices: Sequence[Notice]) -> str:
        if told is not None:
            told.extend(notices)
        return link.news(notices, known=told is not None)

    return await carry(link, _joining(drafts, await link.now()), session, wake)


async def carry(link: Link, asking: Asking[T], session: AsyncClientSession, wake: Wake) -> T:
    """Ask what is asked inside the session's transaction, until it has come to its end."""
    answer: Any = None
    database = session.client.get_database(link.place.database, codec_options=OPTIONS)
    while True:
        try:
            asked = asking.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value
        if isinstance(asked, OpenQueue):
            queues = session.client.get_database(link.place.database, write_concern=DURABLE)[link.name("queues")]
            answer = await queues.update_one({"_id": asked.name}, asked.update, upsert=True)
            continue
        jobs = database[link.name("jobs")]
        if isinstance(asked, Aggregate):
            answer = await (await jobs.aggregate(asked.stages, session=session)).to_list()
        elif isinstance(asked, Find):
            found = database[link.name(asked.of)].find(asked.filter, asked.fields or None, session=session)
            answer = await found.to_list()
            _refuse_elsewhere(link, session)
        elif isinstance(asked, Count):
            answer = await jobs.count_documents(asked.filter, session, limit=asked.most, hint=asked.index)
        elif isinstance(asked, Update):
            answer = (await jobs.update_one(asked.filter, asked.waking(wake), session=session)).modified_count
        elif isinstance(asked, Insert):
            answer = await jobs.insert_one({**asked.doc, "wake": wake(asked.notices)}, session=session)
        elif isinstance(asked, Write):
            answer = await jobs.bulk_write(asked.operations, session=session)
        else:
            answer = await jobs.insert_many(asked.waking(wake), session=session)


def insert_joined_now(link: Link, drafts: Sequence[Draft], session: ClientSession) -> list[Inserted]:
    """The same on the calling thread."""
    return carry_now(link, _joining(drafts, clock_now(link, session)), session, partial(link.news, known=False))


def clock_now(link: Link, session: ClientSession) -> datetime:
    """The server's clock, asked over the session's client if it has not shown itself for a while."""
    if not link.clock.fresh:
        sent = time.monotonic()
        hello = session.client.get_database("admin", codec_options=OPTIONS).command("hello")
        link.clock.see(hello["localTime"], sent)
    return link.clock()


def carry_now(link: Link, asking: Asking[T], session: ClientSession, wake: Wake) -> T:
    """`carry` on the calling thread."""
    answer: Any = None
    database = session.client.get_database(link.place.database, codec_options=OPTIONS)
    while True:
        try:
            asked = asking.send(answer)
        except StopIteration as done:
            value: T = done.value
            return value
        if isinstance(asked, OpenQueue):
            queues = session.client.get_database(link.place.database, write_concern=DURABLE)[link.name("queues")]
            answer = queues.update_one({"_id": asked.name}, asked.update, upsert=True)
            continue
        jobs = database[link.name("jobs")]
        if isinstance(asked, Aggregate):
            answer = jobs.aggregate(asked.stages, session=session).to_list()
        elif isinstance(asked, Find):
            answer = database[link.name(asked.of)].find(asked.filter, asked.fields or None, session=session).to_list()
            _refuse_elsewhere(link, session)
        elif isinstance(asked, Count):
            answer = jobs.count_documents(asked.filter, session, limit=asked.most, hint=asked.index)
        elif isinstance(asked, Update):
            answer = jobs.update_one(asked.filter, asked.waking(wake), session=session).modified_count
        elif isinstance(asked, Insert):
            answer = jobs.insert_one({**asked.doc, "wake": wake(asked.notices)}, session=session)
        elif isinstance(asked, Write):
            answer = jobs.bulk_write(asked.operations, session=session)
        else:
            answer = jobs.insert_many(asked.waking(wake), session=session)


def _refuse_elsewhere(link: Link, session: Session) -> None:
    here, there = link.client.nodes, session.client.nodes
    if here and there and not here & there:
        raise TransactionRefused(
            f"tx is a session on another server than {link.place.address}: windlass can only join one there"
        )


async def insert_together(link: Link, drafts: Sequence[Draft], now: datetime) -> list[Inserted]:
    """Jobs that await each other, in one transaction: none of them is seen before all are.

    A standalone server has none. There each comes after those that it awaits: one that came first would find nobody to
    wait for, and go on at once. A process that dies in between leaves jobs without the one that awaits them, and the
    same insert, made again, adds it; all may have ended by then, so it is looked at right away.
    """
    if link.standalone:
        return await _insert_in_order(link, drafts, now)

    told: list[Notice] = []

    async def attempt() -> list[Inserted]:
        told.clear()
        async with link.client.start_session() as session, await session.start_transaction(write_concern=DURABLE):
            return await insert_joined(link, drafts, session, told)

    async with filling(link, drafts):
        verdicts = await link.surely(attempt)
    link.tell(told)
    return verdicts


async def _insert_in_order(link: Link, drafts: Sequence[Draft], now: datetime) -> list[Inserted]:
    first = [draft for draft in drafts if draft.options.awaits is None]
    verdicts = dict(zip(map(id, first), await insert(link, first, now), strict=True))
    for draft in in_order(drafts):
        [verdicts[id(draft)]] = await insert(link, [draft], now)
    named = {draft.next_id for draft in drafts}
    await unblock(link, [BlockedBy(Kind.FLOW, draft.id).text for draft in drafts if draft.id in named])
    return [verdicts[id(draft)] for draft in drafts]


def _joining(drafts: Sequence[Draft], now: datetime) -> Generator[Asked, Any, list[Inserted]]:
    names = {draft.options.queue for draft in drafts}
    rows: list[Doc] = yield Find("queues", {"_id": {"$in": sorted(names)}})
    fair = fair_since(rows)
    new = fair_queues(drafts) - fair.keys()
    for name in sorted(names - {row["_id"] for row in rows} | new):
        yield OpenQueue(name, now if name in new else None)
    fair |= dict.fromkeys(new, now)
    depths: Depths = {}
    for queue, most in limits_of(rows).items():
        waiting = 0
        for counted, index in zip(counted_in(queue), ("ready", "later"), strict=True):
            if waiting < most:
                waiting += yield Count(counted, most - waiting, index)
        depths[queue] = [most, waiting]
    plain = [
        draft
        for draft in first_of_each(drafts)
        if draft.unique_queued is None and draft.idempotency_key is None and draft.options.queue not in depths
    ]
    there: list[Doc] = yield Find("jobs", {"_id": {"$in": [draft.id for draft in plain]}}, ("_id",))
    known = {doc["_id"] for doc in there}
    turns: dict[str, datetime] = {}
    for line, some in fair_lines(drafts, now).items():
        standing: list[Doc] = []
        for stages in looks(line, some):
            standing += yield Aggregate(stages)
        turns |= places(some, standing, now, fair[line[0]])
    docs = documents([draft for draft in plain if draft.id not in known], now, None, turns, fair)
    if docs:
        yield InsertMany(docs)
    made = {draft.id for draft in plain}
    verdicts: list[Inserted] = []
    for draft in drafts:
        verdict: Inserted | None = Created(draft.id) if draft.id in made else None
        while verdict is None:
            verdict = yield from deciding(draft, now, depths, {}, turns, fair)
        verdicts.append(verdict)
    return verdicts
