"""Series in MongoDB: a document for each text; the server removes old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.mongo.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class MongoSeries(Room):
    """See `contract.Series` for what each promises."""

    @guarded
    async def put(self, name: str, at: datetime, text: str) -> None:
        """Keep this text."""
        series, of = self.link.collection("series"), {"name": name, "at": at}
        await self.link.surely(lambda: series.update_one(of, {"$set": {"text": text}}, upsert=True))

    @guarded
    async def read(self, name: str, first: datetime, until: datetime | None = None) -> Sequence[tuple[datetime, str]]:
        """From this instant on, oldest first."""
        at = {"$gte": first} if until is None else {"$gte": first, "$lt": until}
        series = self.link.collection("series").find({"name": name, "at": at}).sort("at", 1)
        return [(row["at"], row["text"]) for row in await series.to_list()]

    @guarded
    async def last(self, name: str) -> datetime | None:
        """The last instant."""
        row = await self.link.collection("series").find_one({"name": name}, {"at": 1}, sort=[("at", -1)])
        return row["at"] if row else None
