"""The life of jobs in MongoDB."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import InvalidOperation, PyMongoError
from pymongo.synchronous.client_session import ClientSession

from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Claimed, Extended, Inserted, Promoted, Pruned, Verdict
from windlass.stores.mongo import inserting, keeping, operating, settling, sweeping
from windlass.stores.mongo.claiming import Claiming
from windlass.stores.mongo.connection import Room, guarded, translate
from windlass.stores.mongo.joining import (
    carry,
    carry_now,
    clock_now,
    insert_joined,
    insert_joined_now,
    insert_together,
    session_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Keep, Lease, Order, Report, Rescued, Retention, Want
    from windlass.stores.mongo.connection import Link


class MongoJobs(Room):
    """See `contract.Jobs` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._claiming = Claiming(link)

    @guarded
    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            return await self._insert_joined(drafts, tx)
        if not drafts:
            return []
        flows = len(drafts) > 1 and any(one.next_id is not None or one.options.awaits is not None for one in drafts)
        insert = insert_together if flows else inserting.insert
        return await insert(self.link, drafts, await self.link.now())

    async def _insert_joined(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        session = session_of(tx, self.link, awaited=True)
        if not isinstance(session, AsyncClientSession):
            return self.insert_now(drafts, session)
        with _open_session():
            return await insert_joined(self.link, drafts, session)

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Write inside the caller's own transaction, on the caller's thread."""
        session = session_of(tx, self.link, awaited=False)
        assert isinstance(session, ClientSession)  # noqa: S101  # `session_of` has refused all others
        try:
            with _open_session():
                return insert_joined_now(self.link, drafts, session)
        except PyMongoError as error:
            raise translate(error, self.link.place) from error

    @guarded
    async def claim(self, want: Want) -> Claimed:
        """Lease at most n jobs."""
        if want.n < 1 or not want.types or want.queues == {}:
            return Claimed()
        return await self._claiming.claim(want)

    @guarded
    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew leases."""
        if not leases:
            return Extended(frozenset(), frozenset())
        return await settling.extend(self.link, worker_id, leases, lease)

    @guarded
    async def cancels(self, worker_id: str) -> frozenset[str]:
        """What this worker should stop."""
        return await settling.cancels(self.link, worker_id)

    @guarded
    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress."""
        return await settling.report(self.link, reports)

    @guarded
    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        """Have running jobs remember values."""
        return await keeping.keep(self.link, keeps) if keeps else []

    @guarded
    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
        if not transitions:
            return []
        return await settling.apply(self.link, transitions)

    @guarded
    async def promote(self, n: int) -> Promoted:
        """Queue what is due."""
        return await sweeping.promote(self.link, n)

    @guarded
    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise what has waited long."""
        return await sweeping.age(self.link, after, to, n)

    @guarded
    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back what was lost."""
        return await sweeping.rescue(self.link, n)

    @guarded
    async def prune(self, retention: Retention, n: int) -> Pruned:
        """Delete what has been kept long enough."""
        return await sweeping.prune(self.link, retention, n)

    @guarded
    async def operate(self, orders: Sequence[Order], tx: object | None = None) -> list[Answer]:
        """Carry out operators' orders."""
        if tx is None:
            return await operating.operate(self.link, orders)
        session = session_of(tx, self.link, awaited=True)
        if not isinstance(session, AsyncClientSession):
            return self.operate_now(orders, session)
        wake = partial(self.link.news, known=False)
        with _open_session():
            return await carry(self.link, operating.joining(orders, await self.link.now(), wake), session, wake)

    def operate_now(self, orders: Sequence[Order], tx: object) -> list[Answer]:
        """The same inside the caller's own transaction, on the caller's thread."""
        session = session_of(tx, self.link, awaited=False)
        assert isinstance(session, ClientSession)  # noqa: S101  # `session_of` has refused all others
        wake = partial(self.link.news, known=False)
        try:
            with _open_session():
                now = clock_now(self.link, session)
                return carry_now(self.link, operating.joining(orders, now, wake), session, wake)
        except PyMongoError as error:
            raise translate(error, self.link.place) from error


@contextmanager
def _open_session() -> Generator[None, None, None]:
    try:
        yield
    except InvalidOperation as error:
        raise TransactionRefused("tx cannot be used here: its session or client has been closed") from error
