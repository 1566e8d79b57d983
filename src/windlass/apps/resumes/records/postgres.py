"""PostgreSQL: a small pool of connections."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import asyncpg
import sqlalchemy as sa
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

from windlass import StoreUnavailable
from windlass.apps.resumes.records.record import NAME

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")
_ONE_AT_A_TIME = 0x77696E65
"""the lock under which the table is made: two that do it at once would fail"""


class PostgresLane:
    """A database, or one schema of it."""

    def __init__(self, dsn: str, schema: str | None, address: str) -> None:
        settings = {"application_name": "windlass resumes"} | ({} if schema is None else {"search_path": schema})
        connect = partial(asyncpg.connect, dsn, server_settings=settings)
        # Parameters are people's data: no error may quote them.
        self._engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=connect, pool_size=4, max_overflow=4, hide_parameters=True
        )
        self._address = address

    @property
    def address(self) -> str:
        """Where it is."""
        return self._address

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do some work in a transaction."""
        async with self._connected() as connection, connection.begin():
            return await connection.run_sync(work)

    async def migrated(self, work: Callable[[Connection], T]) -> T:
        """The same under a lock."""
        async with self._connected() as connection, connection.begin():
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_AT_A_TIME)))
            return await connection.run_sync(work)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncConnection, None]:
        try:
            async with self._engine.connect() as connection:
                yield connection
        except (OSError, OperationalError, InterfaceError) as error:
            raise StoreUnavailable(f"the database of resumes does not answer: {type(error).__name__}") from None

    async def wipe(self) -> None:
        """Removed rows are taken out of the table's pages."""
        async with self._connected() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await plain.exec_driver_sql(f"VACUUM {NAME}")

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.dispose()
