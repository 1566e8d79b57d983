"""A PostgreSQL server that is killed, frozen or robbed of its connections, and an old snapshot held open on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TypeAlias

import asyncpg

from tests.faults.one_server import OneServer

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

ROB = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> $1"


class Faults(OneServer):
    """What may befall the one server."""

    def url(self, schema: str) -> str:
        """A schema of its own."""
        return f"{self.server.url}?schema={schema}"

    async def rob(self) -> int:
        """End every other connection, as an operator may; returns how many."""
        async with self.connected() as db:
            return len(await db.fetch(ROB, db.get_server_pid()))

    async def answers(self) -> bool:
        try:
            async with asyncio.timeout(1), self.connected() as db:
                return await db.fetchval("SELECT true") is True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False

    @contextlib.asynccontextmanager
    async def old_snapshot(self, schema: str) -> AsyncGenerator[None, None]:
        """A transaction that has looked once and is left open."""
        async with self.connected() as db, db.transaction(isolation="repeatable_read"):
            await db.fetch(f'SELECT count(*) FROM "{schema}".windlass_jobs')  # a name made by the test
            yield

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncGenerator[Connection, None]:
        db: Connection = await asyncpg.connect(self.server.url, timeout=5)
        try:
            yield db
        finally:
            db.terminate()

    async def rescue_without_asking(self, schema: str) -> int:
        """The control: jobs that run are queued again, with no regard to their leases; returns how many."""
        async with self.connected() as db:
            rows = await db.fetch(
                f"UPDATE \"{schema}\".windlass_jobs SET status = 'queued', worker_id = NULL, lease_expires_at = NULL"
                " WHERE status = 'processing' RETURNING id"
            )
        return len(rows)
