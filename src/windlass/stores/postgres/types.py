"""Types on PostgreSQL: a row for every version of a type that workers have told of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.declared import Declared
from windlass.stores.contract import About, Notice, TypeInfo
from windlass.stores.contract.types import FORGOTTEN_AT_ONCE, UNSEEN
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import CLOCK, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.postgres.connection import Ask

_READ = "type, declared, version, first_seen, last_seen, announced_at"
ALL = f"SELECT {_READ} FROM windlass_types ORDER BY type, announced_at DESC, fingerprint"  # noqa: S608  # constants
OF = f"""
SELECT {_READ} FROM windlass_types WHERE type = $1::text ORDER BY announced_at DESC, fingerprint
"""  # noqa: S608  # constants
NEWEST = """
SELECT DISTINCT ON (type) type, fingerprint FROM windlass_types WHERE type = ANY ($1::text[])
ORDER BY type, announced_at DESC, fingerprint
"""
# In the order of their keys: workers that start at the same time write the same rows.
PUT = f"""
WITH {CLOCK}
INSERT INTO windlass_types (type, fingerprint, declared, version, first_seen, last_seen, announced_at)
SELECT told.type, told.fingerprint, told.declared, told.version, now, now, now
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS told (type, fingerprint, declared, version), clock
ORDER BY told.type COLLATE "C", told.fingerprint COLLATE "C"
ON CONFLICT (type, fingerprint) DO UPDATE SET version = excluded.version, last_seen = excluded.last_seen,
    announced_at = CASE WHEN $5::boolean THEN excluded.announced_at ELSE windlass_types.announced_at END
"""  # noqa: S608  # constants
# What somebody else refreshes or forgets at the same moment is left to them.
FORGET = """
DELETE FROM windlass_types WHERE (type, fingerprint) IN (
    SELECT type, fingerprint FROM windlass_types
    WHERE last_seen <= date_trunc('milliseconds', statement_timestamp()) - $1::interval
        AND NOT fingerprint = ANY ($2::text[])
    ORDER BY last_seen LIMIT $3::int FOR UPDATE SKIP LOCKED
)
"""


class PostgresTypes(Room):
    """See `contract.Types` for what each promises."""

    @guarded
    async def put(self, declared: Sequence[Declared], *, announce: bool = True, unseen: timedelta = UNSEEN) -> None:
        """Write what a worker handles, and forget what none has told of for long."""
        if not declared:
            return
        if await self.link.transaction(lambda ask: _put(ask, declared, whole(unseen), announce=announce)):
            self.link.changed(Notice(About.TYPES))

    @guarded
    async def list(self) -> Sequence[TypeInfo]:
        """Everything, by type, the newest version first."""
        return [_info(row) for row in await self.link.fetch(ALL)]

    @guarded
    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first."""
        return [_info(row) for row in await self.link.fetch(OF, type_)]


async def _put(ask: Ask, declared: Sequence[Declared], unseen: timedelta, *, announce: bool) -> bool:
    types = sorted({one.type for one in declared})
    before = {tuple(row) for row in await ask(NEWEST, types)}
    fingerprints = [one.fingerprint for one in declared]
    texts, versions = [one.text for one in declared], [one.version for one in declared]
    await ask(PUT, [one.type for one in declared], fingerprints, texts, versions, announce)
    await ask(FORGET, unseen, fingerprints, FORGOTTEN_AT_ONCE)
    return {tuple(row) for row in await ask(NEWEST, types)} != before


def _info(row: Sequence[Any]) -> TypeInfo:
    type_, text, version, first_seen, last_seen, announced_at = row
    return TypeInfo(
        declared=Declared(type_, text, version),
        first_seen=first_seen,
        last_seen=last_seen,
        announced_at=announced_at,
    )
