"""API keys and sessions on PostgreSQL: a row each, found by the hash of the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.grants import Grants
from windlass.stores.contract import Key, KeyKind, Scope
from windlass.stores.contract.keys import PRUNED_AT_ONCE, TOUCHED_EVERY
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import CLOCK, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import NewKey
    from windlass.stores.postgres.connection import Ask

_READ = "id, kind, owner, name, scopes, created_at, expires_at, used_at, revoked_at, grants"
_NOW = "date_trunc('milliseconds', statement_timestamp())"
PUT = f"""
WITH {CLOCK}
INSERT INTO windlass_keys (id, hash, kind, owner, name, scopes, created_at, expires_at, grants)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text[], now, now + $7::interval, $8::text FROM clock
ON CONFLICT (id) DO NOTHING
"""  # noqa: S608  # constants
GET = f"SELECT {_READ} FROM windlass_keys WHERE id = $1::text"  # noqa: S608  # constants
FIND = f"""
SELECT {_READ} FROM windlass_keys
WHERE hash = $1::text AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())
"""  # noqa: S608  # constants
ALL = f"SELECT {_READ} FROM windlass_keys ORDER BY created_at DESC, id DESC"  # noqa: S608  # constants
TOUCH = f"""
UPDATE windlass_keys SET used_at = {_NOW}
WHERE id = ANY ($1::text[]) AND (used_at IS NULL OR used_at <= {_NOW} - $2::interval)
"""  # noqa: S608  # constants
REVOKE = f"""
UPDATE windlass_keys SET revoked_at = coalesce(revoked_at, {_NOW}) WHERE id = ANY ($1::text[]) RETURNING id
"""  # noqa: S608  # constants
OVER = """
DELETE FROM windlass_keys WHERE id IN (
    SELECT id FROM windlass_keys WHERE kind = 'session' AND {over} IS NOT NULL AND {over} <= statement_timestamp()
    ORDER BY {over} LIMIT $1::int FOR UPDATE SKIP LOCKED
)
"""


class PostgresKeys(Room):
    """See `contract.Keys` for what each promises."""

    @guarded
    async def put(self, key: NewKey) -> Key:
        """Keep a new key, and remove sessions that are over."""
        return await self.link.transaction(lambda ask: _put(ask, key))

    @guarded
    async def find(self, hash_: str) -> Key | None:
        """The key whose secret has this hash, if it still lets in."""
        rows = await self.link.fetch(FIND, hash_)
        return _key(rows[0]) if rows else None

    @guarded
    async def list(self) -> Sequence[Key]:
        """Every key, the newest first."""
        return [_key(row) for row in await self.link.fetch(ALL)]

    @guarded
    async def touch(self, ids: Sequence[str]) -> None:
        """Note that these were used."""
        if ids:
            await self.link.fetch(TOUCH, sorted(ids), TOUCHED_EVERY)

    @guarded
    async def revoke(self, ids: Sequence[str]) -> Sequence[str]:
        """Let them in no more."""
        revoked = {row[0] for row in await self.link.fetch(REVOKE, list(ids))} if ids else set[str]()
        return [id_ for id_ in ids if id_ in revoked]


async def _put(ask: Ask, key: NewKey) -> Key:
    for over in ("expires_at", "revoked_at"):
        await ask(OVER.format(over=over), PRUNED_AT_ONCE)
    lasts = None if key.lasts is None else whole(key.lasts)
    await ask(PUT, key.id, key.hash, key.kind.value, key.owner, key.name, sorted(key.scopes), lasts, key.grants.text())
    [row] = await ask(GET, key.id)
    return _key(row)


def _key(row: Sequence[Any]) -> Key:
    id_, kind, owner, name, scopes, created_at, expires_at, used_at, revoked_at, grants = row
    return Key(
        id=id_,
        kind=KeyKind(kind),
        owner=owner,
        name=name,
        scopes=frozenset(map(Scope, scopes)),
        created_at=created_at,
        expires_at=expires_at,
        used_at=used_at,
        revoked_at=revoked_at,
        grants=Grants.of_text(grants),
    )
