"""`app.types`: what workers handle, as they have published it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from windlass.client.bulk import check_count
from windlass.client.catalogue import Published
from windlass.client.comparing import MOST_LOOKED_AT, Comparison, compare
from windlass.client.workers import live_workers
from windlass.core.keys import check_name
from windlass.core.status import WAITING
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.client import Client
    from windlass.core.declared import Declared
    from windlass.core.handler import Declaration
    from windlass.stores.contract import Count, TypeInfo

COUNTED = 10_000
"""waiting jobs of a type are counted up to here"""


@dataclass(frozen=True, slots=True)
class TypeState:
    """A type with its versions, the newest first, and how it stands."""

    type: str
    versions: tuple[TypeInfo, ...]
    workers: int
    """that handle it, have beaten lately and are not stopping"""
    waiting: Count
    seen_ago: timedelta
    """how long ago a worker told of any version of it, by the store's clock"""


class TypesRoom:
    """The catalogue of types. A version is there from a worker's start until none has told of it for 30 days."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._here: dict[str, tuple[Declaration, Published]] = {}
        """of handlers that are here what is published of them, once somebody has asked"""

    async def list(self) -> Sequence[TypeInfo]:
        """Every version of every type, by type, of each the newest first: jobs enqueued by name are made by that."""
        return await (await self._client.ready()).types.list()

    async def known(self) -> Sequence[Declared]:
        """What every type declares, by type: as its handler here does, else as its newest worker has told."""
        here = {one.name: one.described(self._client.version) for one in self._client.registry}
        newest = {one.declared.type: one.declared for one in reversed(await self.list())}
        return [declared for _, declared in sorted({**newest, **here}.items())]

    async def queue_of(self, type_: str) -> str:
        """Where jobs of a type go unless they are told otherwise: as declared here, else as its newest worker says."""
        if type_ in self._client.registry:
            return self._client.registry.get(type_).options.queue
        published = await self._client.published(type_)
        return (self._client.defaults if published is None else published.declared.enqueued_with).queue

    def check_payload(self, type_: str, payload: object) -> None:
        """PayloadInvalid where a payload does not fit the schema that is published of its handler here.

        A handler reads more than that: of Python it takes `"1"` for a number. What is handled elsewhere is checked by
        its schema whenever it is enqueued.
        """
        if type_ not in self._client.registry:
            return
        declaration = self._client.registry.get(type_)
        known, published = self._here.get(type_, (None, None))
        if published is None or known is not declaration:
            published = Published(declaration.described())
            self._here[type_] = declaration, published
        published.check(payload)

    async def overview(self, type_: str | None = None) -> Sequence[TypeState]:
        """Every type, or one, with the workers that handle it and the jobs that wait; each is a count of its own."""
        found = await (self.list() if type_ is None else self.get(type_))
        store = await self._client.ready()
        now = await store.now()
        handled = [worker.types for worker in await live_workers(store)]
        states: list[TypeState] = []
        for name, group in groupby(found, key=lambda one: one.declared.type):
            versions = tuple(group)
            workers = sum(name in types for types in handled)
            waiting = await store.views.count(Filter(type=name, status=WAITING), COUNTED)
            seen_ago = max(now - max(one.last_seen for one in versions), timedelta(0))
            states.append(TypeState(name, versions, workers, waiting, seen_ago))
        return states

    async def waiting(self, type_: str, most: int = COUNTED) -> Count:
        """How many jobs of a type wait, counted up to so many."""
        store = await self._client.ready()
        return await store.views.count(Filter(type=type_, status=WAITING), most)

    async def compare(self, most: int = MOST_LOOKED_AT) -> Comparison:
        """What would happen if workers ran the handlers of this application now, before they do.

        Of the jobs that wait, the oldest `most` are read as their handler would; nothing is changed.
        """
        return await compare(await self._client.ready(), self._client.registry, check_count(most, "most"))

    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first; empty where no worker has told of it."""
        check_name(type_, "the type")
        return await (await self._client.ready()).types.get(type_)
