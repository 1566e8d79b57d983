"""The store as a whole: its parts, its schema, what it can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from windlass.stores.contract.audit import Audit
from windlass.stores.contract.jobs import Jobs
from windlass.stores.contract.keys import Keys
from windlass.stores.contract.locks import Locks
from windlass.stores.contract.notices import Notices
from windlass.stores.contract.queues import Queues
from windlass.stores.contract.requests import Requests
from windlass.stores.contract.schedules import Schedules
from windlass.stores.contract.series import Series
from windlass.stores.contract.types import Types
from windlass.stores.contract.views import Views
from windlass.stores.contract.workers import Workers


class Schema(Protocol):
    """The store's own tables, collections or keys."""

    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        ...

    async def pending(self) -> list[str]:
        """The names of the steps that `migrate` would take now."""
        ...

    async def migrate(self) -> list[str]:
        """Bring the schema to this windlass's version, safely by many at once; returns the names of the steps taken."""
        ...

    async def verify(self) -> list[str]:
        """What differs from what windlass made, in words; empty when all is well."""
        ...

    def statements(self, installed: int = 0) -> str:
        """The migrations as text for people who run them by hand; those that this version lacks, where they differ."""
        ...

    async def remove(self) -> None:
        """Take away what windlass made in this namespace, with every job in it, and nothing else.

        For places that were made for a while: nobody may work there any more.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What this store can do and what it risks, said plainly; `doctor` shows it."""

    store: str
    transactions: bool
    """enqueue inside the caller's own transaction"""
    push: bool
    """changes by other processes arrive without polling"""
    durability: str
    warnings: tuple[str, ...] = ()
    claims_at_once: int = 1
    """how many claims of one worker it carries out beside each other without one getting in another's way"""
    rescue_waits: timedelta = timedelta(0)
    """how long a rescue may wait, so that the living extend their leases first"""


class Store(Protocol):
    """One place where jobs live."""

    @property
    def jobs(self) -> Jobs: ...
    @property
    def views(self) -> Views: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def locks(self) -> Locks: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def types(self) -> Types: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def requests(self) -> Requests: ...
    @property
    def series(self) -> Series: ...
    @property
    def schema(self) -> Schema: ...

    @property
    def address(self) -> str:
        """Where it is, without secrets: fit for logs and screens."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; complete once open."""
        ...

    async def open(self, *, migrate: bool = True) -> None:
        """Connect, and bring the schema up to date unless told not to. A newer schema is refused."""
        ...

    async def close(self) -> None:
        """Let go of every connection, thread and task."""
        ...

    def sibling(self) -> Store:
        """Another store on the same place, not yet open, for a thread or loop of its own."""
        ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def health(self, *, thorough: bool = True) -> Mapping[str, Any]:
        """Figures about the server or file for `doctor`: version, size, settings that matter.

        Unless it is to be thorough, what takes the longer the more there is in the store is left out.
        """
        ...
