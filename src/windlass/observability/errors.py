"""Error reports: each failed attempt is given to hooks, in a thread of theirs, so that none can hold up a job."""

from __future__ import annotations

import atexit
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from windlass.core import events
from windlass.core.errors import HandlerError
from windlass.core.job import Error
from windlass.core.status import Status
from windlass.core.transition import WORKER_DIED
from windlass.observability.logs import name_of, tell_trouble
from windlass.observability.plain import cleaned

if TYPE_CHECKING:
    from windlass.core.job import Job

MOST = 1_000
"""failures that wait for a hook; of more the oldest are left out"""
HANGS = 10.0
"""seconds in a hook after which it is said to hang"""
AT_EXIT = 3.0
"""seconds that a process which ends gives its hooks for what still waits"""
_FAILED = frozenset({Status.FAILED, Status.RETRYING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt, as a hook of `app.on_error` is told of it."""

    raised: BaseException | None
    """what the handler raised; None where there is no exception here: of another process, past a timeout, of a crash"""
    error: Error
    """type, message and traceback as the store keeps them, without secrets; there always"""
    id: str
    type: str
    queue: str
    attempt: int
    max_attempts: int
    final: bool
    """whether the job has failed for good"""
    crashed: bool
    """whether its process died, or its worker did"""
    worker: str | None
    correlation: str | None
    user: str | None
    tags: tuple[str, ...]
    job: Job

    def payload(self) -> dict[str, Any]:
        """What the job was given, without secrets: those declared so, and what is called a password, token or so."""
        found: dict[str, Any] = cleaned(self.job.payload)
        return found


Hook: TypeAlias = Callable[[Failure], Any]


def failure_in(event: events.Event) -> Failure | None:
    """What failed by an event, if something has."""
    match event:
        case events.JobEnded(job, change) if change.error is not None and (change.to in _FAILED or change.crashed):
            return _failure(job, change.error, change.to, event.raised, crashed=change.crashed)
        case events.JobRescued(job, to) if to is not Status.CANCELLED:
            error = Error(type=WORKER_DIED, message=f"the lease of worker {job.worker_id} ran out")
            return _failure(job, error, to, None, crashed=True)
        case _:
            return None


def _failure(job: Job, error: Error, to: Status, raised: BaseException | None, *, crashed: bool) -> Failure:
    return Failure(
        raised=raised,
        error=error,
        id=job.id,
        type=job.type,
        queue=job.queue,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        final=to is Status.FAILED,
        crashed=crashed,
        worker=job.worker_id,
        correlation=job.correlation_id,
        user=job.user_id,
        tags=job.tags,
        job=job,
    )


class ErrorReports:
    """A listener that gives failures to one hook, one after another."""

    silent = True
    """of jobs that go well it need not be told"""

    def __init__(self, hook: Hook, *, final: bool = False) -> None:
        if inspect.iscoroutinefunction(hook):
            raise HandlerError(f"{name_of(hook)} is asynchronous: a hook of on_error is a plain function, in a thread")
        self._hook, self._final = hook, final
        self._changed = threading.Condition()
        self._waiting: deque[Failure] = deque()
        self._busy = False
        self._since: float | None = None
        """when the hook was called that has not returned"""
        self._told: set[str] = set()
        atexit.register(self.wait, AT_EXIT)

    def __call__(self, event: events.Event) -> None:
        failure = failure_in(event)
        if failure is None or (self._final and not failure.final):
            return
        with self._changed:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                self._tell("left out", f"{MOST:,} failures wait for it: the oldest are left out")
            self._waiting.append(failure)
            if not self._busy:
                # One for each burst, not for ever: most applications seldom fail.
                self._busy = True
                threading.Thread(target=self._run, name="windlass-errors", daemon=True).start()
            since = self._since
        if since is not None and time.monotonic() - since > HANGS:
            self._tell("hangs", f"it has not returned for {HANGS:g} s; other failures wait for it")

    def wait(self, seconds: float) -> bool:
        """Wait until all is reported, so long at most; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, seconds)

    def close(self) -> None:
        """Report no more."""
        atexit.unregister(self.wait)

    def _run(self) -> None:
        while (failure := self._next()) is not None:
            try:
                self._hook(failure)
            except BaseException as error:  # noqa: BLE001  # code of the user, whose fault must harm no job
                self._tell("raised", f"it raised {type(error).__name__}: {error}")
            del failure  # what it raised keeps the frames of its handler

    def _next(self) -> Failure | None:
        with self._changed:
            if self._waiting:
                self._since = time.monotonic()
                return self._waiting.popleft()
            self._busy, self._since = False, None
            self._changed.notify_all()
            return None

    def _tell(self, what: str, text: str) -> None:
        if what in self._told:
            return
        self._told.add(what)
        tell_trouble(name_of(self._hook), what, text)
