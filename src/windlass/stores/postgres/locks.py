"""Named locks on PostgreSQL, with tokens from one counter that only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.keys import check_key
from windlass.stores.contract import Granted, Held
from windlass.stores.postgres.connection import FIRST_TOKEN, Room, guarded
from windlass.stores.postgres.notices import CHANGED
from windlass.stores.postgres.records import CLOCK, whole

if TYPE_CHECKING:
    from datetime import timedelta

    from windlass.stores.postgres.connection import Ask

HOLDER = """
SELECT owner, expires_at FROM windlass_locks WHERE name = $1::text AND expires_at > statement_timestamp()
"""
# The counter's row is held until the end of the transaction: of two acquirers of one name, the second waits here.
NEXT_TOKEN = f"""
UPDATE windlass_meta SET value = greatest(value::bigint + 1, {FIRST_TOKEN})::text
WHERE key = 'lock_token' RETURNING value::bigint
"""  # noqa: S608  # made of constants
TAKE = f"""
WITH {CLOCK}
INSERT INTO windlass_locks (name, owner, token, expires_at)
SELECT $1::text, $2::text, $3::bigint, now + $4::interval FROM clock
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires_at = excluded.expires_at
RETURNING expires_at
"""  # noqa: S608  # made of constants
EXTEND = """
UPDATE windlass_locks SET expires_at = date_trunc('milliseconds', statement_timestamp()) + $3::interval
WHERE name = $1::text AND token = $2::bigint AND expires_at > statement_timestamp() RETURNING 1
"""
# The owner asks again: the answer was lost, or the lock is wanted for longer.
RENEW = """
UPDATE windlass_locks SET expires_at = date_trunc('milliseconds', statement_timestamp()) + $3::interval
WHERE name = $1::text AND owner = $2::text AND expires_at > statement_timestamp() RETURNING token, expires_at
"""
# The row stays, expired, so that a release whose answer was lost finds itself done.
RELEASE = """
UPDATE windlass_locks SET expires_at = least(expires_at, statement_timestamp() - interval '1 minute')
WHERE name = $1::text AND token = $2::bigint RETURNING 1
"""


class PostgresLocks(Room):
    """See `contract.Locks` for what each promises."""

    @guarded
    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired."""
        check_key(name, "the lock's name")
        held = await self.link.fetch(HOLDER, name)
        if held and held[0][0] != owner:
            return Held(held[0][1])
        return await self.link.transaction(lambda ask: self._acquire(ask, name, owner, ttl))

    async def _acquire(self, ask: Ask, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        [(token,)] = await ask(NEXT_TOKEN)
        held = await ask(HOLDER, name)
        if held and held[0][0] != owner:
            return Held(held[0][1])
        renewed = await ask(RENEW, name, owner, whole(ttl)) if held else ()
        if renewed:
            return Granted(*renewed[0])
        [(until,)] = await ask(TAKE, name, owner, token, whole(ttl))
        return Granted(token, until)

    @guarded
    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer."""
        return bool(await self.link.fetch(EXTEND, name, token, whole(ttl)))

    @guarded
    async def release(self, name: str, token: int) -> bool:
        """Give it back."""
        released = bool(await self.link.fetch(RELEASE, name, token))
        self.link.changed(CHANGED)
        return released
