"""API keys and sessions in Redis: a record each, found by the hash of the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.grants import Grants
from windlass.stores.contract import Key, KeyKind, Scope
from windlass.stores.contract.keys import PRUNED_AT_ONCE, TOUCHED_EVERY
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_duration_ms, instant, maybe_instant, packed, unpacked
from windlass.stores.redis.views import as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import NewKey


class RedisKeys(Room):
    """See `contract.Keys` for what each promises."""

    @guarded
    async def put(self, key: NewKey) -> Key:
        """Keep a new key, and remove sessions that are over."""
        lasts = "" if key.lasts is None else str(as_duration_ms(key.lasts))
        values = [key.id, key.hash, key.kind.value, key.owner, key.name, " ".join(sorted(key.scopes)), lasts]
        values.append(key.grants.text() or "")
        packed(values)  # a NUL in one of them would be taken for its end
        return _key(key.id, await self.link.run("grant", [PRUNED_AT_ONCE, *values]))

    @guarded
    async def find(self, hash_: str) -> Key | None:
        """The key whose secret has this hash, if it still lets in."""
        found = await self.link.run("admit", [hash_])
        return _key(found[0].decode(), found[1]) if found else None

    @guarded
    async def list(self) -> Sequence[Key]:
        """Every key, the newest first."""
        found = as_pairs(await self.link.command("HGETALL", self.link.key("access")))
        keys = [_key(id_.decode(), record) for id_, record in found]
        return sorted(keys, key=lambda key: (key.created_at, key.id), reverse=True)

    @guarded
    async def touch(self, ids: Sequence[str]) -> None:
        """Note that these were used."""
        if ids:
            await self.link.run("used", [as_duration_ms(TOUCHED_EVERY), *ids])

    @guarded
    async def revoke(self, ids: Sequence[str]) -> Sequence[str]:
        """Let them in no more."""
        return [id_.decode() for id_ in await self.link.run("revoke", list(ids))] if ids else []


def _key(id_: str, record: bytes) -> Key:
    _, kind, owner, name, scopes, created_at, expires_at, used_at, revoked_at, *grants = unpacked(record)
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
        grants=Grants.of_text(grants[0] if grants else None),  # records of older versions end before them
    )
