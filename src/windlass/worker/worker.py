"""The worker: its life, from opening the store to the last end that is written, and every task in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from windlass.core.context import working
from windlass.core.events import WorkerStarted, WorkerStopped, WorkerStopping, WorkerWarned
from windlass.worker.doubts import doubts
from windlass.worker.ending import end_all
from windlass.worker.parts import Parts
from windlass.worker.stopping import Stopping

if TYPE_CHECKING:
    from types import TracebackType

    from windlass.client.client import Client
    from windlass.worker.config import WorkerConfig


class Worker:
    """Runs jobs from `async with` to its end. Leaving stops gracefully: nothing is lost and no attempt is spent.

    Stopping: claim no more; leases are kept; what runs has the grace period to end; what is left is handed back to
    its queue at once, its attempt not counted. `stop(now=True)` skips the grace period.
    """

    def __init__(self, client: Client, config: WorkerConfig) -> None:
        self._client, self.config = client, config
        self._hub = client.hub
        self._stopping = Stopping(config.grace)
        self._main: asyncio.Task[None] | None = None
        self._parts: Parts | None = None

    @property
    def id(self) -> str:
        """Host, process and a random part."""
        return self.config.worker_id

    @property
    def started(self) -> int:
        """How many attempts it has begun."""
        return 0 if self._parts is None else self._parts.attempts.started

    @property
    def done(self) -> int:
        """How many attempts it has settled."""
        return 0 if self._parts is None else self._parts.settling.done

    @property
    def stuck(self) -> int:
        """How many threads go on although their jobs are settled."""
        return 0 if self._parts is None else self._parts.outliving.stuck

    @property
    def abandoned(self) -> int:
        """How many handlers would not end at shutdown; only the end of the process ends them."""
        return self._stopping.abandoned

    @property
    def recycled(self) -> bool:
        """Whether it stopped by itself to make room for a fresh process."""
        return self._parts is not None and self._parts.recycling.cause is not None

    @property
    def gave_way_to_stuck(self) -> bool:
        """Whether it did so because too many of its threads would not end."""
        return self._parts is not None and self._parts.recycling.cause == "stuck"

    async def __aenter__(self) -> Self:
        await self._client.open()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._main = asyncio.create_task(self._run(ready), name="windlass-worker")
        try:
            await asyncio.wait([self._main, ready], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.stop(now=True)
            await self._end()
            raise
        if not ready.done():
            await self._end()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        await self._end()

    async def run(self) -> None:
        """Work until `stop()` is called, or until drained or recycled."""
        async with self:
            await self.wait()

    async def wait(self) -> None:
        """Wait until the worker has stopped working."""
        if self._main is not None:
            await asyncio.wait([self._main])

    def stop(self, *, now: bool = False) -> None:
        """Stop gracefully; with `now` hand everything back at once."""
        self._stopping.request(now=now)

    async def _end(self) -> None:
        main, self._main = self._main, None
        try:
            if main is not None:
                await self._ended(main)
        finally:
            await self._client.close()

    async def _ended(self, main: asyncio.Task[None]) -> None:
        try:
            await asyncio.shield(main)
        except asyncio.CancelledError:
            # There is no more time: hand everything back now, or it would be found only when leases expire.
            self.stop(now=True)
            await asyncio.wait([main])
            raise

    async def _run(self, ready: asyncio.Future[None]) -> None:
        working.set(self.id)
        self._parts = parts = Parts(self._client, self.config, self._stopping)
        if not self.config.own:
            await parts.scheduling.declare()
            await parts.publishing.announce()
        await parts.leasing.start()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._client.store.notices.subscribe(parts.waking.hear))
                parts.waking.meet(())
                stack.callback(parts.waking.close)
                stack.push_async_callback(parts.processes.close)
                stack.callback(parts.threads.close)
                await self._tell_started(parts)
                if not ready.done():
                    ready.set_result(None)
                await self._work(parts)
        finally:
            # Leases are kept to the very end: until the last end is written they must not be lost.
            await parts.leasing.close()
        self._hub.tell(WorkerStopped(self.id, parts.settling.done, parts.settling.released))

    async def _work(self, parts: Parts) -> None:
        async with asyncio.TaskGroup() as tasks:
            settling = tasks.create_task(parts.settling.run(), name="windlass-settling")
            upkeep = [tasks.create_task(run, name=f"windlass-{name}") for name, run in parts.upkeep(self.stop)]
            claiming = tasks.create_task(parts.claiming.run(), name="windlass-claiming")
            try:
                await self._until_stopped(parts)
                parts.claiming.stop()
                parts.attempts.closed = True
                parts.waking.leave()
                await claiming
                self._hub.tell(WorkerStopping(self.id, parts.slots.taken, self.config.grace))
                await self._stopping.let_end(parts.slots, parts.outliving)
            finally:
                await self._stopping.hand_back(parts.slots, parts.attempts)
            parts.settling.close()
            await settling
            await end_all(upkeep)
            await parts.duty.let_go()

    async def _until_stopped(self, parts: Parts) -> None:
        if self.config.drain:
            await parts.draining.until_empty(self._stopping.requested)
        else:
            await self._stopping.requested.wait()

    async def _tell_started(self, parts: Parts) -> None:
        config = self.config
        self._hub.tell(
            WorkerStarted(
                self.id,
                self._client.store.address,
                tuple(sorted(config.queues or ())),
                tuple(sorted(parts.claiming.types - self._client.registry.built_in())),
                config.concurrency,
            )
        )
        for about, text in await doubts(config, self._client.registry, self._client.store):
            self._hub.tell(WorkerWarned(self.id, about, text))
