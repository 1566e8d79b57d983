"""API keys and sessions on SQLite: a row each, found by the hash of the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.grants import Grants
from windlass.stores.contract import Key, KeyKind, Scope
from windlass.stores.contract.keys import PRUNED_AT_ONCE, TOUCHED_EVERY
from windlass.stores.sqlite.records import as_duration_ms, instant, maybe_instant

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from windlass.stores.contract import NewKey
    from windlass.stores.sqlite.engine import Engine

_READ = "id, kind, owner, name, scopes, created_at, expires_at, used_at, revoked_at, grants"
PUT = """
INSERT INTO windlass_keys (id, hash, kind, owner, name, scopes, created_at, expires_at, grants)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
"""
GET = f"SELECT {_READ} FROM windlass_keys WHERE id = ?"  # noqa: S608  # constants
FIND = f"""
SELECT {_READ} FROM windlass_keys WHERE hash = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)
"""  # noqa: S608  # constants
ALL = f"SELECT {_READ} FROM windlass_keys ORDER BY created_at DESC, id DESC"  # noqa: S608  # constants
TOUCH = "UPDATE windlass_keys SET used_at = ? WHERE id = ? AND (used_at IS NULL OR used_at <= ?)"
REVOKE = "UPDATE windlass_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"
EXPIRED = """
DELETE FROM windlass_keys WHERE id IN (
    SELECT id FROM windlass_keys WHERE kind = 'session' AND expires_at <= ? ORDER BY expires_at LIMIT ?
)
"""
REVOKED = """
DELETE FROM windlass_keys WHERE id IN (
    SELECT id FROM windlass_keys WHERE kind = 'session' AND revoked_at IS NOT NULL ORDER BY revoked_at LIMIT ?
)
"""


class SqliteKeys:
    """See `contract.Keys` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql

    async def put(self, key: NewKey) -> Key:
        """Keep a new key, and remove sessions that are over."""
        return await self._engine.write(lambda db, now: self._put(db, now, key))

    async def find(self, hash_: str) -> Key | None:
        """The key whose secret has this hash, if it still lets in."""
        row = await self._engine.read(lambda db, now: db.execute(self._sql(FIND), (hash_, now)).fetchone())
        return None if row is None else _key(row)

    async def list(self) -> Sequence[Key]:
        """Every key, the newest first."""
        return [_key(row) for row in await self._engine.read(lambda db, _: db.execute(self._sql(ALL)).fetchall())]

    async def touch(self, ids: Sequence[str]) -> None:
        """Note that these were used."""
        every = as_duration_ms(TOUCHED_EVERY)
        await self._engine.write(
            lambda db, now: db.executemany(self._sql(TOUCH), [(now, id_, now - every) for id_ in ids]).rowcount
        )

    async def revoke(self, ids: Sequence[str]) -> Sequence[str]:
        """Let them in no more."""
        return await self._engine.write(
            lambda db, now: [id_ for id_ in ids if db.execute(self._sql(REVOKE), (now, id_)).rowcount]
        )

    def _put(self, db: sqlite3.Connection, now: int, key: NewKey) -> Key:
        db.execute(self._sql(EXPIRED), (now, PRUNED_AT_ONCE))
        db.execute(self._sql(REVOKED), (PRUNED_AT_ONCE,))
        until = None if key.lasts is None else now + as_duration_ms(key.lasts)
        scopes = " ".join(sorted(key.scopes))
        given = (key.id, key.hash, key.kind.value, key.owner, key.name, scopes)
        db.execute(self._sql(PUT), (*given, now, until, key.grants.text()))
        return _key(db.execute(self._sql(GET), (key.id,)).fetchone())


def _key(row: Sequence[Any]) -> Key:
    id_, kind, owner, name, scopes, created_at, expires_at, used_at, revoked_at, grants = row
    return Key(
        id=id_,
        kind=KeyKind(kind),
        owner=owner,
        name=name,
        scopes=frozenset(map(Scope, scopes.split())),
        created_at=instant(created_at),
        expires_at=maybe_instant(expires_at),
        used_at=maybe_instant(used_at),
        revoked_at=maybe_instant(revoked_at),
        grants=Grants.of_text(grants),
    )
