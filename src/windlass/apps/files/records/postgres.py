"""Records in PostgreSQL: each change is one statement that compares and sets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import asyncpg

from windlass import StoreUnavailable
from windlass.apps.files.names import Name, Space
from windlass.apps.files.records.records import NOTHING, Held, Listed, PathTaken, Project, Swapping, Usage
from windlass.apps.files.state import State, dump, load

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

_ONE_AT_A_TIME = 0x66696C65
"""the lock under which the table is made: two that do it at once would fail"""
_PAGE = 500
_TIMEOUT = 10.0
# By bytes, as the other databases order names.
_TABLE = """
CREATE TABLE IF NOT EXISTS "{0}" (
    owner TEXT COLLATE "C" NOT NULL, project TEXT COLLATE "C" NOT NULL, file TEXT COLLATE "C" NOT NULL,
    disk TEXT, there INTEGER NOT NULL, bytes BIGINT NOT NULL, waiting INTEGER NOT NULL,
    revision BIGINT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (owner, project, file)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX IF NOT EXISTS "{0}_disk" ON "{0}" (owner, project, disk) WHERE disk IS NOT NULL;
"""


class PostgresRecords(Swapping):
    """Records in a PostgreSQL database."""

    def __init__(self, dsn: str, schema: str | None, namespace: str) -> None:
        super().__init__()
        self._dsn, self._table = dsn, f"{namespace}_files"
        self._settings = {"application_name": "windlass files"} | ({} if schema is None else {"search_path": schema})
        self._pool: asyncpg.Pool[Any] | None = None
        self._opening = asyncio.Lock()

    async def prepare(self) -> None:
        """Make the table if it is missing."""
        async with self._connection() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _ONE_AT_A_TIME)
            await connection.execute(_TABLE.format(self._table))

    async def held(self, name: Name) -> Held:
        """What is there."""
        ask = f'SELECT revision, state FROM "{self._table}" WHERE owner = $1 AND project = $2 AND file = $3'
        async with self._connection() as connection:
            row = await connection.fetchrow(ask, *name.space, name.file)
        return NOTHING if row is None else Held(row[0], load(row[1]))

    async def swap(self, name: Name, revision: int, state: State) -> bool:
        """Put a state in the place of another."""
        values = (*name.space, name.file, state.disk, int(state.is_there), state.bytes, len(state.waiting), dump(state))
        try:
            async with self._connection() as connection:
                if revision:
                    told = await connection.execute(
                        f'UPDATE "{self._table}" SET disk = $4, there = $5, bytes = $6, waiting = $7, state = $8,'
                        " revision = revision + 1 WHERE owner = $1 AND project = $2 AND file = $3 AND revision = $9",
                        *values,
                        revision,
                    )
                    return bool(told == "UPDATE 1")
                told = await connection.execute(
                    f'INSERT INTO "{self._table}" (owner, project, file, disk, there, bytes, waiting, state, revision)'
                    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1) ON CONFLICT (owner, project, file) DO NOTHING",
                    *values,
                )
                return bool(told == "INSERT 0 1")
        except asyncpg.UniqueViolationError:
            raise PathTaken from None

    async def usage(self, space: Space) -> Usage:
        """What a project takes."""
        ask = (
            f'SELECT coalesce(sum(there), 0), coalesce(sum(bytes), 0)::bigint FROM "{self._table}"'
            " WHERE owner = $1 AND project = $2"
        )
        async with self._connection() as connection:
            return Usage(*await connection.fetchrow(ask, *space))

    async def files(self, space: Space, after: str, most: int) -> list[Listed]:
        """Files of a project by their names."""
        ask = (
            f'SELECT file, state FROM "{self._table}" WHERE owner = $1 AND project = $2 AND file > $3'
            " ORDER BY file LIMIT $4"
        )
        async with self._connection() as connection:
            rows = await connection.fetch(ask, *space, after, most)
        return [Listed(Name(space, file), load(state)) for file, state in rows]

    async def projects(self, owner: str | None, after: Space | None, most: int) -> list[Project]:
        """Projects in order."""
        ask = (
            f'SELECT owner, project, sum(there), sum(bytes)::bigint, sum(waiting)::bigint FROM "{self._table}"'
            " WHERE (owner, project) > ($1, $2) AND ($3::text IS NULL OR owner = $3)"
            " GROUP BY owner, project ORDER BY owner, project LIMIT $4"
        )
        async with self._connection() as connection:
            rows = await connection.fetch(ask, *(after or ("", "")), owner, most)
        return [Project(Space(row[0], row[1]), row[2], row[3], row[4]) for row in rows]

    async def walk(self) -> AsyncIterator[Listed]:
        """All files."""
        ask = (
            f'SELECT owner, project, file, state FROM "{self._table}" WHERE (owner, project, file) > ($1, $2, $3)'
            f" ORDER BY owner, project, file LIMIT {_PAGE}"
        )
        last = ("", "", "")
        while True:
            async with self._connection() as connection:
                rows = await connection.fetch(ask, *last)
            for owner, project, file, state in rows:
                yield Listed(Name(Space(owner, project), file), load(state))
            if not rows:
                return
            last = (rows[-1][0], rows[-1][1], rows[-1][2])

    async def close(self) -> None:
        """Close the pool."""
        if self._pool is not None:
            await self._pool.close()

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Any]:
        """One of the pool's; the driver's errors are told in windlass's words."""
        try:
            async with self._opening:
                if self._pool is None:
                    self._pool = await asyncpg.create_pool(
                        self._dsn,
                        min_size=0,
                        max_size=5,
                        command_timeout=_TIMEOUT,
                        timeout=_TIMEOUT,
                        statement_cache_size=0 if "pgbouncer" in self._dsn else 100,
                        server_settings=self._settings,
                    )
            async with self._pool.acquire(timeout=_TIMEOUT) as connection:
                yield connection
        except asyncpg.UniqueViolationError:
            raise
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            told = str(error).partition("\n")[0] or type(error).__name__
            raise StoreUnavailable(f"the records of files cannot be used: {told}") from error
