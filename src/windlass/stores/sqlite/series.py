"""Series on SQLite: a row for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.sqlite.records import as_ms, instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.stores.sqlite.engine import Engine

PUT = "INSERT OR REPLACE INTO windlass_series (name, at, text) VALUES (?, ?, ?)"
READ = "SELECT at, text FROM windlass_series WHERE name = ? AND at >= ? AND at < ? ORDER BY at"
_EVER = 2**62
LAST = "SELECT max(at) FROM windlass_series WHERE name = ?"


class SqliteSeries:
    """See `contract.Series` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def put(self, name: str, at: datetime, text: str) -> None:
        """Keep this text."""
        await self._engine.write(lambda db, _: db.execute(self._sql(PUT), (name, as_ms(at), text)).rowcount)

    async def read(self, name: str, first: datetime, until: datetime | None = None) -> Sequence[tuple[datetime, str]]:
        """From this instant on, oldest first."""
        of = name, as_ms(first), _EVER if until is None else as_ms(until)
        rows = await self._engine.read(lambda db, _: db.execute(self._sql(READ), of).fetchall())
        return [(instant(at), text) for at, text in rows]

    async def last(self, name: str) -> datetime | None:
        """The last instant."""
        [at] = await self._engine.read(lambda db, _: db.execute(self._sql(LAST), (name,)).fetchone())
        return None if at is None else instant(at)
