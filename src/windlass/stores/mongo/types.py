"""Types in MongoDB: a document for every version of a type that workers have told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import UpdateOne

from windlass.core.declared import Declared
from windlass.stores.contract import About, Notice, TypeInfo
from windlass.stores.contract.types import FORGOTTEN_AT_ONCE, UNSEEN
from windlass.stores.mongo.connection import AT_ONCE, Room, guarded
from windlass.stores.mongo.records import whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.mongo.connection import Doc

NEWEST_FIRST = [("type", 1), ("announced_at", -1), ("_id", 1)]
CHANGED = Notice(About.TYPES)


class MongoTypes(Room):
    """See `contract.Types` for what each promises."""

    @guarded
    async def put(self, declared: Sequence[Declared], *, announce: bool = True, unseen: timedelta = UNSEEN) -> None:
        """Write what a worker handles, and forget what none has told of for long."""
        if not declared:
            return
        types = sorted({one.type for one in declared})
        before = await self._newest(types)
        writes = [_write(one, announce=announce) for one in declared]
        await self.link.surely(lambda: self.link.collection("types").bulk_write(writes, ordered=False))
        await self._forget([f"{one.type} {one.fingerprint}" for one in declared], whole(unseen))
        if await self._newest(types) != before:
            await self._tell()

    @guarded
    async def list(self) -> Sequence[TypeInfo]:
        """Everything, by type, the newest version first."""
        return [_info(row) for row in await self.link.collection("types").find().sort(NEWEST_FIRST).to_list()]

    @guarded
    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first."""
        found = self.link.collection("types").find({"type": {"$eq": type_}}).sort(NEWEST_FIRST)
        return [_info(row) for row in await found.to_list()]

    async def _newest(self, types: Sequence[str]) -> dict[str, str]:
        of: Doc = {"type": {"$in": list(types)}}
        rows = await self.link.collection("types").find(of, {"type": 1}).sort(NEWEST_FIRST).to_list()
        return {row["type"]: row["_id"] for row in reversed(rows)}

    async def _forget(self, put: Sequence[str], unseen: timedelta) -> None:
        types = self.link.collection("types")
        before: Doc = {"last_seen": {"$lte": await self.link.now() - unseen}, "_id": {"$nin": list(put)}}
        rows = await types.find(before, {"_id": 1}).sort("last_seen", 1).limit(FORGOTTEN_AT_ONCE).to_list()
        if rows:
            # The condition again: somebody may have told of one since.
            gone = {**before, "_id": {"$in": [row["_id"] for row in rows]}}
            await self.link.surely(lambda: types.delete_many(gone))

    async def _tell(self) -> None:
        self.link.tell([CHANGED])
        if not self.link.standalone:
            meta = self.link.collection("meta").with_options(write_concern=AT_ONCE)
            await meta.update_one({"_id": "notice"}, {"$set": {"wake": self.link.news([CHANGED])}}, upsert=True)


def _write(one: Declared, *, announce: bool) -> UpdateOne:
    stamped: Doc = {
        "type": {"$literal": one.type},
        "declared": {"$literal": one.text},
        "version": {"$literal": one.version},
        "first_seen": {"$ifNull": ["$first_seen", "$$NOW"]},
        "last_seen": "$$NOW",
        "announced_at": "$$NOW" if announce else {"$ifNull": ["$announced_at", "$$NOW"]},
    }
    return UpdateOne({"_id": f"{one.type} {one.fingerprint}"}, [{"$set": stamped}], upsert=True)


def _info(row: Doc) -> TypeInfo:
    return TypeInfo(
        declared=Declared(row["type"], row["declared"], row["version"]),
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        announced_at=row["announced_at"],
    )
