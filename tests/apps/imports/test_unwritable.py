"""Rows that are good to the model and not to the database: found one by one, and told as bad cells are."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pymongo import AsyncMongoClient

from tests.apps.imports.conftest import Database
from tests.apps.imports.test_importing import imports_of, reasons, run
from tests.apps.imports.workbooks import workbook
from tests.support.apps import app_at
from windlass import JobFailed
from windlass.apps.imports.handler import ImportHandler, ImportRow


class PartRow(ImportRow):
    part_no: str
    stock: int = 0


class Parts(ImportHandler):
    import_type = "parts"
    row = PartRow
    key = ("part_no",)


TABLE = "CREATE TABLE parts (part_no TEXT PRIMARY KEY, stock BIGINT NOT NULL CHECK (stock < 1000))"


async def make_table(database: Database) -> None:
    """A table of one's own, which takes no more than 999 of a part."""
    match database.kind:
        case "sqlite":
            with closing(sqlite3.connect(database.url.removeprefix("sqlite:///").partition("?")[0])) as file:
                file.execute(TABLE)
        case "postgres":
            dsn, _, schema = database.url.partition("?schema=")
            connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
            await connection.execute(TABLE)
            await connection.close()
        case _:
            client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(database.url)
            await client.get_default_database().create_collection("parts", validator={"stock": {"$lt": 1000}})
            await client.close()


ROWS: list[Sequence[Any]] = [
    ("Part No", "Stock"),
    *[(f"P-{n:03}", 1000 if n in (7, 38, 50) else n) for n in range(1, 51)],
    *[("P-001", 60), ("P-002", "x"), ("P-003", 2000)],
]


async def test_a_row_that_the_database_refuses_is_named_and_the_others_are_written(
    database: Database, tmp_path: Path
) -> None:
    await make_table(database)
    app = app_at(tmp_path / "jobs.db")
    imports = imports_of(app, tmp_path, batch=20)
    imports.add(Parts)
    imports.address = database.url
    path = workbook(tmp_path / "a.xlsx", ROWS)
    async with app:
        found = await run(imports, "parts", path)
        # The third row is written with its first value; that it comes again is found in another batch, and refused.
        assert (found.total_rows, found.inserted, found.updated, found.failed) == (53, 47, 1, 5)
        told = reasons(found)
        assert [row for row, _ in told] == [8, 39, 51, 53, 54]
        assert ["the database refuses it" in reason for _, reason in told] == [True, True, True, False, True]
        assert found.errors[0].code == "database"
        rows = {row["partNo"]: row["stock"] for row in await database.rows(Parts())}
        assert (len(rows), rows["P-001"], rows["P-003"]) == (47, 60, 3)
        if imports.target.atomic:
            with pytest.raises(JobFailed, match="nothing was written: the database refuses a row"):
                await run(imports, "parts", workbook(tmp_path / "b.xlsx", ROWS[:52]), atomic=True)
            assert await database.rows(Parts()) == [{"partNo": part, "stock": n} for part, n in sorted(rows.items())]
    app.close()


async def test_cells_that_no_column_can_hold_are_errors_of_their_rows(database: Database, tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    imports = imports_of(app, tmp_path)
    imports.add(Parts)
    imports.address = database.url
    rows = [("Part No", "Stock"), ("a", 2.0**63), ("b", "9" * 30), ("c", -(2.0**53)), ("d" * 5000, 1), ("e", 1)]
    async with app:
        found = await run(imports, "parts", workbook(tmp_path / "a.xlsx", rows))
        assert reasons(found)[:2] == [(2, "stock: is too large"), (3, "stock: is too large")]
        assert found.inserted >= 2  # keys of 5,000 letters are too long for PostgreSQL, and not for the others
        assert found.inserted + found.failed == 5
    app.close()
