"""What the code announces. Logs, metrics and traces listen; nothing that works formats a line, counts or traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from windlass.core.job import Job
    from windlass.core.status import Status
    from windlass.core.transition import Transition


@dataclass(frozen=True, slots=True)
class JobEnqueued:
    """A job is durably in the store; `created` is false for a duplicate that was already there."""

    id: str
    type: str
    queue: str
    created: bool


@dataclass(frozen=True, slots=True)
class JobEnqueuedInTransaction:
    """A job was written inside the caller's own transaction: it is there once that commits, and never was otherwise.

    Only the caller learns which of the two it was. `created` is false for a duplicate.
    """

    id: str
    type: str
    queue: str
    created: bool


@dataclass(frozen=True, slots=True)
class JobOperated:
    """Somebody's order on a job was carried out. Deleted dead letters are told of as `JobDiscarded` instead."""

    id: str
    action: Literal["cancel", "retry", "delete", "replay"]
    actor: str
    reason: str | None = None
    requested: bool = False
    """a running job was asked to cancel: how it ends is up to its handler"""
    replay_id: str | None = None
    """the new job that does its work again"""


@dataclass(frozen=True, slots=True)
class JobDiscarded:
    """A dead letter was deleted, and its history with it: what is left of it is this."""

    id: str
    type: str
    actor: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A claimed job is about to run."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobEnded:
    """An attempt's end is in the store."""

    job: Job
    transition: Transition
    seconds: float


@dataclass(frozen=True, slots=True)
class ResultRefused:
    """The store refused an attempt's end: the lease was no longer this worker's."""

    job: Job
    transition: Transition


@dataclass(frozen=True, slots=True)
class JobFenced:
    """The worker gave a job up by its own clock, because its lease could not be extended in time."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobRescued:
    """A job's lease ran out, its worker is presumed dead, and the job was taken back: to run again, or as failed."""

    id: str
    worker_id: str | None
    to: Status


@dataclass(frozen=True, slots=True)
class JobStuck:
    """A job passed its timeout in a thread that cannot be stopped; its slot stays taken until the thread ends."""

    job: Job
    stuck: int


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """The event loop stood still: some handler blocks it. `types` names the suspects."""

    seconds: float
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A worker is open and claims."""

    worker_id: str
    store: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    concurrency: int


@dataclass(frozen=True, slots=True)
class WorkerWarned:
    """Something about a worker that somebody should see to; it goes on, or stops by itself, as `text` says."""

    worker_id: str
    about: str
    """`exclude`, `queues`, `stuck` or `results`"""
    text: str


@dataclass(frozen=True, slots=True)
class WorkerStopping:
    """A worker claims no more and waits for what runs."""

    worker_id: str
    running: int
    grace: timedelta


@dataclass(frozen=True, slots=True)
class WorkerStopped:
    """A worker has settled or handed back all it held."""

    worker_id: str
    done: int
    """attempts whose end was written"""
    released: int
    """of these, how many were handed back unfinished"""


@dataclass(frozen=True, slots=True)
class ChoreDone:
    """A chore changed something."""

    chore: str
    count: int


@dataclass(frozen=True, slots=True)
class TickFired:
    """A schedule's tick came due; `job_id` is None when policy skipped it."""

    schedule: str
    tick: str
    job_id: str | None


@dataclass(frozen=True, slots=True)
class StoreTroubled:
    """A store call failed; it is tried again. Announced once per change of state, not per try."""

    doing: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreRecovered:
    """The store answers again."""

    doing: str
    seconds: float


Event: TypeAlias = (
    JobEnqueued
    | JobEnqueuedInTransaction
    | JobOperated
    | JobDiscarded
    | JobStarted
    | JobEnded
    | ResultRefused
    | JobFenced
    | JobRescued
    | JobStuck
    | LoopBlocked
    | WorkerStarted
    | WorkerWarned
    | WorkerStopping
    | WorkerStopped
    | ChoreDone
    | TickFired
    | StoreTroubled
    | StoreRecovered
)


class Fallback(Protocol):
    """A listener that is there by default."""

    @property
    def silent(self) -> bool:
        """Whether it would do nothing about a job that goes well."""
        ...

    def __call__(self, event: Event) -> Any: ...


class Hub:
    """Tells listeners what happened. A listener that raises is left out for that event and the work goes on.

    The fallback is told last, unless somebody listens in its place.
    """

    __slots__ = ("_fallback", "_in_its_place", "_listeners")

    def __init__(self, fallback: Fallback | None = None) -> None:
        self._listeners: dict[object, Callable[[Event], Any]] = {}
        self._fallback = fallback
        self._in_its_place: set[object] = set()

    def listen(self, listener: Callable[[Event], Any], *, in_place_of_fallback: bool = False) -> Callable[[], None]:
        """Add a listener; call what is returned to remove it, once or more."""
        # Under a key of its own: one that listens twice is told twice, and each removal removes its own.
        key = object()
        self._listeners[key] = listener
        if in_place_of_fallback:
            self._in_its_place.add(key)

        def remove() -> None:
            self._listeners.pop(key, None)
            self._in_its_place.discard(key)

        return remove

    @property
    def silent(self) -> bool:
        """Whether nobody would do anything about a job that goes well, so that a hot path need not build the event."""
        return not self._listeners and (self._fallback is None or self._fallback.silent)

    def tell(self, event: Event) -> None:
        """Tell every listener, in the order they came."""
        listeners = (*self._listeners.values(),)
        if self._fallback is not None and not self._in_its_place:
            listeners += (self._fallback,)
        for listener in listeners:
            try:
                listener(event)
            except Exception:  # noqa: BLE001, S112  # an observer's fault must not stop the work it observes
                continue
