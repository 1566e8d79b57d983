"""The layout of the Redis store's keys: nothing has to be made beforehand but a note of its version."""

from __future__ import annotations

from typing import Any

from windlass.core.errors import SchemaMismatch
from windlass.stores.redis import records
from windlass.stores.redis.connection import Room, guarded

MIGRATIONS = ("0001_install", "0002_steps", "0003_requests", "0004_figures")
VERSION = len(MIGRATIONS)


class RedisSchema(Room):
    """One field of the hash `meta` says which layout the keys have."""

    @guarded
    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        return await self._version()

    @guarded
    async def pending(self) -> list[str]:
        """What migrate would do."""
        return list(MIGRATIONS[self._check(await self._version()) :])

    @guarded
    async def migrate(self) -> list[str]:
        """Write the version down; a newer one than this windlass knows is refused."""
        # Looked at first: a server that takes no writes at the moment can still be opened to look.
        if self._check(await self._version()) == VERSION:
            return []
        found = self._check(await self.link.run("migrate", [VERSION, records.LAYOUT]))
        return list(MIGRATIONS[found:])

    @guarded
    async def verify(self) -> list[str]:
        """Name every list that does not hold what is counted."""
        return [word.decode() for word in await self.link.run("verify", [records.LAYOUT])]

    def statements(self, installed: int = 0) -> str:  # one command does it from any version
        """The migration as a command for redis-cli, under the layout it stands for."""
        layout = "\n".join(f"# {line}".rstrip() for line in (records.__doc__ or "").splitlines())
        return f"{layout}\nHSET {self.link.key('meta')} schema {VERSION} layout {records.LAYOUT}"

    @guarded
    async def remove(self) -> None:
        """Unlink every key of the namespace."""
        cursor: Any = 0
        while True:
            cursor, keys = await self.link.command("SCAN", cursor, "MATCH", self.link.key("*"), "COUNT", 1000)
            if keys:
                await self.link.command("UNLINK", *keys)
            if not int(cursor):
                return

    async def _version(self) -> int:
        return int(await self.link.command("HGET", self.link.key("meta"), "schema") or 0)

    def _check(self, found: int) -> int:
        if found > VERSION:
            raise SchemaMismatch(
                f"the schema of {self.link.place.address} is at {found}, this windlass knows {VERSION}: upgrade it"
            )
        return found
