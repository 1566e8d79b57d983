"""Flows: a job that awaits others goes on, or is cancelled, when they have ended.

Whether it still has to wait is a question to the state as it is, asked after every end that may matter and again by
every promotion, by any number of workers: the answer is written only on a job that has not moved since it was read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pymongo import UpdateMany

from windlass.core.blocked import BlockedBy, Kind, lines
from windlass.core.history import Happened
from windlass.core.status import LIVE, Status
from windlass.stores.mongo.notices import CHANGED, claimable
from windlass.stores.mongo.records import change, latest, line
from windlass.stores.mongo.schema import SPOILED
from windlass.stores.mongo.turns import without_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.core.draft import Draft
    from windlass.core.transition import Transition
    from windlass.stores.mongo.connection import Doc, Link

_LIVE = sorted(status.value for status in LIVE)
_FIELDS = dict.fromkeys(
    ("awaits", "next_id", "unique_key", "blocked_by", "moves", "updated_at", "queue", "fair_key"), 1
)
_MORE = 20  # how many jobs a look reads beyond one for each that is asked about


def is_gathering(transition: Transition) -> bool:
    """Whether the job goes on to wait for its children."""
    return transition.blocked_by is not None and transition.blocked_by == BlockedBy(Kind.FLOW, transition.id).text


async def settle(link: Link, ids: Iterable[str]) -> tuple[int, set[str]]:
    """Look which of these still have to wait: how many went on, and the lines that the end of others may free."""
    waiting: Doc = {"_id": {"$in": list(ids)}, "status": "blocked"}
    blocked = await link.jobs.find(waiting, _FIELDS).to_list()
    docs = [doc for doc in blocked if doc.get("blocked_by") == BlockedBy(Kind.FLOW, doc["_id"]).text]
    goes_on: list[Doc] = []
    stops: list[tuple[Doc, str]] = []
    freed: set[str] = set()
    # The living are asked for first: what was not among them has ended, and how is seen by the second look.
    live = await _first_of_each(link, [doc["_id"] for doc in docs], _LIVE, "awaited")
    spoiled = await _first_of_each(link, [doc["_id"] for doc in docs if doc["awaits"] == "success"], SPOILED, "spoiled")
    for doc in docs:
        if doc["_id"] in spoiled:
            stops.append((doc, _why(spoiled[doc["_id"]])))
            freed.update(lines(flow=doc.get("next_id"), unique=doc.get("unique_key")))
        elif doc["_id"] not in live:
            goes_on.append(doc)
    await _stop(link, stops)
    return await _go_on(link, goes_on), freed


async def _first_of_each(link: Link, ids: list[str], statuses: list[str], index: str) -> dict[str, Doc]:
    """Of each of these that is named as next by a job of such a status: one of those jobs.

    The index is walked in order, so a look that ends in the midst of many of one has told all before it, and the next
    begins after that one.
    """
    found: dict[str, Doc] = {}
    left = sorted(ids)
    while left:
        named: Doc = {"next_id": {"$in": left}, "status": {"$in": statuses}}
        most = len(left) + _MORE
        look = link.jobs.find(named, {"next_id": 1, "status": 1}).hint(index)
        docs = await look.sort("next_id", 1).limit(most).to_list()
        for doc in docs:
            found.setdefault(doc["next_id"], doc)
        if len(docs) < most:
            break
        left = [id_ for id_ in left if id_ > docs[-1]["next_id"]]
    return found


def _why(spoiled: Doc) -> str:
    job_id, status = spoiled["_id"], spoiled["status"]
    failed = status == Status.FAILED.value
    return f"job {job_id} failed" if failed else f"job {job_id}, which it awaited, was {status}"


def _found(docs: Sequence[Doc]) -> Doc:
    return {"_id": {"$in": [doc["_id"] for doc in docs]}, "status": "blocked", "moves": docs[0]["moves"]}


async def _go_on(link: Link, docs: Sequence[Doc]) -> int:
    plain = await without_part(link, docs)
    alike: dict[tuple[int, bool], list[Doc]] = defaultdict(list)
    for doc in docs:
        alike[doc["moves"], doc["_id"] in plain].append(doc)
    done = 0
    for (_, apart), some in alike.items():
        at = latest(await link.now(), some)
        values = {"blocked_by": None, "run_at": at, "queued_at": at, **({"fair_key": ""} if apart else {})}
        notices = claimable(doc["queue"] for doc in some)
        update = change(line(at, Happened.UNBLOCKED, Status.QUEUED), values, wake=link.news(notices))
        done += await link.update_many(_found(some), update)
        link.tell(notices)
    return done


async def _stop(link: Link, stops: list[tuple[Doc, str]]) -> None:
    if not stops:
        return
    at, wake = latest(await link.now(), [doc for doc, _ in stops]), link.news([CHANGED])
    values = {"blocked_by": None, "unique_key": None, "begin_by": None, "finished_at": at}
    writes = [
        UpdateMany(_found([doc]), change(line(at, Happened.CANCELLED, Status.CANCELLED, note=why), values, wake=wake))
        for doc, why in stops
    ]
    await link.surely(lambda: link.jobs.bulk_write(writes, ordered=False))
    link.tell([CHANGED])


def in_order(drafts: Sequence[Draft]) -> list[Draft]:
    """Those that await others, each after all those of them that it awaits."""
    left = [draft for draft in drafts if draft.options.awaits is not None]
    ordered: list[Draft] = []
    while left:
        named = {draft.next_id for draft in left}
        free = [draft for draft in left if draft.id not in named] or left  # a ring has no first
        ordered += free
        left = [draft for draft in left if draft not in free]
    return ordered
