"""The audit list in MongoDB: a document for everything that somebody did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import UpdateOne

from windlass.stores.contract import AuditEntry, AuditFilter, AuditPage
from windlass.stores.contract.audit import KEPT_FOR, PRUNED_AT_ONCE, place_of, read_place
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.records import whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.mongo.connection import Doc

_FIELDS = ("actor", "action", "object", "origin", "details_json")
INDEXED = ("actor", "action", "object")


class MongoAudit(Room):
    """See `contract.Audit` for what each promises."""

    @guarded
    async def append(self, entries: Sequence[AuditEntry], keep: timedelta = KEPT_FOR) -> None:
        """Add these, and remove what has been kept long enough."""
        if not entries:
            return
        audit = self.link.collection("audit")
        before: Doc = {"at": {"$lte": await self.link.now() - whole(keep)}}
        old = await audit.find(before, {"_id": 1}).sort([("at", 1), ("_id", 1)]).limit(PRUNED_AT_ONCE).to_list()
        if old:
            gone: Doc = {"_id": {"$in": [row["_id"] for row in old]}}
            await self.link.surely(lambda: audit.delete_many(gone))
        writes = [_write(one) for one in entries]
        await self.link.surely(lambda: audit.bulk_write(writes, ordered=False))

    @guarded
    async def list(self, filter_: AuditFilter, limit: int, after: str | None = None) -> AuditPage:
        """Entries that match, the newest first."""
        asked, index = _asked(filter_, after)
        found = self.link.collection("audit").find(asked).sort([("at", -1), ("_id", -1)]).limit(limit + 1).hint(index)
        rows = await found.to_list()
        entries = tuple(map(_entry, rows[:limit]))
        return AuditPage(entries, place_of(entries[-1]) if len(rows) > limit else None)


def _write(one: AuditEntry) -> UpdateOne:
    """All fields at once where it is new; where it is there, as it was."""
    made = {name: {"$ifNull": [f"${name}", {"$literal": getattr(one, name)}]} for name in _FIELDS}
    return UpdateOne({"_id": one.id}, [{"$set": {**made, "at": {"$ifNull": ["$at", "$$NOW"]}}}], upsert=True)


def _asked(filter_: AuditFilter, after: str | None) -> tuple[Doc, str]:
    given = {name: {"$eq": getattr(filter_, name)} for name in INDEXED if getattr(filter_, name) is not None}
    asked: Doc = {**given}
    span = {"$gte": filter_.since, "$lt": filter_.until}
    if limits := {word: at for word, at in span.items() if at is not None}:
        asked["at"] = limits
    if after is not None:
        at, last = read_place(after)
        asked["$and"] = [{"at": {"$lte": at}}, {"$or": [{"at": {"$lt": at}}, {"_id": {"$lt": last}}]}]
    return asked, next(iter(given), "at")


def _entry(row: Doc) -> AuditEntry:
    fields: Doc = {name: row.get(name) for name in _FIELDS}
    return AuditEntry(id=row["_id"], at=row["at"], **fields)
