"""Every error windlass raises, as one tree.

WindlassError
├── SettingsError                a setting or option is missing, unknown or out of range
├── HandlerError
│   ├── HandlerNotFound          nothing of that name is registered here
│   ├── HandlerExists            two handlers claim one name
│   └── PayloadInvalid           arguments or a result do not fit: wrong type, too large, not storable
│       ├── PayloadUnfit         a waiting job's payload does not fit the handler that is here
│       │   └── SecretUnreadable a secret cannot be opened with the keys that are here
│       └── StepInvalid          .job_id, .step: what a job remembers cannot be used as its handler asks
├── JobError
│   ├── JobNotFound
│   ├── DuplicateJob             .existing: the id of the job already there
│   ├── MoveRefused              .status, .wanted: the job's status does not allow it
│   ├── JobFailed                .job: it ended as failed or cancelled while someone awaited its result
│   │   └── ChildFailed          .name: a job that another gathered
│   ├── SignalExists             .job_id, .signal: one of that name has come, or its time was up
│   ├── SignalTooMuch            .job_id, .signal: the job keeps as much as it may
│   └── JobTimeout               a job ran longer than its timeout
├── QueueFull                    .queue, .depth: the queue has reached its largest depth
├── LeaseLost                    another worker owns the job now
├── LockHeld                     .name, .until
├── LockLost                     .name, .token: a lock that was held is somebody else's, or may be
├── ScheduleNotFound             .name
└── StoreError
    ├── StoreUnavailable         try again; the driver's error is the cause
    ├── SchemaMismatch           the store's schema is older or newer than this windlass
    ├── ValueRefused             the store cannot keep a value it was given; trying again would not help
    └── TransactionRefused       the object given as tx cannot carry an enqueue on this store

Messages say what was found, what was expected and what to do. Attributes carry the facts: never parse a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.core.status import Status


class WindlassError(Exception):
    """The root: catching it catches everything windlass raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes with message and facts as they are, whatever a class asks for when it is made."""
        return _remade, (type(self), self.args, self.__dict__)


def _remade(kind: type[WindlassError], args: tuple[Any, ...], facts: dict[str, Any]) -> WindlassError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class SettingsError(WindlassError):
    """A setting or option is missing, unknown or out of range."""


class HandlerError(WindlassError):
    """Something is wrong with a handler or with what it was given."""


class HandlerNotFound(HandlerError):
    """Nothing of that name is registered here."""


class HandlerExists(HandlerError):
    """Two handlers claim one name."""


class PayloadInvalid(HandlerError):
    """Arguments or a result do not fit the handler's types, or cannot be stored."""


class PayloadUnfit(PayloadInvalid):
    """The payload of a waiting job does not fit the handler that is here; it may fit that of another version."""


class SecretUnreadable(PayloadUnfit):
    """A secret cannot be opened with the keys that are here, or was changed, or moved from another place."""


class StepInvalid(PayloadInvalid):
    """What a job remembers cannot be used as its handler asks: trying again would give the same."""

    def __init__(self, job_id: str, step: str, why: str) -> None:
        super().__init__(f"{step} of job {job_id} {why}")
        self.job_id = job_id
        self.step = step


class JobError(WindlassError):
    """An operation on a job was not possible."""


class JobNotFound(JobError):
    """No job has that id, or none holds that unique key."""

    def __init__(self, job_id: str = "", *, unique_key: str | None = None) -> None:
        by_id = f"no job has the id {job_id!r}: it was never enqueued here, was deleted, or was pruned"
        by_key = f"no job holds the unique key {unique_key!r}: it has ended, or was never enqueued here"
        super().__init__(by_id if unique_key is None else by_key)
        self.job_id = job_id
        self.unique_key = unique_key


class DuplicateJob(JobError):
    """A job with the same unique or idempotency key is already there."""

    def __init__(self, existing: str, key: str) -> None:
        super().__init__(
            f"job {existing} already holds the key {key!r}: wait for it, cancel it, or enqueue without the key"
        )
        self.existing = existing
        self.key = key


class MoveRefused(JobError):
    """The job's status does not allow what was asked."""

    def __init__(self, job_id: str, status: Status, wanted: str) -> None:
        super().__init__(f"job {job_id} is {status}: it cannot be moved to {wanted}")
        self.job_id = job_id
        self.status = status
        self.wanted = wanted


class JobFailed(JobError):
    """The awaited job ended without a result: it failed or was cancelled."""

    def __init__(self, job: Job) -> None:
        why = f"{job.error.type}: {job.error.message}" if job.error else "no reason was recorded"
        super().__init__(f"job {job.id} ({job.type}) {job.status} after {job.attempts} attempts: {why}")
        self.job = job


class ChildFailed(JobFailed):
    """A job that another gathered ended without a result. The one that gathered it is not tried again for that."""

    def __init__(self, job: Job, name: str) -> None:
        super().__init__(job)
        self.args = (f"of what was gathered as {name}, {self.args[0]}",)
        self.name = name


class SignalExists(JobError):
    """A signal of that name has come to the job before, or the time it waited for one was up: the first counts."""

    def __init__(self, job_id: str, signal: str) -> None:
        super().__init__(
            f"job {job_id} has had the signal {signal!r}, or waited for it until its time was up: the first counts;"
            " see its history for who sent it"
        )
        self.job_id = job_id
        self.signal = signal


class SignalTooMuch(JobError):
    """The job keeps as many values as it may, or as large ones: there is no room for a signal."""

    def __init__(self, job_id: str, signal: str) -> None:
        super().__init__(
            f"job {job_id} keeps as much as it may and has no room for the signal {signal!r}: send a smaller value,"
            " such as a reference to where the data is"
        )
        self.job_id = job_id
        self.signal = signal


class JobTimeout(JobError):
    """The job ran longer than its timeout."""


class QueueFull(WindlassError):
    """The queue has reached its largest depth; nothing was enqueued."""

    def __init__(self, queue: str, depth: int) -> None:
        super().__init__(f"queue {queue!r} already holds {depth} waiting jobs, its largest depth: try again later")
        self.queue = queue
        self.depth = depth


class LeaseLost(WindlassError):
    """Another worker owns the job now; nothing this worker says about it counts any more."""


class LockHeld(WindlassError):
    """Another owner holds the lock."""

    def __init__(self, name: str, until: datetime) -> None:
        super().__init__(
            f"lock {name!r} is held until {until.isoformat()}, or longer if its holder renews it: try again, or give"
            " wait= to wait for it"
        )
        self.name = name
        self.until = until


class LockLost(WindlassError):
    """The lock is no longer held: it expired, and somebody else may have it."""

    def __init__(self, name: str, token: int) -> None:
        super().__init__(
            f"lock {name!r} is no longer held under token {token}: stop, undo or fence what it guarded, and take it"
            " again; a longer ttl outlasts longer pauses"
        )
        self.name = name
        self.token = token


class ScheduleNotFound(WindlassError):
    """No schedule has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'no schedule is called {name!r}: put it first, or see "windlass schedules" for those there are'
        )
        self.name = name


class StoreError(WindlassError):
    """The store refused or could not do what was asked."""


class StoreUnavailable(StoreError):
    """The store did not answer in time; the driver's error is the cause. Trying again is safe."""


class SchemaMismatch(StoreError):
    """The store's schema is older or newer than this windlass needs."""


class ValueRefused(StoreError):
    """The store cannot keep a value it was given, such as a result that is too large for it; nothing was written."""


class TransactionRefused(StoreError):
    """The object given as tx cannot carry an enqueue on this store."""
