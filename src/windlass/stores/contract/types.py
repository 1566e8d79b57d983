"""Types: what workers handle, published so that others can enqueue it without its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from windlass.core.declared import Declared

UNSEEN = timedelta(days=30)
"""a version that no worker has told of for so long is forgotten"""
FORGOTTEN_AT_ONCE = 100
"""so many of them by one call"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeInfo:
    """One version of a type, and when workers told of it, by the store's clock."""

    declared: Declared
    first_seen: datetime
    last_seen: datetime
    announced_at: datetime
    """when a worker last started with it: of several versions the newest by this is enqueued by"""


class Types(Protocol):
    """The catalogue: every version of every type that workers have told of lately.

    While a new version is rolled out both are there, by their fingerprints.
    """

    async def put(self, declared: Sequence[Declared], *, announce: bool = True, unseen: timedelta = UNSEEN) -> None:
        """Tell that a worker handles these, all in one step; the version of the application is that given last.

        With `announce` each becomes the newest of its type; without, as from a worker that has been there before, only
        a version that is not known does. Listeners are told where that changes what is newest. What has not been seen
        for `unseen` is forgotten, a bounded number at each call, but for what is put.
        """
        ...

    async def list(self) -> Sequence[TypeInfo]:
        """Everything, by type, of each the newest version first."""
        ...

    async def get(self, type_: str) -> Sequence[TypeInfo]:
        """The versions of one type, the newest first; empty where no worker has told of it."""
        ...
