"""Problems: what an error becomes as an answer, by one table (RFC 9457).

What went wrong inside is told to operators, in the log and under the request's id; clients are told what they can do
something about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"
_URN = "urn:windlass:problem:"


class Kind(NamedTuple):
    """One kind of problem."""

    status: int
    slug: str
    title: str
    facts: tuple[str, ...] = ()
    """attributes of the error that clients are told"""
    told: bool = True
    """whether its message is for clients, too; what a store or a handler said is not"""
    retry_after: int | None = None
    """seconds"""

    @property
    def type(self) -> str:
        """What names it, wherever it comes from."""
        return _URN + self.slug


KINDS: Mapping[type[Exception], Kind] = {
    errors.SettingsError: Kind(422, "invalid", "The request has a value that cannot be used"),
    errors.HandlerNotFound: Kind(404, "unknown-type", "There is no such type of job"),
    errors.HandlerExists: Kind(500, "internal", "Something went wrong here", told=False),
    errors.HandlerError: Kind(500, "internal", "Something went wrong here", told=False),
    errors.PayloadInvalid: Kind(422, "payload-invalid", "The payload does not fit the type of job"),
    errors.PayloadUnfit: Kind(422, "payload-invalid", "The payload does not fit the type of job"),
    errors.SecretUnreadable: Kind(422, "payload-invalid", "The payload does not fit the type of job"),
    errors.StepInvalid: Kind(500, "internal", "Something went wrong here", told=False),
    errors.JobNotFound: Kind(404, "job-not-found", "There is no such job"),
    errors.DuplicateJob: Kind(409, "duplicate", "There is such a job already", ("existing", "key")),
    errors.MoveRefused: Kind(409, "move-refused", "The job's status does not allow that", ("status", "wanted")),
    errors.JobFailed: Kind(409, "job-failed", "The job ended without a result", told=False),
    errors.ChildFailed: Kind(409, "job-failed", "The job ended without a result", told=False),
    errors.SignalExists: Kind(409, "signal-exists", "A signal of that name has come, or its time was up"),
    errors.SignalTooMuch: Kind(409, "signal-too-much", "The job keeps as much as it may"),
    errors.JobTimeout: Kind(504, "job-timeout", "The job ran longer than its timeout"),
    errors.JobError: Kind(409, "refused", "That cannot be done to the job"),
    errors.QueueFull: Kind(
        429, "queue-full", "The queue holds as many jobs as it may", ("queue",), told=False, retry_after=5
    ),
    errors.LeaseLost: Kind(409, "lease-lost", "The job is another worker's by now"),
    errors.LockHeld: Kind(409, "lock-held", "Somebody else holds the lock", ("name",)),
    errors.LockLost: Kind(409, "lock-lost", "The lock is somebody else's by now", ("name",)),
    errors.ScheduleNotFound: Kind(404, "schedule-not-found", "There is no such schedule", ("name",)),
    errors.StoreUnavailable: Kind(503, "store-unavailable", "The store does not answer", told=False, retry_after=5),
    errors.SchemaMismatch: Kind(503, "schema-mismatch", "The store is being upgraded", told=False, retry_after=30),
    errors.ValueRefused: Kind(422, "value-refused", "The store cannot keep a value", told=False),
    errors.TransactionRefused: Kind(500, "internal", "Something went wrong here", told=False),
    errors.StoreError: Kind(500, "internal", "Something went wrong here", told=False),
    errors.WindlassError: Kind(500, "internal", "Something went wrong here", told=False),
}
"""by the error itself: each has its own line, so that a new one is thought about"""
INTERNAL = KINDS[errors.WindlassError]


class Refused(Exception):
    """A request is refused before it comes to a job: who asks may not, or it cannot be read."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None, **facts: object) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers, self.facts = kind, detail, dict(headers or {}), facts


UNAUTHENTICATED = Kind(401, "unauthenticated", "Say who you are")
FORBIDDEN = Kind(403, "forbidden", "Your key does not allow that")
NOT_FOUND = Kind(404, "not-found", "There is nothing here")
UNREADABLE = Kind(400, "unreadable", "The request cannot be read")
TOO_LARGE = Kind(413, "too-large", "The request is too large")
WRONG_TYPE = Kind(415, "wrong-media-type", "The body has to be JSON")
INVALID = KINDS[errors.SettingsError]
TOO_MANY = Kind(429, "too-many-requests", "Too many requests", retry_after=1)
UNDER_WAY = Kind(409, "under-way", "The same request is being carried out")
OTHER_BODY = Kind(422, "idempotency-key-reused", "This Idempotency-Key was used with another request")


def problem_of(error: Exception, request_id: str) -> tuple[Kind, dict[str, Any], dict[str, str]]:
    """The kind of problem, its body, and the headers it needs."""
    if isinstance(error, Refused):
        return error.kind, body(error.kind, error.detail, request_id, error.facts), error.headers | _later(error.kind)
    kind = KINDS.get(type(error), INTERNAL)
    facts = {name: getattr(error, name) for name in kind.facts}
    detail = str(error) if kind.told else f"{kind.title}: operators find it under this request's id"
    return kind, body(kind, detail, request_id, facts), _later(kind)


def body(kind: Kind, detail: str, request_id: str, facts: Mapping[str, object]) -> dict[str, Any]:
    """The members of a problem."""
    members = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": detail, "requestId": request_id}
    return {**{name: str(value) for name, value in facts.items() if value is not None}, **members}


def _later(kind: Kind) -> dict[str, str]:
    return {} if kind.retry_after is None else {"Retry-After": str(kind.retry_after)}
