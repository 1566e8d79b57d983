"""What one call of a store costs its server, counted by the server itself: never seconds.

Each meter adds up what its server tells of: instructions on SQLite, rows, index probes and pages on PostgreSQL,
documents and keys examined on MongoDB, commands and the elements they read on Redis.
"""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import asyncpg
from pymongo import MongoClient
from redis import Redis

from tests.contract.places import MongoPlace, Place, PostgresPlace, RedisPlace, SqlitePlace
from tests.support.until import until
from windlass.stores.contract import Store
from windlass.stores.postgres.store import PostgresStore
from windlass.stores.sqlite.engine import Engine
from windlass.stores.sqlite.store import SqliteStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """What one call cost, by kind."""

    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def __str__(self) -> str:
        return f"{self.total:,}"


class Meter(ABC):
    """Counts the work that calls make on one place."""

    unit: str
    slack: int
    """what two equal calls may differ by for reasons of the server's own: a page split, a plan made, a clock read"""
    look: int
    """what one look at one queue, key or job costs at most"""
    plans: bool = False
    """whether the first call of a kind is dearer, because its plan is made with it and kept"""

    async def settle(self) -> None:
        """What a server does by itself after many writes, sooner or later, it does now."""
        return

    @abstractmethod
    async def during(self, call: Callable[[], Awaitable[T]]) -> tuple[Work, T]:
        """What this call cost, and its answer."""


class SqliteMeter(Meter):
    """Instructions of SQLite's virtual machine."""

    unit = "instructions"
    slack = 400
    look = 150
    _EVERY = 10  # instructions between two calls of the handler

    def __init__(self, store: SqliteStore) -> None:
        self._engine = cast("Engine", vars(store)["_engine"])
        self._calls = 0

    async def during(self, call: Callable[[], Awaitable[T]]) -> tuple[Work, T]:
        await self._watch(self._count)
        self._calls = 0
        answer = await call()
        calls = self._calls
        await self._watch(None)
        return Work({self.unit: calls * self._EVERY}), answer

    async def _watch(self, handler: Callable[[], int] | None) -> None:
        await self._engine.write(lambda db, _: db.set_progress_handler(handler, self._EVERY))
        await self._engine.read(lambda db, _: db.set_progress_handler(handler, self._EVERY))

    def _count(self) -> int:
        self._calls += 1
        return 0


_READ = """
SELECT 'rows read', sum(seq_tup_read)::bigint FROM pg_stat_user_tables WHERE schemaname = $1
UNION ALL SELECT 'rows written', sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint
    FROM pg_stat_user_tables WHERE schemaname = $1
UNION ALL SELECT 'entries read', sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE schemaname = $1
UNION ALL SELECT 'probes', sum(idx_scan)::bigint FROM pg_stat_user_indexes WHERE schemaname = $1
UNION ALL SELECT 'pages', sum(coalesce(heap_blks_read + heap_blks_hit, 0) + coalesce(idx_blks_read + idx_blks_hit, 0)
    + coalesce(toast_blks_read + toast_blks_hit, 0))::bigint FROM pg_statio_user_tables WHERE schemaname = $1
"""


_DEAD = "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables WHERE schemaname = $1"


class PostgresMeter(Meter):
    """Rows and index entries read, probes of indexes, rows written and pages looked at."""

    unit = "reads and writes"
    slack = 150  # the plan of a pruning alone looks at 127 pages, where it is made on a connection that had none
    look = 10
    plans = True

    def __init__(self, place: PostgresPlace, store: PostgresStore, db: asyncpg.Connection[asyncpg.Record]) -> None:
        self._place, self._store, self._db = place, store, db

    async def settle(self) -> None:
        """Vacuum, as a server does by itself; but never while something is counted, or beside this one."""
        tables = await self._db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", self._place.schema)
        for (table,) in tables:
            await self._db.execute(f'ALTER TABLE "{self._place.schema}"."{table}" SET (autovacuum_enabled = off)')

        async def clean() -> bool:
            for (table,) in tables:
                # Also where so few are dead that a vacuum would leave them to the next.
                await self._db.execute(f'VACUUM (ANALYZE, INDEX_CLEANUP ON) "{self._place.schema}"."{table}"')
            await self._db.execute("SELECT pg_stat_force_next_flush()")  # what this cost is not counted later
            return bool(await self._db.fetchval(_DEAD, self._place.schema) == 0)

        # Something else on this server may look at a state from before, and keep rows from being removed.
        await until(clean, "dead rows to be gone", within=30)

    async def during(self, call: Callable[[], Awaitable[T]]) -> tuple[Work, T]:
        before = await self._read()
        answer = await call()
        return Work(await self._read() - before), answer

    async def _read(self) -> Counter[str]:
        """The server's counters, once every connection of the store has handed in its own."""
        async with AsyncExitStack() as stack:
            for _ in range(len(vars(self._store.link)["_idle"])):
                connection = await stack.enter_async_context(self._store.link.connection())
                await connection.execute("SELECT pg_stat_force_next_flush()")
        return Counter({name: n or 0 for name, n in await self._db.fetch(_READ, self._place.schema)})


class MongoMeter(Meter):
    """Documents and keys examined, commands and the stages of their pipelines, by the server's profiler."""

    unit = "examined"
    slack = 20
    look = 5
    _ROOM = 256 * 2**20  # what the profiler may write of one call: beyond, the oldest lines go

    def __init__(self, client: MongoClient[dict[str, Any]], database: str) -> None:
        self._database = client[database]

    async def during(self, call: Callable[[], Awaitable[T]]) -> tuple[Work, T]:
        profile = self._database.get_collection("system.profile")
        profile.drop()
        self._database.create_collection("system.profile", capped=True, size=self._ROOM)
        self._database.command("profile", 2)
        try:
            answer = await call()
        finally:
            self._database.command("profile", 0)
        counted: Counter[str] = Counter()
        for line in profile.find({"appName": "windlass"}):
            if not _follows_changes(line):
                counted += _examined(line)
        return Work(counted), answer


def _follows_changes(line: Mapping[str, Any]) -> bool:
    """Whether this is the stream that brings notices: it reads the log of all, whoever does what."""
    command = line.get("originatingCommand", line.get("command", {}))
    pipeline = command.get("pipeline", ())
    return bool(pipeline) and "$changeStream" in pipeline[0]


def _examined(line: Mapping[str, Any]) -> Counter[str]:
    stages = len(line.get("command", {}).get("pipeline", ()))
    return Counter(
        documents=line.get("docsExamined", 0),
        keys=line.get("keysExamined", 0) + line.get("keysInserted", 0) + line.get("keysDeleted", 0),
        commands=1,
        stages=stages,
    )


_LINE = re.compile(r"^\d+\.\d+ \[(?P<db>\d+) (?P<client>[^\]]+)\] (?P<words>.*)$")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RANGES = {"ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZRANGEBYLEX", "LRANGE", "SMEMBERS", "HGETALL", "HKEYS", "HVALS"}
_MANY = {"MGET", "HMGET", "DEL", "UNLINK", "ZADD", "HSET", "SADD", "ZREM", "SREM", "HDEL", "ZMSCORE"}


class RedisMeter(Meter):
    """Commands, those of scripts among them, and the elements that they read or write."""

    unit = "commands"
    slack = 20
    look = 5

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def during(self, call: Callable[[], Awaitable[T]]) -> tuple[Work, T]:
        with self._client.monitor() as monitor:
            answer = await call()
            self._client.echo("the end of this call")
            seen = list(self._until_end(monitor))
        return Work({"commands": len(seen), "elements": self._elements(seen)}), answer

    def _elements(self, seen: list[list[bytes]]) -> int:
        """How many elements these commands read or wrote; ranges are read again, soon after."""
        again = self._client.pipeline(transaction=False)
        written = 0
        for words in seen:
            name = words[0].decode().upper()
            if name in _RANGES:
                again.execute_command(*words)
            elif name in _MANY:
                written += len(words) - 2
        return written + sum(len(elements) for elements in again.execute())

    def _until_end(self, monitor: Any) -> Any:
        while True:
            line = _LINE.match(monitor.connection.read_response().decode("utf-8", "surrogateescape"))
            if line is None:
                continue
            words = [
                codecs.escape_decode(word.encode("utf-8", "surrogateescape"))[0]
                for word in _WORD.findall(line["words"])
            ]
            if words == [b"ECHO", b"the end of this call"]:
                return
            if line["client"] == "lua" or any(self._namespace.encode() in word for word in words[1:]):
                yield words


@asynccontextmanager
async def metered(place: Place, store: Store) -> AsyncGenerator[Meter, None]:
    """The meter of an open store on this place."""
    if isinstance(place, SqlitePlace):
        yield SqliteMeter(cast("SqliteStore", store))
    elif isinstance(place, PostgresPlace):
        db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(place.url)
        try:
            meter = PostgresMeter(place, cast("PostgresStore", store), db)
            await meter.settle()
            yield meter
        finally:
            await db.close()
    elif isinstance(place, MongoPlace):
        with place.client() as client:
            yield MongoMeter(client, place.database)
    elif isinstance(place, RedisPlace):
        driver: Any = Redis
        with driver.from_url(place.url) as client:
            yield RedisMeter(client, place.namespace)
    else:
        raise TypeError(f"no meter for {place!r}")
