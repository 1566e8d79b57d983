"""The parts of a worker: each is made here, and given what it needs of the others."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from windlass.client.audit import AuditRoom
from windlass.client.carrying import note_lost
from windlass.worker.attempt import Attempts
from windlass.worker.batching import Batching
from windlass.worker.cancels import Cancels
from windlass.worker.chores.ageing import AgeingChore
from windlass.worker.chores.promoting import Promoting
from windlass.worker.chores.pruning import Pruning
from windlass.worker.chores.rescuing import Rescuing
from windlass.worker.chores.sampling import Sampling
from windlass.worker.chores.scheduling import Scheduling
from windlass.worker.claiming import Claiming
from windlass.worker.deadlines import Deadlines
from windlass.worker.draining import Draining
from windlass.worker.duty import Duty
from windlass.worker.fleet import Fleet
from windlass.worker.keeping import Keeping
from windlass.worker.leasing import Leasing
from windlass.worker.outliving import Outliving
from windlass.worker.parked import Parked
from windlass.worker.presence import describe
from windlass.worker.progress import Reporting
from windlass.worker.proving import Proving
from windlass.worker.publishing import Publishing
from windlass.worker.recycling import Recycling
from windlass.worker.remembering import Remembering
from windlass.worker.runners.coroutine import CoroutineRunner
from windlass.worker.runners.process import ProcessRunner
from windlass.worker.runners.thread import ThreadRunner, Threads
from windlass.worker.settling import Settling
from windlass.worker.slots import Slots
from windlass.worker.surrounding import in_its_thread
from windlass.worker.suspects import Suspects
from windlass.worker.together import Together
from windlass.worker.waking import Waking

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from windlass.client.client import Client
    from windlass.stores.contract import WorkerInfo
    from windlass.worker.config import WorkerConfig
    from windlass.worker.stopping import Stopping


class Parts:
    """What a worker is made of, for one life; made inside its loop."""

    def __init__(self, client: Client, config: WorkerConfig, stopping: Stopping) -> None:
        self._client, self._config, self._stopping = client, config, stopping
        store, hub = client.store, client.hub
        self.slots = Slots(config)
        self.deadlines = Deadlines(self.slots)
        self.fleet = Fleet(config.worker_id)
        self.waking = Waking(store, config, self.slots, hub, self.fleet)
        self.duty = Duty(store, config, client.registry, hub, self.fleet)
        self.leasing = Leasing(store, config, self.slots, hub, self._describe, self.waking.meet)
        self.proving = Proving(store, config, hub)
        self.progress = Reporting(store, hub, self.leasing.in_loop)
        self.cancels = Cancels(store, self.slots, hub, config.worker_id)
        self.settling = Settling(store, self.slots, hub, config.worker_id, self.progress)
        self.keeping = Keeping(store, hub, self.slots)
        self._make_runners()
        self.attempts = Attempts(
            store,
            config,
            hub,
            registry=client.registry,
            slots=self.slots,
            runners={"coroutine": CoroutineRunner(), "thread": self._in_thread, "process": self.processes},
            suspects=Suspects(self.slots.running),
            proving=self.proving,
            deadlines=self.deadlines,
            progress=self.progress,
            settling=self.settling,
            outliving=self.outliving,
            remembering=Remembering(client, self.keeping, stopping.requested),
            together=Together(store, hub, client.registry, self._in_thread, self.deadlines, self.progress),
        )
        self.claiming = Claiming(
            store,
            config,
            client.registry,
            self.slots,
            hub,
            self.attempts.start,
            self.attempts.hand_back,
            self.waking.ramp_up,
        )
        taking_batches = [one for one in client.registry if one.batch is not None]
        self.claiming.add_batches([Batching(one, self.slots, self.attempts, self.claiming) for one in taking_batches])
        self.parked = Parked(store, hub, client.registry, self.claiming.types, config.worker_id)
        self.recycling = Recycling(config, self.slots, self.attempts, hub)
        self._make_chores()
        self.draining = Draining(self.promoting, self.claiming, self.slots, self.settling)
        self.waking.route(self.claiming.look, self._something_due, self.duty.free, self.cancels.wake.set)

    def _make_runners(self) -> None:
        self.threads = Threads()
        self._in_thread = ThreadRunner(self.threads, lambda one: in_its_thread(self._client.registry.around_run(one)))
        self.outliving = Outliving(self._in_thread, self.slots, self._client.hub, self._stopping.gave_up)
        # Its own half of the margin: where the worker lives, it is the one that gives a job up, and says so.
        self.processes = ProcessRunner(self.deadlines.begin, self._config.fence.total_seconds() / 2)

    def _make_chores(self) -> None:
        client, config = self._client, self._config
        store, hub, wake = client.store, client.hub, self.claiming.look
        poll = config.poll.total_seconds()
        self.promoting = Promoting(store, hub, poll, wake)
        self.rescuing = Rescuing(
            store,
            hub,
            config.rescue.total_seconds(),
            wake,
            lambda: self.leasing.outage.over(time.monotonic()),
            (config.lease / 2 + store.capabilities.rescue_waits).total_seconds(),
            partial(note_lost, client, AuditRoom(client, config.retention.audit)),
        )
        self.scheduling = Scheduling(store, hub, client.registry, client.defaults, poll, wake, client.ids)
        self.publishing = Publishing(store, hub, client.registry, lambda: self.claiming.types, client.version)
        self.pruning = Pruning(store, hub, config.retention)
        self.sampling = Sampling(store, hub)
        self.ageing = None if config.ageing is None else AgeingChore(store, hub, config.ageing)

    def upkeep(self, stop: Callable[[], None]) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """What goes on beside claiming and settling, by name, until it is cancelled."""
        on_duty = self.duty.on
        yield "duty", self.duty.run()
        yield "promoting", self.promoting.run(on_duty)
        yield "rescuing", self.rescuing.run(on_duty)
        if not self._config.own:
            yield "scheduling", self.scheduling.run(on_duty)
            yield "publishing", self.publishing.run()
        yield "pruning", self.pruning.run(on_duty)
        yield "sampling", self.sampling.run(on_duty)
        if self.ageing is not None:
            yield "ageing", self.ageing.run(on_duty)
        for n, beside in enumerate(self._client.beside.values()):
            yield f"beside-{n}", beside(on_duty)
        yield "waking", self.waking.run()
        yield "proving", self.proving.run()
        yield "deadlines", self.deadlines.run()
        yield "progress", self.progress.run()
        yield "keeping", self.keeping.run()
        yield "cancels", self.cancels.run()
        yield "parked", self.parked.run()
        yield "limits", self.recycling.run(stop)

    def _something_due(self) -> None:
        self.promoting.wake.set()
        self.scheduling.wake.set()

    def _describe(self) -> WorkerInfo:
        return describe(
            self._config,
            self.slots,
            self.claiming.types,
            stuck=self.slots.stuck(time.monotonic()).total(),
            lag=self.leasing.lag,
            stopping=self._stopping.requested.is_set(),
        )
