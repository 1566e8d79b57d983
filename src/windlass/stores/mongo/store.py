"""The MongoDB store as a whole, with the same rooms as every other store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Capabilities
from windlass.stores.mongo.audit import MongoAudit
from windlass.stores.mongo.connection import Link, Place, Room, guarded
from windlass.stores.mongo.jobs import MongoJobs
from windlass.stores.mongo.keys import MongoKeys
from windlass.stores.mongo.locks import MongoLocks
from windlass.stores.mongo.notices import MongoNotices
from windlass.stores.mongo.queues import MongoQueues
from windlass.stores.mongo.requests import MongoRequests
from windlass.stores.mongo.schedules import MongoSchedules
from windlass.stores.mongo.schema import MongoSchema
from windlass.stores.mongo.series import MongoSeries
from windlass.stores.mongo.types import MongoTypes
from windlass.stores.mongo.views import MongoViews
from windlass.stores.mongo.workers import MongoWorkers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_REPLICATED = "majority and journal: an acknowledged write survives a crash of the process and the loss of the primary"
_ALONE = "journal on one server: an acknowledged write survives a crash of the process, but not the loss of the server"
_WARNING = (
    "standalone server: no transactions, no change streams (workers poll), no retried writes; start mongod with"
    " --replSet, even with one member"
)


_ROUTED = (
    "behind mongos: leave windlass's collections unsharded, since their unique keys and limits cannot be kept across"
    " shards, and keep the clocks of all routers and shards together, since each judges time by its own"
)


class MongoStore(Room):
    """Jobs in collections of one MongoDB database. Open and use it in one event loop; `sibling` is for others."""

    def __init__(self, place: Place) -> None:
        super().__init__(Link(place))
        link = self.link
        self.jobs = MongoJobs(link)
        self.views = MongoViews(link)
        self.queues = MongoQueues(link)
        self.schedules = MongoSchedules(link)
        self.workers = MongoWorkers(link)
        self.locks = MongoLocks(link)
        self.notices = MongoNotices(link)
        self.types = MongoTypes(link)
        self.keys = MongoKeys(link)
        self.audit = MongoAudit(link)
        self.requests = MongoRequests(link)
        self.series = MongoSeries(link)
        self.schema = MongoSchema(link)

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self.link.place.address

    @property
    def capabilities(self) -> Capabilities:
        """What it can do and what it risks."""
        alone = self.link.standalone
        return Capabilities(
            store="mongo",
            transactions=not alone,
            push=not alone,
            durability=_ALONE if alone else _REPLICATED,
            warnings=(_WARNING,) if alone else (_ROUTED,) if self.link.routed else (),
            claims_at_once=2,
        )

    @guarded
    async def open(self, *, migrate: bool = True) -> None:
        """Connect, and make the indexes unless told not to."""
        await self.link.start()
        self.link.on_change = self.notices.tell
        try:
            if migrate:
                await self.schema.migrate()
        except BaseException:
            await self.link.stop()
            raise

    @guarded
    async def close(self) -> None:
        """Close the stream and the client."""
        await self.notices.close()
        await self.link.stop()

    def sibling(self) -> MongoStore:
        """Another store on the same database, with a client of its own."""
        return MongoStore(self.link.place)

    @guarded
    async def now(self) -> datetime:
        """The server's clock, as far as its last answers tell."""
        return await self.link.now()

    def _topology(self) -> str:
        if self.link.standalone:
            return "standalone"
        return "sharded cluster" if self.link.routed else "replica set"

    @guarded
    async def health(self, *, thorough: bool = True) -> Mapping[str, Any]:
        """Figures for `doctor`."""
        database = self.link.client[self.link.place.database]
        built = await database.command("buildInfo")
        sizes = await database.command("dbStats")
        return {
            "version": built["version"],
            "topology": self._topology(),
            "bytes": sizes.get("storageSize", 0),
            "jobs": await self.link.jobs.estimated_document_count(),
        }
