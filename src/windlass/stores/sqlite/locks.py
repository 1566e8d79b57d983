"""Named locks on SQLite, with tokens from one counter that only grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.keys import check_key
from windlass.stores.contract import Granted, Held
from windlass.stores.sqlite.news import News
from windlass.stores.sqlite.records import as_duration_ms, instant

if TYPE_CHECKING:
    import sqlite3
    from datetime import timedelta

    from windlass.stores.sqlite.engine import Engine

HOLDER = "SELECT owner, token, expires_at FROM windlass_locks WHERE name = ? AND expires_at > ?"
# One counter for all names, so that a lock's row can be pruned and its tokens still never fall.
NEXT_TOKEN = """
INSERT INTO windlass_meta (key, value) VALUES ('lock_token', 1)
ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value
"""
TAKE = "INSERT OR REPLACE INTO windlass_locks (name, owner, token, expires_at) VALUES (?, ?, ?, ?)"
EXTEND = "UPDATE windlass_locks SET expires_at = ? WHERE name = ? AND token = ? AND expires_at > ?"
RENEW = "UPDATE windlass_locks SET expires_at = ? WHERE name = ?"
# The row stays until somebody acquires the lock or it is pruned, so that a repeated release has the same answer.
RELEASE = "UPDATE windlass_locks SET expires_at = min(expires_at, ?) WHERE name = ? AND token = ?"


class SqliteLocks:
    """See `contract.Locks` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired."""
        check_key(name, "the lock's name")
        return await self._engine.write(lambda db, now: self._acquire(db, now, name, owner, as_duration_ms(ttl)))

    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer."""
        more = as_duration_ms(ttl)
        return await self._engine.write(
            lambda db, now: db.execute(self._sql(EXTEND), (now + more, name, token, now)).rowcount > 0
        )

    async def release(self, name: str, token: int) -> bool:
        """Give it back."""
        return await self._engine.write(
            lambda db, now: db.execute(self._sql(RELEASE), (now, name, token)).rowcount > 0,
            tell=lambda released, _: News(changed=int(released)),
        )

    def _acquire(self, db: sqlite3.Connection, now: int, name: str, owner: str, ttl: int) -> Granted | Held:
        holder = db.execute(self._sql(HOLDER), (name, now)).fetchone()
        if holder is not None:
            held_by, token, until = holder
            if held_by != owner:
                return Held(instant(until))
            db.execute(self._sql(RENEW), (now + ttl, name))
            return Granted(token, instant(now + ttl))
        token = db.execute(self._sql(NEXT_TOKEN)).fetchone()[0]
        db.execute(self._sql(TAKE), (name, owner, token, now + ttl))
        return Granted(token, instant(now + ttl))
