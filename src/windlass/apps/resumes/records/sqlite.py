"""SQLite: one connection in a thread of its own; what waits at the same moment shares a transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from windlass import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Connection

T = TypeVar("T")
_PATIENCE, _LOOK = 20.0, 0.01
"""seconds to wait for the file's lock, which the job store holds for moments, too, and between two looks at it"""


class SqliteLane:
    """A file."""

    def __init__(self, file: str, synchronous: str = "FULL") -> None:
        self._file, self._synchronous = file, synchronous
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="windlass-resumes")
        self._waiting: deque[tuple[Callable[[Connection], Any], Future[Any]]] = deque()
        # Parameters are people's data: no error may quote them.
        self._engine = sa.create_engine(
            "sqlite://", creator=self._connect, poolclass=StaticPool, hide_parameters=True, isolation_level="AUTOCOMMIT"
        )

    @property
    def address(self) -> str:
        """The file."""
        return f"sqlite:///{self._file}"

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=False
        )
        _use_log(connection)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        # What is removed or changed is overwritten with zeros, not left in the file's free pages.
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do some work in a transaction."""
        result: Future[T] = Future()
        self._waiting.append((work, result))
        self._thread.submit(self._drain)
        return await asyncio.wrap_future(result)

    async def migrated(self, work: Callable[[Connection], T]) -> T:
        """Every transaction keeps other writers out from its begin on."""
        return await self.run(work)

    def _drain(self) -> None:
        batch: list[tuple[Callable[[Connection], Any], Future[Any]]] = []
        while self._waiting:
            work, result = self._waiting.popleft()
            if result.set_running_or_notify_cancel():
                batch.append((work, result))
        if not batch:
            return
        ends: list[Any]
        try:
            ends = self._together([work for work, _ in batch])
        except OperationalError as error:
            ends = [StoreUnavailable(f"the file of resumes cannot be used: {error.orig}")] * len(batch)
        except Exception as error:  # noqa: BLE001  # the caller that waits is told
            ends = [error] * len(batch)
        for (_, result), end in zip(batch, ends, strict=True):
            if isinstance(end, Exception):
                result.set_exception(end)
            else:
                result.set_result(end)

    def _together(self, works: list[Callable[[Connection], Any]]) -> list[Any]:
        """All of it in one transaction. What goes wrong is undone alone."""
        ends: list[Any] = []
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                for work in works:
                    connection.exec_driver_sql("SAVEPOINT one")
                    try:
                        ends.append(work(connection))
                    except Exception as error:  # noqa: BLE001  # its caller is told, the others go on
                        connection.exec_driver_sql("ROLLBACK TO one")
                        ends.append(error)
                    connection.exec_driver_sql("RELEASE one")
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
        return ends

    async def wipe(self) -> None:
        """The log of writes still has what was overwritten in the file: it is emptied."""

        def work() -> None:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

        await asyncio.wrap_future(self._thread.submit(work))

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.wrap_future(self._thread.submit(self._engine.dispose))
        self._thread.shutdown()


def _use_log(connection: sqlite3.Connection) -> None:
    """Write ahead. Where several connections come to a new file at once, SQLite itself does not wait for the first."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(_LOOK)
        else:
            return
