"""The life of jobs in Redis: each operation is one script."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from windlass.core.errors import TransactionRefused
from windlass.stores.contract import Claimed, Extended, Inserted, Promoted, Pruned, Verdict
from windlass.stores.redis import claiming, inserting, keeping, operating, settling, sweeping
from windlass.stores.redis.connection import Room, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.transition import Transition
    from windlass.stores.contract import Answer, Keep, Lease, Order, Report, Rescued, Retention, Want
    from windlass.stores.redis.connection import Link


class RedisJobs(Room):
    """See `contract.Jobs` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._marks = claiming.Marks()

    @guarded
    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not."""
        if tx is not None:
            _refuse(tx)
        return await inserting.insert(self.link, drafts) if drafts else []

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """Redis has no transaction that an enqueue could join."""
        _refuse(tx)

    @guarded
    async def claim(self, want: Want) -> Claimed:
        """Lease at most n jobs."""
        if want.n < 1 or not want.types or want.queues == {}:
            return Claimed()
        return await claiming.claim(self.link, want, self._marks)

    @guarded
    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew leases."""
        return await settling.extend(self.link, worker_id, leases, lease)

    @guarded
    async def cancels(self, worker_id: str) -> frozenset[str]:
        """What this worker should stop."""
        return await settling.cancels(self.link, worker_id)

    @guarded
    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress."""
        return await settling.report(self.link, reports) if reports else []

    @guarded
    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        """Have running jobs remember values."""
        return await keeping.keep(self.link, keeps)

    @guarded
    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write transitions."""
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
        if tx is not None:
            _refuse(tx, _AFTERWARDS)
        return await operating.operate(self.link, orders)

    def operate_now(self, orders: Sequence[Order], tx: object) -> list[Answer]:
        """Redis has no transaction that an order could join."""
        _refuse(tx, _AFTERWARDS)


_ENQUEUE_LATER = "enqueue after your commit, with a unique or idempotency key so that a second try makes no second job"
_AFTERWARDS = "cancel, retry, delete or signal after your commit"


def _refuse(tx: object, instead: str = _ENQUEUE_LATER) -> NoReturn:
    raise TransactionRefused(
        f"tx is a {type(tx).__module__}.{type(tx).__name__}, but Redis has no transaction that windlass can join:"
        f" {instead}, or keep the jobs in the database of the transaction (PostgreSQL, MongoDB or SQLite)"
    )
