"""PostgreSQL: rows come by COPY into a temporary table and go on from there, with errors and counts, in one step."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import create_async_engine

from windlass.apps.imports.targets.tables import COUNTS, Table
from windlass.apps.imports.targets.target import Counts, Overtaken, Refused, Unwritable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from windlass.apps.imports.handler import ImportHandler
    from windlass.apps.imports.targets.target import Batch, Run

_DIALECT: sa.Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # it has no types
_REFUSALS = (
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,  # a key that is too long for its index
    asyncpg.RaiseError,  # of a trigger
)
_ONE_AT_A_TIME = 0x77696E64
"""the lock under which tables are made: two that do it at once would fail"""


class PostgresTarget:
    """Rows in a PostgreSQL database."""

    atomic = True
    exact = True

    def __init__(self, dsn: str, schema: str | None, address: str) -> None:
        settings = {"application_name": "windlass imports"} | ({} if schema is None else {"search_path": schema})
        connect = partial(asyncpg.connect, dsn, server_settings=settings)
        self._engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=4, max_overflow=4)
        self._tables: dict[str, Table] = {}
        self._address = address

    @property
    def address(self) -> str:
        """Where it is."""
        return self._address

    async def prepare(self, handler: ImportHandler) -> None:
        """Make the tables that are missing."""
        async with self._engine.begin() as connection:
            await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_AT_A_TIME)))
            await connection.run_sync(self._table(handler).make)

    async def begin(self, run: Run) -> Counts:
        """How far the import is."""
        async with self._transaction() as raw:
            row = await raw.fetchrow(
                "INSERT INTO windlass_imports AS l (job, token) VALUES ($1, $2)"
                " ON CONFLICT (job) DO UPDATE SET token = excluded.token WHERE l.token <= excluded.token"
                f" RETURNING {', '.join(f'l.{name}' for name in COUNTS)}",
                run.job,
                run.token,
            )
        if row is None:
            raise Overtaken
        return Counts(**dict(row))

    async def write(self, run: Run, batch: Batch, before: Counts) -> Counts:
        """Write a batch."""
        async with self._transaction() as raw:
            existing = changed = 0
            staged = run.atomic and not run.dry
            if batch.rows and staged:
                await self._stage(raw, run, batch)
            elif batch.rows:
                existing, changed = await self._upsert(raw, run, batch.rows)
            if batch.refused:
                await raw.executemany(
                    "INSERT INTO windlass_import_rows (job, row, cells, errors) VALUES ($1, $2, $3, $4)"
                    " ON CONFLICT (job, row) DO UPDATE SET cells = excluded.cells, errors = excluded.errors",
                    [
                        (run.job, one["row"], json.dumps(one["cells"]), json.dumps(one["errors"]))
                        for one in batch.refused
                    ],
                )
            counts = before.plus(
                last_row=batch.last_row,
                total=batch.total,
                inserted=0 if staged else len(batch.rows) - existing,
                updated=0 if staged else existing + len(batch.repeats),
                unchanged=0 if staged or run.dry else existing - changed,
                failed=len(batch.refused),
                errors=batch.errors,
            )
            await self._keep(raw, run, counts, before.last_row)
        return counts

    async def _upsert(self, raw: asyncpg.Connection[Any], run: Run, rows: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
        """How many were there, and how many of those have changed."""
        table = self._table(run.handler)
        incoming = f"windlass_in_{run.handler.import_type.lower().replace('-', '_')}"
        alike = f"SELECT {table.listed} FROM {table.name} LIMIT 0"
        await raw.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {incoming} ON COMMIT DELETE ROWS AS {alike}")
        names = [field.name for field in run.handler.fields]
        await raw.copy_records_to_table(incoming, records=rows, columns=names, schema_name="pg_temp")
        if run.dry:
            existing = await raw.fetchval(
                f"SELECT count(*) FROM pg_temp.{incoming} n JOIN {table.name} t ON {table.same_key('t', 'n')}"
            )
            return existing, 0
        insert = f"INSERT INTO {table.name} ({table.listed}) SELECT * FROM pg_temp.{incoming} {table.conflict}"
        return _counted(len(rows), await raw.fetchrow(_counting(insert)))

    async def _stage(self, raw: asyncpg.Connection[Any], run: Run, batch: Batch) -> None:
        names = ["windlass_job", "windlass_row", *(field.name for field in run.handler.fields)]
        records = [(run.job, number, *row) for number, row in zip(batch.numbers, batch.rows, strict=True)]
        await raw.copy_records_to_table(f"windlass_stage_{run.handler.table}", records=records, columns=names)

    async def finish(self, run: Run, counts: Counts) -> Counts:
        """Write what was set aside."""
        if not run.atomic or run.dry:
            return counts
        table = self._table(run.handler)
        async with self._transaction() as raw:
            if not counts.failed and not counts.inserted and not counts.updated:
                last = table.last_of("$1")
                rows = await raw.fetchval(f"SELECT count(*) FROM ({last}) n", run.job)
                told = await raw.fetchrow(
                    _counting(f"INSERT INTO {table.name} ({table.listed}) {last} {table.conflict}"), run.job
                )
                existing, changed = _counted(rows, told)
                inserted = rows - existing
                counts = counts.plus(inserted=inserted, updated=counts.total - inserted, unchanged=existing - changed)
                await self._keep(raw, run, counts, counts.last_row)
            await raw.execute(f"DELETE FROM {table.stage} WHERE windlass_job = $1", run.job)
        return counts

    async def _keep(self, raw: asyncpg.Connection[Any], run: Run, counts: Counts, was: int) -> None:
        values = asdict(counts)
        sets = ", ".join(f"{name} = ${index}" for index, name in enumerate(COUNTS, 4))
        told = await raw.execute(
            f"UPDATE windlass_imports SET {sets} WHERE job = $1 AND token = $2 AND last_row = $3",
            run.job,
            run.token,
            was,
            *(values[name] for name in COUNTS),
        )
        if told != "UPDATE 1":
            raise Overtaken

    async def refused(self, job: str, after: int, most: int) -> list[Refused]:
        """Rows that were refused."""
        async with self._transaction() as raw:
            rows = await raw.fetch(
                "SELECT row, cells, errors FROM windlass_import_rows WHERE job = $1 AND row > $2 ORDER BY row LIMIT $3",
                job,
                after,
                most,
            )
        return [Refused(row=row, cells=json.loads(cells), errors=json.loads(errors)) for row, cells, errors in rows]

    async def forget(self, jobs: Sequence[str], handlers: Sequence[ImportHandler]) -> None:
        """Forget what is kept of these imports."""
        async with self._transaction() as raw:
            for handler in handlers:
                stage = self._table(handler).stage
                if await raw.fetchval("SELECT to_regclass($1)", stage) is not None:
                    await raw.execute(f"DELETE FROM {stage} WHERE windlass_job = ANY($1)", list(jobs))
            await raw.execute("DELETE FROM windlass_import_rows WHERE job = ANY($1)", list(jobs))
            await raw.execute("DELETE FROM windlass_imports WHERE job = ANY($1)", list(jobs))

    async def known(self, most: int) -> list[str]:
        """Imports that something is kept of."""
        async with self._transaction() as raw:
            if await raw.fetchval("SELECT to_regclass('windlass_imports')") is None:
                return []
            rows = await raw.fetch("SELECT job FROM windlass_imports ORDER BY began_at LIMIT $1", most)
        return [row[0] for row in rows]

    async def close(self) -> None:
        """Close the pool."""
        await self._engine.dispose()

    def _table(self, handler: ImportHandler) -> Table:
        return self._tables.setdefault(handler.import_type, Table(handler, _DIALECT, "IS DISTINCT FROM"))

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[asyncpg.Connection[Any], None]:
        """The driver's own connection: SQLAlchemy has no words for COPY."""
        async with self._engine.connect() as connection:
            held = await connection.get_raw_connection()
            raw: asyncpg.Connection[Any] = held.driver_connection  # type: ignore[assignment]  # it is of any driver
            try:
                async with raw.transaction():
                    yield raw
            except _REFUSALS as error:
                raise Unwritable(str(error)) from None


def _counting(insert: str) -> str:
    """How many rows an insert has made, and how many it has changed."""
    # xmax is 0 in a row that was made, and the transaction's own in one that was changed.
    return f"WITH w AS ({insert} RETURNING (xmax = 0) AS made) SELECT count(*) FILTER (WHERE made), count(*) FROM w"


def _counted(rows: int, told: Any) -> tuple[int, int]:
    made, written = told
    return rows - made, written - made
