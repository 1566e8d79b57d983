"""Named locks in MongoDB, each one document; whether it is free is judged by the server in the write that takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from windlass.core.keys import check_key
from windlass.stores.contract import Granted, Held
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.notices import CHANGED
from windlass.stores.mongo.records import as_ms

if TYPE_CHECKING:
    from datetime import timedelta

    from windlass.stores.mongo.connection import Doc


class MongoLocks(Room):
    """See `contract.Locks` for what each promises."""

    @guarded
    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired, or was taken by a call of this owner whose answer was lost."""
        check_key(name, "the lock's name")
        mine = ObjectId()
        update = _taking(mine, owner, as_ms(ttl))
        while True:
            try:
                row = await self.link.collection("locks").find_one_and_update(
                    {"_id": name}, update, upsert=True, return_document=ReturnDocument.AFTER
                )
            except DuplicateKeyError:
                continue  # two made its document at once; it is there now
            assert row is not None  # noqa: S101  # an upsert leaves a document
            return Granted(row["token"], row["expires_at"]) if row["mark"] == mine else Held(row["expires_at"])

    @guarded
    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer."""
        held: Doc = {"_id": name, "token": token, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        update = [{"$set": {"expires_at": {"$add": ["$$NOW", as_ms(ttl)]}}}]
        return bool((await self.link.collection("locks").update_one(held, update)).matched_count)

    @guarded
    async def release(self, name: str, token: int) -> bool:
        """Give it back. Its document stays for a day, so that a slow rival cannot bring an older token back."""
        held: Doc = {"_id": name, "token": token}
        update = [{"$set": {"expires_at": {"$min": ["$expires_at", "$$NOW"]}, "released": True}}]
        done = await self.link.collection("locks").update_one(held, update)
        self.link.tell([CHANGED])
        return bool(done.matched_count)


def _taking(mine: ObjectId, owner: str, ttl: int) -> list[Doc]:
    held = {"$gt": ["$expires_at", "$$NOW"]}
    by_another = {"$and": ["$held", {"$ne": ["$owner", {"$literal": owner}]}]}

    def unless_held(field: str, value: object, by: object = by_another) -> Doc:
        return {"$cond": [by, f"${field}", value]}

    # At least the server's time in milliseconds: after a lock's document has expired, its tokens still never fall.
    token = {"$max": [{"$add": [{"$ifNull": ["$token", 0]}, 1]}, {"$toLong": "$$NOW"}]}
    return [
        {"$set": {"held": {"$and": [{"$ne": [{"$type": "$expires_at"}, "missing"]}, held]}}},
        {
            "$set": {
                "owner": unless_held("owner", {"$literal": owner}),
                "token": unless_held("token", token, by="$held"),
                "mark": unless_held("mark", mine),
                "released": unless_held("released", "$$REMOVE"),
                "expires_at": unless_held("expires_at", {"$add": ["$$NOW", ttl]}),
            }
        },
        {"$unset": "held"},
    ]
