"""The Redis store as a whole, with the same rooms as every other store."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from windlass.core.errors import SettingsError, StoreError
from windlass.stores.contract import Capabilities
from windlass.stores.redis.audit import RedisAudit
from windlass.stores.redis.connection import OLDEST, Link, Place, Room, guarded
from windlass.stores.redis.jobs import RedisJobs
from windlass.stores.redis.keys import RedisKeys
from windlass.stores.redis.locks import RedisLocks
from windlass.stores.redis.notices import RedisNotices
from windlass.stores.redis.queues import RedisQueues
from windlass.stores.redis.records import instant
from windlass.stores.redis.requests import RedisRequests
from windlass.stores.redis.schedules import RedisSchedules
from windlass.stores.redis.schema import RedisSchema
from windlass.stores.redis.series import RedisSeries
from windlass.stores.redis.types import RedisTypes
from windlass.stores.redis.views import RedisViews
from windlass.stores.redis.workers import RedisWorkers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_UNKNOWN = "known once the store is open"
_KEPT = {
    "always": "append-only file, fsync always: an acknowledged write survives a crash of Redis and a power cut",
    "everysec": "append-only file, fsync every second: a power cut may lose the last second; a crash of Redis alone"
    " loses nothing, or up to two seconds when the disk is too slow",
    "no": "append-only file, fsync left to the system: a power cut may lose half a minute and more",
}
_SNAPSHOTS = "no append-only file: a crash of Redis loses everything since its last snapshot"
_NO_AOF = "no append-only file, so jobs are lost with the process: set 'appendonly yes'"
_FAILOVER = (
    "a failover loses what the promoted replica had not received yet, acknowledged jobs and ends included, without"
    " bound: set 'min-replicas-to-write 1' and 'min-replicas-max-lag 10' on every server, which narrows that to seconds"
)
_NARROWED = (
    "a failover loses what the promoted replica had not received yet, acknowledged jobs and ends included, up to some"
    " {lag} s (min-replicas-max-lag): keep jobs that must not be lost in PostgreSQL or MongoDB"
)


class RedisStore(Room):
    """Jobs in the keys of one Redis. Open and use it in one event loop; `sibling` is for others."""

    def __init__(self, place: Place) -> None:
        super().__init__(Link(place))
        link = self.link
        self._durability = _UNKNOWN
        self._warnings: tuple[str, ...] = (_FAILOVER,)
        self.jobs = RedisJobs(link)
        self.views = RedisViews(link)
        self.queues = RedisQueues(link)
        self.schedules = RedisSchedules(link)
        self.workers = RedisWorkers(link)
        self.locks = RedisLocks(link)
        self.notices = RedisNotices(link)
        self.types = RedisTypes(link)
        self.keys = RedisKeys(link)
        self.audit = RedisAudit(link)
        self.requests = RedisRequests(link)
        self.series = RedisSeries(link)
        self.schema = RedisSchema(link)

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        return self.link.place.address

    @property
    def capabilities(self) -> Capabilities:
        """What it can do and what it risks."""
        return Capabilities(
            store="redis", transactions=False, push=True, durability=self._durability, warnings=self._warnings
        )

    @guarded
    async def open(self, *, migrate: bool = True) -> None:
        """Connect, look at the settings that matter, and write the layout's version down unless told not to."""
        await self.link.start()
        try:
            await self._look()
            if migrate:
                await self.schema.migrate()
        except BaseException:
            await self.link.stop()
            raise

    async def _look(self) -> None:
        await self.link.locate()
        info = await self.link.command("INFO")
        if info.get("cluster_enabled"):
            await self.link.learn()
        version = str(info.get("redis_version", ""))
        if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST:
            raise StoreError(f"the Redis at {self.address} is {version}, windlass needs 6.2 or newer")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise SettingsError(
                f"the Redis at {self.address} has maxmemory-policy {policy}: it would delete jobs when memory is full;"
                " set 'maxmemory-policy noeviction', or give windlass a Redis of its own"
            )
        warnings = [await self._failover()]
        if info.get("aof_enabled"):
            self._durability = _KEPT.get(await self._setting("appendfsync"), "append-only file")
        else:
            self._durability = _SNAPSHOTS
            warnings.append(_NO_AOF)
        self._warnings = tuple(warnings)

    async def _failover(self) -> str:
        least, lag = await self._setting("min-replicas-to-write"), await self._setting("min-replicas-max-lag")
        narrowed = least not in ("", "0") and lag not in ("", "0")
        return _NARROWED.format(lag=lag) if narrowed else _FAILOVER

    async def _setting(self, name: str) -> str:
        with suppress(ResponseError):  # a hosted Redis may hide its settings
            found: Any = await self.link.command("CONFIG GET", name)
            return str(found.get(name, ""))
        return ""

    @guarded
    async def close(self) -> None:
        """Close the channel and the connections."""
        await self.notices.close()
        await self.link.stop()

    def sibling(self) -> RedisStore:
        """Another store on the same keys, with connections of its own."""
        return RedisStore(self.link.place)

    @guarded
    async def now(self) -> datetime:
        """The server's clock."""
        seconds, micros = await self.link.command("TIME")
        return instant(int(seconds) * 1000 + int(micros) // 1000)

    @guarded
    async def health(self, *, thorough: bool = True) -> Mapping[str, Any]:
        """Figures for `doctor`."""
        info = await self.link.command("INFO")
        return {
            "version": info.get("redis_version"),
            "bytes": info.get("used_memory"),
            "maxmemory": info.get("maxmemory"),
            "maxmemory-policy": info.get("maxmemory_policy"),
            "role": info.get("role"),
            "replicas": info.get("connected_slaves"),
            "cluster": bool(info.get("cluster_enabled")),
            "append-only file": bool(info.get("aof_enabled")),
            "appendfsync": await self._setting("appendfsync"),
            "last write": info.get("aof_last_write_status"),
            "min-replicas-to-write": await self._setting("min-replicas-to-write"),
            "min-replicas-max-lag": await self._setting("min-replicas-max-lag"),
        }
