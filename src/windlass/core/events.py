"""What the code announces. Logs, metrics and traces listen; nothing that works formats a line, counts or traces.

An event is told by the process that made a move, after the store has said that it is written. Each has a stable `name`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from windlass.core.gathering import Gathering, not_well, times_of, waits_of, went_well

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from windlass.core.gathering import Ended
    from windlass.core.job import Job
    from windlass.core.status import Status
    from windlass.core.transition import Transition

T = TypeVar("T")


# Enqueueing.


@dataclass(frozen=True, slots=True)
class JobEnqueued:
    """A new job is durably in the store."""

    name: ClassVar[str] = "job.enqueued"
    id: str
    type: str
    queue: str
    correlation_id: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobEnqueuedInTransaction:
    """A job was written inside the caller's own transaction: it is there once that commits, and never was otherwise.

    Only the caller learns which of the two it was.
    """

    name: ClassVar[str] = "job.enqueued_in_transaction"
    id: str
    type: str
    queue: str
    replaced: bool = False
    """no new job: one that waited took over payload, priority and time"""
    correlation_id: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobReplaced:
    """A waiting job took over the payload, priority and time of one enqueued with `on_conflict="replace"`."""

    name: ClassVar[str] = "job.replaced"
    id: str
    type: str
    queue: str
    correlation_id: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobDeduplicated:
    """Nothing was written: the job `id` has the unique or idempotency key, and its handle was given instead."""

    name: ClassVar[str] = "job.deduplicated"
    id: str
    type: str
    queue: str
    key: str
    correlation_id: str | None = None
    user_id: str | None = None


# One attempt.


@dataclass(frozen=True, slots=True)
class JobClaimed:
    """A worker was given a job; the job is as the claim left it. Its handler may yet not begin."""

    name: ClassVar[str] = "job.claimed"
    job: Job


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A claimed job is about to run. The store keeps no line of it: it knows of the claim."""

    name: ClassVar[str] = "job.started"
    job: Job


@dataclass(frozen=True, slots=True)
class JobEnded:
    """An attempt's end is in the store. `job` is the job as it was claimed, `transition` what has become of it."""

    name: ClassVar[str] = "job.ended"
    job: Job
    transition: Transition
    seconds: float
    raised: BaseException | None = field(default=None, repr=False)
    """what the handler raised, where it raised it in this process; its frames live as long as this is kept"""

    @property
    def finished(self) -> bool:
        """Whether the job has ended with it, and will not run again by itself."""
        return self.transition.to.finished


@dataclass(frozen=True, slots=True)
class ResultRefused:
    """The store refused an attempt's end: the lease was no longer this worker's."""

    name: ClassVar[str] = "job.refused"
    job: Job
    transition: Transition


@dataclass(frozen=True, slots=True)
class JobFenced:
    """The worker gave a job up by its own clock, because its lease could not be extended in time."""

    name: ClassVar[str] = "job.fenced"
    job: Job


@dataclass(frozen=True, slots=True)
class JobStuck:
    """A job passed its timeout in a thread that cannot be stopped; its slot stays taken until the thread ends."""

    name: ClassVar[str] = "job.stuck"
    job: Job
    stuck: int


@dataclass(frozen=True, slots=True)
class JobRescued:
    """A job's lease ran out, its worker is presumed dead, and the job was taken back: to run again, or as failed."""

    name: ClassVar[str] = "job.rescued"
    job: Job
    """as it was found: its `worker_id` is the worker that lost it"""
    to: Status


@dataclass(frozen=True, slots=True)
class JobExpired:
    """A job was cancelled because no worker had taken it in the time it was given."""

    name: ClassVar[str] = "job.expired"
    id: str


# Orders.


@dataclass(frozen=True, slots=True)
class JobOperated:
    """An operator's order on a job was carried out. Deleted dead letters are told of as `JobDiscarded` instead."""

    name: ClassVar[str] = "job.operated"
    id: str
    action: Literal["cancel", "retry", "delete", "replay"]
    actor: str
    reason: str | None = None
    requested: bool = False
    """a running job was asked to cancel: how it ends is up to its handler"""
    replay_id: str | None = None
    """the new job that does its work again"""


@dataclass(frozen=True, slots=True)
class JobSignalled:
    """A signal came to a job. Its value is not told: it may be confidential."""

    name: ClassVar[str] = "job.signalled"
    id: str
    signal: str
    actor: str
    freed: bool
    """the job waited for it and goes on; otherwise it is kept until the job asks for it"""


@dataclass(frozen=True, slots=True)
class JobOperatedInTransaction:
    """The same inside the caller's own transaction: it counts once that commits, and never happened otherwise.

    Only the caller learns which of the two it was.
    """

    name: ClassVar[str] = "job.operated_in_transaction"
    id: str
    action: Literal["cancel", "retry", "delete", "signal"]
    actor: str
    reason: str | None = None
    """of a signal, its name"""
    requested: bool = False


@dataclass(frozen=True, slots=True)
class JobDiscarded:
    """A dead letter was deleted, and its history with it: what is left of it is this."""

    name: ClassVar[str] = "job.discarded"
    id: str
    type: str
    actor: str
    reason: str | None


# Moves of many at once: how many, not which. `docs/decisions/0017` says why.


@dataclass(frozen=True, slots=True)
class JobsPromoted:
    """Scheduled and retrying jobs that were due went to their queues."""

    name: ClassVar[str] = "jobs.promoted"
    count: int
    queues: Mapping[str, int] = field(default_factory=dict[str, int])
    """how many went to each queue"""


@dataclass(frozen=True, slots=True)
class JobsUnblocked:
    """Blocked jobs whose way was free went to their queues."""

    name: ClassVar[str] = "jobs.unblocked"
    count: int


@dataclass(frozen=True, slots=True)
class JobsAged:
    """Jobs that had waited long were raised in priority."""

    name: ClassVar[str] = "jobs.aged"
    count: int


@dataclass(frozen=True, slots=True)
class JobsPruned:
    """Finished jobs past their retention were deleted, and their histories with them."""

    name: ClassVar[str] = "jobs.pruned"
    count: int


# Schedules.


@dataclass(frozen=True, slots=True)
class ScheduleFired:
    """A tick made a job, which is told of as enqueued, too."""

    name: ClassVar[str] = "schedule.fired"
    schedule: str
    tick: datetime
    job_id: str


@dataclass(frozen=True, slots=True)
class ScheduleSkipped:
    """A tick made no job, because an earlier one of the schedule was still live."""

    name: ClassVar[str] = "schedule.skipped"
    schedule: str
    tick: datetime


@dataclass(frozen=True, slots=True)
class ScheduleMissed:
    """Ticks passed without a worker to fire them, and the schedule does not make up for them."""

    name: ClassVar[str] = "schedule.missed"
    schedule: str
    tick: datetime
    """the oldest of them"""
    ticks: int


# Workers and the store.


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A worker is open and claims."""

    name: ClassVar[str] = "worker.started"
    worker_id: str
    store: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    concurrency: int


@dataclass(frozen=True, slots=True)
class WorkerWarned:
    """Something about a worker needs attention; it goes on, or stops by itself, as `text` says."""

    name: ClassVar[str] = "worker.warned"
    worker_id: str
    about: str
    """`exclude`, `queues`, `stuck`, `results` or `leasing`"""
    text: str


@dataclass(frozen=True, slots=True)
class WorkerStopping:
    """A worker claims no more and waits for what runs."""

    name: ClassVar[str] = "worker.stopping"
    worker_id: str
    running: int
    grace: timedelta


@dataclass(frozen=True, slots=True)
class WorkerStopped:
    """A worker has settled or handed back all it held."""

    name: ClassVar[str] = "worker.stopped"
    worker_id: str
    done: int
    """attempts whose end was written"""
    released: int
    """of these, how many were handed back unfinished"""


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """The event loop stood still: some handler blocks it. `types` names the suspects."""

    name: ClassVar[str] = "worker.blocked"
    seconds: float
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoopAnswered:
    """The event loop took so long to get to what was asked of it: a worker asks four times a second.

    With it goes how the worker stands just then.
    """

    name: ClassVar[str] = "worker.answered"
    seconds: float
    worker_id: str = ""
    slots: int = 0
    busy: int = 0
    """of its slots, how many hold a job"""
    stuck: int = 0
    """of these, how many are held by handlers that do not end"""
    pushed: bool = True
    """whether the store tells of changes by push: without that only polling finds them"""


@dataclass(frozen=True, slots=True)
class StoreCalled:
    """A call of a worker, or of an enqueue outside of transactions, has come back from the store, or failed."""

    name: ClassVar[str] = "store.called"
    doing: str
    seconds: float
    went_well: bool


@dataclass(frozen=True, slots=True)
class StoreTroubled:
    """A store call failed; it is tried again. Announced once per change of state, not per try."""

    name: ClassVar[str] = "store.troubled"
    doing: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreRecovered:
    """The store answers again."""

    name: ClassVar[str] = "store.recovered"
    doing: str
    seconds: float


Event: TypeAlias = (
    JobEnqueued
    | JobEnqueuedInTransaction
    | JobReplaced
    | JobDeduplicated
    | JobClaimed
    | JobStarted
    | JobEnded
    | ResultRefused
    | JobFenced
    | JobStuck
    | JobRescued
    | JobExpired
    | JobOperated
    | JobSignalled
    | JobOperatedInTransaction
    | JobDiscarded
    | JobsPromoted
    | JobsUnblocked
    | JobsAged
    | JobsPruned
    | ScheduleFired
    | ScheduleSkipped
    | ScheduleMissed
    | WorkerStarted
    | WorkerWarned
    | WorkerStopping
    | WorkerStopped
    | LoopBlocked
    | LoopAnswered
    | StoreCalled
    | StoreTroubled
    | StoreRecovered
)


class Fallback(Protocol):
    """A listener that may be silent, as the one that is there by default."""

    @property
    def silent(self) -> bool:
        """Whether it would do nothing about a job that goes well."""
        ...

    def __call__(self, event: Event) -> Any: ...


class Hub:
    """Tells listeners what happened. A listener that raises misses that event, and the work goes on.

    The fallback is told last, unless another listener takes its place. One with a `silent` is not told of jobs that
    succeed while it is true. One that gathers (`core.gathering`) is given what happens to every job by the batch, and
    no event of each. `raised` is told once of each listener that raises, and what it raised.
    """

    __slots__ = ("_each", "_fallback", "_gathering", "_in_its_place", "_listeners", "_raised", "_told", "_wanting")

    def __init__(
        self, fallback: Fallback | None = None, raised: Callable[[object, Exception], None] | None = None
    ) -> None:
        self._listeners: dict[object, Callable[[Event], Any]] = {}
        self._fallback, self._raised = fallback, raised
        self._told: list[object] = []
        """listeners of which it is known that they raise"""
        self._in_its_place: set[object] = set()
        self._each: tuple[tuple[Callable[[Event], Any], Fallback | None], ...] = ()
        """listeners that are told of each job by an event; the same again where one may be silent"""
        self._gathering: tuple[Gathering, ...] = ()
        self._wanting: Sequence[Callable[[Event], Any]] = ()
        """listeners that wanted every job when some were claimed: silent ones are not asked again for each job"""
        self._sort()

    def listen(self, listener: Callable[[Event], Any], *, in_place_of_fallback: bool = False) -> Callable[[], None]:
        """Add a listener; call what is returned to remove it, once or more."""
        # Under a key of its own: one that listens twice is told twice, and each removal removes its own.
        key = object()
        self._listeners[key] = listener
        if in_place_of_fallback:
            self._in_its_place.add(key)
        self._sort()

        def remove() -> None:
            self._listeners.pop(key, None)
            self._in_its_place.discard(key)
            self._sort()

        return remove

    def _sort(self) -> None:
        all_: list[Any] = [*self._all()]
        self._gathering = tuple(one for one in all_ if isinstance(one, Gathering))
        each = [one for one in all_ if not isinstance(one, Gathering)]
        self._each = tuple((one, one if hasattr(one, "silent") else None) for one in each)
        self._wanting = self._want_each_job()

    def _all(self) -> tuple[Callable[[Event], Any], ...]:
        listeners = (*self._listeners.values(),)
        return listeners if self._fallback is None or self._in_its_place else (*listeners, self._fallback)

    @property
    def silent(self) -> bool:
        """Whether no listener would do anything about a job that succeeds, so that a hot path need not tell of it."""
        if self._gathering:
            return False
        # Asked at every enqueue: without a list, and a call less.
        for _, quiet in self._each:  # noqa: SIM110  # half the time of all()
            if quiet is None or not quiet.silent:
                return False
        return True

    def _want_each_job(self) -> Sequence[Callable[[Event], Any]]:
        """The listeners that want events of jobs that go well."""
        return [one for one, quiet in self._each if quiet is None or not quiet.silent]

    def tell(self, event: Event) -> None:
        """Tell every listener, in the order they came."""
        for listener in self._all():
            self._call(listener, event)

    # What happens to every job.

    def claimed(self, jobs: Sequence[Job]) -> None:
        """Tell that a worker was given these jobs."""
        if self._gathering:
            waits = waits_of(jobs)
            for one in self._gathering:
                self._call(one.take_claims, waits, one)
        self._wanting = self._want_each_job()
        for job in jobs if self._wanting else ():
            self._call_each(self._wanting, JobClaimed(job))

    def started(self, job: Job) -> None:
        """Tell that this job is about to run."""
        for one in self._gathering:
            try:
                one.take_start(job)
            except Exception as error:  # noqa: BLE001  # as in `_call`, without a call more for every job
                self._note(one, error)
        if self._wanting:
            self._call_each(self._wanting, JobStarted(job))

    def ended(self, ends: Sequence[Ended]) -> None:
        """Tell that the ends of these attempts are in the store."""
        if self._gathering:
            times = times_of(ends)
            for one in self._gathering:
                self._call(one.take_ends, times, one)
        wanting, all_ = self._want_each_job(), [one for one, _ in self._each]
        for end in ends if wanting else not_well(ends):
            self._call_each(wanting if went_well(end) else all_, JobEnded(*end))

    def _call_each(self, listeners: Sequence[Callable[[Event], Any]], event: Event) -> None:
        for listener in listeners:
            self._call(listener, event)

    def _call(self, call: Callable[[T], Any], told: T, listener: object = None) -> None:
        try:
            call(told)
        except Exception as error:  # noqa: BLE001  # an observer's fault must not stop the work it observes
            self._note(listener or call, error)

    def _note(self, listener: object, error: Exception) -> None:
        if self._raised is not None and not any(one is listener for one in self._told):
            self._told.append(listener)
            self._raised(listener, error)
