"""Remembering: the worker's part in durable steps of a running job; see `core.remembers.Remembers`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.core.errors import DuplicateJob, PayloadInvalid, QueueFull, TransactionRefused, WindlassError
from windlass.stores.contract import Completes, Created, Duplicate, Full, Keep, Lease, Verdict
from windlass.worker.completing import Completion
from windlass.worker.keeping import lost

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from windlass.client.client import Client
    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.worker.keeping import Keeping
    from windlass.worker.slots import Running

T = TypeVar("T")
_PAGE = 500
_LARGEST = 64 * 1024 * 1024  # bytes of all results together


class Remembering:
    """What the running jobs of one worker share to remember by; made inside its loop."""

    def __init__(self, client: Client, keeping: Keeping, stopping: asyncio.Event) -> None:
        self.client, self.keeping, self.stopping = client, keeping, stopping
        self.loop = asyncio.get_running_loop()


class Memory(Completion):
    """Keeps, inserts and looks for one running job, from any loop or thread.

    It is its completion as well: one object for each job that runs, and few jobs need either.
    """

    __slots__ = ("_shared",)

    def __init__(self, running: Running, shared: Remembering) -> None:
        self._store, self._running, self.used = shared.client.store, running, False
        self._shared = shared

    @property
    def stopping(self) -> bool:
        """Whether the worker is shutting down."""
        return self._shared.stopping.is_set()

    def new_id(self) -> str:
        """An id that no job has."""
        return self._shared.client.ids()

    async def keep(self, name: str, text: str) -> None:
        """Return when the value is durable."""
        shared = self._shared
        if asyncio.get_running_loop() is shared.loop:
            await shared.keeping.keep(self._running, name, text)
        else:
            await self._here(shared.keeping.keep(self._running, name, text))

    async def keep_in(self, tx: object, name: str, text: str) -> None:
        """Inside the handler's own transaction."""
        self._check_kept(await self._keeps().keep_in(self._keep(name, text), tx))

    def keep_in_now(self, tx: object, name: str, text: str) -> None:
        """The same inside a synchronous driver's."""
        self._check_kept(self._keeps().keep_in_now(self._keep(name, text), tx))

    async def insert(self, drafts: Sequence[Draft]) -> None:
        """Insert children inside the application's layers, and tell of them; all that can be inserted are."""
        await self._here(self._insert(drafts))

    async def look(self, ids: Sequence[str]) -> list[Job | None]:
        """The children, in order; PayloadInvalid where their results are too much together."""
        return await self._here(self._look(ids))

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call it in a thread, with this context."""
        return await asyncio.to_thread(function)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run it in the worker's loop, from a handler's thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run_coroutine_threadsafe(call, self._shared.loop).result()
        call.close()
        raise WindlassError("what ends in _now would block this event loop: await the form without it, as ctx.step")

    async def _here(self, call: Coroutine[Any, Any, T]) -> T:
        """In the worker's loop: a handler's thread may have one of its own."""
        if asyncio.get_running_loop() is self._shared.loop:
            return await call
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._shared.loop))

    async def _insert(self, drafts: Sequence[Draft]) -> None:
        client = self._shared.client
        for some in range(0, len(drafts), _PAGE):
            async with client.surrounded(list(drafts[some : some + _PAGE])) as made:
                verdicts = await client.store.jobs.insert(made)
                for draft, verdict in zip(made, verdicts, strict=True):
                    match verdict:
                        case Created():
                            client.announce(draft, verdict)
                        case Full(queue=queue, depth=depth):
                            raise QueueFull(queue, depth)
                        case Duplicate(id=id_, key=key):
                            raise DuplicateJob(id_, key)
                        case _:
                            raise DuplicateJob(verdict.id, "unique key of the child")

    async def _look(self, ids: Sequence[str]) -> list[Job | None]:
        children: list[Job | None] = []
        for some in range(0, len(ids), _PAGE):
            children += await self._shared.client.store.views.get(ids[some : some + _PAGE])
        size = sum(len(child.result_json or "") for child in children if child is not None)
        if size > _LARGEST:
            raise PayloadInvalid(
                f"job {self._running.job.id} gathers results of {size:,} bytes together, at most {_LARGEST:,} are"
                " allowed: let its children store what they made elsewhere, and return where it is"
            )
        return children

    def _keep(self, name: str, text: str) -> Keep:
        job = self._running.job
        return Keep(Lease(job.id, job.lease_token), name, text)

    def _check_kept(self, verdict: Verdict) -> None:
        if verdict is not Verdict.APPLIED:
            raise lost(self._running)

    def _keeps(self) -> Completes:
        store = self._store
        if not isinstance(store.jobs, Completes):
            raise TransactionRefused(
                f"jobs on {store.address} cannot save inside a transaction: save without tx, and make what is between"
                " two saves idempotent by ctx.origin; or keep the jobs in PostgreSQL or SQLite"
            )
        return store.jobs
