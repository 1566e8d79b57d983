"""Which event counts as which measure, with which labels. Every listener that counts reads this one table.

Only events are measured here; what has to be looked up, as the depth of a queue, is not. Values of labels come from
small, closed sets: `Bounds` gives types and queues that this application does not declare the name `other`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from windlass.core import events
from windlass.core.gathering import Ending
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job
    from windlass.core.registry import Registry

OTHER = "other"


class Kind(StrEnum):
    """What can be done with the values of a measure."""

    COUNT = "count"
    """they add up"""
    SECONDS = "seconds"
    """how long something took: they are spread over a histogram"""
    GAUGE = "gauge"
    """the newest one counts"""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Something that is counted. Its name has dots; the names of its labels are in the order of their values."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


class Measurement(NamedTuple):
    """One value of a measure, with the values of its labels."""

    measure: Measure
    value: float
    labels: tuple[str, ...]


_OF_A_JOB = ("type", "queue")

JOBS_ENQUEUED = Measure("jobs.enqueued", Kind.COUNT, _OF_A_JOB, "New jobs that are durable in the store.")
JOBS_ENQUEUED_IN_TRANSACTION = Measure(
    "jobs.enqueued_in_transaction",
    Kind.COUNT,
    _OF_A_JOB,
    "Jobs written or replaced inside a caller's own transaction, whether or not that commits.",
)
JOBS_REPLACED = Measure("jobs.replaced", Kind.COUNT, _OF_A_JOB, "Waiting jobs that took over a newer payload.")
JOBS_DEDUPLICATED = Measure("jobs.deduplicated", Kind.COUNT, _OF_A_JOB, "Enqueues whose job was already there.")
JOB_WAIT = Measure("job.wait", Kind.SECONDS, _OF_A_JOB, "How long jobs waited from being due to their claim.")
JOB_RUN = Measure("job.run", Kind.SECONDS, _OF_A_JOB, "How long attempts took from their claim to their end.")
JOBS_STARTED = Measure("jobs.started", Kind.COUNT, _OF_A_JOB, "Attempts that began.")
JOBS_ENDED = Measure("jobs.ended", Kind.COUNT, (*_OF_A_JOB, "outcome"), "Attempts whose end is written, by outcome.")
JOBS_RETRIED = Measure("jobs.retried", Kind.COUNT, _OF_A_JOB, "Attempts that failed and are retried.")
JOBS_CRASHED = Measure("jobs.crashed", Kind.COUNT, _OF_A_JOB, "Attempts whose own process died.")
JOBS_RESCUED = Measure(
    "jobs.rescued", Kind.COUNT, (*_OF_A_JOB, "to"), "Jobs rescued from workers presumed dead, by their new status."
)
JOBS_REFUSED = Measure("jobs.refused", Kind.COUNT, _OF_A_JOB, "Late results that the store refused.")
JOBS_FENCED = Measure("jobs.fenced", Kind.COUNT, _OF_A_JOB, "Running jobs given up because their lease was lost.")
JOBS_STUCK = Measure("jobs.stuck", Kind.COUNT, _OF_A_JOB, "Jobs past their timeout whose thread goes on.")
JOBS_EXPIRED = Measure("jobs.expired", Kind.COUNT, (), "Jobs cancelled because no worker had claimed them in time.")
JOBS_PROMOTED = Measure("jobs.promoted", Kind.COUNT, ("queue",), "Scheduled and retrying jobs that became due.")
JOBS_UNBLOCKED = Measure("jobs.unblocked", Kind.COUNT, (), "Blocked jobs that a sweep released.")
JOBS_AGED = Measure("jobs.aged", Kind.COUNT, (), "Jobs raised in priority because they had waited long.")
JOBS_PRUNED = Measure("jobs.pruned", Kind.COUNT, (), "Finished jobs deleted past their retention.")
OPERATIONS = Measure(
    "operations", Kind.COUNT, ("action",), "Operations on jobs: cancel, retry, delete, replay, signal, discard."
)
TICKS = Measure("schedule.ticks", Kind.COUNT, ("outcome",), "Ticks of schedules: fired, skipped or missed.")
WORKERS_STARTED = Measure("workers.started", Kind.COUNT, (), "Workers that began to claim.")
WORKERS_STOPPED = Measure("workers.stopped", Kind.COUNT, (), "Workers that stopped in an orderly way.")
WORKER_WARNINGS = Measure("worker.warnings", Kind.COUNT, ("about",), "Warnings of workers, by subject.")
LOOP_BLOCKED = Measure(
    "loop.blocked", Kind.SECONDS, (), "How long the event loop had been blocked when that was noticed."
)
SLOTS = Measure("slots", Kind.GAUGE, (), "Slots of the workers here: how many jobs can run at once.")
SLOTS_BUSY = Measure("slots.busy", Kind.GAUGE, (), "Slots that hold a job.")
SLOTS_STUCK = Measure("slots.stuck", Kind.GAUGE, (), "Slots held by handlers that have not ended after their timeout.")
NOTIFIER_HEALTHY = Measure(
    "notifier.healthy",
    Kind.GAUGE,
    (),
    "1 while changes of the store are pushed, 0 while they are found by polling only.",
)
LOOP_LAG = Measure("loop.lag", Kind.SECONDS, (), "Lag of the event loop, measured four times a second.")
STORE_CALLS = Measure(
    "store.call", Kind.SECONDS, ("doing",), "How long calls to the store took, including failed ones."
)
STORE_FAILURES = Measure("store.failures", Kind.COUNT, ("doing",), "Calls to the store that failed; every try counts.")
STORE_ERRORS = Measure("store.errors", Kind.COUNT, ("doing",), "How often calls to the store began to fail.")
STORE_AWAY = Measure(
    "store.away", Kind.SECONDS, ("doing",), "How long calls to the store failed before one succeeded again."
)

MEASURES: tuple[Measure, ...] = (
    JOBS_ENQUEUED,
    JOBS_ENQUEUED_IN_TRANSACTION,
    JOBS_REPLACED,
    JOBS_DEDUPLICATED,
    JOB_WAIT,
    JOB_RUN,
    JOBS_STARTED,
    JOBS_ENDED,
    JOBS_RETRIED,
    JOBS_CRASHED,
    JOBS_RESCUED,
    JOBS_REFUSED,
    JOBS_FENCED,
    JOBS_STUCK,
    JOBS_EXPIRED,
    JOBS_PROMOTED,
    JOBS_UNBLOCKED,
    JOBS_AGED,
    JOBS_PRUNED,
    OPERATIONS,
    TICKS,
    WORKERS_STARTED,
    WORKERS_STOPPED,
    WORKER_WARNINGS,
    LOOP_BLOCKED,
    LOOP_LAG,
    SLOTS,
    SLOTS_BUSY,
    SLOTS_STUCK,
    NOTIFIER_HEALTHY,
    STORE_CALLS,
    STORE_FAILURES,
    STORE_ERRORS,
    STORE_AWAY,
)


class Bounds:
    """The types and queues that are told by name: those that handlers here declare, and queues of workers here."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, str] = {}
        self._queues: dict[str, str] = {}

    def type(self, name: str) -> str:
        """The name, or `other`."""
        return self._known.get(name) or self._look_for_type(name)

    def queue(self, name: str) -> str:
        """The name, or `other`."""
        return self._queues.get(name) or self._look_for_queue(name)

    def admit(self, queues: Sequence[str]) -> None:
        """Tell these queues by name from now on: a worker here claims of them."""
        self._queues.update(zip(queues, queues, strict=True))

    # What is known stays so; what is not may be declared later, so only what was found is remembered.

    def _look_for_type(self, name: str) -> str:
        if name in self._registry or name in self._registry.built_in():
            return self._known.setdefault(name, name)
        return OTHER

    def _look_for_queue(self, name: str) -> str:
        if any(one.options.queue == name for one in self._registry) or self._registry.built_in((name,)):
            return self._queues.setdefault(name, name)
        return OTHER


def measured(event: events.Event, bounds: Bounds) -> Sequence[Measurement]:
    """What an event adds to the measures."""
    match event:
        case events.JobClaimed(job):
            return () if job.wait_ms is None else waited(job.type, job.queue, bounds, job.wait_ms / 1000)
        case events.JobStarted(job):
            return begun(job.type, job.queue, bounds)
        case events.JobEnded(job, change):
            return over(Ending(job.type, job.queue, change.happened, change.to, change.crashed), bounds, event.seconds)
        case events.JobEnqueued(_, type, queue):
            return (Measurement(JOBS_ENQUEUED, 1, (bounds.type(type), bounds.queue(queue))),)
        case events.JobEnqueuedInTransaction(_, type, queue):
            return (Measurement(JOBS_ENQUEUED_IN_TRANSACTION, 1, (bounds.type(type), bounds.queue(queue))),)
        case events.JobReplaced(_, type, queue):
            return (Measurement(JOBS_REPLACED, 1, (bounds.type(type), bounds.queue(queue))),)
        case events.JobDeduplicated(_, type, queue):
            return (Measurement(JOBS_DEDUPLICATED, 1, (bounds.type(type), bounds.queue(queue))),)
        case _:
            return _seldom(event, bounds)


def waited(type: str, queue: str, bounds: Bounds, seconds: float = 0) -> Sequence[Measurement]:
    """What a claimed job adds."""
    return (Measurement(JOB_WAIT, seconds, (bounds.type(type), bounds.queue(queue))),)


def begun(type: str, queue: str, bounds: Bounds) -> Sequence[Measurement]:
    """What a job adds that is about to run."""
    return (Measurement(JOBS_STARTED, 1, (bounds.type(type), bounds.queue(queue))),)


def over(end: Ending, bounds: Bounds, seconds: float = 0) -> Sequence[Measurement]:
    """What an attempt adds that ended so."""
    labels = (bounds.type(end.type), bounds.queue(end.queue))
    found = [Measurement(JOBS_ENDED, 1, (*labels, end.happened.value))]
    if end.happened not in _NOT_RUN:
        found.append(Measurement(JOB_RUN, seconds, labels))
    if end.to is Status.RETRYING:
        found.append(Measurement(JOBS_RETRIED, 1, labels))
    if end.crashed:
        found.append(Measurement(JOBS_CRASHED, 1, labels))
    return found


_NOT_RUN = frozenset({"released", "blocked"})
"""ends of attempts that were cut off or never began: how long they took says nothing of the handler"""

_Seldom: TypeAlias = (
    events.ResultRefused
    | events.JobFenced
    | events.JobStuck
    | events.JobRescued
    | events.JobExpired
    | events.JobOperated
    | events.JobSignalled
    | events.JobOperatedInTransaction
    | events.JobDiscarded
    | events.JobsPromoted
    | events.JobsUnblocked
    | events.JobsAged
    | events.JobsPruned
    | events.ScheduleFired
    | events.ScheduleSkipped
    | events.ScheduleMissed
    | events.WorkerStarted
    | events.WorkerWarned
    | events.WorkerStopping
    | events.WorkerStopped
    | events.LoopBlocked
    | events.LoopAnswered
    | events.StoreCalled
    | events.StoreTroubled
    | events.StoreRecovered
)


def _seldom(event: _Seldom, bounds: Bounds) -> Sequence[Measurement]:
    match event:
        case events.JobRescued(job, to):
            return (Measurement(JOBS_RESCUED, 1, (bounds.type(job.type), bounds.queue(job.queue), to.value)),)
        case events.ResultRefused(job):
            return (_of(JOBS_REFUSED, job, bounds),)
        case events.JobFenced(job):
            return (_of(JOBS_FENCED, job, bounds),)
        case events.JobStuck(job):
            return (_of(JOBS_STUCK, job, bounds),)
        case events.JobsPromoted(_, queues):
            return [Measurement(JOBS_PROMOTED, n, (bounds.queue(queue),)) for queue, n in queues.items()]
        case events.WorkerStarted():
            bounds.admit(event.queues)
            return (Measurement(WORKERS_STARTED, 1, ()),)
        case events.LoopBlocked(seconds):
            return (Measurement(LOOP_BLOCKED, seconds, ()),)
        case events.LoopAnswered(seconds, _, slots, busy, stuck, pushed):
            return (
                Measurement(LOOP_LAG, seconds, ()),
                Measurement(SLOTS, slots, ()),
                Measurement(SLOTS_BUSY, busy, ()),
                Measurement(SLOTS_STUCK, stuck, ()),
                Measurement(NOTIFIER_HEALTHY, int(pushed), ()),
            )
        case events.StoreCalled(doing, seconds, went_well):
            took = Measurement(STORE_CALLS, seconds, (doing,))
            return (took,) if went_well else (took, Measurement(STORE_FAILURES, 1, (doing,)))
        case events.StoreRecovered(doing, seconds):
            return (Measurement(STORE_AWAY, seconds, (doing,)),)
        case events.WorkerStopping() | events.JobOperatedInTransaction():
            return ()
        case _:
            return (_counted(event),)


_Counted: TypeAlias = (
    events.JobExpired
    | events.JobOperated
    | events.JobSignalled
    | events.JobDiscarded
    | events.JobsUnblocked
    | events.JobsAged
    | events.JobsPruned
    | events.ScheduleFired
    | events.ScheduleSkipped
    | events.ScheduleMissed
    | events.WorkerWarned
    | events.WorkerStopped
    | events.StoreTroubled
)


def _counted(event: _Counted) -> Measurement:
    match event:
        case events.JobExpired():
            return Measurement(JOBS_EXPIRED, 1, ())
        case events.JobOperated():
            return Measurement(OPERATIONS, 1, (event.action,))
        case events.JobSignalled():
            return Measurement(OPERATIONS, 1, ("signal",))
        case events.JobDiscarded():
            return Measurement(OPERATIONS, 1, ("discard",))
        case events.JobsUnblocked(count):
            return Measurement(JOBS_UNBLOCKED, count, ())
        case events.JobsAged(count):
            return Measurement(JOBS_AGED, count, ())
        case events.JobsPruned(count):
            return Measurement(JOBS_PRUNED, count, ())
        case events.ScheduleFired():
            return Measurement(TICKS, 1, ("fired",))
        case events.ScheduleSkipped():
            return Measurement(TICKS, 1, ("skipped",))
        case events.ScheduleMissed():
            return Measurement(TICKS, event.ticks, ("missed",))
        case events.WorkerWarned():
            return Measurement(WORKER_WARNINGS, 1, (event.about,))
        case events.WorkerStopped():
            return Measurement(WORKERS_STOPPED, 1, ())
        case events.StoreTroubled():
            return Measurement(STORE_ERRORS, 1, (event.doing,))


def _of(measure: Measure, job: Job, bounds: Bounds, value: float = 1) -> Measurement:
    return Measurement(measure, value, (bounds.type(job.type), bounds.queue(job.queue)))
