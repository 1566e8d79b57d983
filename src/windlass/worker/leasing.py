"""Leasing: every lease is extended in one call, from a thread with its own loop and its own store, so that a blocked
event loop cannot lose leases. Before a lease that could not be extended can expire, its job is given up here.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from windlass.core.events import Hub, JobFenced, LoopAnswered, LoopBlocked, StoreTroubled, WorkerWarned
from windlass.core.redaction import redact
from windlass.stores.contract import SILENT, Lease
from windlass.worker.ending import done_within, end_all
from windlass.worker.outage import Outage
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from windlass.stores.contract import Peer, Store, WorkerInfo
    from windlass.worker.config import WorkerConfig
    from windlass.worker.slots import Running, Slots

_BLOCKED = 1.0  # seconds the loop may stand still before that is told
_TICK = 0.25
_LATE = 4  # calls that the store has not answered in time: with more its driver is given up
_FAREWELL = 5.0  # seconds for a call that nothing hangs on
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
        self._asked: float | None = None
        self._late: set[asyncio.Task[bool]] = set()
        self._replacing: asyncio.Task[None] | None = None
        self.lag = 0.0

    async def start(self) -> None:
        """Start the thread; returns once its store is open."""
        self._loop = asyncio.get_running_loop()
        self._opened = self._loop.create_future()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._serve,), name="windlass-leasing", daemon=True
        )
        self._thread.start()
        await self._opened

    async def close(self) -> None:
        """Stop extending and forget the worker's row."""
        self._stop.set()
        if self._own_loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._own_loop.call_soon_threadsafe(self._hastened.set)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _FAREWELL * 6)
            if self._thread.is_alive():
                text = "the thread that keeps leases does not end, its store's driver never answers: it is left behind"
                self._hub.tell(WorkerWarned(self._config.worker_id, "leasing", text))

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
        self._store = store
        try:
            await self._keep()
        finally:
            if self._replacing is not None:
                await asyncio.wait([self._replacing], timeout=2 * _FAREWELL)
            await end_all(self._late, _FAREWELL)
            await done_within(_FAREWELL, self._store.workers.forget([self._config.worker_id]))
            await done_within(_FAREWELL, self._store.close())

    def _set_opened(self, error: BaseException | None) -> None:
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(error) if error else self._opened.set_result(None)

    async def _keep(self) -> None:
        # Apart, because a store that neither answers nor refuses must not keep the fence from closing; nor is a worker
        # dead while somebody's hold on a job, or whatever it is, keeps a lease from being extended.
        async with asyncio.TaskGroup() as together:
            together.create_task(self._extend(), name="windlass-extend")
            together.create_task(self._show(), name="windlass-show")
            together.create_task(self._watch(), name="windlass-watch")

    async def _show(self) -> None:
        # However long leases are, the others must not take this worker for dead.
        pause = min(self._config.heartbeat.total_seconds(), _PRESENT)
        steady = Steady(self._hub, "show that this worker lives")
        due = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due = now + pause * random.uniform(0.9, 1.0)
                if not await self._within_lease(self._beat(self._store, steady)):
                    due = now
            await self._pause()

    async def _extend(self) -> None:
        pause = self._config.heartbeat.total_seconds()
        steady = Steady(self._hub, "extend leases")
        due = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due = now + pause * random.uniform(0.9, 1.0)
                if not await self._within_lease(self._extend_all(self._store, steady)):
                    due = now  # try again at once: a lease has only so many heartbeats
            elif now >= self._confirm_at:
                self._confirm_at = now + _CONFIRM
                await self._within_lease(self._confirm(self._store, steady, now - _CONFIRM))
            await self._pause()

    async def _within_lease(self, call: Coroutine[Any, Any, bool]) -> bool:
        """Whether it was done in time. What is late goes on, and counts if it is done yet.

        It is not cancelled: a driver that is cancelled in the midst of a call may never answer again. One that has let
        several calls wait is given up for a fresh one.
        """
        if len(self._late) > 2 * _LATE:
            call.close()
            return False
        task = asyncio.ensure_future(call)
        _, pending = await asyncio.wait([task], timeout=self._config.lease.total_seconds() / 3)
        if not pending:
            return self._result(task)
        self._late.add(task)
        task.add_done_callback(self._is_done)
        if len(self._late) > _LATE and (self._replacing is None or self._replacing.done()):
            self._replacing = asyncio.ensure_future(self._replace())
        return False

    def _result(self, task: asyncio.Task[bool]) -> bool:
        try:
            return task.result()
        except Exception as error:  # noqa: BLE001  # whatever it was, without this thread every lease would be lost
            self._hub.tell(StoreTroubled("extend leases", redact(f"{type(error).__name__}: {error}")))
            return False

    def _is_done(self, task: asyncio.Task[bool]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            self._result(task)

    async def _replace(self) -> None:
        """Go on with a store of its own driver, if that answers: then it is the old one's that does not."""
        wedged, fresh = self._store, self._origin.sibling()
        opening = asyncio.ensure_future(fresh.open(migrate=False))
        await asyncio.wait([opening], timeout=_FAREWELL)
        if await end_all([opening], _FAREWELL) and not opening.cancelled() and opening.exception() is None:
            self._store = fresh
            late, self._late = self._late, set()
            await end_all(late, _FAREWELL)
            fresh = wedged
        await done_within(_FAREWELL, fresh.close())

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
        # The first question that is open counts: a loop that stood still answers all of them at once.
        self._asked = self._asked or now
        self.in_loop(self._answer)

    _told_blocked = False

    def _answer(self) -> None:
        self._answered = time.monotonic()
        self._told_blocked = False
        asked, self._asked = self._asked, None
        if asked is not None and not self._hub.silent:
            slots = self._slots
            self._hub.tell(
                LoopAnswered(
                    self._answered - asked,
                    worker_id=self._config.worker_id,
                    slots=self._config.concurrency,
                    busy=slots.taken,
                    stuck=slots.stuck(self._answered).total(),
                    pushed=self._origin.notices.healthy,
                )
            )

    def in_loop(self, call: Callable[..., object], *args: object) -> None:
        """Call something in the worker's loop, from any thread."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            return  # the worker's loop has closed: nothing is left to be told
