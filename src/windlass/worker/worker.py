"""The worker: composes claiming, execution, settling, leasing and chores, and owns every task among them."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

from windlass.core.errors import StoreError
from windlass.core.events import JobStarted, JobStuck, WorkerStarted, WorkerStopped, WorkerStopping, WorkerWarned
from windlass.core.outcome import Released
from windlass.core.transition import needs_proof
from windlass.stores.contract import Lease as LeaseOf
from windlass.stores.contract import Report
from windlass.worker.chores.ageing import AgeingChore
from windlass.worker.chores.promoting import Promoting
from windlass.worker.chores.pruning import Pruning
from windlass.worker.chores.rescuing import Rescuing
from windlass.worker.chores.scheduling import Scheduling
from windlass.worker.claiming import Claiming
from windlass.worker.completing import Completion
from windlass.worker.deadlines import Deadlines
from windlass.worker.doubts import doubts
from windlass.worker.duty import Duty
from windlass.worker.execution import Runner, execute
from windlass.worker.fleet import Fleet
from windlass.worker.leasing import Leasing
from windlass.worker.presence import describe, memory_mb
from windlass.worker.proving import Proving
from windlass.worker.recycling import Recycling, held
from windlass.worker.runners.coroutine import CoroutineRunner
from windlass.worker.runners.process import ProcessRunner
from windlass.worker.runners.thread import ThreadRunner, Threads
from windlass.worker.settling import Settling
from windlass.worker.slots import Slots
from windlass.worker.steady import Steady
from windlass.worker.suspects import Suspects
from windlass.worker.taking import Taking
from windlass.worker.waking import Waking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from windlass.client.client import Client
    from windlass.core.job import Progress
    from windlass.core.outcome import Outcome
    from windlass.stores.contract import WorkerInfo
    from windlass.worker.config import WorkerConfig
    from windlass.worker.recycling import Cause
    from windlass.worker.slots import Running

_PROGRESS_EVERY = 0.2  # seconds: reports are gathered so long
_CANCELS_EVERY = 0.25  # seconds: at most so often a notice makes it look for cancel requests
_DRAIN_EVERY = 0.02
_CHECK_EVERY = 1.0
_CANCEL_EVERY = 0.2
_OBEY = 0.5  # seconds a cancelled handler has to end at shutdown, after its grace period


class Worker:
    """Runs jobs from `async with` to its end. Leaving stops gracefully: nothing is lost and no attempt is spent.

    Stopping: claim no more; leases are kept; what runs has the grace period to end; what is left is handed back to
    its queue at once, its attempt not counted. `stop(now=True)` skips the grace period.
    """

    def __init__(self, client: Client, config: WorkerConfig) -> None:
        self._client, self.config = client, config
        self._hub = client.hub
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._gave_up = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._composed = False
        self.recycled = False
        """whether it stopped by itself to make room for a fresh process"""
        self.gave_way_to_stuck = False
        """whether it did so because too many of its threads would not end"""
        self.stuck = 0
        self.abandoned = 0
        """handlers that would not end at shutdown; only the end of the process ends them"""
        self.started = 0

    @property
    def id(self) -> str:
        """Host, process and a random part."""
        return self.config.worker_id

    @property
    def done(self) -> int:
        """How many attempts it has settled."""
        return self._settling.done if self._composed else 0

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
        if now:
            self._hurry.set()
        self._stopping.set()

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
            # Whoever waits has no more time: hand everything back now, or it would be found only when leases expire.
            self.stop(now=True)
            await asyncio.wait([main])
            raise

    async def _run(self, ready: asyncio.Future[None]) -> None:
        store = self._client.store
        self._compose()
        await self._scheduling.declare()
        await self._leasing.start()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(store.notices.subscribe(self._waking.hear))
                self._waking.meet(())
                stack.callback(self._waking.close)
                stack.push_async_callback(self._processes.close)
                stack.callback(self._threads.close)
                await self._tell_started()
                if not ready.done():
                    ready.set_result(None)
                await self._work()
        finally:
            # Leases are kept to the very end: until the last end is written they must not be lost.
            await self._leasing.close()
        self._hub.tell(WorkerStopped(self.id, self._settling.done, self._settling.released))

    def _compose(self) -> None:
        client, config, hub = self._client, self.config, self._hub
        store = client.store
        poll = config.poll.total_seconds()
        self._slots = Slots(config)
        self._deadlines = Deadlines(self._slots)
        self._suspects = Suspects(self._slots.running)
        self._fleet = Fleet(config.worker_id)
        self._waking = Waking(store, config, self._slots, hub, self._fleet)
        self._duty = Duty(store, config, client.registry, hub, self._fleet)
        self._proving = Proving(store, config, hub)
        self._settling = Settling(store, self._slots, hub, config.worker_id)
        self._claiming = Claiming(
            store,
            config,
            client.registry,
            self._slots,
            hub,
            self._start,
            self._hand_back_unrun,
            self._waking.ramp_up,
        )
        self._leasing = Leasing(store, config, self._slots, hub, self._describe, self._waking.meet)
        wake = self._claiming.wake.set
        self._promoting = Promoting(store, hub, poll, wake)
        self._rescuing = Rescuing(
            store,
            hub,
            config.rescue.total_seconds(),
            wake,
            lambda: self._leasing.outage.over(time.monotonic()),
            (config.lease / 2 + store.capabilities.rescue_waits).total_seconds(),
        )
        self._scheduling = Scheduling(store, hub, client.registry, client.defaults, poll, wake, client.ids)
        self._pruning = Pruning(store, hub, config.retention)
        self._ageing = None if config.ageing is None else AgeingChore(store, hub, config.ageing)
        self._threads = Threads()
        self._in_thread = ThreadRunner(self._threads)
        # Its own half of the margin: where the worker lives, it is the one who gives a job up, and says so.
        self._processes = ProcessRunner(self._deadlines.begin, config.fence.total_seconds() / 2)
        self._runners: dict[str, Runner] = {
            "coroutine": CoroutineRunner(),
            "thread": self._in_thread,
            "process": self._processes,
        }
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], Running] = {}
        self._reports: dict[str, Running] = {}
        self._reported = asyncio.Event()
        self._cancel_check = asyncio.Event()
        self._waking.route(wake, self._something_due, self._duty.free, self._cancel_check.set)
        self._composed = True

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as upkeep:
            settling = upkeep.create_task(self._settling.run(), name="windlass-settling")
            chores = [
                upkeep.create_task(run, name=f"windlass-{name}")
                for name, run in (
                    ("duty", self._duty.run()),
                    ("promoting", self._promoting.run(self._duty.on)),
                    ("rescuing", self._rescuing.run(self._duty.on)),
                    ("scheduling", self._scheduling.run(self._duty.on)),
                    ("pruning", self._pruning.run(self._duty.on)),
                    ("waking", self._waking.run()),
                    ("proving", self._proving.run()),
                    ("deadlines", self._deadlines.run()),
                    ("progress", self._report()),
                    ("cancels", self._look_for_cancels()),
                    ("limits", self._watch_itself()),
                )
            ]
            if self._ageing is not None:
                chores.append(upkeep.create_task(self._ageing.run(self._duty.on), name="windlass-ageing"))
            claiming = upkeep.create_task(self._claiming.run(), name="windlass-claiming")
            try:
                await self._until_stopped()
                self._claiming.stop()
                self._waking.leave()
                await claiming
                self._hub.tell(WorkerStopping(self.id, self._slots.taken, self.config.grace))
                await self._grace()
            finally:
                await self._hand_back()
            self._settling.close()
            await settling
            await _end_all(chores)
            await self._duty.let_go()

    # One job.

    def _start(self, running: Running) -> None:
        if self._claiming.stopping:
            # Claimed by a call that was under way when the stop came.
            self._hand_back_unrun(running, "the worker was stopping when it claimed the job")
            return
        put_off = self._suspects.hold(running)
        if put_off is not None:
            self._settle_unrun(running, put_off)
            return
        self.started += 1
        if running.declaration.mode != "process":
            self._deadlines.begin(running)
        task = self._loop.create_task(self._run_one(running))
        self._tasks[task] = running

    def _hand_back_unrun(self, running: Running, why: str) -> None:
        self._settle_unrun(running, Released(why))

    def _settle_unrun(self, running: Running, outcome: Outcome) -> None:
        running.ended = True
        self._slots.release(running)
        self._settling.put(running, outcome)

    async def _run_one(self, running: Running) -> None:
        try:
            await self._execute(running)
        finally:
            # Break the reference cycle (running, its stopper, its task, this frame): else each job is freed only by
            # the garbage collector.
            running.stopper = None
            self._suspects.let_go(running)
            self._slots.release(running)
            task = asyncio.current_task()
            if task is not None:
                del self._tasks[task]

    async def _execute(self, running: Running) -> None:
        await self._suspects.alone(running)
        if needs_proof(running.job) and not await self._proving.confirm(running):
            running.ended = True
            self._settling.put(running, Released("its lease was lost before it could begin"))
            return
        if time.monotonic() > running.valid_until - self.config.fence.total_seconds():
            # This process was frozen, or another handler blocked the loop, between the claim and now.
            running.ended = True
            self._settling.put(running, Released("its lease was over before it could begin"))
            return
        if not self._hub.silent:
            self._hub.tell(JobStarted(running.job))
        runner = self._runners[running.declaration.mode]
        if running.job.takes is not None:
            runner = Taking(runner, self._client.store)
        outcome = await execute(running, runner, self._progress, Completion(self._client.store, running))
        if running.ended:
            return  # abandoned meanwhile: what it did at last counts no more
        running.ended = True
        self._settling.put(running, outcome)
        alive = self._in_thread.alive.pop(running.job.id, None) if running.declaration.mode == "thread" else None
        if alive is not None and not alive.done():
            await self._outlive(running, alive)

    async def _outlive(self, running: Running, alive: asyncio.Future[None]) -> None:
        """The job is settled but its thread goes on: the slot is not free until it ends."""
        self.stuck += 1
        self._slots.outlived[running.job.queue] += 1
        self._slots.freed.set()  # nobody who stops waits for this one any more
        self._hub.tell(JobStuck(running.job, self.stuck))
        hurry = asyncio.ensure_future(self._gave_up.wait())
        either: list[asyncio.Future[Any]] = [alive, hurry]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        self.stuck -= 1
        self._slots.outlived[running.job.queue] -= 1

    def _progress(self, running: Running, progress: Progress) -> None:
        # Called from the handler's own thread: the newest report stands until the next batch is written.
        running.progress = progress
        if running.job.id not in self._reports:
            self._reports[running.job.id] = running
            self._leasing.in_loop(self._reported.set)

    async def _report(self) -> None:
        steady = Steady(self._hub, "report progress")
        while True:
            await self._reported.wait()
            self._reported.clear()
            reports, self._reports = self._reports, {}
            told = [
                Report(LeaseOf(one.job.id, one.job.lease_token), one.progress)
                for one in reports.values()
                if one.progress is not None and not one.ended
            ]
            if told:
                await steady.attempt(lambda told=told: self._client.store.jobs.report(told))  # type: ignore[misc]  # bound per turn
            await asyncio.sleep(_PROGRESS_EVERY)

    # Wake-ups and limits.

    def _something_due(self) -> None:
        self._promoting.wake.set()
        self._scheduling.wake.set()

    async def _look_for_cancels(self) -> None:
        steady = Steady(self._hub, "look for cancel requests")
        while True:
            await self._cancel_check.wait()
            await asyncio.sleep(_CANCELS_EVERY)
            self._cancel_check.clear()
            found = await steady.attempt(lambda: self._client.store.jobs.cancels(self.id))
            for job_id in found or ():
                running = self._slots.running.get(job_id)
                if running is not None and not running.cancelled:
                    running.stop("cancel")

    async def _watch_itself(self) -> None:
        config, recycling = self.config, Recycling(self.config)
        while True:
            await asyncio.sleep(_CHECK_EVERY if not config.max_jobs else _DRAIN_EVERY)
            size = 0.0 if config.max_memory_mb is None else memory_mb()
            now = time.monotonic()
            stuck = self._slots.stuck(now)
            cause = recycling.cause(now, started=self.started, memory_mb=size, stuck=stuck)
            if cause is not None:
                self._recycle(cause)
                return

    def _recycle(self, cause: Cause) -> None:
        self.recycled = True
        if cause == "stuck":
            self.gave_way_to_stuck = True
            stuck = held(self.config, self._slots.stuck(time.monotonic()))
            self._hub.tell(WorkerWarned(self.id, cause, f"{stuck}: stopping, a fresh process has to take over"))
        self.stop()

    async def _until_stopped(self) -> None:
        if not self.config.drain:
            await self._stopping.wait()
            return
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_EVERY):
                    await self._stopping.wait()
            if self._idle() and await self._nothing_due():
                return

    def _idle(self) -> bool:
        # A wake-up not yet followed is a claim not yet made: it may find something.
        claimed = self._claiming.empty and not self._claiming.wake.is_set()
        return claimed and not self._slots.taken and not self._settling.pending

    async def _nothing_due(self) -> bool:
        try:
            promoted = await self._client.store.jobs.promote(1)
        except StoreError:
            return False  # the chores tell of it and wait; a store that is away has not said that nothing is due
        if promoted.promoted or promoted.unblocked:
            self._claiming.wake.set()
            return False
        return self._idle()

    # Stopping.

    async def _grace(self) -> None:
        async def all_done() -> None:
            while self._slots.taken - self.stuck > 0 and not self._hurry.is_set():
                self._slots.freed.clear()
                await self._slots.freed.wait()

        hurry = asyncio.ensure_future(self._hurry.wait())
        done = asyncio.ensure_future(all_done())
        try:
            await asyncio.wait(
                [hurry, done], timeout=self.config.grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hurry.cancel()
            done.cancel()

    async def _hand_back(self) -> None:
        self._gave_up.set()
        for running in list(self._slots.running.values()):
            running.stop("shutdown")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_OBEY)
        # What does not end when it is cancelled cannot be made to: its job is handed back all the same.
        for running in self._tasks.values():
            self.abandoned += 1
            if not running.ended:
                running.ended = True
                self._settling.put(running, Released("the worker is stopping; the handler did not stop when told to"))

    # Telling.

    def _describe(self) -> WorkerInfo:
        return describe(
            self.config,
            self._slots,
            self._claiming.types,
            stuck=self._slots.stuck(time.monotonic()).total(),
            lag=self._leasing.lag,
            stopping=self._stopping.is_set(),
        )

    async def _tell_started(self) -> None:
        config = self.config
        self._hub.tell(
            WorkerStarted(
                self.id,
                self._client.store.address,
                tuple(sorted(config.queues or ())),
                tuple(sorted(self._claiming.types)),
                config.concurrency,
            )
        )
        for about, text in await doubts(config, self._client.registry, self._client.store):
            self._hub.tell(WorkerWarned(self.id, about, text))


async def _end_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel them until they have ended: a driver may swallow a cancellation that meets an answer on its way."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_CANCEL_EVERY)
