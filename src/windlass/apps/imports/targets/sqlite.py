"""SQLite: every batch, its errors and how far the import is are one transaction, in a thread of its own."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from windlass.apps.imports.targets.tables import COUNTS, Table
from windlass.apps.imports.targets.target import Counts, Overtaken, Refused, Unwritable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from windlass.apps.imports.handler import ImportHandler
    from windlass.apps.imports.targets.target import Batch, Run

T = TypeVar("T")
_DIALECT = sqlite.dialect()
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)
_MOST_VARIABLES = 30_000
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})
_PATIENCE = 20.0
"""seconds to wait for the file's lock, which the job store holds for moments, too"""


class SqliteTarget:
    """Rows in an SQLite file."""

    atomic = True
    exact = False
    """decimals are binary fractions in it"""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="windlass-imports")
        self._connection: sqlite3.Connection | None = None
        self._tables: dict[str, Table] = {}

    @property
    def address(self) -> str:
        """The file."""
        return f"sqlite:///{self._file}"

    async def prepare(self, handler: ImportHandler) -> None:
        """Make the tables that are missing."""

        def work(_: sqlite3.Connection) -> None:
            with self._engine.begin() as connection:
                self._table(handler).make(connection)

        await self._run(work)

    async def begin(self, run: Run) -> Counts:
        """How far the import is."""

        def work(connection: sqlite3.Connection) -> Counts:
            connection.execute(
                "INSERT INTO windlass_imports (job, token) VALUES (?, ?)"
                " ON CONFLICT (job) DO UPDATE SET token = excluded.token WHERE token <= excluded.token",
                (run.job, run.token),
            )
            row = connection.execute(
                f"SELECT {', '.join(COUNTS)} FROM windlass_imports WHERE job = ? AND token = ?",
                (run.job, run.token),
            ).fetchone()
            if row is None:
                raise Overtaken
            return Counts(**dict(zip(COUNTS, row, strict=True)))

        return await self._in_transaction(work)

    async def write(self, run: Run, batch: Batch, before: Counts) -> Counts:
        """Write a batch."""
        return await self._in_transaction(lambda connection: self._write(connection, run, batch, before))

    def _write(self, connection: sqlite3.Connection, run: Run, batch: Batch, before: Counts) -> Counts:
        existing = changed = 0
        rows = _all_stored(batch.rows)
        if rows and run.atomic and not run.dry:
            self._stage(connection, run, batch, rows)
        elif rows:
            existing, changed = self._upsert(connection, run, rows)
        connection.executemany(
            "INSERT OR REPLACE INTO windlass_import_rows (job, row, cells, errors) VALUES (?, ?, ?, ?)",
            [(run.job, one["row"], json.dumps(one["cells"]), json.dumps(one["errors"])) for one in batch.refused],
        )
        staged = run.atomic and not run.dry
        counts = before.plus(
            last_row=batch.last_row,
            total=batch.total,
            inserted=0 if staged else len(rows) - existing,
            updated=0 if staged else existing + len(batch.repeats),
            unchanged=0 if staged or run.dry else existing - changed,
            failed=len(batch.refused),
            errors=batch.errors,
        )
        self._keep(connection, run, counts, before.last_row)
        return counts

    def _keep(self, connection: sqlite3.Connection, run: Run, counts: Counts, was: int) -> None:
        sets = ", ".join(f"{name} = :{name}" for name in COUNTS)
        cursor = connection.execute(
            f"UPDATE windlass_imports SET {sets} WHERE job = :job AND token = :token AND last_row = :was",
            {**asdict(counts), "job": run.job, "token": run.token, "was": was},
        )
        if cursor.rowcount != 1:
            raise Overtaken

    def _upsert(self, connection: sqlite3.Connection, run: Run, rows: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
        """How many of these rows were there already, and how many of those are others now."""
        table = self._table(run.handler)
        if run.dry:
            return self._existing(connection, table, rows), 0
        values = ", ".join("?" * len(table.names))
        insert = f"INSERT INTO {table.name} ({table.listed}) VALUES ({values})"
        # What is new first: most files hold nothing else, and what comes behind finds only these rows to be alike.
        existing = len(rows) - connection.executemany(f"{insert} {table.keeping}", rows).rowcount
        return existing, connection.executemany(f"{insert} {table.conflict}", rows).rowcount if existing else 0

    def _existing(self, connection: sqlite3.Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        """How many of these rows are there already."""
        keys = [tuple(row[place] for place in table.places) for row in rows]
        at_once, one, found = _MOST_VARIABLES // len(table.key), f"({', '.join('?' * len(table.key))})", 0
        for start in range(0, len(keys), at_once):
            part = keys[start : start + at_once]
            listed = ", ".join([one] * len(part))
            [(n,)] = connection.execute(
                f"SELECT count(*) FROM {table.name} WHERE ({', '.join(table.key)}) IN (VALUES {listed})",
                [value for key in part for value in key],
            )
            found += n
        return found

    def _stage(self, connection: sqlite3.Connection, run: Run, batch: Batch, rows: Sequence[tuple[Any, ...]]) -> None:
        table = self._table(run.handler)
        values = ", ".join("?" * (len(table.names) + 2))
        connection.executemany(
            f"INSERT INTO {table.stage} (windlass_job, windlass_row, {table.listed}) VALUES ({values})",
            [(run.job, number, *row) for number, row in zip(batch.numbers, rows, strict=True)],
        )

    async def finish(self, run: Run, counts: Counts) -> Counts:
        """Write what was set aside."""
        if not run.atomic or run.dry:
            return counts
        return await self._in_transaction(lambda connection: self._finish(connection, run, counts))

    def _finish(self, connection: sqlite3.Connection, run: Run, counts: Counts) -> Counts:
        table = self._table(run.handler)
        if not counts.failed and not counts.inserted and not counts.updated:
            last = table.last_of("?")
            [(rows,)] = connection.execute(f"SELECT count(*) FROM ({last})", (run.job,))
            [(existing,)] = connection.execute(
                f"SELECT count(*) FROM ({last}) n JOIN {table.name} t ON {table.same_key('t', 'n')}", (run.job,)
            )
            # WHERE true: without it SQLite takes ON for a part of the join.
            cursor = connection.execute(
                f"INSERT INTO {table.name} ({table.listed}) SELECT * FROM ({last}) WHERE true {table.conflict}",
                (run.job,),
            )
            inserted = rows - existing
            unchanged = existing - (cursor.rowcount - inserted)
            counts = counts.plus(inserted=inserted, updated=counts.total - inserted, unchanged=unchanged)
            self._keep(connection, run, counts, counts.last_row)
        connection.execute(f"DELETE FROM {table.stage} WHERE windlass_job = ?", (run.job,))
        return counts

    async def refused(self, job: str, after: int, most: int) -> list[Refused]:
        """Rows that were refused."""

        def work(connection: sqlite3.Connection) -> list[Refused]:
            rows = connection.execute(
                "SELECT row, cells, errors FROM windlass_import_rows WHERE job = ? AND row > ? ORDER BY row LIMIT ?",
                (job, after, most),
            )
            return [Refused(row=row, cells=json.loads(cells), errors=json.loads(errors)) for row, cells, errors in rows]

        return await self._run(work)

    async def forget(self, jobs: Sequence[str], handlers: Sequence[ImportHandler]) -> None:
        """Forget what is kept of these imports."""

        def work(connection: sqlite3.Connection) -> None:
            given = [(job,) for job in jobs]
            there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for handler in handlers:
                if f"windlass_stage_{handler.table}" in there:
                    stage = self._table(handler).stage
                    connection.executemany(f"DELETE FROM {stage} WHERE windlass_job = ?", given)
            connection.executemany("DELETE FROM windlass_import_rows WHERE job = ?", given)
            connection.executemany("DELETE FROM windlass_imports WHERE job = ?", given)

        await self._in_transaction(work)

    async def known(self, most: int) -> list[str]:
        """Imports that something is kept of."""

        def work(connection: sqlite3.Connection) -> list[str]:
            is_there = "SELECT 1 FROM sqlite_master WHERE name = 'windlass_imports'"
            if connection.execute(is_there).fetchone() is None:
                return []
            found = connection.execute("SELECT job FROM windlass_imports ORDER BY began_at LIMIT ?", (most,))
            return [job for (job,) in found]

        return await self._run(work)

    async def close(self) -> None:
        """Close the file."""
        await self._run(lambda connection: connection.close())
        self._engine.dispose()
        self._thread.shutdown()

    def _table(self, handler: ImportHandler) -> Table:
        return self._tables.setdefault(handler.import_type, Table(handler, _DIALECT, "IS NOT"))

    @cached_property
    def _engine(self) -> sa.Engine:
        return sa.create_engine(f"sqlite:///{self._file}", connect_args={"timeout": _PATIENCE})

    async def _in_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def carried_out(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                done = work(connection)
            except _REFUSALS as error:
                connection.execute("ROLLBACK")
                raise Unwritable(str(error)) from None
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return done

        return await self._run(carried_out)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._opened()))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self._file, timeout=_PATIENCE, isolation_level=None, cached_statements=64
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
        return self._connection


def _all_stored(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as SQLite keeps them, column by column: most columns hold nothing that is to be changed."""
    columns = [
        column if _AS_THEY_ARE.issuperset(map(type, column)) else [*map(_stored, column)]
        for column in zip(*rows, strict=True)
    ]
    return list(zip(*columns, strict=True))


def _stored(value: Any) -> Any:
    """A value as SQLite keeps it: decimals exactly, dates as text."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value
