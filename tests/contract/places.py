"""Where the stores under test live, and what a test may do there behind a store's back."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import override

from windlass.stores.contract import Store


class Transaction(ABC):
    """A caller's own transaction on the same place."""

    tx: object
    """what is passed to insert"""

    @abstractmethod
    async def commit(self) -> None: ...

    @abstractmethod
    async def rollback(self) -> None: ...


class Place(ABC):
    """An empty database, schema, key space or file, for one test alone."""

    @abstractmethod
    def store(self) -> Store:
        """A store on this place, not yet open."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction for `insert`."""

    @abstractmethod
    def transaction_now(self) -> AbstractContextManager[Transaction]:
        """A transaction of a synchronous driver, for `insert_now`."""

    @abstractmethod
    async def plant(self, job_id: str) -> None:
        """Write data of somebody else, which speaks of a job, where windlass keeps its own."""

    @abstractmethod
    async def planted(self) -> list[str]:
        """The job ids in that data."""

    @abstractmethod
    async def pretend_version(self, version: int) -> None:
        """Make the schema say that it is of this version."""

    @abstractmethod
    async def damage(self) -> None:
        """Take something away from the schema that windlass needs."""


@dataclass(frozen=True)
class SqlitePlace(Place):
    path: Path

    @override
    def store(self) -> Store:
        from windlass.stores.sqlite.store import SqliteStore

        return SqliteStore(self.path)
