"""Schedules in MongoDB: the tick's job is inserted under a unique index, then the schedule moves on.

A process that dies in between leaves the schedule where it stood; the next to fire the tick finds its job already
made, and moves on. So no tick is lost and none makes two jobs, without a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bson import ObjectId

from windlass.core.every import when
from windlass.core.status import LIVE
from windlass.stores.contract import Created, Due, Duplicate, Fired, Firing, Schedule, Tick
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.inserting import insert
from windlass.stores.mongo.notices import DUE
from windlass.stores.mongo.records import present

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.mongo.connection import Doc

TICKS_KEPT = 50
_LIVE = sorted(status.value for status in LIVE)


class MongoSchedules(Room):
    """See `contract.Schedules` for what each promises."""

    @guarded
    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name."""
        for one in schedules:
            await self.link.collection("schedules").update_one(
                {"_id": one.name}, _putting(one, self.link.news([DUE])), upsert=True
            )
        self.link.tell([DUE])

    @guarded
    async def remove(self, names: Sequence[str]) -> int:
        """Forget these."""
        gone: Doc = {"_id": {"$in": list(names)}}
        done = await self.link.surely(lambda: self.link.collection("schedules").delete_many(gone))
        self.link.tell([DUE])
        return done.deleted_count

    @guarded
    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        rows = self.link.collection("schedules").find({}, {"ticks": 0}).sort("_id", 1)
        return [_schedule(row) for row in await rows.to_list()]

    @guarded
    async def due(self, n: int) -> Due:
        """What is to be fired now."""
        now = await self.link.now()
        later: list[Doc] = [
            {"$match": {"paused_at": None, "next_tick": {"$gt": now}}},
            {"$sort": {"next_tick": 1}},
            {"$limit": 1},
            {"$project": {"_id": 0, "next_tick": 1}},
        ]
        stages: list[Doc] = [
            {"$match": {"paused_at": None, "next_tick": {"$lte": now}}},
            {"$sort": {"next_tick": 1}},
            {"$limit": n},
            {"$project": {"ticks": 0}},
            {"$unionWith": {"coll": self.link.name("schedules"), "pipeline": later}},
        ]
        rows = await (await self.link.collection("schedules").aggregate(stages)).to_list()
        next_in = next((row["next_tick"] - now for row in rows if "_id" not in row), None)
        return Due(tuple(_schedule(row) for row in rows if "_id" in row), now, next_in)

    @guarded
    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        at = {"$ifNull": ["$paused_at", "$$NOW"]} if paused else "$$REMOVE"
        update = [{"$set": {"paused_at": at, "wake": self.link.news([DUE])}}]
        found: Doc = {"_id": {"$in": [str(name) for name in names]}}
        await self.link.surely(lambda: self.link.collection("schedules").update_many(found, update))
        self.link.tell([DUE])

    @guarded
    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Account for ticks, one answer each."""
        return [await self._fire(one) for one in firings]

    @guarded
    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks."""
        row = await self.link.collection("schedules").find_one({"_id": name}, {"ticks": 1})
        kept: Sequence[Doc] = row.get("ticks", []) if row else []
        newest = sorted(kept, key=lambda tick: tick["tick"], reverse=True)
        return [Tick(tick["tick"], Fired(tick["fired"]), tick.get("job_id"), tick.get("ticks", 1)) for tick in newest]

    async def _fire(self, one: Firing) -> Fired:
        now = await self.link.now()
        if one.expected > now:
            return Fired.EARLY
        stands: Doc = {"_id": one.name, "next_tick": one.expected, "paused_at": {"$exists": False}}
        row = await self.link.collection("schedules").find_one(stands, {"era": 1})
        if row is None:
            return Fired.STALE
        fired, job_id = await self._make(one, row["era"], now)
        counted = one.ticks if one.ticks != 1 else None
        record = present({"tick": one.expected, "fired": fired.value, "job_id": job_id, "ticks": counted})
        moved = await self.link.collection("schedules").update_one(
            {**stands, "era": row["era"]},
            {
                "$set": {"next_tick": one.next_tick, "last_tick": one.expected, "updated_at": now},
                "$push": {"ticks": {"$each": [record], "$slice": -TICKS_KEPT}},
            },
        )
        return fired if moved.modified_count else Fired.STALE

    async def _make(self, one: Firing, era: ObjectId, now: datetime) -> tuple[Fired, str | None]:
        if one.draft is None:
            return Fired.MISSED, None
        found: Doc = {"schedule": one.name, "$or": [{"tick": one.expected}, {"status": {"$in": _LIVE}}]}
        made = await self.link.jobs.find(found if one.unless_live else {**found, "$or": found["$or"][:1]}).to_list()
        known = next((doc for doc in made if doc.get("tick") == one.expected), None)
        if known is None and made:
            return Fired.SKIPPED, None
        if known is None:
            # The era tells a job of this schedule from one made before the schedule was removed and put again.
            [verdict] = await insert(self.link, [one.draft], now, {"era": era})
            if isinstance(verdict, Created):
                return Fired.FIRED, verdict.id
            known = await self._tick_job(one) if isinstance(verdict, Duplicate) else None
        if known is None:
            return Fired.SKIPPED, None
        return (Fired.FIRED if known.get("era") == era else Fired.SKIPPED), known["_id"]

    async def _tick_job(self, one: Firing) -> Doc | None:
        return await self.link.jobs.find_one({"schedule": one.name, "tick": one.expected}, {"era": 1})


def _putting(one: Schedule, wake: str) -> list[Doc]:
    cron = one.cron
    values: Doc = {
        "expression": cron.expression,
        "zone": cron.tz,
        "overlap": cron.overlap,
        "missed": cron.missed,
        "missed_limit": cron.missed_limit,
        "type": one.type,
        "payload": one.payload_json,
        "queue": one.queue,
        "options": one.options_json,
        "declared": one.declared,
    }
    same = {
        "$and": [{"$eq": ["$expression", {"$literal": cron.expression}]}, {"$eq": ["$zone", {"$literal": cron.tz}]}]
    }
    # A changed rule starts from its own next tick; an unchanged one must not skip or repeat the tick it stands at.
    return [
        {"$set": {"next_tick": {"$cond": [same, "$next_tick", one.next_tick]}}},
        {
            "$set": {
                **{name: {"$literal": value} for name, value in values.items()},
                "era": {"$ifNull": ["$era", ObjectId()]},
                "updated_at": "$$NOW",
                "wake": wake,
            }
        },
    ]


def _schedule(row: Doc) -> Schedule:
    return Schedule(
        name=row["_id"],
        cron=when(
            expression=row["expression"],
            tz=row["zone"],
            overlap=row["overlap"],
            missed=row["missed"],
            missed_limit=row["missed_limit"],
        ),
        type=row["type"],
        payload_json=row["payload"],
        queue=row["queue"],
        options_json=row["options"],
        next_tick=row["next_tick"],
        last_tick=row.get("last_tick"),
        paused_at=row.get("paused_at"),
        declared=row["declared"],
        updated_at=row["updated_at"],
    )
