"""Migrate: what is missing is made step by step, beside workers that go on.

On a new installation everything is made in one transaction. Where jobs are, tables and columns come first, which takes
a moment; then each index by itself, without holding up anybody, however long that takes: it has no deadline. If it is
interrupted it goes on where it was: what is there is left as it is, and an index that was not finished is made anew.

Of several that migrate at the same time one does it. It has a lock in a transaction that does nothing else: an open
transaction in which something was read could be waited for by the making of an index. For the same reason the others do
not wait for the lock, but ask for it again and again.
"""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from asyncpg import exceptions as pg

from windlass.stores.postgres.connection import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from windlass.stores.postgres.connection import Connection, Link

_AGAIN = 0.2  # seconds until a lock that somebody else has is asked for again
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX windlass_(\w+)")
_DROPPED = "DROP INDEX "

TRY = "SELECT pg_try_advisory_xact_lock(hashtextextended($1::text, 0))"
# Waiting for an exclusive lock on a table blocks everybody who comes later.
HURRY = "SET LOCAL lock_timeout = '2s'"
VALID = """
SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = $2::text
"""


@asynccontextmanager
async def alone(link: Link, is_done: Callable[[], Awaitable[bool]]) -> AsyncGenerator[None, None]:
    """Wait until nobody else migrates, or all is done; until left, nobody else begins to migrate in the first case."""
    connection = await link.connect(patient=True)
    try:
        while True:
            async with connection.transaction():
                if await connection.fetchval(TRY, f"{link.scope}:migrate"):
                    # Behind a pooler too; and it ends the portal of the statement before, whose snapshot would be
                    # waited for.
                    await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    yield
                    return
            await _pause()
            if await is_done():
                yield
                return
    finally:
        link.drop(connection)


async def _pause() -> None:
    """Wait for the process that is migrating. Not all at the same moments: a whole fleet may be waiting."""
    await asyncio.sleep(_AGAIN * random.uniform(0.5, 1.5))


async def make(link: Link, statements: Sequence[str]) -> None:
    """Carry these out on tables that are in use, passing over what was made before."""
    connection = await link.connect(patient=True)
    try:
        await _make_tables(connection, [link.sql(_again(one)) for one in statements if not _of_index(one)])
        for statement in statements:
            if index := _INDEX.match(statement):
                await _make_index(link, connection, f"{link.place.namespace}_{index[2]}", statement)
        # Once what takes its place is there.
        for statement in statements:
            if statement.startswith(_DROPPED):
                await connection.execute(link.sql(_dropped_beside(statement)))
    finally:
        link.drop(connection)


def _of_index(statement: str) -> bool:
    return bool(_INDEX.match(statement)) or statement.startswith(_DROPPED)


def by_hand(statements: Sequence[str]) -> list[str]:
    """The same as statements for people: each index outside the transaction, and what it replaces dropped after it."""
    tables = [_again(one) for one in statements if not _of_index(one)]
    indexes = [_beside(one) for one in statements if _INDEX.match(one)]
    dropped = [_dropped_beside(one) for one in statements if one.startswith(_DROPPED)]
    return ["BEGIN;", f"{HURRY};", *tables, "COMMIT;", *indexes, *dropped]


def _beside(statement: str) -> str:
    """The same index, made without blocking those who use the table."""
    return statement.replace(" INDEX windlass_", " INDEX CONCURRENTLY windlass_", 1)


def _dropped_beside(statement: str) -> str:
    return statement.replace(_DROPPED, f"{_DROPPED}CONCURRENTLY IF EXISTS ", 1)


def _again(statement: str) -> str:
    """The same statement, but it may have been carried out before."""
    once = statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)
    return once.replace("ADD COLUMN ", "ADD COLUMN IF NOT EXISTS ")


async def _make_tables(connection: Connection, statements: Sequence[str]) -> None:
    while True:
        try:
            async with connection.transaction():
                await connection.execute(HURRY)
                await connection.execute("SET LOCAL statement_timeout = 0")  # behind a pooler too
                for statement in statements:
                    await connection.execute(statement)
        except pg.LockNotAvailableError:
            await _pause()
        else:
            return


async def _make_index(link: Link, connection: Connection, name: str, statement: str) -> None:
    is_valid = await connection.fetchval(VALID, link.schema, name)
    if is_valid:
        return
    if is_valid is False:  # its making was interrupted
        await connection.execute(f"DROP INDEX CONCURRENTLY {quoted(str(link.schema))}.{quoted(name)}")
    await connection.execute(link.sql(_beside(statement)))
