"""Requests under an idempotency key in MongoDB: a document each, taken by one update; the server removes old ones."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from windlass.stores.contract import Answered, Begun, NewRequest, OtherRequest, Standing, UnderWay
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.records import as_ms

if TYPE_CHECKING:
    from windlass.stores.mongo.connection import Doc

_UNANSWERED: Doc = {"answer": {"$exists": False}}
_SOON = timedelta(0)


class MongoRequests(Room):
    """See `contract.Requests` for what each promises."""

    @guarded
    async def begin(self, new: NewRequest) -> Standing:
        """Note that this is carried out now, unless it was or is."""
        row = await self._taken(new)
        answer = row.get("answer")
        if row["fingerprint"] != new.fingerprint:
            return OtherRequest()
        if answer is not None:
            return Answered(answer)
        if row["mark"] == new.mark:
            return Begun(row["first_id"])
        return UnderWay(max(row["held_until"] - await self.link.now(), _SOON))

    @guarded
    async def finish(self, id_: str, mark: str, answer: str) -> bool:
        """Keep the answer."""
        mine: Doc = {"_id": id_, "mark": mark, "$or": [_UNANSWERED, {"answer": answer}]}
        return await self._changed(mine, {"$set": {"answer": answer}})

    @guarded
    async def release(self, id_: str, mark: str) -> bool:
        """Hold it no more."""
        return await self._changed({"_id": id_, "mark": mark, **_UNANSWERED}, [{"$set": {"held_until": "$$NOW"}}])

    @guarded
    async def forget(self, id_: str, mark: str) -> bool:
        """Remove it."""
        requests, mine = self.link.collection("requests"), {"_id": id_, "mark": mark, **_UNANSWERED}
        return bool((await self.link.surely(lambda: requests.delete_one(mine))).deleted_count)

    async def _changed(self, mine: Doc, update: Doc | list[Doc]) -> bool:
        requests = self.link.collection("requests")
        return bool((await self.link.surely(lambda: requests.update_one(mine, update))).matched_count)

    async def _taken(self, new: NewRequest) -> Doc:
        """The document after an update that took it, if it was free."""
        requests, update = self.link.collection("requests"), _taking(new)
        while True:
            try:
                row = await self.link.surely(
                    lambda: requests.find_one_and_update(
                        {"_id": new.id}, update, upsert=True, return_document=ReturnDocument.AFTER
                    )
                )
            except DuplicateKeyError:
                continue  # two made its document at once; it is there now
            assert row is not None  # noqa: S101  # an upsert leaves a document
            return row


def _taking(new: NewRequest) -> list[Doc]:
    """Mirrors `contract.requests.judge`."""
    fresh: Doc = {"$or": [{"$eq": [{"$type": "$expires_at"}, "missing"]}, {"$lte": ["$expires_at", "$$NOW"]}]}
    unanswered: Doc = {"$eq": [{"$type": "$answer"}, "missing"]}
    given: Doc = {name: {"$literal": getattr(new, name)} for name in ("fingerprint", "first_id", "mark")}
    unheld: Doc = {"$or": [{"$lte": ["$held_until", "$$NOW"]}, {"$eq": ["$mark", given["mark"]]}]}
    left: Doc = {"$and": [unanswered, {"$eq": ["$fingerprint", given["fingerprint"]]}, unheld]}

    def when(by: str, field: str, value: object) -> Doc:
        return {"$cond": [by, value, f"${field}"]}

    return [
        {"$set": {"fresh": fresh, "free": {"$or": [fresh, left]}}},
        {
            "$set": {
                "fingerprint": when("$free", "fingerprint", given["fingerprint"]),
                "mark": when("$free", "mark", given["mark"]),
                "held_until": when("$free", "held_until", {"$add": ["$$NOW", as_ms(new.hold)]}),
                "first_id": when("$fresh", "first_id", given["first_id"]),
                "expires_at": when("$fresh", "expires_at", {"$add": ["$$NOW", as_ms(new.keep)]}),
                "answer": when("$fresh", "answer", "$$REMOVE"),
            }
        },
        {"$unset": ["fresh", "free"]},
    ]
