"""A long past of a store: finished jobs that were really enqueued and run, and as many copies of them as it takes.

To run a million jobs takes a quarter of an hour; to copy them in the server takes a minute, and what a window reads is
the same. A copy differs from its original by three digits of its id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import asyncpg
from pymongo import AsyncMongoClient
from redis.asyncio import Redis

from windlass import Reject, Retry, Windlass
from windlass.chaos.place import Place
from windlass.stores.redis.records import SEP

PAST = "past"
"""type and queue of the finished jobs that viewers page through"""
USERS = 500
REAL = 20_000
"""so many are enqueued and run; the others are copies"""
_AT_ONCE = 10_000
_ZEROS = "7000"
"""what all ids have there; a copy has its number in it"""

COLUMNS = """
SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = $1 AND column_name <> 'id'
"""
COPY_POSTGRES = """
INSERT INTO {table} (id, {columns})
SELECT left(j.id, 15) || lpad(to_hex($1::int), 3, '0') || substr(j.id, 19), {columns}
FROM {table} AS j WHERE j.type = 'past' AND j.id = ANY ($2::text[])
"""
COPY_SQLITE = """
INSERT INTO {table} (id, {columns})
SELECT substr(j.id, 1, 15) || printf('%03x', ?) || substr(j.id, 19), {columns}
FROM {table} AS j WHERE j.seq <= ?
"""
# Every list that names a finished job, with copies of what it names; then the records.
COPY_REDIS = """
local copies = tonumber(ARGV[1])
local function copy_of(id, copy)
  return string.sub(id, 1, -22) .. string.format('%03x', copy) .. string.sub(id, -18)
end
local function copy(list)
  local members = redis.call('ZRANGE', list, 0, -1, 'WITHSCORES')
  for at = 1, #members, 2 do
    local added, n = {}, 0
    for copy = 1, copies do
      added[n + 1], added[n + 2] = members[at + 1], copy_of(members[at], copy)
      n = n + 2
    end
    redis.call('ZADD', list, unpack(added))
  end
end
if ARGV[2] == 'list' then
  copy(KEYS[1])
elseif ARGV[2] == 'count' then
  redis.call('HSET', KEYS[1], ARGV[3], redis.call('HGET', KEYS[1], ARGV[3]) * (copies + 1))
else
  for _, key in ipairs(KEYS) do
    local record = redis.call('GET', key)
    for copy = 1, copies do
      redis.call('SET', copy_of(key, copy), record)
    end
  end
end
return 1
"""


async def live_through(place: Place, n: int) -> None:
    """Make so many finished jobs, a fiftieth of them failed."""
    app = Windlass(place.url, namespace=place.namespace)

    @app.job(name=PAST, queue=PAST, retry=Retry(1))
    async def past(number: int) -> None:
        if number % 50 == 0:
            raise Reject("as some do")

    async with app:
        for start in range(0, min(n, REAL), _AT_ONCE):
            some = range(start, min(n, start + _AT_ONCE))
            await app.enqueue_many(past.using(user=f"u{number % USERS}").bind(number) for number in some)
            await app.worker(queues=[PAST], concurrency=500, drain=True).run()
        ids = [job.id async for job in app.jobs.each(type=PAST)]
        assert all(id_[14:18] == _ZEROS for id_ in ids), "ids have another form than copies are made of"
        if n > REAL:
            await _COPIES[place.url.split(":")[0].removesuffix("+srv")](place, ids, n // REAL - 1)
        assert (await app.jobs.count(type=PAST)).n >= min(n, 100_000)
    app.close()


async def _copy_sqlite(place: Place, _: list[str], copies: int) -> None:
    table = f"{place.namespace}_jobs"
    with closing(sqlite3.connect(place.url.removeprefix("sqlite:///").split("?")[0], timeout=60)) as db:
        db.execute("PRAGMA cache_size = -1000000")
        db.execute("PRAGMA synchronous = OFF")
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] not in ("id", "seq")]
        [last] = db.execute(f"SELECT max(seq) FROM {table}").fetchone()  # a name of the trial's own
        # Indexes are made again afterwards, which is far quicker than to keep them up.
        made = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
        indexes = db.execute(made, (table,)).fetchall()
        with db:
            for name, _ in indexes:
                db.execute(f"DROP INDEX {name}")
            for copy in range(1, copies + 1):
                db.execute(COPY_SQLITE.format(table=table, columns=", ".join(names)), (copy, last))
            for _, sql in indexes:
                db.execute(sql)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _copy_postgres(place: Place, ids: list[str], copies: int) -> None:
    url, _, schema = place.url.partition("?schema=")
    db: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url)
    try:
        await db.execute(f'SET search_path = "{schema}"')
        columns = await db.fetchval(COLUMNS, f"{place.namespace}_jobs")
        table = f"{place.namespace}_jobs"
        made = "SELECT indexname, indexdef FROM pg_indexes WHERE (tablename, schemaname) = ($1, $2)"
        indexes = [row for row in await db.fetch(made, table, schema) if not row[0].endswith("pkey")]
        for name, _ in indexes:
            await db.execute(f"DROP INDEX {name}")
        for copy in range(1, copies + 1):
            await db.execute(COPY_POSTGRES.format(table=table, columns=columns), copy, ids, timeout=300)
        for _, sql in indexes:
            await db.execute(sql, timeout=300)
        await db.execute(f"VACUUM (ANALYZE) {table}", timeout=600)
    finally:
        await db.close()


async def _copy_mongo(place: Place, _: list[str], copies: int) -> None:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(place.url)
    try:
        jobs = client.get_default_database()[f"{place.namespace}_jobs"]
        for copy in range(1, copies + 1):
            parts = [{"$substrCP": ["$_id", 0, 15]}, f"{copy:03x}", {"$substrCP": ["$_id", 18, 18]}]
            copied, real = {"$concat": parts}, {"type": PAST, "_id": {"$regex": f"^.{{14}}{_ZEROS}"}}
            into = {"into": jobs.name, "whenMatched": "fail"}
            await (await jobs.aggregate([{"$match": real}, {"$set": {"_id": copied}}, {"$merge": into}])).to_list()
    finally:
        await client.close()


async def _copy_redis(place: Place, ids: list[str], copies: int) -> None:
    client = Redis.from_url(place.url, socket_timeout=120)  # pyright: ignore[reportUnknownMemberType]  # as redis types it
    prefix = f"{{{place.namespace}}}:"
    try:
        kinds = [f"{status}{SEP}{PAST}{SEP}{PAST}" for status in "df"]
        lists = [f"v:{kind}" for kind in kinds] + [f"ended:{status}{SEP}{PAST}" for status in "df"]
        lists += [f"user:u{user}" for user in range(USERS)]
        for name in lists:
            await client.eval(COPY_REDIS, 1, prefix + name, str(copies), "list")
        for kind in kinds:
            await client.eval(COPY_REDIS, 1, f"{prefix}counts", str(copies), "count", kind)
        for at in range(0, len(ids), 500):
            keys = [f"{prefix}j:{id_}" for id_ in ids[at : at + 500]]
            await client.eval(COPY_REDIS, len(keys), *keys, str(copies), "records")
    finally:
        await client.aclose()


_COPIES: dict[str, Callable[[Place, list[str], int], Any]] = {
    "sqlite": _copy_sqlite,
    "postgresql": _copy_postgres,
    "postgres": _copy_postgres,
    "mongodb": _copy_mongo,
    "redis": _copy_redis,
}
