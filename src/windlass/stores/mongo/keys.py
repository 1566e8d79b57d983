"""API keys and sessions in MongoDB: a document each, found by the hash of the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.grants import Grants
from windlass.stores.contract import Key, KeyKind, Scope
from windlass.stores.contract.keys import PRUNED_AT_ONCE, TOUCHED_EVERY
from windlass.stores.mongo.connection import Room, guarded
from windlass.stores.mongo.records import as_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import NewKey
    from windlass.stores.mongo.connection import Doc


class MongoKeys(Room):
    """See `contract.Keys` for what each promises."""

    @guarded
    async def put(self, key: NewKey) -> Key:
        """Keep a new key, and remove sessions that are over."""
        await self._prune()
        made = {name: {"$ifNull": [f"${name}", value]} for name, value in _made(key).items()}
        keys = self.link.collection("keys")
        await self.link.surely(lambda: keys.update_one({"_id": key.id}, [{"$set": made}], upsert=True))
        row = await keys.find_one({"_id": key.id})
        return _key(row or {})

    @guarded
    async def find(self, hash_: str) -> Key | None:
        """The key whose secret has this hash, if it still lets in."""
        lives: Doc = {"$or": [{"$eq": ["$expires_at", None]}, {"$gt": ["$expires_at", "$$NOW"]}]}
        asked: Doc = {"hash": {"$eq": hash_}, "revoked_at": None, "$expr": lives}
        row = await self.link.collection("keys").find_one(asked)
        return None if row is None else _key(row)

    @guarded
    async def list(self) -> Sequence[Key]:
        """Every key, the newest first."""
        found = self.link.collection("keys").find().sort([("created_at", -1), ("_id", -1)])
        return [_key(row) for row in await found.to_list()]

    @guarded
    async def touch(self, ids: Sequence[str]) -> None:
        """Note that these were used."""
        if not ids:
            return
        ago = {"$dateSubtract": {"startDate": "$$NOW", "unit": "millisecond", "amount": as_ms(TOUCHED_EVERY)}}
        due: Doc = {"$or": [{"$eq": ["$used_at", None]}, {"$lte": ["$used_at", ago]}]}
        asked: Doc = {"_id": {"$in": list(ids)}, "$expr": due}
        await self.link.surely(
            lambda: self.link.collection("keys").update_many(asked, [{"$set": {"used_at": "$$NOW"}}])
        )

    @guarded
    async def revoke(self, ids: Sequence[str]) -> Sequence[str]:
        """Let them in no more."""
        if not ids:
            return []
        keys, these = self.link.collection("keys"), {"_id": {"$in": list(ids)}}
        stamp = [{"$set": {"revoked_at": {"$ifNull": ["$revoked_at", "$$NOW"]}}}]
        await self.link.surely(lambda: keys.update_many(these, stamp))
        revoked = {row["_id"] for row in await keys.find(these, {"_id": 1}).to_list()}
        return [id_ for id_ in ids if id_ in revoked]

    async def _prune(self) -> None:
        keys, now = self.link.collection("keys"), await self.link.now()
        for over in ({"expires_at": {"$lte": now}}, {"revoked_at": {"$lte": now}}):
            rows = await keys.find({"kind": "session", **over}, {"_id": 1}).limit(PRUNED_AT_ONCE).to_list()
            if rows:
                gone = {"_id": {"$in": [row["_id"] for row in rows]}}
                await self.link.surely(lambda gone=gone: keys.delete_many(gone))  # type: ignore[misc]  # bound per turn


def _made(key: NewKey) -> Doc:
    lasts = None if key.lasts is None else as_ms(key.lasts)
    until = {"$dateAdd": {"startDate": "$$NOW", "unit": "millisecond", "amount": lasts}}
    given = {name: {"$literal": getattr(key, name)} for name in ("hash", "owner", "name")}
    return {
        **given,
        "kind": key.kind.value,
        "scopes": {"$literal": sorted(key.scopes)},
        "created_at": "$$NOW",
        "expires_at": None if lasts is None else until,
        "revoked_at": None,
        "grants": {"$literal": key.grants.text()},
    }


def _key(row: Doc) -> Key:
    return Key(
        id=row["_id"],
        kind=KeyKind(row["kind"]),
        owner=row["owner"],
        name=row["name"],
        scopes=frozenset(map(Scope, row["scopes"])),
        created_at=row["created_at"],
        expires_at=row.get("expires_at"),
        used_at=row.get("used_at"),
        revoked_at=row.get("revoked_at"),
        grants=Grants.of_text(row.get("grants")),
    )
