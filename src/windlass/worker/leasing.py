"""Leasing: every lease is extended in one call, from a thread with its own loop and its own store, so that a blocked
event loop cannot lose leases. Before a lease that could not be extended can expire, its job is given up here.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError
from windlass.core.events import Hub, JobFenced, LoopBlocked, StoreTroubled
from windlass.stores.contract import SILENT, Lease
from windlass.worker.outage import Outage
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from windlass.stores.contract import Peer, Store, WorkerInfo
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Running, Slots

_BLOCKED = 1.0  # seconds the loop may stand still before that is told
_TICK = 0.25
_CONFIRM = 1.0  # seconds a job runs before its lease is extended for the first time: short ones cost no extension
_PRESENT = SILENT.total_seconds() / 4.5  # seconds between two beats at most, so that three may be lost
_GIVEN_UP = ("fence", "shutdown")


class Leasing:
    """Keeps leases and the worker's own row alive until told to stop, which comes last of all."""

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        slots: Slots,
        hub: Hub,
        describe: Callable[[], WorkerInfo],
        meet: Callable[[Sequence[Peer]], None],
    ) -> None:
        self._origin, self._config, self._slots, self._hub = store, config, slots, hub
        self._describe, self._meet = describe, meet
        self.outage = Outage(config, time.monotonic())
        self._confirm_at = 0.0
        self._stop = threading.Event()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._hastened = asyncio.Event()
        self._opened: asyncio.Future[None] | None = None
        self._thread: threading.Thread | None = None
        self._answered = time.monotonic()
        self.lag = 0.0

    async def start(self) -> None:
        """Start the thread; returns once its store is open."""
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.create_future()
        self._thread = threading.Thread(target=self._serve, name="windlass-leasing", daemon=True)
        self._thread.start()
        await self._opened

    async def close(self) -> None:
        """Stop extending and forget the worker's row."""
        self._stop.set()
        if self._own_loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._own_loop.call_soon_threadsafe(self._hastened.set)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._own_loop = asyncio.get_running_loop()
        store = self._origin.sibling()
        try:
            await store.open()
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that started us
            self.in_loop(self._set_opened, error)
            return
        self.in_loop(self._set_opened, None)
        try:
            await self._keep(store)
        finally:
            with suppress(StoreError):
                await store.workers.forget([self._config.worker_id])
            await store.close()

    def _set_opened(self, error: BaseException | None) -> None:
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(error) if error else self._opened.set_result(None)

    async def _keep(self, store: Store) -> None:
        # Apart, because a store that neither answers nor refuses must not keep the fence from closing; nor is a worker
        # dead while somebody's hold on a job, or whatever it is, keeps a lease from being extended.
        async with asyncio.TaskGroup() as together:
            together.create_task(self._extend(store), name="windlass-extend")
            together.create_task(self._show(store), name="windlass-show")
            together.create_task(self._watch(), name="windlass-watch")

    async def _show(self, store: Store) -> None:
        # However long leases are, the others must not take this worker for dead.
        pause = min(self._config.heartbeat.total_seconds(), _PRESENT)
        steady = Steady(self._hub, "show that this worker lives")
        due = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due = now + pause * random.uniform(0.9, 1.0)
                if not await self._within_lease(self._beat(store, steady)):
                    due = now
            await self._pause()

    async def _extend(self, store: Store) -> None:
        pause = self._config.heartbeat.total_seconds()
        steady = Steady(self._hub, "extend leases")
        due = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due = now + pause * random.uniform(0.9, 1.0)
                if not await self._within_lease(self._extend_all(store, steady)):
                    due = now  # try again at once: a lease has only so many heartbeats
            elif now >= self._confirm_at:
                self._confirm_at = now + _CONFIRM
                await self._within_lease(self._confirm(store, steady, now - _CONFIRM))
            await self._pause()

    async def _within_lease(self, call: Awaitable[bool]) -> bool:
        try:
            async with asyncio.timeout(self._config.lease.total_seconds() / 3):
                return await call
        except TimeoutError:
            return False
        except Exception as error:  # noqa: BLE001  # whatever it was, without this thread every lease would be lost
            self._hub.tell(StoreTroubled("extend leases", f"{type(error).__name__}: {error}"))
            return False

    async def _watch(self) -> None:
        while not self._stop.is_set():
            self._watch_loop(time.monotonic())
            self._fence()
            await self._pause()

    async def _pause(self) -> None:
        """Until the next tick, or until stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._tick):
                await self._hastened.wait()

    @property
    def _tick(self) -> float:
        # Well inside the tenth of a lease that the fence keeps as its margin.
        return min(_TICK, self._config.heartbeat.total_seconds() / 4, self._config.lease.total_seconds() / 30)

    async def _beat(self, store: Store, steady: Steady) -> bool:
        peers = await steady.attempt(lambda: store.workers.beat(self._describe()))
        if peers is None:
            return False
        self.outage.answered(time.monotonic())
        self.in_loop(self._meet, peers)
        return True

    async def _extend_all(self, store: Store, steady: Steady) -> bool:
        held = list(self._slots.running.values())
        return not held or await self._renew(store, steady, held)

    async def _confirm(self, store: Store, steady: Steady, before: float) -> bool:
        """Extend what has run for a while, for the first time: until then nothing shows that it ever began."""
        young = [
            running
            for running in list(self._slots.running.values())
            if not running.confirmed and not running.ended and running.started < before
        ]
        return not young or await self._renew(store, steady, young)

    async def _renew(self, store: Store, steady: Steady, held: Sequence[Running]) -> bool:
        before = time.monotonic()
        leases = [Lease(running.job.id, running.job.lease_token) for running in held]
        extended = await steady.attempt(lambda: store.jobs.extend(self._config.worker_id, leases, self._config.lease))
        if extended is None:
            return False
        self.outage.answered(time.monotonic())
        for running in held:
            if running.job.id in extended.lost:
                # Settled a moment ago, or taken by the rescuer: in either case no longer ours to keep.
                if self._slots.running.get(running.job.id) is running and not running.ended:
                    self._fence_off(running)
                continue
            if running.job.id not in extended.held:
                running.extend(before + self._config.lease.total_seconds())
            if running.job.id in extended.cancels:
                running.cancelled = True  # for a thread to see, however long the loop is blocked
                self.in_loop(running.stop, "cancel")
        return True

    def _fence(self) -> None:
        margin = self._config.fence.total_seconds()
        now = time.monotonic()
        for running in list(self._slots.running.values()):
            runs = running.reason not in _GIVEN_UP and not running.fenced and not running.ended
            if runs and now > running.valid_until - margin:
                self._fence_off(running)

    def _fence_off(self, running: Running) -> None:
        # First the word to the loop: what its process's death means must be known there before the death is.
        self.in_loop(self._give_up, running)
        if not running.ended:
            running.fence()

    def _give_up(self, running: Running) -> None:
        held = self._slots.running.get(running.job.id) is running
        if held and running.reason not in _GIVEN_UP and not running.ended:
            running.stop("fence")
            self._hub.tell(JobFenced(running.job))

    def _watch_loop(self, now: float) -> None:
        lag = now - self._answered
        self.lag = max(0.0, lag - _TICK)
        if lag > _BLOCKED and not self._told_blocked:
            self._told_blocked = True
            types = {one.job.type for one in list(self._slots.running.values()) if one.declaration.mode == "coroutine"}
            self._hub.tell(LoopBlocked(lag, tuple(sorted(types))))
        self.in_loop(self._answer)

    _told_blocked = False

    def _answer(self) -> None:
        self._answered = time.monotonic()
        self._told_blocked = False

    def in_loop(self, call: Callable[..., object], *args: object) -> None:
        """Call something in the worker's loop, from any thread."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            return  # the worker's loop has closed: nothing is left to be told
