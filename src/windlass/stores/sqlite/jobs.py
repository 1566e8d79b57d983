"""The life of jobs on SQLite: each operation is one function run by the writer thread in one transaction."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Claimed, Extended, Inserted, Promoted, Pruned, Verdict
from windlass.stores.sqlite import (
    claiming,
    inserting,
    keeping,
    operating,
    pruning,
    settling,
    sweeping,
    unblocking,
    wanting,
)
from windlass.stores.sqlite.engine import translated
from windlass.stores.sqlite.heads import NOWHERE, Heads
from windlass.stores.sqlite.news import CHANGED, NOTHING, News, record
from windlass.stores.sqlite.records import as_duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Keep, Lease, Order, Report, Rescued, Retention, Want
    from windlass.stores.sqlite.engine import Engine, Operation, Telling


# Takes the write lock, waiting for it if need be. A transaction that reads first can never write any more once somebody
# else has written since.
WRITES = "UPDATE windlass_meta SET value = value WHERE false"
T = TypeVar("T")
_TRIES = 5  # how often a rescue waits for a file that is kept locked again and again before it leaves it to the next
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


class _Attempt:
    """One claim, and what it leased: known here even if its caller did not wait for the answer."""

    def __init__(self, before: _Attempt | None) -> None:
        self._before = before
        self.given_up = False
        self.leases: dict[str, int] = {}
        """ids and tokens of what it leased, and of what was in doubt before"""
        self.left: dict[str, int] = {}
        """what stays in doubt when it has answered: more than was asked for now"""
        self.seconds = 0.0
        """how long it looked for jobs"""

    def take(
        self,
        db: sqlite3.Connection,
        sql: Callable[[str], str],
        want: Want,
        now: int,
        heads: Mapping[str, wanting.Place | None],
    ) -> claiming.Taken:
        """What an earlier attempt leased and nobody has heard of; else jobs that wait. Run by the writer."""
        doubtful = self._before.leases if self._before is not None else {}
        handed = dict(islice(doubtful.items(), want.n))
        self.left = {job_id: token for job_id, token in doubtful.items() if job_id not in handed}
        taken = claiming.hand_over(db, sql, want, handed, now) if handed else claiming.Taken([], more=False)
        if not taken.rows and not self.given_up:
            taken = claiming.claim(db, sql, want, now, heads)
            self.seconds = taken.seconds
        self.leases = {**doubtful, **taken.leases()}
        return taken


class SqliteJobs:
    """See `contract.Jobs` for what each promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sql = engine.sql
        self._idle = False
        self._doubts: dict[str, _Attempt] = {}
        self._heads = Heads(engine)
        self._rounds = pruning.Rounds()
        self._sweep = unblocking.Sweep()

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            return self.insert_now(drafts, tx)
        if not drafts:
            return []
        put = await self._engine.write(
            lambda db, now: inserting.insert(db, self._sql, drafts, now), tell=lambda put, _: put.news
        )
        return put.verdicts

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Write inside the caller's own transaction on the same file, on the caller's thread."""
        put = self._join(tx, lambda db, now: inserting.insert(db, self._sql, drafts, now), lambda put, _: put.news)
        return put.verdicts

    async def complete(self, transition: Transition, tx: object) -> Verdict:
        """Write one transition inside the caller's own transaction on the same file."""
        return self.complete_now(transition, tx)

    def complete_now(self, transition: Transition, tx: object) -> Verdict:
        """The same, on the caller's thread."""
        applied = self._join(
            tx,
            lambda db, now: settling.apply(db, self._sql, [transition], now),
            lambda applied, _: settling.news_of([transition], applied.freed),
        )
        return applied.verdicts[0]

    def _join(self, tx: object, operation: Operation[T], tell: Telling[T]) -> T:
        db = self._joined(tx)
        try:
            with _plain_rows(db):
                self._refuse_elsewhere(db)
                return self._run_joined(db, operation, tell)
        except sqlite3.ProgrammingError as error:
            raise TransactionRefused(f"tx cannot be used here: {error}") from error
        except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
            raise translated(error, self._engine.place) from error

    def _run_joined(self, db: sqlite3.Connection, operation: Operation[T], tell: Telling[T]) -> T:
        # A savepoint alone would commit when it is released; the caller's own commit must be the one that counts.
        # Where the connection commits by itself (isolation_level=None, or autocommit=True since 3.12) it is meant to.
        if not db.in_transaction and getattr(db, "autocommit", _LEGACY) == _LEGACY and db.isolation_level is not None:
            db.execute(f"BEGIN {db.isolation_level}")
        db.execute("SAVEPOINT windlass_joined")
        try:
            db.execute(self._sql(WRITES))
            now = self._engine.now(db)
            result = operation(db, now)
            record(db, self._sql, tell(result, now), now)
        except BaseException:
            if db.in_transaction:  # a full disk ends the whole transaction by itself
                db.execute("ROLLBACK TO windlass_joined")
                db.execute("RELEASE windlass_joined")
            raise
        db.execute("RELEASE windlass_joined")
        return result

    def _refuse_elsewhere(self, db: sqlite3.Connection) -> None:
        place = self._engine.place
        found = next((file for _, name, file in db.execute("PRAGMA database_list") if name == "main"), "")
        if place.in_memory or not found or Path(found).resolve() != Path(place.path).resolve():
            raise TransactionRefused(
                f"tx is a connection to {found or 'a database in memory'}, the jobs are in {place.path}: windlass can"
                " only join a transaction on the same file"
            )

    def _joined(self, tx: object) -> sqlite3.Connection:
        if not isinstance(tx, sqlite3.Connection):
            raise TransactionRefused(
                f"tx is a {type(tx).__module__}.{type(tx).__name__}: with an SQLite store give a sqlite3.Connection"
                f" on {self._engine.place.path}"
            )
        return tx

    async def claim(self, want: Want) -> Claimed:
        """Lease at most n jobs."""
        doubt = self._doubts.pop(want.worker_id, None)
        if want.n < 1 or not want.types:
            self._doubts.update({want.worker_id: doubt} if doubt else {})
            return Claimed()
        # After an empty claim, look before taking the write lock that others need.
        if (
            self._idle
            and not doubt
            and not await self._engine.read(lambda db, _: wanting.anything(db, self._sql, want))
        ):
            return Claimed()
        heads = NOWHERE if doubt else await self._heads.find(want)
        attempt = _Attempt(doubt)
        try:
            claimed = await self._engine.write_then(
                lambda db, now: attempt.take(db, self._sql, want, now, heads.places), claiming.Taken.jobs
            )
        except BaseException:
            attempt.given_up = True
            self._doubts[want.worker_id] = attempt
            raise
        if attempt.left:
            attempt.leases = attempt.left
            self._doubts[want.worker_id] = attempt
        self._heads.learn(attempt.seconds)
        if len(claimed) < want.n and heads.old:
            self._heads.forget()  # that there is no more is only said after a look at all of them
            claimed.more = True
        self._idle = not claimed and not claimed.more
        return claimed

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew leases."""
        if not leases:
            return Extended(frozenset(), frozenset())
        more = as_duration_ms(lease)
        # Before all else that waits, above all before a rescue: after a pause of this process it comes in time.
        return await self._engine.write(
            lambda db, now: settling.extend(db, self._sql, worker_id, leases, now + more), first=True
        )

    async def cancels(self, worker_id: str) -> frozenset[str]:
        """What this worker should stop."""
        return await self._engine.read(lambda db, _: settling.cancels(db, self._sql, worker_id))

    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress."""
        return await self._engine.write(
            lambda db, now: settling.report(db, self._sql, reports, now), tell=lambda _verdicts, _now: CHANGED
        )

    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        """Have running jobs remember values."""
        if not keeps:
            return []
        return await self._engine.write(
            lambda db, now: keeping.keep(db, self._sql, keeps, now), tell=lambda _verdicts, _now: CHANGED
        )

    async def keep_in(self, keep: Keep, tx: object) -> Verdict:
        """The same inside the caller's own transaction on the same file."""
        return self.keep_in_now(keep, tx)

    def keep_in_now(self, keep: Keep, tx: object) -> Verdict:
        """The same, on the caller's thread."""
        kept = self._join(tx, lambda db, now: keeping.keep(db, self._sql, [keep], now), lambda _verdicts, _now: CHANGED)
        return kept[0]

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
        if not transitions:
            return []
        applied = await self._engine.write(
            lambda db, now: settling.apply(db, self._sql, transitions, now),
            tell=lambda applied, _: settling.news_of(transitions, applied.freed),
        )
        return applied.verdicts

    async def promote(self, n: int) -> Promoted:
        """Queue what is due."""
        look = await self._engine.read(lambda db, now: sweeping.look(db, self._sql, self._sweep, n, now))
        if not look.anything:
            return Promoted(0, 0, look.next_due)
        return await self._engine.write(
            lambda db, now: sweeping.promote(db, self._sql, look.lines, n, now),
            tell=lambda done, _: News(done.promoted + done.unblocked, changed=len(done.expired)),
        )

    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise what has waited long."""
        waited = as_duration_ms(after)
        return await self._engine.write(lambda db, now: sweeping.age(db, self._sql, now - waited, to, n, now))

    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back what was lost."""
        if not await self._engine.read(lambda db, now: sweeping.anything_lost(db, self._sql, now)):
            return []
        # A process that locks the file past the end of a lease keeps the holder from extending it. So this is done only
        # after the file was free for a moment in which those who waited for it had their turn.
        for _ in range(_TRIES):
            await self._engine.let_others_write()
            handed = await self._engine.write(
                lambda db, now: self._rescue(db, n, now) if self._engine.calm else None,
                tell=lambda handed, _: settling.news_of(handed.transitions, handed.freed) if handed else NOTHING,
            )
            if handed is not None:
                return handed.rescued
        return []

    def _rescue(self, db: sqlite3.Connection, n: int, now: int) -> sweeping.Handed:
        return sweeping.rescue(db, self._sql, n, now, self._engine.over_for_all(now))

    async def prune(self, retention: Retention, n: int) -> Pruned:
        """Delete what has been kept long enough."""
        old = await self._engine.read(lambda db, now: pruning.past(db, self._sql, retention, self._rounds, n, now))
        return await self._engine.write(lambda db, now: pruning.prune(db, self._sql, old, now))

    async def operate(self, orders: Sequence[Order], tx: object | None = None) -> list[Answer]:
        """Carry out operators' orders."""
        if tx is not None:
            return self.operate_now(orders, tx)
        carried = await self._engine.write(
            lambda db, now: operating.operate(db, self._sql, orders, now),
            tell=lambda carried, _: News(carried.queued, changed=1),
        )
        return carried.answers

    def operate_now(self, orders: Sequence[Order], tx: object) -> list[Answer]:
        """The same inside the caller's own transaction on the same file, on the caller's thread."""
        carried = self._join(
            tx,
            lambda db, now: operating.operate(db, self._sql, orders, now),
            lambda carried, _: News(carried.queued, changed=1),
        )
        return carried.answers
