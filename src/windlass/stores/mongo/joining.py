"""Enqueue inside the caller's own transaction, on an asynchronous or a synchronous pymongo session.

Inside a transaction a duplicate key would abort all that the caller did, so each draft is looked for first, in the same
session. Only somebody who commits the same key at the same moment still makes the server abort the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.synchronous.client_session import ClientSession

from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Created, Inserted
from windlass.stores.mongo.connection import DURABLE, OPTIONS
from windlass.stores.mongo.inserting import (
    WAITING_NAMES,
    Depths,
    Find,
    Insert,
    Question,
    Update,
    deciding,
    document,
    first_of_each,
    limits_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import datetime

    from windlass.core.draft import Draft
    from windlass.stores.mongo.connection import Doc, Link

Session: TypeAlias = AsyncClientSession | ClientSession


class Count:
    """How many jobs wait in a queue."""

    def __init__(self, queue: str) -> None:
        self.filter: Doc = {"status": {"$in": WAITING_NAMES}, "queue": queue}


class InsertMany:
    """Write new jobs."""

    def __init__(self, docs: list[Doc]) -> None:
        self.docs = docs


class OpenQueue:
    """Let a queue be known, outside of the transaction: that does no harm if it is rolled back."""

    def __init__(self, name: str) -> None:
        self.name = name


Asked: TypeAlias = Question | Count | InsertMany | OpenQueue


def session_of(tx: object, link: Link, *, awaited: bool) -> Session:
    """The session that carries the enqueue, if it can."""
    if isinstance(tx, ClientSession) or (awaited and isinstance(tx, AsyncClientSession)):
        if link.standalone:
            raise TransactionRefused(f"{link.place.address} is a standalone server, which has no transactions")
        return tx
    if isinstance(tx, AsyncClientSession):
        raise TransactionRefused("tx is an asynchronous session: await the enqueue, or give a session of MongoClient")
    raise TransactionRefused(
        f"tx is a {type(tx).__module__}.{type(tx).__name__}: with a MongoDB store give a pymongo session of a client"
        f" of {link.place.address}"
    )


async def insert_joined(link: Link, drafts: Sequence[Draft], session: AsyncClientSession) -> list[Inserted]:
    """One verdict per draft, inside the session's transaction."""
    asking = _joining(drafts, await link.now(), {"wake": link.news(known=False)})
    answer: Any = None
    database = session.client.get_database(link.place.database, codec_options=OPTIONS)
    while True:
        try:
            asked = asking.send(answer)
        except StopIteration as done:
            verdicts: list[Inserted] = done.value
            return verdicts
        if isinstance(asked, OpenQueue):
            queues = session.client.get_database(link.place.database, write_concern=DURABLE)[link.name("queues")]
            answer = await queues.update_one({"_id": asked.name}, {"$setOnInsert": {"known": True}}, upsert=True)
            continue
        jobs = database[link.name("jobs")]
        if isinstance(asked, Find):
            found = database[link.name(asked.of)].find(asked.filter, asked.fields or None, session=session)
            answer = await found.to_list()
            _refuse_elsewhere(link, session)
        elif isinstance(asked, Count):
            answer = await jobs.count_documents(asked.filter, session=session)
        elif isinstance(asked, Update):
            answer = (await jobs.update_one(asked.filter, asked.update, session=session)).modified_count
        elif isinstance(asked, Insert):
            answer = await jobs.insert_one(asked.doc, session=session)
        else:
            answer = await jobs.insert_many(asked.docs, session=session)


def insert_joined_now(link: Link, drafts: Sequence[Draft], session: ClientSession) -> list[Inserted]:
    """The same on the calling thread."""
    if not link.clock.fresh:
        link.clock.see(session.client.get_database("admin", codec_options=OPTIONS).command("hello")["localTime"])
    asking = _joining(drafts, link.clock(), {"wake": link.news(known=False)})
    answer: Any = None
    database = session.client.get_database(link.place.database, codec_options=OPTIONS)
    while True:
        try:
            asked = asking.send(answer)
        except StopIteration as done:
            verdicts: list[Inserted] = done.value
            return verdicts
        if isinstance(asked, OpenQueue):
            queues = session.client.get_database(link.place.database, write_concern=DURABLE)[link.name("queues")]
            answer = queues.update_one({"_id": asked.name}, {"$setOnInsert": {"known": True}}, upsert=True)
            continue
        jobs = database[link.name("jobs")]
        if isinstance(asked, Find):
            answer = database[link.name(asked.of)].find(asked.filter, asked.fields or None, session=session).to_list()
            _refuse_elsewhere(link, session)
        elif isinstance(asked, Count):
            answer = jobs.count_documents(asked.filter, session=session)
        elif isinstance(asked, Update):
            answer = jobs.update_one(asked.filter, asked.update, session=session).modified_count
        elif isinstance(asked, Insert):
            answer = jobs.insert_one(asked.doc, session=session)
        else:
            answer = jobs.insert_many(asked.docs, session=session)


def _refuse_elsewhere(link: Link, session: Session) -> None:
    here, there = link.client.nodes, session.client.nodes
    if here and there and not here & there:
        raise TransactionRefused(
            f"tx is a session on another server than {link.place.address}: an enqueue can only join a transaction there"
        )


def _joining(drafts: Sequence[Draft], now: datetime, extra: Doc) -> Generator[Asked, Any, list[Inserted]]:
    names = {draft.options.queue for draft in drafts}
    rows: list[Doc] = yield Find("queues", {"_id": {"$in": sorted(names)}})
    for name in sorted(names - {row["_id"] for row in rows}):
        yield OpenQueue(name)
    depths: Depths = {}
    for queue, most in limits_of(rows).items():
        waiting: int = yield Count(queue)
        depths[queue] = [most, waiting]
    plain = [
        draft
        for draft in first_of_each(drafts)
        if draft.unique_queued is None and draft.idempotency_key is None and draft.options.queue not in depths
    ]
    there: list[Doc] = yield Find("jobs", {"_id": {"$in": [draft.id for draft in plain]}}, ("_id",))
    known = {doc["_id"] for doc in there}
    docs = [document(draft, now) for draft in plain if draft.id not in known]
    if docs:
        docs[-1] |= extra
        yield InsertMany(docs)
    made = {draft.id for draft in plain}
    verdicts: list[Inserted] = []
    for draft in drafts:
        verdict: Inserted | None = Created(draft.id) if draft.id in made else None
        while verdict is None:
            verdict = yield from deciding(draft, now, depths, extra)
        verdicts.append(verdict)
    return verdicts
