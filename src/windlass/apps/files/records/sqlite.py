"""Records in an SQLite file: what is changed at the same moment shares one transaction, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from windlass import SettingsError, StoreUnavailable
from windlass.apps.files.names import Name, Space
from windlass.apps.files.records.records import Listed, PathTaken, Project, Usage
from windlass.apps.files.state import State, dump, load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator
    from pathlib import Path

T = TypeVar("T")
_PATIENCE = 20.0
"""seconds to wait for the file's lock, which the job store holds for moments, too"""
_PAGE = 500
_TABLE = """
CREATE TABLE IF NOT EXISTS "{0}" (
    owner TEXT NOT NULL, project TEXT NOT NULL, file TEXT NOT NULL,
    disk TEXT, there INTEGER NOT NULL, bytes INTEGER NOT NULL, waiting INTEGER NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (owner, project, file)
);
CREATE INDEX IF NOT EXISTS "{0}_usage" ON "{0}" (owner, project, file, there, bytes, waiting);
CREATE UNIQUE INDEX IF NOT EXISTS "{0}_disk" ON "{0}" (owner, project, disk) WHERE disk IS NOT NULL;
"""


class _Change(NamedTuple):
    name: Name
    work: Callable[[State], tuple[State, Any]]
    told: Future[Any]


class SqliteRecords:
    """Records in an SQLite file."""

    def __init__(self, file: Path, namespace: str, synchronous: str) -> None:
        if synchronous.upper() not in ("FULL", "NORMAL", "OFF"):
            raise SettingsError(f"synchronous is {synchronous!r}: expected FULL, NORMAL or OFF")
        self._file, self._table, self._synchronous = file, f"{namespace}_files", synchronous.upper()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="windlass-files-writer")
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="windlass-files-reader")
        self._opened = threading.local()
        self._changes: list[_Change] = []
        self._guard = threading.Lock()

    async def prepare(self) -> None:
        """Make the tables that are missing."""

        def work() -> None:
            with _told():
                connection = self._connection()
                missing = f"SELECT 1 FROM sqlite_master WHERE name = '{self._table}_disk'"
                if connection.execute(missing).fetchone() is None:
                    connection.executescript(_TABLE.format(self._table))

        await asyncio.get_running_loop().run_in_executor(self._writer, work)

    async def read(self, name: Name) -> State | None:
        """What is committed of a file now."""
        return await self._ask(lambda connection: self._state(connection, name))

    async def change(self, name: Name, work: Callable[[State], tuple[State, T]]) -> T:
        """Change a file's state as one step."""
        told: Future[T] = Future()
        with self._guard:
            self._changes.append(_Change(name, work, told))
            first = len(self._changes) == 1
        if first:
            self._writer.submit(self._write)
        return await asyncio.wrap_future(told)

    def _write(self) -> None:
        """All changes that wait, in one transaction."""
        with self._guard:
            changes, self._changes = self._changes, []
        changes = [one for one in changes if one.told.set_running_or_notify_cancel()]
        told: list[tuple[Any, Exception | None]] = []
        try:
            with _told(), self._transaction() as connection:
                told = [self._made(connection, one) for one in changes]
        except Exception as error:  # noqa: BLE001  # every change is told what became of it
            told = [(None, error)] * len(changes)
        for one, (value, raised) in zip(changes, told, strict=True):
            if raised is None:
                one.told.set_result(value)
            else:
                one.told.set_exception(raised)

    def _made(self, connection: sqlite3.Connection, change: _Change) -> tuple[Any, Exception | None]:
        try:
            found = self._state(connection, change.name)
            state, value = change.work(found or State())
        except Exception as error:  # noqa: BLE001  # it is the caller's, and the other changes go on
            return None, error
        if state == found:
            return value, None
        (owner, project), file = change.name
        try:
            connection.execute(
                f'INSERT INTO "{self._table}" (owner, project, file, disk, there, bytes, waiting, state)'
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, project, file) DO UPDATE SET"
                " disk = excluded.disk, there = excluded.there, bytes = excluded.bytes, waiting = excluded.waiting,"
                " state = excluded.state",
                (owner, project, file, state.disk, state.is_there, state.bytes, len(state.waiting), dump(state)),
            )
        except sqlite3.IntegrityError:
            return None, PathTaken()
        return value, None

    async def usage(self, space: Space) -> Usage:
        """What a project takes."""
        total = "coalesce(sum(there), 0), coalesce(sum(bytes), 0)"
        ask = f'SELECT {total} FROM "{self._table}" WHERE owner = ? AND project = ?'
        return await self._ask(lambda connection: Usage(*connection.execute(ask, space).fetchone()))

    async def files(self, space: Space, after: str, most: int) -> list[Listed]:
        """Files of a project by their names."""
        where = "WHERE owner = ? AND project = ? AND file > ?"
        ask = f'SELECT file, state FROM "{self._table}" {where} ORDER BY file LIMIT ?'
        rows = await self._ask(lambda connection: connection.execute(ask, (*space, after, most)).fetchall())
        return [Listed(Name(space, file), load(state)) for file, state in rows]

    async def projects(self, owner: str | None, after: Space | None, most: int) -> list[Project]:
        """Projects in order."""
        ask = (
            f'SELECT owner, project, sum(there), sum(bytes), sum(waiting) FROM "{self._table}"'
            " WHERE (owner, project) > (?, ?) AND (? IS NULL OR owner = ?)"
            " GROUP BY owner, project ORDER BY owner, project LIMIT ?"
        )
        words = (*(after or ("", "")), owner, owner, most)
        rows = await self._ask(lambda connection: connection.execute(ask, words).fetchall())
        return [Project(Space(row[0], row[1]), *row[2:]) for row in rows]

    async def walk(self) -> AsyncIterator[Listed]:
        """All files."""
        last = ("", "", "")
        ask = (
            f'SELECT owner, project, file, state FROM "{self._table}" WHERE (owner, project, file) > (?, ?, ?)'
            f" ORDER BY owner, project, file LIMIT {_PAGE}"
        )
        while rows := await self._ask(partial(_page, ask=ask, last=last)):
            for owner, project, file, state in rows:
                yield Listed(Name(Space(owner, project), file), load(state))
            last = rows[-1][:3]

    async def close(self) -> None:
        """Close both connections."""
        for thread in (self._writer, self._reader):
            await asyncio.get_running_loop().run_in_executor(thread, self._close)
            thread.shutdown()

    def _close(self) -> None:
        if (connection := getattr(self._opened, "connection", None)) is not None:
            cast("sqlite3.Connection", connection).close()

    def _state(self, connection: sqlite3.Connection, name: Name) -> State | None:
        ask = f'SELECT state FROM "{self._table}" WHERE owner = ? AND project = ? AND file = ?'
        row = connection.execute(ask, (*name.space, name.file)).fetchone()
        return None if row is None else load(row[0])

    async def _ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def asked() -> T:
            with _told():
                return work(self._connection())

        return await asyncio.get_running_loop().run_in_executor(self._reader, asked)

    @contextlib.contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _connection(self) -> sqlite3.Connection:
        """That of this thread."""
        found: sqlite3.Connection | None = getattr(self._opened, "connection", None)
        if found is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            found = sqlite3.connect(self._file, timeout=_PATIENCE, isolation_level=None, check_same_thread=True)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute(f"PRAGMA synchronous = {self._synchronous}")
            self._opened.connection = found
        return found


def _page(connection: sqlite3.Connection, ask: str, last: tuple[str, str, str]) -> list[Any]:
    return connection.execute(ask, last).fetchall()


@contextlib.contextmanager
def _told() -> Generator[None]:
    """The driver's errors in windlass's words."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the records of files cannot be used: {error}") from error
