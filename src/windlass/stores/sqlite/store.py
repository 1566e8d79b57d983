"""The SQLite store as a whole: one file, opened once per process, with the same rooms as every other store."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Capabilities
from windlass.stores.sqlite.audit import SqliteAudit
from windlass.stores.sqlite.engine import GRACE, Engine, Place, Synchronous
from windlass.stores.sqlite.jobs import SqliteJobs
from windlass.stores.sqlite.keys import SqliteKeys
from windlass.stores.sqlite.locks import SqliteLocks
from windlass.stores.sqlite.notices import SqliteNotices
from windlass.stores.sqlite.queues import SqliteQueues
from windlass.stores.sqlite.records import instant
from windlass.stores.sqlite.requests import SqliteRequests
from windlass.stores.sqlite.schedules import SqliteSchedules
from windlass.stores.sqlite.schema import SqliteSchema, check_sqlite
from windlass.stores.sqlite.series import SqliteSeries
from windlass.stores.sqlite.types import SqliteTypes
from windlass.stores.sqlite.views import SqliteViews
from windlass.stores.sqlite.workers import SqliteWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from os import PathLike

_DURABILITY = {
    "FULL": "WAL, synchronous=FULL: an acknowledged write survives a crash of the process and a power cut",
    "NORMAL": "WAL, synchronous=NORMAL: survives a crash of the process; a power cut may lose the last commits",
    "OFF": "synchronous=OFF: for tests only, a power cut may damage the file",
}


class SqliteStore:
    """Jobs in one SQLite file on one host. `:memory:` lives and dies with the process."""

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        namespace: str = "windlass",
        synchronous: Synchronous = "FULL",
        timeout: float = 10.0,
        clock: Callable[[], int] | None = None,
    ) -> None:
        place = Place(path=str(path), namespace=namespace, synchronous=synchronous, timeout=timeout)
        self._clock = clock
        self._assemble(Engine(place, clock))

    def _assemble(self, engine: Engine) -> None:
        self._engine = engine
        self._warnings: tuple[str, ...] = ()
        self.jobs = SqliteJobs(engine)
        self.views = SqliteViews(engine)
        self.queues = SqliteQueues(engine)
        self.schedules = SqliteSchedules(engine)
        self.workers = SqliteWorkers(engine)
        self.locks = SqliteLocks(engine)
        self.notices = SqliteNotices(engine)
        self.types = SqliteTypes(engine)
        self.keys = SqliteKeys(engine)
        self.audit = SqliteAudit(engine)
        self.requests = SqliteRequests(engine)
        self.series = SqliteSeries(engine)
        self.schema = SqliteSchema(engine)

    @property
    def address(self) -> str:
        """Where it is."""
        return f"sqlite:///{self._engine.place.path}"

    @property
    def capabilities(self) -> Capabilities:
        """What it can do and what it risks."""
        place = self._engine.place
        return Capabilities(
            store="sqlite",
            transactions=not place.in_memory,
            push=True,
            durability="in memory: gone with the process" if place.in_memory else _DURABILITY[place.synchronous],
            warnings=self._warnings,
            rescue_waits=timedelta(seconds=4 * GRACE),
        )

    async def open(self, *, migrate: bool = True) -> None:
        """Open the file and bring its schema up to date, unless told not to."""
        self._warnings = check_sqlite()
        self._engine.start()
        self._engine.on_news = self.notices.learn
        try:
            if migrate:
                await self.schema.migrate()
        except BaseException:
            await self._engine.stop()
            raise

    async def close(self) -> None:
        """Close connections and threads."""
        await self.notices.close()
        await self._engine.stop()

    def sibling(self) -> SqliteStore:
        """Another store on the same file; in memory, the same store for another user."""
        place = self._engine.place
        twin = SqliteStore(
            place.path,
            namespace=place.namespace,
            synchronous=place.synchronous,
            timeout=place.timeout,
            clock=self._clock,
        )
        if place.in_memory:
            twin._share(self)
        return twin

    def _share(self, other: SqliteStore) -> None:
        self._assemble(other._engine)
        self.notices = other.notices

    async def now(self) -> datetime:
        """The host's clock, which never goes back while this process lives."""
        return instant(self._engine.clock())

    async def health(self, *, thorough: bool = True) -> Mapping[str, Any]:
        """Figures for `doctor`; the check of the file's integrity reads all of it."""
        return await self._engine.read(lambda db, _: self._health(db, thorough=thorough))

    def _health(self, db: sqlite3.Connection, *, thorough: bool) -> Mapping[str, Any]:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (journal,) = db.execute("PRAGMA journal_mode").fetchone()
        integrity = db.execute("PRAGMA quick_check(1)").fetchone()[0] if thorough else None
        return {
            "version": sqlite3.sqlite_version,
            "bytes": pages * size,
            "journal": journal,
            "integrity": integrity,
        }
