"""Named locks in Redis, with tokens from one counter that only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.keys import check_key
from windlass.stores.contract import Granted, Held
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_duration_ms, instant

if TYPE_CHECKING:
    from datetime import timedelta


class RedisLocks(Room):
    """See `contract.Locks` for what each promises."""

    @guarded
    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired."""
        check_key(name, "the lock's name")
        token, until = await self.link.run("acquire", [name, owner, as_duration_ms(ttl)])
        return Granted(token, instant(until)) if token else Held(instant(until))

    @guarded
    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer."""
        return bool(await self.link.run("keep", [name, token, as_duration_ms(ttl)]))

    @guarded
    async def release(self, name: str, token: int) -> bool:
        """Give it back."""
        return bool(await self.link.run("keep", [name, token, ""]))
