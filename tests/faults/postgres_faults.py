"""A PostgreSQL server that is killed, frozen or robbed of its connections, and an old snapshot held open on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncGenerator
from typing import TypeAlias

import asyncpg
import psutil

from tests.support.processes import Node, Server
from tests.support.until import until

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

ROB = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> $1"


class Faults:
    """What may befall the one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._frozen: list[psutil.Process] = []

    @property
    def _node(self) -> Node:
        [node] = self.server.nodes
        return node

    def url(self, schema: str) -> str:
        """A schema of its own."""
        return f"{self.server.url}?schema={schema}"

    def kill(self) -> None:
        self._node.kill()

    def start(self) -> None:
        """On the same data and port."""
        if not self._node.running:
            self._node.kill()  # forgets the old process
            self._node.start()

    def freeze(self) -> None:
        """Every process of the server stands still; its sockets stay open, and take what is sent."""
        postmaster = psutil.Process(self._node.pid)
        postmaster.send_signal(signal.SIGSTOP)  # first, so that it starts no other
        self._frozen = [postmaster, *postmaster.children(recursive=True)]
        for process in self._frozen[1:]:
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in reversed(self._frozen):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        self._frozen = []

    async def rob(self) -> int:
        """End every other connection, as an operator may; returns how many."""
        async with self.connected() as db:
            return len(await db.fetch(ROB, db.get_server_pid()))

    async def until_it_answers(self) -> float:
        """When it answered a connection made anew."""

        async def answers() -> bool:
            try:
                async with asyncio.timeout(1), self.connected() as db:
                    return await db.fetchval("SELECT true") is True
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                return False

        await until(answers, "the server to answer", within=40)
        return time.monotonic()

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


FREEZE = float(os.environ.get("WINDLASS_TEST_FREEZE_S", "8"))
"""seconds that the server stands still; longer than a lease. Beyond the store's timeout (10) enqueues are refused"""
