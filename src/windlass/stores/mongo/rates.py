"""Rates: how much of a window is spent, what a claim books there, and when there is room again.

One document for each key holds how many started, by the part of the window that they are booked under, and, while jobs
wait, when to look at their line again. A claim books before it leases, in one update that takes no more than the room
there is, and gives back what it did not use. One that dies in between, or does not learn what became of its booking,
has spent it: a rate is rather not used up than exceeded.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.rate import booked_at
from windlass.stores.mongo.connection import DUPLICATE_KEY
from windlass.stores.mongo.records import duration, in_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from windlass.stores.mongo.connection import Doc, Link

_SHORT = 1000  # of lines that are all together shorter, one look tells how many stand in each
_GRANTS_KEPT = 32  # the newest, so that a booker can read what was granted
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEPT = timedelta(days=1)  # how long a line that nobody looked at in time, because no worker ran, stays known


class Window(NamedTuple):
    """One rate as a job has it: so many of a key in so many milliseconds."""

    key: str
    n: int
    ms: int


class Rates:
    """The rates that one claim meets."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._booked: dict[str, list[Doc]] = {}
        self._in_line: dict[str, int] = {}
        self._passed: dict[str, int] = {}
        self._bookings: list[tuple[str, datetime, set[str]]] = []

    async def look(self, rows: Iterable[Doc]) -> None:
        """What is booked of these jobs' rates, and how many wait for each: no more than matter."""
        most: dict[str, int] = {}
        for row in rows:
            if "rate_key" in row:
                most[row["rate_key"]] = max(most.get(row["rate_key"], 0), row["rate_n"])
        self._booked, self._in_line, self._passed = {}, {}, {}
        if not most:
            return
        self._booked, self._in_line = await asyncio.gather(bookings(self._link, most), self._lines(most))

    async def _lines(self, most: dict[str, int]) -> dict[str, int]:
        waiting: Doc = {"blocked_by": {"$in": [BlockedBy(Kind.RATE, key).text for key in most]}}
        rows = await self._link.jobs.find(waiting, {"_id": 0, "blocked_by": 1}).limit(_SHORT).to_list()
        if len(rows) < _SHORT:
            counts = Counter(row["blocked_by"] for row in rows)
            return {key: counts[BlockedBy(Kind.RATE, key).text] for key in most}
        # Some are long: each is counted as far as it matters.
        counted = [self._link.count({"blocked_by": BlockedBy(Kind.RATE, key).text}, n) for key, n in most.items()]
        return dict(zip(most, await asyncio.gather(*counted), strict=True))

    def met(self, doc: Doc, now: datetime) -> tuple[int, int]:
        """How many starts of a job's rate count now, and how many are blocked by it: no more than matter."""
        window = window_of(doc)
        starts = spent(self._booked.get(window.key, ()), window, now) + self._passed.get(window.key, 0)
        return starts, self._in_line[window.key]

    def start(self, key: str) -> None:
        """One more was let through."""
        self._passed[key] = self._passed.get(key, 0) + 1

    def put_aside(self, key: str) -> None:
        """One more was put into the line."""
        self._in_line[key] += 1

    async def book(self, picked: Sequence[Doc], now: datetime) -> list[Doc]:
        """Book a start for each of these, in order, as far as there is room; returns those that found none."""
        windows: dict[Window, list[Doc]] = {}
        for doc in picked:
            if "rate_key" in doc:
                windows.setdefault(window_of(doc), []).append(doc)
        granted = await self._granted({window: len(docs) for window, docs in windows.items()}, now)
        refused: list[Doc] = []
        self._bookings = []
        for window, docs in windows.items():
            n = granted.get(window, 0)
            self._bookings.append((window.key, _part(window, now), {doc["_id"] for doc in docs[:n]}))
            refused += docs[n:]
        return refused

    async def _granted(self, wanted: dict[Window, int], now: datetime) -> dict[Window, int]:
        """Book them all in one command, and read back how many of each were granted, by the mark of each booking."""
        rates, marks = self._link.collection("rates"), {window: ObjectId() for window in wanted}
        await _write(
            self._link,
            [
                UpdateOne({"_id": window.key}, _booking(window, n, now, marks[window]), upsert=True)
                for window, n in wanted.items()
            ],
        )
        keys = [window.key for window in wanted]
        rows = await rates.find({"_id": {"$in": keys}}, {"grants": 1}).to_list()
        told = {grant["mark"]: grant["n"] for row in rows for grant in row["grants"]}
        # One that so many rivals followed that it is not told of any more has been spent for nothing.
        return {window: told.get(mark, 0) for window, mark in marks.items()}

    async def look_again(self, aside: Iterable[Doc], now: datetime) -> None:
        """Write down when the lines may move on in which these were put: at the end of the first start that counts."""
        windows = {window.key: window for window in map(window_of, aside)}
        await look_again(
            self._link, {key: _first_over(self._booked.get(key, ()), of, now) or now for key, of in windows.items()}
        )

    async def give_back(self, started: Collection[str]) -> None:
        """Take back the bookings of those that did not start after all, because rivals were first."""
        for key, at, booked in self._bookings:
            unused = len(booked.difference(started))
            if unused:
                found = {"_id": key, "booked.at": at}
                await self._link.collection("rates").update_one(found, {"$inc": {"booked.$.n": -unused}})


async def _write(link: Link, writes: list[UpdateOne]) -> None:
    while writes:
        try:
            await link.collection("rates").bulk_write(writes, ordered=False)
            break
        except BulkWriteError as error:
            errors: list[Doc] = error.details["writeErrors"]
            if not errors or any(one["code"] != DUPLICATE_KEY for one in errors):
                raise
            # Two made a document at once; it is there now.
            writes = [writes[one["index"]] for one in errors]


async def look_again(link: Link, at: Mapping[str, datetime]) -> None:
    """Write down when the line of each of these keys is to be looked at again, if that is not to be earlier."""
    await _write(
        link,
        [
            UpdateOne({"_id": key}, {"$min": {"opens": when}, "$max": {"until": when + _KEPT}}, upsert=True)
            for key, when in at.items()
        ],
    )


async def opened(link: Link, keys: Sequence[str], now: datetime) -> None:
    """These are looked at now: what is put aside from here on is written down again."""
    if keys:
        found: Doc = {"_id": {"$in": list(keys)}, "opens": {"$lte": now}}
        await link.collection("rates").update_many(found, {"$unset": {"opens": ""}})


def due_lines(now: datetime, n: int) -> list[Doc]:
    """A look by the index: the keys of lines to be looked at by now, the longest due first."""
    due: list[Doc] = [{"$match": {"opens": {"$lte": now}}}, {"$sort": {"opens": 1}}, {"$limit": n}]
    return [*due, {"$project": {"_id": 0, "rate": "$_id"}}]


async def next_look(link: Link) -> list[datetime]:
    """When the next line is to be looked at, if there is any."""
    waited: Doc = {"opens": {"$exists": True}}
    first = link.collection("rates").find(waited, {"_id": 0, "opens": 1}).sort("opens", 1).limit(1)
    return [row["opens"] for row in await first.to_list()]


def _first_over(booked: Iterable[Doc], window: Window, now: datetime) -> datetime | None:
    """When the first of what is booked counts no more."""
    overs = [part["at"] + duration(window.ms) for part in booked if part["n"] > 0]
    return min([over for over in overs if over > now], default=None)


def _part(window: Window, now: datetime) -> datetime:
    return _EPOCH + duration(booked_at(in_ms(now - _EPOCH), window.ms))


def _booking(window: Window, wanted: int, now: datetime, mark: ObjectId) -> list[Doc]:
    """Take as many as there is room for, of those wanted, and drop the parts that count no more."""
    at = _part(window, now)

    def kept(cond: Doc) -> Doc:
        return {"$filter": {"input": {"$ifNull": ["$booked", []]}, "as": "part", "cond": cond}}

    here = {"$sum": {"$map": {"input": kept({"$eq": ["$$part.at", at]}), "as": "part", "in": "$$part.n"}}}
    together = [{"at": at, "n": {"$add": [here, "$granted"]}}]
    granted = [{"mark": mark, "n": "$granted"}]
    return [
        {"$set": {"booked": kept({"$gt": ["$$part.at", now - duration(window.ms)]})}},
        {"$set": {"granted": {"$max": [0, {"$min": [wanted, {"$subtract": [window.n, {"$sum": "$booked.n"}]}]}]}}},
        {
            "$set": {
                "booked": {"$concatArrays": [kept({"$ne": ["$$part.at", at]}), together]},
                "until": {"$max": ["$until", at + duration(window.ms)]},
                "grants": {"$slice": [{"$concatArrays": [{"$ifNull": ["$grants", []]}, granted]}, -_GRANTS_KEPT]},
            }
        },
        {"$unset": "granted"},
    ]


def window_of(doc: Doc) -> Window:
    """The rate of a job that has one."""
    return Window(doc["rate_key"], doc["rate_n"], doc["rate_ms"])


def spent(booked: Iterable[Doc], window: Window, now: datetime) -> int:
    """How many starts count in the window that ends now."""
    since = now - duration(window.ms)
    return sum(part["n"] for part in booked if part["at"] > since)


async def bookings(link: Link, keys: Collection[str]) -> dict[str, list[Doc]]:
    """What is booked under each of these keys."""
    rows = await link.collection("rates").find({"_id": {"$in": list(keys)}}, {"booked": 1}).to_list()
    return {row["_id"]: row.get("booked", []) for row in rows}


class Standing(NamedTuple):
    """One rate that jobs are blocked by."""

    by: str
    room: int
    """how many may be called now, besides those already called"""
    again: datetime
    """when the first of what is booked counts no more; where nothing is, a window after those start who were called"""
    known: bool
    """whether it is written down that the line is looked at by then"""


async def standing(link: Link, lines: Collection[str]) -> list[Standing]:
    """Of each of these lines where somebody waits: how many may be called, as the first in line has its rate."""
    first: list[Doc] = [
        {"$match": {"blocked_by": {"$in": list(lines)}}},
        {"$sort": {"blocked_by": 1, "queued_at": 1, "_id": 1}},
        {"$group": {"_id": "$blocked_by", "n": {"$first": "$rate_n"}, "ms": {"$first": "$rate_ms"}}},
    ]
    rows = await (await link.jobs.aggregate(first)).to_list()
    if not rows:
        return []
    windows = {row["_id"]: Window(BlockedBy.of(row["_id"]).key, row["n"], row["ms"]) for row in rows}
    count: list[Doc] = [
        {"$match": {"called": {"$in": list(windows)}}},
        {"$group": {"_id": "$called", "n": {"$sum": 1}}},
    ]
    called = {row["_id"]: row["n"] for row in await (await link.jobs.aggregate(count)).to_list()}
    asked: Doc = {"_id": {"$in": [window.key for window in windows.values()]}}
    kept = {row["_id"]: row async for row in link.collection("rates").find(asked, {"booked": 1, "opens": 1})}
    now = await link.now()
    found: list[Standing] = []
    for by, window in windows.items():
        row = kept.get(window.key, {})
        parts: list[Doc] = row.get("booked", [])
        room = window.n - spent(parts, window, now) - called.get(by, 0)
        again = _first_over(parts, window, now) or now + duration(window.ms)
        found.append(Standing(by, room, again, known="opens" in row and row["opens"] <= again))
    return found
