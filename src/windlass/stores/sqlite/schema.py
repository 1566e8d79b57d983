"""The tables of the SQLite store and how they are brought up to date."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING

from windlass.core.errors import SchemaMismatch, StoreError

if TYPE_CHECKING:
    from windlass.stores.sqlite.engine import Engine

OLDEST_SQLITE = (3, 35, 0)
"""RETURNING came with it"""
MIGRATIONS = (
    "0001_install",
    "0002_control",
    "0003_scale",
    "0004_catalogue",
    "0005_steps",
    "0006_requests",
    "0007_figures",
)
VERSION = len(MIGRATIONS)


class SqliteSchema:
    """Numbered migrations, each applied once, inside the writer's transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        return await self._engine.read(lambda db, _: self._version(db))

    async def pending(self) -> list[str]:
        """What migrate would do."""
        return list(MIGRATIONS[self._check(await self.version()) :])

    async def migrate(self) -> list[str]:
        """Apply what is missing; a newer schema than this windlass knows is refused."""
        if await self._engine.read(lambda db, _: self._check(self._version(db))) == VERSION:
            return []
        return await self._engine.write(lambda db, _: self._migrate(db))

    async def verify(self) -> list[str]:
        """Name every table or index that is missing or was changed."""
        return await self._engine.read(lambda db, _: self._differences(db))

    def statements(self, installed: int = 0) -> str:
        """The migrations as SQL."""
        return "\n".join(f"-- {name}\n{self._script(name)}" for name in MIGRATIONS[installed:])

    async def remove(self) -> None:
        """Drop every table that the migrations make."""
        await self._engine.write(lambda db, _: self._drop(db))

    def _version(self, db: sqlite3.Connection) -> int:
        known = db.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (self._engine.sql("windlass_meta"),)
        ).fetchone()
        if not known:
            return 0
        row = db.execute(self._engine.sql("SELECT value FROM windlass_meta WHERE key = 'schema'")).fetchone()
        return int(row[0]) if row else 0

    def _check(self, found: int) -> int:
        if found > VERSION:
            raise SchemaMismatch(
                f"the schema of {self._engine.place.path} is at {found}, this windlass knows {VERSION}: upgrade it"
            )
        return found

    def _migrate(self, db: sqlite3.Connection) -> list[str]:
        # Read again under the write lock: another process may have migrated since.
        found = self._check(self._version(db))
        for name in MIGRATIONS[found:]:
            for statement in _split(self._script(name)):
                if not _is_made(db, statement):
                    db.execute(statement)
        db.execute(
            self._engine.sql("INSERT OR REPLACE INTO windlass_meta (key, value) VALUES ('schema', ?)"), (VERSION,)
        )
        return list(MIGRATIONS[found:])

    def _script(self, name: str) -> str:
        text = (files("windlass.stores.sqlite") / "migrations" / f"{name}.sql").read_text(encoding="utf-8")
        return self._engine.sql(text)

    def _wanted(self) -> dict[tuple[str, str], str]:
        scratch = sqlite3.connect(":memory:")
        try:
            for name in MIGRATIONS:
                scratch.executescript(self._script(name))
            return _made(scratch)
        finally:
            scratch.close()

    def _drop(self, db: sqlite3.Connection) -> None:
        for kind, name in self._wanted():
            if kind == "table":
                db.execute(f'DROP TABLE IF EXISTS "{name}"')

    def _differences(self, db: sqlite3.Connection) -> list[str]:
        wanted = self._wanted()
        found = _made(db)
        missing = [f"{kind} {name} is missing" for (kind, name) in wanted if (kind, name) not in found]
        changed = [
            f"{kind} {name} differs from what windlass made"
            for (kind, name), made in wanted.items()
            if (kind, name) in found and found[kind, name] != made
        ]
        return missing + changed


def check_sqlite() -> tuple[str, ...]:
    """Refuse an SQLite that lacks what windlass needs; warn of one with a known fault."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreError(f"this Python's SQLite is {sqlite3.sqlite_version}, windlass needs {oldest}: upgrade Python")
    if sqlite3.sqlite_version_info < (3, 51, 3):
        fault = (
            f"SQLite {sqlite3.sqlite_version} has a fault (fixed in 3.51.3) that can damage a WAL file when several"
            " processes write at the moment of a checkpoint: upgrade SQLite, or let one process write"
        )
        return (fault,)
    return ()


def _made(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    rows = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {(kind, name): " ".join(sql.split()) for kind, name, sql in rows}


_COLUMN = re.compile(r"\s*(?:--[^\n]*\n\s*)*ALTER TABLE (\S+) ADD COLUMN (\w+)")


def _is_made(db: sqlite3.Connection, statement: str) -> bool:
    """Whether it adds a column that is there: SQLite has no IF NOT EXISTS for these."""
    adds = _COLUMN.match(statement)
    if adds is None:
        return False
    table, column = adds.groups()
    return (
        db.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table.strip('"'), column)).fetchone()
        is not None
    )


def _split(script: str) -> list[str]:
    statements: list[str] = []
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            statements.append(buffer)
            buffer = ""
    return statements
