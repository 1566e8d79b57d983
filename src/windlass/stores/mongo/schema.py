"""The collections and indexes of the MongoDB store, and how they are brought up to date."""

from __future__ import annotations

import asyncio
import json
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo import IndexModel
from pymongo.errors import CollectionInvalid, DuplicateKeyError, OperationFailure

from windlass.core.blocked import Kind
from windlass.core.errors import SchemaMismatch
from windlass.core.status import FINISHED, LIVE, WAITING, Status
from windlass.stores.mongo.connection import Room, guarded

if TYPE_CHECKING:
    from windlass.stores.mongo.connection import Doc

MIGRATIONS = (
    "0001_install",
    "0002_control",
    "0003_scale",
    "0004_indexes",
    "0005_catalogue",
    "0006_steps",
    "0007_requests",
    "0008_figures",
)
VERSION = len(MIGRATIONS)
_DAY = 86_400
_LIVE = sorted(status.value for status in LIVE)
_ENDED = sorted(status.value for status in FINISHED)
LATER = sorted(status.value for status in WAITING - {Status.QUEUED})
SPOILED = [Status.CANCELLED.value, Status.FAILED.value]
WAITS_FOR_SIGNAL: Doc = {"blocked_by": {"$gte": Kind.SIGNAL.prefix, "$lt": Kind.SIGNAL.end}}

# Partial on what is waiting or running, so that their size is that of the work at hand and not of all that ever was.
JOBS: dict[str, tuple[list[str], Doc]] = {
    # What waits: the claim walks it in order, and type rides along so that others are passed over without a look-up.
    # The status is in it so that the server can go from queue to queue without reading what waits in each.
    "ready": (
        ["status", "queue", "priority", "run_at", "_id", "type"],
        {"partialFilterExpression": {"status": "queued"}},
    ),
    # What counts in a queue's depth besides.
    "later": (["queue", "status"], {"partialFilterExpression": {"status": {"$in": LATER}}}),
    # What has ended, in the order in which it is pruned.
    "ended": (["status", "queue", "finished_at"], {"partialFilterExpression": {"status": {"$in": _ENDED}}}),
    "due": (["status", "run_at"], {"partialFilterExpression": {"status": {"$in": ["scheduled", "retrying"]}}}),
    "blocked": (["blocked_by", "queued_at", "_id"], {"partialFilterExpression": {"blocked_by": {"$exists": True}}}),
    # The slot is the running job itself: two jobs cannot run in one slot of a limit, whatever the workers believe.
    "slots": (["limit_key", "slot"], {"unique": True, "partialFilterExpression": {"slot": {"$exists": True}}}),
    "unique": (["unique_key"], {"unique": True, "partialFilterExpression": {"unique_key": {"$exists": True}}}),
    "idempotent": (["idempotent"], {"unique": True, "partialFilterExpression": {"idempotent": {"$exists": True}}}),
    "tick": (["schedule", "tick"], {"unique": True, "partialFilterExpression": {"tick": {"$exists": True}}}),
    # Turns: where a queue's fair jobs stand, and the last of each key; with the status in it, one entry each is read.
    # Jobs that take no part have the empty key, where others do: the last of them is found by the second of these.
    "front": (
        ["status", "queue", "priority", "run_at"],
        {"partialFilterExpression": {"status": "queued", "fair_key": {"$gt": ""}}},
    ),
    "fair": (
        ["status", "queue", "priority", "fair_key", "run_at"],
        {"partialFilterExpression": {"status": "queued", "fair_key": {"$exists": True}}},
    ),
    # Queued jobs that were called from the line of their rate.
    "called": (["called"], {"partialFilterExpression": {"called": {"$exists": True}}}),
    # Flows: what a job still waits for, and what of it ended without success. A live job keeps its place in the first
    # while its status changes, so a look there never misses it.
    # One that has ended, before those that await it were looked at: a process that died in between left it here.
    "frees": (["frees", "next_id"], {"partialFilterExpression": {"frees": {"$exists": True}}}),
    "awaited": (["next_id"], {"partialFilterExpression": {"next_id": {"$exists": True}, "status": {"$in": _LIVE}}}),
    "spoiled": (
        ["next_id", "_id"],
        {"partialFilterExpression": {"next_id": {"$exists": True}, "status": {"$in": SPOILED}}},
    ),
    # Jobs that were asked to stop: their worker looks for its own, however many run.
    "cancels": (["worker_id"], {"partialFilterExpression": {"cancel_requested_at": {"$exists": True}}}),
    # Whose time to wait for a signal is up, and whose time to begin is over.
    "signals": (["run_at"], {"partialFilterExpression": WAITS_FOR_SIGNAL}),
    "expiry": (["begin_by"], {"partialFilterExpression": {"begin_by": {"$exists": True}}}),
    # Views: ids are made in order of time, so each of these lists newest first without sorting.
    # Those that run are few: a look for lost leases walks them all here, and a heartbeat touches no index.
    "status": (["status", "_id", "queue"], {}),
    "queue": (["queue", "_id"], {}),
    "type": (["type", "_id"], {}),
    "user": (["user_id", "_id"], {"partialFilterExpression": {"user_id": {"$exists": True}}}),
    "entity": (["entity_name", "entity_id", "_id"], {"partialFilterExpression": {"entity_name": {"$exists": True}}}),
    "correlation": (["correlation_id", "_id"], {"partialFilterExpression": {"correlation_id": {"$exists": True}}}),
    "parent": (["parent_id", "_id"], {"partialFilterExpression": {"parent_id": {"$exists": True}}}),
    "schedule": (["schedule", "_id"], {"partialFilterExpression": {"schedule": {"$exists": True}}}),
    "next": (["next_id", "_id"], {"partialFilterExpression": {"next_id": {"$exists": True}}}),
}
INDEXES: dict[str, dict[str, tuple[list[str], Doc]]] = {
    "jobs": JOBS,
    "minutes": {"minute": (["minute"], {"expireAfterSeconds": 30 * _DAY})},
    "workers": {"beat": (["beat_at"], {"expireAfterSeconds": _DAY})},
    "locks": {"expiry": (["expires_at"], {"expireAfterSeconds": _DAY})},
    "queues": {"paused": (["paused_at"], {"partialFilterExpression": {"paused_at": {"$exists": True}}})},
    # Nothing that is not paused has the first of these.
    "schedules": {"due": (["paused_at", "next_tick"], {})},
    "types": {"type": (["type"], {}), "seen": (["last_seen"], {})},
    "keys": {
        "hash": (["hash"], {"unique": True}),
        "expiry": (["kind", "expires_at"], {}),
        "revoked": (["kind", "revoked_at"], {"partialFilterExpression": {"revoked_at": {"$type": "date"}}}),
    },
    "audit": {
        "at": (["at", "_id"], {}),
        **{name: ([name, "at", "_id"], {}) for name in ("actor", "action", "object")},
    },
    "requests": {"expiry": (["expires_at"], {"expireAfterSeconds": 0})},
    "series": {"at": (["at"], {"expireAfterSeconds": 30 * _DAY}), "name": (["name", "at"], {"unique": True})},
    "rates": {
        "expiry": (["until"], {"expireAfterSeconds": 0}),
        "opens": (["opens"], {"partialFilterExpression": {"opens": {"$exists": True}}}),
    },
}
PLAIN = ("meta",)
"""collections that need no index but that of their ids"""
REPLACED = {"jobs": ("claim", "turn")}
"""Indexes of the version before, which this one does not read by.

Its workers go on beside this one's while a new version is rolled out, and some of their reads name an index: so those
that are there stay until somebody drops them. Where this version was the first, they never were.
"""
_EXISTS = 48
_LONGEST_BUILD = 3600.0
_TOLD = ("unique", "partialFilterExpression", "expireAfterSeconds")


class MongoSchema(Room):
    """Indexes by name; making one that is there already does nothing, so any number may migrate at once."""

    @guarded
    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        return await self._version()

    @guarded
    async def pending(self) -> list[str]:
        """What migrate would do."""
        return list(MIGRATIONS[self._check(await self._version()) :])

    @guarded
    async def migrate(self) -> list[str]:
        """Make what is missing; a newer schema than this windlass knows is refused."""
        found = self._check(await self._version())
        if found == VERSION:
            return []
        deadline = time.monotonic() + self.link.place.timeout
        while not await self._begins() and time.monotonic() < deadline:
            await asyncio.sleep(random.uniform(0.02, 0.1))
            if self._check(await self._version()) == VERSION:
                return []
        # An index of many jobs takes as long as it takes; windlass goes on meanwhile, on other connections.
        with pymongo.timeout(_LONGEST_BUILD):
            # All of them now: a transaction could not read a collection that is made after its own beginning.
            await asyncio.gather(*[self._create(of) for of in PLAIN], *[self._make(of) for of in INDEXES])
        done = {"$max": {"version": VERSION}, "$unset": {"begun_at": ""}}
        await self.link.collection("meta").update_one({"_id": "schema"}, done, upsert=True)
        return list(MIGRATIONS[found:])

    @guarded
    async def verify(self) -> list[str]:
        """Name every index that is missing or was changed."""
        found = await asyncio.gather(*[self._differences(of) for of in INDEXES])
        return [difference for some in found for difference in some]

    def statements(self, installed: int = 0) -> str:  # what is there already is left as it is
        """The migrations as commands for mongosh."""
        lines = [f"// {', '.join(MIGRATIONS)}", *[f'db.createCollection("{self.link.name(of)}")' for of in PLAIN]]
        for of, indexes in INDEXES.items():
            for name, (keys, options) in indexes.items():
                asked = json.dumps({"name": name, **options})
                lines.append(f"db.{self.link.name(of)}.createIndex({json.dumps(dict.fromkeys(keys, 1))}, {asked})")
        for of, names in REPLACED.items():
            drops = [f'db.{self.link.name(of)}.dropIndex("{name}")' for name in names]
            lines += [
                f"// when no worker of an earlier version runs any more, if it is there: {drop}" for drop in drops
            ]
        meta = self.link.name("meta")
        lines.append(
            f'db.{meta}.updateOne({{"_id": "schema"}}, {{"$max": {{"version": {VERSION}}}}}, {{"upsert": true}})'
        )
        return "\n".join(lines)

    async def _begins(self) -> bool:
        """Whether nobody else makes them now: several at once do no harm, but keep each other from getting on."""
        now = await self.link.now()
        over = now - timedelta(seconds=self.link.place.timeout)
        free: Doc = {"_id": "schema", "$or": [{"begun_at": {"$exists": False}}, {"begun_at": {"$lte": over}}]}
        try:
            await self.link.collection("meta").update_one(free, {"$set": {"begun_at": now}}, upsert=True)
        except DuplicateKeyError:
            return False  # its document is there and does not match
        return True

    @guarded
    async def remove(self) -> None:
        """Drop every collection; the version last, so that a removal cut short can be done again."""
        for of in (*INDEXES, *PLAIN):
            await self.link.collection(of).drop()

    async def _version(self) -> int:
        row = await self.link.collection("meta").find_one({"_id": "schema"})
        return int(row.get("version", 0)) if row else 0

    def _check(self, found: int) -> int:
        if found > VERSION:
            raise SchemaMismatch(
                f"the schema of {self.link.place.address} is at {found}, this windlass knows {VERSION}: upgrade it"
            )
        return found

    async def _create(self, of: str) -> None:
        try:
            await self.link.client[self.link.place.database].create_collection(self.link.name(of))
        except CollectionInvalid:
            return  # it is there
        except OperationFailure as error:
            if error.code != _EXISTS:  # another made it at the same moment
                raise

    async def _make(self, of: str) -> None:
        models = [
            IndexModel([(key, 1) for key in keys], name=name, **options)
            for name, (keys, options) in INDEXES[of].items()
        ]
        await self.link.collection(of).create_indexes(models)

    async def _differences(self, of: str) -> list[str]:
        made = await self.link.collection(of).index_information()
        where = self.link.name(of)
        missing = [f"index {name} of {where} is missing" for name in INDEXES[of] if name not in made]
        changed = [
            f"index {name} of {where} differs from what windlass made"
            for name, (keys, options) in INDEXES[of].items()
            if name in made and not _alike(made[name], keys, options)
        ]
        return missing + changed


def _alike(made: Any, keys: list[str], options: Doc) -> bool:
    asked: Doc = {"key": [(key, 1) for key in keys], **options}
    found: Doc = {"key": list(made["key"]), **{name: made[name] for name in _TOLD if name in made}}
    return {**found, "partialFilterExpression": _plain(found)} == {**asked, "partialFilterExpression": _plain(asked)}


def _plain(index: Doc) -> str:
    return json.dumps(index.get("partialFilterExpression"), sort_keys=True)
