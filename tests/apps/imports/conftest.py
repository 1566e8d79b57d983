"""Databases that rows go to, and a way to look into them behind a target's back."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pymongo import AsyncMongoClient

from tests.contract.places import open_place
from tests.control.conftest import address
from tests.web.conftest import ask
from windlass.apps.imports.handler import ImportHandler
from windlass.apps.imports.targets.places import target_at
from windlass.apps.imports.targets.target import Target

__all__ = ["KINDS", "Database", "ask", "database"]
KINDS = ("sqlite", "postgres", "mongo")


class Database:
    """One database, for one test."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url = kind, url
        self._opened: list[Target] = []

    def target(self) -> Target:
        made = target_at(self.url)
        self._opened.append(made)
        return made

    async def rows(self, handler: ImportHandler) -> list[dict[str, Any]]:
        """What stands in the table, by its key, fields by the names that documents have, all as plain JSON."""
        rows = await getattr(self, f"_{self.kind}")(handler)
        plain = [{field.label: _plain(row[field]) for field in handler.fields} for row in rows]
        return sorted(plain, key=lambda row: [str(row[label]) for label in handler.key_labels])

    async def _sqlite(self, handler: ImportHandler) -> list[dict[Any, Any]]:
        import sqlite3
        from contextlib import closing

        with closing(sqlite3.connect(self.url.removeprefix("sqlite:///").partition("?")[0])) as connection:
            names = ", ".join(field.name for field in handler.fields)
            rows = connection.execute(f"SELECT {names} FROM {handler.table}").fetchall()
        return [dict(zip(handler.fields, row, strict=True)) for row in rows]

    async def _postgres(self, handler: ImportHandler) -> list[dict[Any, Any]]:
        dsn, _, schema = self.url.partition("?schema=")
        connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
        try:
            names = ", ".join(field.name for field in handler.fields)
            rows = await connection.fetch(f"SELECT {names} FROM {handler.table}")
        finally:
            await connection.close()
        return [dict(zip(handler.fields, row, strict=True)) for row in rows]

    async def _mongo(self, handler: ImportHandler) -> list[dict[Any, Any]]:
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.url)
        try:
            found = [one async for one in client.get_default_database()[handler.table].find()]
        finally:
            await client.close()
        return [{field: one.get(field.label) for field in handler.fields} for one in found]

    async def close(self) -> None:
        for target in self._opened:
            await target.close()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return value
    if hasattr(value, "to_decimal"):
        value = value.to_decimal()
    if hasattr(value, "isoformat"):
        return value.isoformat()[:10]
    return json.loads(str(value)) if float(value) != int(value) else int(value)


@pytest.fixture(params=KINDS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database, None]:
    """An empty database of each kind."""
    async with open_place(request.param, tmp_path) as place:
        url, _ = address(place)
        made = Database(request.param, url)
        yield made
        await made.close()
