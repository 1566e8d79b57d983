"""The PostgreSQL store as a whole, with the same rooms as every other store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Capabilities
from windlass.stores.postgres.audit import PostgresAudit
from windlass.stores.postgres.connection import OF_A_WORKER, Link, Place, Room, guarded
from windlass.stores.postgres.jobs import PostgresJobs
from windlass.stores.postgres.keys import PostgresKeys
from windlass.stores.postgres.locks import PostgresLocks
from windlass.stores.postgres.notices import PostgresNotices
from windlass.stores.postgres.queues import PostgresQueues
from windlass.stores.postgres.requests import PostgresRequests
from windlass.stores.postgres.schedules import PostgresSchedules
from windlass.stores.postgres.schema import PostgresSchema
from windlass.stores.postgres.series import PostgresSeries
from windlass.stores.postgres.types import PostgresTypes
from windlass.stores.postgres.views import PostgresViews
from windlass.stores.postgres.workers import PostgresWorkers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_DURABILITY = {
    True: "synchronous_commit: an acknowledged write survives a crash of the process and of the server",
    False: "synchronous_commit is off: the last acknowledged writes may be lost when the server crashes",
}
_POOLED = (
    "a connection pooler stands between: notices do not pass it, so workers poll, and every statement takes more round"
    " trips: give windlass a URL of the server itself"
)
_READ_ONLY = "the server is read-only: give the URL of the primary"
_UNSAFE = "synchronous_commit is off, or fsync is: switch both on for the database that holds the jobs"

NOW = "SELECT date_trunc('milliseconds', statement_timestamp())"
DURABLE = "SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') <> 'off'"
HEALTH = """
SELECT current_setting('server_version'), pg_total_relation_size(to_regclass($1::text)),
    current_setting('synchronous_commit'), current_setting('max_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'windlass' AND datname = current_database()),
    (SELECT n_live_tup FROM pg_stat_all_tables WHERE relid = to_regclass($1::text)),
    (SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = to_regclass($1::text)),
    (SELECT extract(epoch FROM max(statement_timestamp() - xact_start))::bigint FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)),
    (SELECT string_agg(format('%s: %s, %s of %s blocks', index_relid::regclass, phase, blocks_done, blocks_total), '; ')
        FROM pg_stat_progress_create_index WHERE relid = to_regclass($1::text))
"""


class PostgresStore(Room):
    """Jobs in tables of one PostgreSQL schema. Open and use it in one event loop; `sibling` is for others."""

    def __init__(self, place: Place) -> None:
        super().__init__(Link(place))
        link = self.link
        self._durable = True
        self.jobs = PostgresJobs(link)
        self.views = PostgresViews(link)
        self.queues = PostgresQueues(link)
        self.schedules = PostgresSchedules(link)
        self.workers = PostgresWorkers(link)
        self.locks = PostgresLocks(link)
        self.notices = PostgresNotices(link)
        self.types = PostgresTypes(link)
        self.keys = PostgresKeys(link)
        self.audit = PostgresAudit(link)
        self.requests = PostgresRequests(link)
        self.series = PostgresSeries(link)
        self.schema = PostgresSchema(link)

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self.link.place.address

    @property
    def capabilities(self) -> Capabilities:
        """What it can do and what it risks."""
        warnings = (
            (_POOLED, self.link.pooled),
            (_READ_ONLY, self.link.read_only),
            (_UNSAFE, not self._durable),
        )
        return Capabilities(
            store="postgres",
            transactions=True,
            push=not self.link.pooled,
            durability=_DURABILITY[self._durable],
            warnings=tuple(warning for warning, applies in warnings if applies),
        )

    @guarded
    async def open(self, *, migrate: bool = True) -> None:
        """Connect, and make the tables unless told not to."""
        await self.link.start()
        self.link.changed, self.link.look_again = self.notices.tell, self.notices.ring
        try:
            [(self._durable,)] = await self.link.fetch(DURABLE)
            await (self.schema.migrate() if migrate else self.schema.learn())
        except BaseException:
            await self.link.stop()
            raise

    @guarded
    async def close(self) -> None:
        """Stop listening and close the connections."""
        await self.notices.close()
        await self.link.stop()

    def sibling(self) -> PostgresStore:
        """Another store on the same tables, with connections of its own."""
        return PostgresStore(self.link.place)

    @guarded
    async def now(self) -> datetime:
        """The server's clock."""
        [(now,)] = await self.link.fetch(NOW)
        found: datetime = now
        return found

    @guarded
    async def health(self, *, thorough: bool = True) -> Mapping[str, Any]:
        """Figures for `doctor`."""
        [row] = await self.link.fetch(HEALTH, self.link.sql("windlass_jobs"))
        names = (
            *("version", "bytes", "synchronous_commit", "max_connections", "connections", "rows", "dead_rows"),
            *("oldest_snapshot_seconds", "index_builds"),
        )
        told = dict(zip(names, row, strict=True))
        return {**told, "worker_connections": OF_A_WORKER, "pooler": self.link.pooled}
