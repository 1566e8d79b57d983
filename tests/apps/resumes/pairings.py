"""Where jobs and records are: one database for both, or Redis beside PostgreSQL; and a search through all of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.places import MongoPlace, Place, PostgresPlace, RedisPlace, open_place
from tests.control.conftest import address
from windlass.apps.resumes.records.record import NAME

PAIRINGS = {"sqlite": ("sqlite", "sqlite"), "redis beside postgres": ("redis", "postgres"), "mongo": ("mongo", "mongo")}


@dataclass(frozen=True)
class Pairing:
    """One of them, for one test."""

    jobs: Place
    records: Place
    folder: Path

    @property
    def store(self) -> tuple[str, str]:
        return address(self.jobs)

    @property
    def database(self) -> str | None:
        return None if self.records is self.jobs else address(self.records)[0]

    async def holds(self, word: str, *, jobs_alone: bool = False) -> list[str]:
        """Where a word stands, in the raw bytes of each file, and in each row, document and key of each server."""
        needle, found = word.encode(), list[str]()
        for place in [self.jobs] if jobs_alone else [self.jobs, self.records]:
            for where, content in await _contents(place):
                if needle in content:
                    found.append(where)
        if not jobs_alone:
            some = [path for path in self.folder.rglob("*") if path.is_file()]
            found += [path.name for path in some if needle in path.read_bytes() or word in str(path)]
        return found


@asynccontextmanager
async def pairing_at(name: str, folder: Path) -> AsyncGenerator[Pairing, None]:
    jobs, records = PAIRINGS[name]
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(open_place(jobs, folder))
        other = one if records == jobs else await stack.enter_async_context(open_place(records, folder))
        try:
            yield Pairing(one, other, folder)
        finally:
            await _without_records(other)


async def _without_records(place: Place) -> None:
    """As a store alone leaves a place, which the next test can then use: to make another takes longer."""
    match place:
        case PostgresPlace():
            await place.run(f"DROP TABLE IF EXISTS {NAME}, {NAME}_schema")
        case MongoPlace():
            with place.client() as client:
                for name in (NAME, f"{NAME}_schema"):
                    client[place.database].drop_collection(name)
        case _:
            pass  # a file, which no other test uses


async def _contents(place: Place) -> list[tuple[str, bytes]]:
    match place:
        case PostgresPlace():
            tables = await place.run(
                "SELECT tablename::text AS name FROM pg_tables WHERE schemaname = $1", place.schema
            )
            rows = [(row["name"], await place.run(f'SELECT t::text FROM "{row["name"]}" t')) for row in tables]
            return [(name, str(row[0]).encode()) for name, some in rows for row in some]
        case MongoPlace():
            with place.client() as client:
                database = client[place.database]
                names = database.list_collection_names()
                return [(name, str(one).encode()) for name in names for one in database[name].find()]
        case RedisPlace():
            return _of_redis(place)
        case _:
            return []  # a file, which is read as it is


def _of_redis(place: RedisPlace) -> list[tuple[str, bytes]]:
    with place.client() as plain:
        client: Any = plain

        def read(key: bytes) -> Any:
            match client.type(key):
                case b"string":
                    return client.get(key)
                case b"hash":
                    return client.hgetall(key)
                case b"list":
                    return client.lrange(key, 0, -1)
                case b"set":
                    return client.smembers(key)
                case b"zset":
                    return client.zrange(key, 0, -1, withscores=True)
                case b"stream":
                    return client.xrange(key)
                case other:
                    raise AssertionError(f"a key of the type {other}")

        keys = list(client.scan_iter(match=f"*{place.namespace}*"))
        return [(repr(key), key + str(read(key)).encode()) for key in keys]
