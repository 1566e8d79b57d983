"""One attempt: start → run → decide → settle, from a claimed job to an end that is on its way to the store."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

from windlass.core.outcome import Released
from windlass.core.transition import decide, needs_proof
from windlass.worker.execution import execute
from windlass.worker.remembering import Memory
from windlass.worker.surrounding import Surrounded, Traced, in_the_loop
from windlass.worker.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from windlass.core.events import Hub
    from windlass.core.outcome import Outcome
    from windlass.core.registry import Registry
    from windlass.core.transition import Transition
    from windlass.stores.contract import Store
    from windlass.worker.config import WorkerConfig
    from windlass.worker.deadlines import Deadlines
    from windlass.worker.execution import Runner
    from windlass.worker.outliving import Outliving
    from windlass.worker.progress import Reporting
    from windlass.worker.proving import Proving
    from windlass.worker.remembering import Remembering
    from windlass.worker.settling import Settling
    from windlass.worker.slots import Running, Slots
    from windlass.worker.suspects import Suspects
    from windlass.worker.together import Together


_STOPPING = "the worker was stopping when it claimed the job"


class Attempts:
    """The attempts of one worker. Each ends in `settle`, and there alone, whatever ended it."""

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        hub: Hub,
        *,
        registry: Registry,
        slots: Slots,
        runners: Mapping[str, Runner],
        suspects: Suspects,
        proving: Proving,
        deadlines: Deadlines,
        progress: Reporting,
        settling: Settling,
        outliving: Outliving,
        remembering: Remembering,
        together: Together,
    ) -> None:
        self._store, self._hub, self._registry = store, hub, registry
        self._slots, self._runners = slots, runners
        self._fence = config.fence.total_seconds()
        self._suspects, self._proving, self._deadlines = suspects, proving, deadlines
        self._progress, self._settling, self._outliving = progress, settling, outliving
        self._remembering = remembering
        self._together = together
        self._loop = asyncio.get_running_loop()
        self.tasks: dict[asyncio.Task[None], Sequence[Running]] = {}
        """with the jobs of each: one, or a batch"""
        self.started = 0
        self.closed = False
        """whether the worker stops: what is still claimed goes back unrun"""

    # Start.

    def start(self, running: Running) -> None:
        """Begin an attempt of a job that was claimed, or send the job back at once."""
        if self.closed:
            # Claimed by a call that was under way when the stop came.
            self.hand_back(running, _STOPPING)
            return
        put_off = self._suspects.hold(running)
        if put_off is not None:
            self._send_back(running, put_off)
            return
        self.started += 1
        if running.declaration.mode != "process":
            self._deadlines.begin(running)
        task = running.task = self._loop.create_task(self._live(running))
        self.tasks[task] = (running,)

    def start_together(self, members: Sequence[Running]) -> None:
        """Begin the attempts of jobs that one call does, or send them back at once."""
        put_off = self._suspects.hold(members[0]) if len(members) == 1 else None
        if self.closed or put_off is not None:
            self._slots.release(*members)
            for running in members:
                self.settle(running, put_off or Released(_STOPPING))
            return
        self.started += len(members)
        self.tasks[self._loop.create_task(self._live_together(members))] = members

    def hand_back(self, running: Running, why: str) -> None:
        """Send a claimed job back to its queue; it never began."""
        self._send_back(running, Released(why))

    def _send_back(self, running: Running, outcome: Outcome) -> None:
        self._slots.release(running)
        self.settle(running, outcome)

    # Run.

    async def _live(self, running: Running) -> None:
        try:
            # Most jobs need no proof, and no suspect is without: nothing to be awaited, and a coroutine less for each.
            outcome = await self._unfit(running) if needs_proof(running.job) else self._late(running)
            if outcome is None:
                outcome = await self._run(running)
            if not running.ended:  # else abandoned meanwhile: what it did at last counts no more
                self.settle(running, outcome)
                if running.declaration.mode == "thread":
                    await self._outliving.outlive(running)
        finally:
            # Break the reference cycle (running, its stopper, its task, this frame): else each job is freed only by
            # the garbage collector.
            running.stopper = None
            self._suspects.let_go(running)
            self._slots.release(running)
            task, running.task = running.task, None
            if task is not None:
                del self.tasks[task]

    async def _live_together(self, members: Sequence[Running]) -> None:
        try:
            unfit = await asyncio.gather(*(self._unfit(running) for running in members))
            able: list[Running] = []
            for running, why in zip(members, unfit, strict=True):
                if why is None:
                    able.append(running)
                else:
                    self.settle(running, why)
            for running, outcome in (await self._together.run(able)).items():
                if not running.ended:
                    self.settle(running, outcome)
            for running in able:
                await self._outliving.outlive(running)
        finally:
            for running in members:
                running.stopper = None
                self._suspects.let_go(running)
            self._slots.release(*members)
            task = asyncio.current_task()
            if task is not None:
                del self.tasks[task]

    async def _unfit(self, running: Running) -> Outcome | None:
        """Why its handler may not begin after all; None if it may."""
        await self._suspects.alone(running)
        if needs_proof(running.job) and not await self._proving.confirm(running):
            return Released("its lease was lost before it could begin")
        return self._late(running)

    def _late(self, running: Running) -> Outcome | None:
        if time.monotonic() > running.valid_until - self._fence:
            # This process was frozen, or another handler blocked the loop, between the claim and now.
            return Released("its lease was over before it could begin")
        return None

    def _run(self, running: Running) -> Coroutine[None, None, Outcome]:
        self._hub.started(running.job)
        runner = self._runners[running.declaration.mode]
        if running.job.takes is not None:
            runner = Taking(runner, self._store, running.declaration.codec.seals)
        layers = self._registry.around_run(running.declaration)
        if layers:
            runner = Surrounded(runner, in_the_loop(running.declaration, layers))
        spans = self._registry.spans
        if spans is not None and not spans.idle(running.job):
            runner = Traced(runner, spans)
        memory = Memory(running, self._remembering)
        return execute(running, runner, self._progress.report, memory, memory)

    # Decide and settle.

    def settle(self, running: Running, outcome: Outcome) -> None:
        """Decide what becomes of the job and have it written: the one end of every attempt."""
        running.ended = True
        self._settling.put(running, decided(running, outcome))


def decided(running: Running, outcome: Outcome) -> Transition:
    """What becomes of the job by the law and by its handler's own policy."""
    return decide(running.job, outcome, running.declaration.policy, random.random())
