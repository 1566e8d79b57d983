"""`app.types`: what workers handle, as they have published it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.keys import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.client import Client
    from windlass.stores.contract import TypeInfo


class TypesRoom:
    """The catalogue of types. A version is there from a worker's start until none has told of it for 30 days."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> Sequence[TypeInfo]:
        """Every version of every type, by type, of each the newest first: jobs enqueued by name are made by that."""
        return await (await self._client.ready()).types.list()

    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first; empty where no worker has told of it."""
        check_name(type_, "the type")
        return await (await self._client.ready()).types.get(type_)
