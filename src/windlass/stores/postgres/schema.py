"""The tables of the PostgreSQL store and how they are brought up to date."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from windlass.core.errors import SchemaMismatch
from windlass.stores.postgres import migrating
from windlass.stores.postgres.connection import Room, guarded, quoted
from windlass.stores.postgres.locking import lock

if TYPE_CHECKING:
    from windlass.stores.postgres.connection import Ask

MIGRATIONS = (
    "0001_install",
    "0002_control",
    "0003_scale",
    "0004_indexes",
    "0005_catalogue",
    "0006_steps",
    "0007_requests",
    "0008_figures",
)
VERSION = len(MIGRATIONS)
COMPATIBLE = 1
"""the oldest version of windlass's schema whose code can still work on this one; grows only with a major version"""

EXISTS = """
SELECT EXISTS (
    SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relname = $2::text
)
"""
STANDS = "SELECT key, value FROM windlass_meta WHERE key IN ('schema', 'compatible', 'identity')"
SCHEMA_EXISTS = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)"
# What was made is kept beside it, in the server's own words, so that any later change can be told.
_MADE = """
SELECT json_object_agg(name, said ORDER BY name) FROM (
    SELECT 'index ' || c.relname AS name, replace(pg_get_indexdef(i.indexrelid), quote_ident(n.nspname) || '.', '')
        || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END AS said
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
    JOIN pg_namespace AS n ON n.oid = t.relnamespace
    WHERE n.nspname = %s AND t.relname = ANY (%s)
    UNION ALL
    SELECT 'column ' || t.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
    FROM pg_attribute AS a JOIN pg_class AS t ON t.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace
    WHERE n.nspname = %s AND t.relname = ANY (%s) AND t.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
) AS made
"""
MADE = _MADE % (("$1::text", "$2::text[]") * 2)
STAND = """
INSERT INTO windlass_meta (key, value)
SELECT key, value FROM (VALUES ('schema', '%d'), ('compatible', '%d'), ('made', (%s)::text)) AS told (key, value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
"""
_TABLES = re.compile(r"^CREATE TABLE windlass_(\w+)", re.MULTILINE)
KEPT = "SELECT value FROM windlass_meta WHERE key = 'made'"


class PostgresSchema(Room):
    """Numbered migrations, each applied once, under one lock."""

    @guarded
    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        return (await self.link.transaction(self._stands))[0]

    @guarded
    async def pending(self) -> list[str]:
        """What migrate would do."""
        return list(MIGRATIONS[self._check(*await self.link.transaction(self._stands)) :])

    @guarded
    async def migrate(self) -> list[str]:
        """Apply what is missing; a newer schema that this windlass cannot work on is refused."""
        found = self._check(*await self.link.transaction(self._stands))
        if found < VERSION:
            async with migrating.alone(self.link, self._is_done):
                # Read again under the lock: another process may have migrated since.
                found = self._check(*await self.link.transaction(self._stands))
                if found < VERSION:
                    await self._make(found)
        return list(MIGRATIONS[found:])

    async def _is_done(self) -> bool:
        return self._check(*await self.link.transaction(self._stands)) >= VERSION

    @guarded
    async def verify(self) -> list[str]:
        """Name every table, column or index that is missing or was changed."""
        return await self.link.transaction(self._differences)

    def statements(self, installed: int = 0) -> str:
        """The migrations as SQL. On tables in use each index is made by itself, without blocking."""
        if installed >= VERSION:
            return f"-- nothing is missing: the schema is at {installed}\n"
        if installed:
            *steps, stand = self._steps(installed)
            return "\n".join([*map(self.link.sql, [*migrating.by_hand(steps), stand]), ""])
        named = self.link.place.schema
        schema = [] if named is None else [f"CREATE SCHEMA IF NOT EXISTS {quoted(named)};"]
        text = "\n".join(["BEGIN;", *schema, *map(self.link.sql, self._steps(0)), "COMMIT;"])
        return f"{text}\n"

    @guarded
    async def remove(self) -> None:
        """Drop every table that the migrations make."""
        await self.link.transaction(self._drop)

    @guarded
    async def learn(self) -> None:
        """Read what tells this installation from any other."""
        await self.link.transaction(self._stands)

    async def _stands(self, ask: Ask) -> tuple[int, int]:
        [(there,)] = await ask(EXISTS, self.link.schema, f"{self.link.place.namespace}_meta")
        if not there:
            return 0, 0
        meta: dict[str, str] = dict(await ask(STANDS))
        self.link.identity = meta.get("identity")
        return int(meta.get("schema", 0)), int(meta.get("compatible", 0))

    def _check(self, found: int, compatible: int) -> int:
        if compatible > VERSION:
            raise SchemaMismatch(
                f"the schema of {self.link.place.address} is at {found}, this windlass knows {VERSION}: upgrade it"
            )
        return found

    async def _make(self, found: int) -> None:
        if not found:
            await self.link.transaction(self._install)
            return
        *steps, stand = self._steps(found)
        await migrating.make(self.link, steps)
        await self.link.fetch(stand)
        await self.learn()

    async def _install(self, ask: Ask) -> None:
        [(there,)] = await ask(SCHEMA_EXISTS, self.link.schema)
        if not there:
            await ask(f"CREATE SCHEMA {quoted(str(self.link.schema))}")
        for statement in self._steps(0):
            await ask(statement)
        await self._stands(ask)

    def _steps(self, found: int) -> list[str]:
        """Each statement that is missing, the last of them saying where the schema stands then."""
        statements = [statement for name in MIGRATIONS[found:] for statement in _split(_script(name))]
        tables = ", ".join(map(_literal, self._tables()))
        where = (_literal(self.link.schema or "public"), f"ARRAY[{tables}]")
        statements.append(STAND % (VERSION, COMPATIBLE, _MADE % (where * 2)))
        return statements

    async def _drop(self, ask: Ask) -> None:
        await lock(ask, [f"{self.link.scope}:migrate"])
        [(there,)] = await ask(EXISTS, self.link.schema, f"{self.link.place.namespace}_meta")
        for table in self._tables() if there else ():
            await ask(f"DROP TABLE IF EXISTS {quoted(str(self.link.schema))}.{quoted(table)}")

    def _tables(self) -> list[str]:
        """By their names there: other namespaces may begin with this one's."""
        made = _TABLES.findall("\n".join(map(_script, MIGRATIONS)))
        return [f"{self.link.place.namespace}_{table}" for table in made]

    async def _differences(self, ask: Ask) -> list[str]:
        kept = await ask(KEPT)
        wanted: dict[str, str] = json.loads(kept[0][0]) if kept else {}
        [(made,)] = await ask(MADE, self.link.schema, self._tables())
        found: dict[str, str] = json.loads(made or "{}")
        missing = [f"{name} is missing" for name in wanted if name not in found]
        changed = [
            f"{name} differs from what windlass made"
            for name, said in wanted.items()
            if name in found and found[name] != said
        ]
        return missing + changed


def _script(name: str) -> str:
    return (files("windlass.stores.postgres") / "migrations" / f"{name}.sql").read_text(encoding="utf-8")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _split(script: str) -> list[str]:
    # No statement of a migration has a semicolon inside, which a test sees to.
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [f"{statement.strip()};" for statement in "\n".join(lines).split(";") if statement.strip()]
