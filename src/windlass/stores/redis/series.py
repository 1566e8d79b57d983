"""Series in Redis: a sorted set for each name, of instants and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_ms, instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class RedisSeries(Room):
    """See `contract.Series` for what each promises."""

    @guarded
    async def put(self, name: str, at: datetime, text: str) -> None:
        """Keep this text."""
        await self.link.run("note_at", [name, as_ms(at), text])

    @guarded
    async def read(self, name: str, first: datetime, until: datetime | None = None) -> Sequence[tuple[datetime, str]]:
        """From this instant on, oldest first."""
        last = "+inf" if until is None else f"({as_ms(until)}"
        found = await self.link.command("ZRANGEBYSCORE", self.link.key(f"series:{name}"), as_ms(first), last)
        parts = (member.decode().partition(" ") for member in found)
        return [(instant(int(at)), text) for at, _, text in parts]

    @guarded
    async def last(self, name: str) -> datetime | None:
        """The last instant."""
        found = await self.link.command("ZRANGE", self.link.key(f"series:{name}"), -1, -1)
        return instant(int(found[0].partition(b" ")[0])) if found else None
