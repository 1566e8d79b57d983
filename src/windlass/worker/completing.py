"""Completing: a handler ends its job inside its own transaction, so that effect and end commit together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.errors import LeaseLost, TransactionRefused, WindlassError
from windlass.core.outcome import Succeeded
from windlass.core.status import Status
from windlass.core.transition import decide
from windlass.stores.contract import Completes, Verdict

if TYPE_CHECKING:
    from windlass.core.transition import Transition
    from windlass.stores.contract import Store
    from windlass.worker.slots import Running


class Completion:
    """What a running job's context calls; see `core.context.Completing`."""

    __slots__ = ("_running", "_store", "used")

    def __init__(self, store: Store, running: Running) -> None:
        self._store, self._running = store, running
        self.used = False

    async def later(self, tx: object, result: Any) -> None:
        """On an asynchronous driver's transaction."""
        self._check(await self._able().complete(self._ending(result), tx))

    def now(self, tx: object, result: Any) -> None:
        """On a synchronous driver's."""
        self._check(self._able().complete_now(self._ending(result), tx))

    async def confirm(self) -> None:
        """After the handler has returned: refuse to call done what its transaction did not commit."""
        job = self._running.job
        [found] = await self._store.views.get([job.id])
        if found is not None and found.status is Status.PROCESSING and found.lease_token == job.lease_token:
            raise WindlassError(
                "the handler returned, but the transaction it gave to complete_in was rolled back or is still open:"
                " commit it before returning, or raise"
            )

    def _able(self) -> Completes:
        jobs = self._store.jobs
        if not isinstance(jobs, Completes):
            raise TransactionRefused(
                f"jobs on {self._store.address} cannot be completed inside a transaction: make the effect idempotent by"
                " ctx.origin, or fence it by ctx.token, and return; or keep the jobs in PostgreSQL or SQLite"
            )
        return jobs

    def _ending(self, result: Any) -> Transition:
        return decide(self._running.job, Succeeded(self._running.declaration.codec.encode_result(result)))

    def _check(self, verdict: Verdict) -> None:
        if verdict is not Verdict.APPLIED:
            job = self._running.job
            raise LeaseLost(
                f"job {job.id} is no longer held by lease {job.lease_token}: roll this transaction back, another worker"
                " has the job"
            )
        self.used = True
