"""Types in Redis: a record for every version of a type that workers have told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.declared import Declared
from windlass.stores.contract import TypeInfo
from windlass.stores.contract.types import FORGOTTEN_AT_ONCE, UNSEEN
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_duration_ms, instant, unpacked
from windlass.stores.redis.views import as_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.redis.connection import Value


class RedisTypes(Room):
    """See `contract.Types` for what each promises."""

    @guarded
    async def put(self, declared: Sequence[Declared], *, announce: bool = True, unseen: timedelta = UNSEEN) -> None:
        """Write what a worker handles, and forget what none has told of for long."""
        if declared:
            values: list[Value] = [int(announce), as_duration_ms(unseen), FORGOTTEN_AT_ONCE]
            for one in declared:
                values += [one.type, one.fingerprint, one.version or "", one.text]
            await self.link.run("declare", values)

    @guarded
    async def list(self) -> Sequence[TypeInfo]:
        """Everything, by type, the newest version first."""
        return await self._read("")

    @guarded
    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first."""
        return await self._read(type_) if type_ else []

    async def _read(self, type_: str) -> Sequence[TypeInfo]:
        told = as_pairs(await self.link.run("declared", [type_]))
        found = [_info(name.decode(), record) for name, record in told]
        return sorted(
            found, key=lambda one: (one.declared.type, -one.announced_at.timestamp(), one.declared.fingerprint)
        )


def _info(type_: str, record: bytes) -> TypeInfo:
    first_seen, last_seen, announced_at, version, text = unpacked(record)
    return TypeInfo(
        declared=Declared(type_, text, version or None),
        first_seen=instant(first_seen),
        last_seen=instant(last_seen),
        announced_at=instant(announced_at),
    )
