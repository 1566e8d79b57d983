"""Where the stores under test live, and what a test may do there behind a store's back."""

from __future__ import annotations

import atexit
import os
import secrets
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pymongo
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import PyMongoError
from pymongo.synchronous.client_session import ClientSession
from pymongo.synchronous.database import Database
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from tests.contract.shelves import Shelf
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass.stores.addresses import store_at
from windlass.stores.contract import Store

PATIENCE = 2_000
"""milliseconds for which what an earlier test may have left open is waited for"""
MANY = 1_000
"""as many documents are not removed one by one: a new database is made more quickly"""


class Transaction(Protocol):
    """A caller's own transaction on the same place, begun."""

    @property
    def tx(self) -> object:
        """What a caller hands to `insert`."""
        ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class Place(ABC):
    """An empty database, schema, key space or file, for one test alone."""

    @abstractmethod
    def store(self) -> Store:
        """A store on this place, not yet open."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """For `insert`. Where the store has no transactions: any driver object that a caller might try."""

    @abstractmethod
    def transaction_now(self) -> AbstractContextManager[Transaction]:
        """For `insert_now`: of a synchronous driver."""

    @abstractmethod
    async def plant(self, job_id: str) -> None:
        """Write somebody else's data, which speaks of a job, next to what windlass keeps."""

    @abstractmethod
    async def planted(self) -> list[str]:
        """The job ids in that data."""

    @abstractmethod
    async def pretend_version(self, version: int) -> None:
        """Make the schema say that it is of this version."""

    @abstractmethod
    async def damage(self) -> None:
        """Take away part of the schema: something that windlass made and can do without for a moment."""

    @abstractmethod
    async def silence(self, worker_id: str) -> None:
        """Let the worker's last beat be a minute older than it is."""


class SqlitePlace(Place):
    def __init__(self, path: Path) -> None:
        self.path = path

    def store(self) -> Store:
        from windlass.stores.sqlite.store import SqliteStore

        # No test here cuts the power, and a busy disk may take ten seconds to sync: longer than a write waits.
        return SqliteStore(str(self.path), synchronous="NORMAL")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction, None]:
        with self.transaction_now() as transaction:
            yield transaction

    @contextmanager
    def transaction_now(self) -> Generator[Transaction, None, None]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            yield SqliteTransaction(connection)

    async def plant(self, job_id: str) -> None:
        self._run("CREATE TABLE IF NOT EXISTS orders (job_id TEXT)")
        self._run("INSERT INTO orders VALUES (?)", job_id)

    async def planted(self) -> list[str]:
        return [str(row[0]) for row in self._run("SELECT job_id FROM orders")]

    async def pretend_version(self, version: int) -> None:
        self._run("UPDATE windlass_meta SET value = ? WHERE key = 'schema'", version)

    async def damage(self) -> None:
        self._run("DROP INDEX windlass_jobs_parent")

    async def silence(self, worker_id: str) -> None:
        self._run("UPDATE windlass_workers SET beat_at = beat_at - 60000 WHERE id = ?", worker_id)

    def _run(self, sql: str, *values: str | int) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql, values).fetchall()


class SqliteTransaction:
    def __init__(self, tx: sqlite3.Connection) -> None:
        self.tx = tx

    async def commit(self) -> None:
        self.tx.execute("COMMIT")

    async def rollback(self) -> None:
        self.tx.execute("ROLLBACK")


@asynccontextmanager
async def sqlite(tmp_path: Path, *, new: bool = False) -> AsyncGenerator[Place, None]:
    """A new file is made as quickly as an old one is emptied."""
    del new
    yield SqlitePlace(tmp_path / "jobs.db")


class MongoPlace(Place):
    def __init__(self, url: str, database: str) -> None:
        self.url, self.database = url, database
        self._collections: list[str] = []
        self._made: list[dict[str, Any]] = []
        self._meta: list[dict[str, Any]] = []

    def store(self) -> Store:
        return store_at(self.url)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction, None]:
        async with AsyncMongoClient[dict[str, Any]](self.url) as client, client.start_session() as session:
            await session.start_transaction()
            yield MongoTransaction(session)

    @contextmanager
    def transaction_now(self) -> Generator[Transaction, None, None]:
        with MongoClient[dict[str, Any]](self.url) as client, client.start_session() as session:
            session.start_transaction()
            yield MongoTransactionNow(session)

    async def plant(self, job_id: str) -> None:
        with self.client() as client:
            client[self.database]["orders"].insert_one({"job_id": job_id})

    async def planted(self) -> list[str]:
        with self.client() as client:
            return [str(row["job_id"]) for row in client[self.database]["orders"].find()]

    async def pretend_version(self, version: int) -> None:
        with self.client() as client:
            client[self.database]["windlass_meta"].update_one({"_id": "schema"}, {"$set": {"version": version}})

    async def damage(self) -> None:
        with self.client() as client:
            client[self.database]["windlass_jobs"].drop_index("parent")

    async def silence(self, worker_id: str) -> None:
        older = {"$dateSubtract": {"startDate": "$beat_at", "unit": "second", "amount": 60}}
        with self.client() as client:
            client[self.database]["windlass_workers"].update_one({"_id": worker_id}, [{"$set": {"beat_at": older}}])

    def client(self) -> MongoClient[dict[str, Any]]:
        return MongoClient(self.url)

    def remember(self) -> None:
        self._collections = sorted(self._upkeep.list_collection_names())
        self._made, self._meta = self._of_each({"$indexStats": {}}, INDEX), list(self._upkeep["windlass_meta"].find())

    def emptied(self) -> bool:
        try:
            if sorted(self._upkeep.list_collection_names()) != self._collections:
                return False
            if self._of_each({"$indexStats": {}}, INDEX) != self._made:
                return False
            filled = self._of_each({"$limit": MANY}, {"$count": "documents"})
            if any(row["documents"] == MANY for row in filled):
                return False
            with pymongo.timeout(PATIENCE / 1000):
                for row in filled:
                    self._upkeep[row["of"]].delete_many({})
            self._upkeep["windlass_meta"].insert_many(self._meta)
        except PyMongoError:  # such as a transaction that somebody left open
            return False
        return True

    def _of_each(self, *stages: dict[str, Any]) -> list[dict[str, Any]]:
        """The same question to every collection, in one round trip."""
        first, *others = [[*stages, {"$addFields": {"of": {"$literal": name}}}] for name in self._collections]
        named = zip(self._collections[1:], others, strict=True)
        unions = [{"$unionWith": {"coll": name, "pipeline": pipeline}} for name, pipeline in named]
        return list(self._upkeep[self._collections[0]].aggregate([*first, *unions]))

    def drop(self) -> None:
        mongo_client().drop_database(self.database)

    @property
    def _upkeep(self) -> Database[dict[str, Any]]:
        return mongo_client()[self.database]


INDEX: dict[str, Any] = {"$project": {"_id": 0, "spec": 1}}


class MongoTransaction:
    def __init__(self, tx: AsyncClientSession) -> None:
        self.tx = tx

    async def commit(self) -> None:
        await self.tx.commit_transaction()

    async def rollback(self) -> None:
        await self.tx.abort_transaction()


class MongoTransactionNow:
    def __init__(self, tx: ClientSession) -> None:
        self.tx = tx

    async def commit(self) -> None:
        self.tx.commit_transaction()

    async def rollback(self) -> None:
        self.tx.abort_transaction()


@cache
def mongo_url() -> str:
    """One server for all tests of this process."""
    server = start_mongo()
    atexit.register(server.stop)
    return server.url


@cache
def mongo_client() -> MongoClient[dict[str, Any]]:
    """For what is done to places between tests."""
    client = MongoClient[dict[str, Any]](mongo_url())
    atexit.register(client.close)
    return client


def new_mongo() -> MongoPlace:
    database = f"t{secrets.token_hex(8)}"
    return MongoPlace(urlsplit(mongo_url())._replace(path=f"/{database}").geturl(), database)


MONGO = Shelf(new_mongo)


def mongo(_: Path, *, new: bool = False) -> AbstractAsyncContextManager[MongoPlace]:
    return MONGO.place(new=new)


class PostgresPlace(Place):
    def __init__(self, url: str, schema: str) -> None:
        self.url, self.schema = url, schema
        self._made: list[tuple[Any, ...]] = []
        self._meta: list[tuple[Any, ...]] = []

    def store(self) -> Store:
        return store_at(f"{self.url}?schema={self.schema}")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction, None]:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self.url)
        try:
            await connection.execute("BEGIN")
            yield PostgresTransaction(connection)
        finally:
            await connection.close()

    @contextmanager
    def transaction_now(self) -> Generator[Transaction, None, None]:
        with closing(psycopg.connect(self.url)) as connection:
            yield PostgresTransactionNow(connection)

    async def plant(self, job_id: str) -> None:
        await self.run("CREATE TABLE IF NOT EXISTS orders (job_id text)")
        await self.run("INSERT INTO orders VALUES ($1)", job_id)

    async def planted(self) -> list[str]:
        return [str(row[0]) for row in await self.run("SELECT job_id FROM orders")]

    async def pretend_version(self, version: int) -> None:
        await self.run("UPDATE windlass_meta SET value = $1 WHERE key IN ('schema', 'compatible')", str(version))

    async def damage(self) -> None:
        await self.run("DROP INDEX windlass_jobs_parent")

    async def silence(self, worker_id: str) -> None:
        await self.run("UPDATE windlass_workers SET beat_at = beat_at - interval '1 minute' WHERE id = $1", worker_id)

    async def run(self, sql: str, *values: object) -> list[asyncpg.Record]:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(
            self.url, server_settings={"search_path": self.schema}
        )
        try:
            return await connection.fetch(sql, *values)
        finally:
            await connection.close()

    def remember(self) -> None:
        self._made, self._meta = self._ask(MADE), self._ask(f'SELECT * FROM "{self.schema}".windlass_meta')

    def emptied(self) -> bool:
        try:
            if self._ask(MADE) != self._made:
                return False
            filled = ", ".join(name for (name,) in self._ask(FILLED))
            tidy(f"TRUNCATE {filled} RESTART IDENTITY")
            for row in self._meta:
                tidy(f'INSERT INTO "{self.schema}".windlass_meta VALUES (%s, %s)', row)
        except psycopg.Error:  # such as a lock that somebody left behind
            return False
        return True

    def drop(self) -> None:
        tidy(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        return tidy(sql, {"schema": self.schema}).fetchall()


# Whatever is in a schema, in the server's own words, with who may use it, and what it remembers of rows that an earlier
# test had: the server would plan by that.
MADE = """
SELECT c.relname::text, c.relkind::text, c.relnatts, c.relacl::text, n.nspacl::text, i.indisvalid,
    CASE c.relkind WHEN 'i' THEN pg_get_indexdef(c.oid) END,
    (SELECT count(*) FROM pg_proc AS f WHERE f.pronamespace = to_regnamespace(%(schema)s)),
    (SELECT count(*) FROM pg_trigger AS t WHERE t.tgrelid = c.oid),
    (SELECT count(*) FROM pg_statistic AS s WHERE s.starelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
WHERE n.nspname = %(schema)s ORDER BY 1
"""
# Where rows are or were; `windlass_meta` always is among them.
FILLED = """
SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0
"""


class PostgresTransaction:
    def __init__(self, tx: asyncpg.Connection[asyncpg.Record]) -> None:
        self.tx = tx

    async def commit(self) -> None:
        await self.tx.execute("COMMIT")

    async def rollback(self) -> None:
        await self.tx.execute("ROLLBACK")


class PostgresTransactionNow:
    def __init__(self, tx: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.tx = tx

    async def commit(self) -> None:
        self.tx.commit()

    async def rollback(self) -> None:
        self.tx.rollback()


@cache
def postgres_url() -> str:
    """One server for all tests of this process."""
    server = start_postgres()
    atexit.register(server.stop)
    return server.url


@cache
def postgres_client() -> psycopg.Connection[tuple[Any, ...]]:
    """For what is done to places between tests."""
    options = f"-c client_min_messages=warning -c lock_timeout={PATIENCE}"
    client = psycopg.connect(postgres_url(), autocommit=True, options=options)
    atexit.register(client.close)
    return client


def tidy(sql: str, values: Sequence[Any] | Mapping[str, Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
    return postgres_client().execute(sql.encode(), values)


def new_postgres() -> PostgresPlace:
    place = PostgresPlace(postgres_url(), f"t{secrets.token_hex(8)}")
    tidy(f'CREATE SCHEMA "{place.schema}"')
    return place


POSTGRES = Shelf(new_postgres)


def postgres(_: Path, *, new: bool = False) -> AbstractAsyncContextManager[PostgresPlace]:
    return POSTGRES.place(new=new)


class RedisPlace(Place):
    def __init__(self, url: str, namespace: str) -> None:
        self.url, self.namespace = url, namespace

    def store(self) -> Store:
        return store_at(self.url, namespace=self.namespace)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction, None]:
        driver: Any = AsyncRedis  # half of its methods have no types
        async with driver.from_url(self.url) as client, client.pipeline(transaction=True) as pipeline:
            yield RedisTransaction(pipeline)

    @contextmanager
    def transaction_now(self) -> Generator[Transaction, None, None]:
        with self.client() as client, client.pipeline(transaction=True) as pipeline:
            yield RedisTransaction(pipeline)

    async def plant(self, job_id: str) -> None:
        with self.client() as client:
            client.rpush(self.planted_at, job_id)

    async def planted(self) -> list[str]:
        with self.client() as client:
            return [one.decode() for one in client.lrange(self.planted_at, 0, -1)]

    async def pretend_version(self, version: int) -> None:
        with self.client() as client:
            client.hset(f"{{{self.namespace}}}:meta", "schema", str(version))

    async def damage(self) -> None:
        with self.client() as client:
            client.hdel(f"{{{self.namespace}}}:meta", "layout")

    async def silence(self, worker_id: str) -> None:
        with self.client() as client:
            started, beat, told = client.hget(f"{{{self.namespace}}}:workers", worker_id).split(b"\0")
            older = b"%d" % (int(beat) - 60_000)
            client.hset(f"{{{self.namespace}}}:workers", worker_id, b"\0".join([started, older, told]))

    @property
    def planted_at(self) -> str:
        return f"{self.namespace}:orders"

    def client(self) -> Any:
        driver: Any = Redis
        return driver.from_url(self.url)

    def drop(self) -> None:
        with self.client() as client:
            keys = list(client.scan_iter(f"*{self.namespace}*", count=1000))
            for at in range(0, len(keys), 1000):
                client.unlink(*keys[at : at + 1000])


class RedisTransaction:
    """Redis has none that an enqueue could join: a pipeline is what a caller might try."""

    def __init__(self, tx: object) -> None:
        self.tx = tx

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


@cache
def redis_url() -> str:
    """One server for all tests of this process."""
    server = start_redis()
    atexit.register(server.stop)
    return server.url


@asynccontextmanager
async def redis(_: Path, *, new: bool = False) -> AsyncGenerator[Place, None]:
    """A new key space costs nothing."""
    del new
    place = RedisPlace(redis_url(), f"t{secrets.token_hex(8)}")
    yield place
    place.drop()


class Opening(Protocol):
    """Gives a place that is empty; `new`: in which no store was opened before, either."""

    def __call__(self, folder: Path, /, *, new: bool = False) -> AbstractAsyncContextManager[Place]: ...


PLACES: dict[str, Opening] = {
    "sqlite": sqlite,
    "mongo": mongo,
    "postgres": postgres,
    "redis": redis,
}
"""How a place for each store is made, and removed afterwards."""

READY = ("sqlite", "mongo", "postgres", "redis")
"""run unless told otherwise"""
STORES = tuple(os.environ.get("WINDLASS_TEST_STORES", ",".join(READY)).split(","))
"""The stores under test. One that is named and cannot be opened is a failure: green says what it covered."""


def open_place(name: str, tmp_path: Path, *, new: bool = False) -> AbstractAsyncContextManager[Place]:
    if name not in PLACES:
        raise ValueError(f"WINDLASS_TEST_STORES names {name!r}: expected some of {', '.join(PLACES)}")
    return PLACES[name](tmp_path, new=new)
