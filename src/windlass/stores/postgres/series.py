"""Series on PostgreSQL: a row for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.postgres.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

PUT = """
INSERT INTO windlass_series (name, at, text) VALUES ($1::text, $2::timestamptz, $3::text)
ON CONFLICT (name, at) DO UPDATE SET text = excluded.text
"""
READ = """
SELECT at, text FROM windlass_series
WHERE name = $1::text AND at >= $2::timestamptz AND at < coalesce($3::timestamptz, 'infinity') ORDER BY at
"""
LAST = "SELECT max(at) FROM windlass_series WHERE name = $1::text"


class PostgresSeries(Room):
    """See `contract.Series` for what each promises."""

    @guarded
    async def put(self, name: str, at: datetime, text: str) -> None:
        """Keep this text."""
        await self.link.fetch(PUT, name, at, text)

    @guarded
    async def read(self, name: str, first: datetime, until: datetime | None = None) -> Sequence[tuple[datetime, str]]:
        """From this instant on, oldest first."""
        return [(at, text) for at, text in await self.link.fetch(READ, name, first, until)]

    @guarded
    async def last(self, name: str) -> datetime | None:
        """The last instant."""
        [(at,)] = await self.link.fetch(LAST, name)
        return at  # type: ignore[no-any-return]  # a value of the driver
