"""The life of jobs on SQLite: each operation is one function run by the writer thread in one transaction."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Extended, Inserted, Promoted, Verdict
from windlass.stores.sqlite import claiming, inserting, operating, settling, sweeping
from windlass.stores.sqlite.engine import translate
from windlass.stores.sqlite.records import as_duration_ms

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Lease, Order, Report, Rescued, Retention, Want
    from windlass.stores.sqlite.engine import Engine, Operation


T = TypeVar("T")
_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, which came with Python 3.12


@contextmanager
def _plain_rows(db: sqlite3.Connection) -> Generator[None, None, None]:
    """Read plain tuples and text, whatever the caller's connection was told to make of them."""
    rows, text = db.row_factory, db.text_factory
    db.row_factory, db.text_factory = None, str
    try:
        yield
    finally:
        db.row_factory, db.text_factory = rows, text


class SqliteJobs:
    """See `contract.Jobs` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql
        self._idle = False

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            return self.insert_now(drafts, tx)
        if not drafts:
            return []
        return await self._engine.write(lambda db, now: inserting.insert(db, self._sql, drafts, now), wake=True)

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Write inside the caller's own transaction on the same file, on the caller's thread."""
        return self._join(tx, lambda db, now: inserting.insert(db, self._sql, drafts, now))

    async def complete(self, transition: Transition, tx: object) -> Verdict:
        """Write one transition inside the caller's own transaction on the same file."""
        return self.complete_now(transition, tx)

    def complete_now(self, transition: Transition, tx: object) -> Verdict:
        """The same, on the caller's thread."""
        [verdict] = self._join(tx, lambda db, now: settling.apply(db, self._sql, [transition], now))
        return verdict

    def _join(self, tx: object, operation: Operation[T]) -> T:
        db = self._joined(tx)
        try:
            with _plain_rows(db):
                self._refuse_elsewhere(db)
                return self._run_joined(db, operation)
        except sqlite3.ProgrammingError as error:
            raise TransactionRefused(f"tx cannot be used here: {error}") from error
        except sqlite3.Error as error:
            raise translate(error, self._engine.place) from error

    def _run_joined(self, db: sqlite3.Connection, operation: Operation[T]) -> T:
        # A savepoint alone would commit when it is released; the caller's own commit must be the one that counts.
        # Where the connection commits by itself (isolation_level=None, or autocommit=True since 3.12) it is meant to.
        if not db.in_transaction and getattr(db, "autocommit", _LEGACY) == _LEGACY and db.isolation_level is not None:
            db.execute(f"BEGIN {db.isolation_level}")
        db.execute("SAVEPOINT windlass_insert")
        try:
            result = operation(db, self._engine.clock())
        except BaseException:
            if db.in_transaction:  # a full disk ends the whole transaction by itself
                db.execute("ROLLBACK TO windlass_insert")
                db.execute("RELEASE windlass_insert")
            raise
        db.execute("RELEASE windlass_insert")
        return result

    def _refuse_elsewhere(self, db: sqlite3.Connection) -> None:
        place = self._engine.place
        found = next((file for _, name, file in db.execute("PRAGMA database_list") if name == "main"), "")
        if place.in_memory or not found or Path(found).resolve() != Path(place.path).resolve():
            raise TransactionRefused(
                f"tx is a connection to {found or 'a database in memory'}, the jobs are in {place.path}: an enqueue can"
                " only join a transaction on the same file"
            )

    def _joined(self, tx: object) -> sqlite3.Connection:
        if not isinstance(tx, sqlite3.Connection):
            raise TransactionRefused(
                f"tx is a {type(tx).__module__}.{type(tx).__name__}: with an SQLite store give a sqlite3.Connection"
                f" on {self._engine.place.path}"
            )
        return tx

    async def claim(self, want: Want) -> list[Job]:
        """Lease at most n jobs."""
        if want.n < 1 or not want.types:
            return []
        # After an empty claim, look before taking the write lock that others need.
        if self._idle and not await self._engine.read(lambda db, _: claiming.anything(db, self._sql, want)):
            return []
        jobs = await self._engine.write(lambda db, now: claiming.claim(db, self._sql, want, now))
        self._idle = not jobs
        return jobs

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew leases."""
        if not leases:
            return Extended(frozenset(), frozenset())
        more = as_duration_ms(lease)
        return await self._engine.write(lambda db, now: settling.extend(db, self._sql, worker_id, leases, now + more))

    async def cancels(self, worker_id: str) -> frozenset[str]:
        """What this worker should stop."""
        return await self._engine.read(lambda db, _: settling.cancels(db, self._sql, worker_id))

    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress."""
        return await self._engine.write(lambda db, now: settling.report(db, self._sql, reports, now), wake=True)

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
        if not transitions:
            return []
        return await self._engine.write(lambda db, now: settling.apply(db, self._sql, transitions, now), wake=True)

    async def promote(self, n: int) -> Promoted:
        """Queue what is due."""
        found = await self._engine.read(lambda db, now: (*sweeping.anything_due(db, self._sql, now), now))
        anything, due, now = found
        if not anything:
            return Promoted(0, 0, sweeping.until(due, now))
        return await self._engine.write(lambda db, now: sweeping.promote(db, self._sql, n, now), wake=True)

    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise what has waited long."""
        waited = as_duration_ms(after)
        return await self._engine.write(lambda db, now: sweeping.age(db, self._sql, now - waited, to, n, now))

    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back what was lost."""
        if not await self._engine.read(lambda db, now: sweeping.anything_lost(db, self._sql, now)):
            return []
        return await self._engine.write(lambda db, now: sweeping.rescue(db, self._sql, n, now), wake=True)

    async def prune(self, retention: Retention, n: int) -> int:
        """Delete what has been kept long enough."""
        return await self._engine.write(lambda db, now: sweeping.prune(db, self._sql, retention, n, now))

    async def operate(self, orders: Sequence[Order]) -> list[Answer]:
        """Carry out operators' orders."""
        return await self._engine.write(lambda db, now: operating.operate(db, self._sql, orders, now), wake=True)
