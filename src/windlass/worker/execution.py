"""Execution: run one claimed job and say how it ended, as a pipeline of small steps over one value."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from windlass.core.context import Ctx, enter
from windlass.core.errors import ChildFailed, PayloadInvalid, PayloadUnfit, SecretUnreadable
from windlass.core.job import Error, storable
from windlass.core.outcome import Cancelled, Crashed, Failed, Outcome, Released, Snoozed, Succeeded, Unfit
from windlass.core.redaction import redact, without
from windlass.core.retry import Retry
from windlass.core.sealing import holds_sealed, told_by
from windlass.core.signals import Cancel, Reject, Signal, Snooze, suspension_in
from windlass.core.transition import LONGEST_MESSAGE, LONGEST_TRACEBACK

if TYPE_CHECKING:
    from windlass.core.handler import Declaration
    from windlass.core.job import Job, Progress
    from windlass.core.remembers import Remembers
    from windlass.worker.completing import Completion
    from windlass.worker.slots import Running

Hide: TypeAlias = Callable[[str], str]
_LOOKED_THROUGH = 128 * 1024


class ProcessDied(Exception):  # a fact about a process, not an error of ours
    """The process a job ran in ended before the job did."""


class RemoteFailure(Exception):  # carries what another process already put into words
    """An outcome that where the job runs, its own process or thread, has decided, as data. Layers see its words."""

    def __init__(self, outcome: Outcome) -> None:
        kind = type(outcome).__name__.lower()
        super().__init__(f"{outcome.error.type}: {outcome.error.message}" if isinstance(outcome, Failed) else kind)
        self.outcome = outcome


class Runner(Protocol):
    """Where a handler's body runs."""

    async def run(self, running: Running, ctx: Ctx) -> str:
        """Run the handler to its end and give its result as JSON; raise what it raised."""
        ...


async def execute(
    running: Running,
    runner: Runner,
    report: Callable[[Running, Progress], None],
    completion: Completion,
    remembers: Remembers | None = None,
) -> Outcome:
    """Run the job; whatever it does, an outcome comes of it."""
    ctx = Ctx(running.job, lambda progress: report(running, progress), running.is_cancelled, completion, remembers)
    enter(ctx)
    try:
        result = await runner.run(running, ctx)
        if completion.used:
            await completion.confirm()
        return Succeeded(result)
    except BaseException as error:  # noqa: BLE001  # a handler may raise anything; the worker lives on
        return classify(running, error, ctx.job)


def classify(running: Running, error: BaseException, job: Job | None = None) -> Outcome:
    """What an exception out of a handler means for its job, in words without its secrets.

    `job` is the one that ran, with what it took of others.
    """
    hide = hiding(running.declaration, job or running.job)
    if not isinstance(error, (asyncio.CancelledError, RemoteFailure, ProcessDied)):
        running.raised = error
    suspension = suspension_in(error)
    if suspension is not None:
        return suspension.outcome
    match error:
        case asyncio.CancelledError():
            return _stopped(running, error, hide)
        case RemoteFailure():
            return error.outcome
        case ProcessDied():
            return _stopped(running, error, hide) if running.reason else Crashed(str(error))
        case PayloadUnfit():
            return unreadable(running.job, error)
        case PayloadInvalid():
            # Trying again would give the same: the payload or the result does not fit.
            return Failed(described(error, hide), again=False)
        case Cancel() if running.reason is not None and not running.cancelled:
            # Out of ctx.check(), which ends a handler that should stop, whatever the reason: nobody cancelled the job.
            return _stopped(running, error, hide)
        case Signal():
            return outcome_of(running.declaration, error, hide)
        case _ if running.reason in ("shutdown", "fence"):
            # What it raised came of being stopped: an attempt must not be spent on that.
            return _stopped(running, error, hide)
        case _:
            return outcome_of(running.declaration, error, hide)


def hiding(declaration: Declaration, job: Job) -> Hide:
    """What takes out of a text all that is to stay secret: what passwords and tokens look like, and the job's own."""
    if not holds_sealed(job.payload_json):
        return redact
    secrets = told_by(job.payload_json, declaration.codec.seals, job.type)
    return lambda text: redact(without(text, secrets))


def unreadable(job: Job, error: PayloadUnfit) -> Outcome:
    """What becomes of a job whose payload does not fit the handler here.

    One that takes results of other jobs fails: what they made of its payload is no form of another version.
    """
    parked = job.takes is None or isinstance(error, SecretUnreadable)  # with its key it can be read as it is
    return Unfit(described(error)) if parked else Failed(described(error), again=False)


def outcome_of(declaration: Declaration, error: BaseException, hide: Hide = redact) -> Outcome:
    """What a handler's own exception or signal asks for; also used inside a job's own process."""
    suspension = suspension_in(error)
    if suspension is not None:
        return suspension.outcome
    try:
        return _asked_for(declaration, error, hide)
    except Exception as broken:  # noqa: BLE001  # a signal of the user's own making may lack what signals have
        return Failed(described(broken, hide), again=False)


def _asked_for(declaration: Declaration, error: BaseException, hide: Hide) -> Outcome:
    match error:
        case Snooze():
            return Snoozed(error.for_, None if error.reason is None else _said(error.reason, hide))
        case Cancel():
            return Cancelled(_said(error.reason, hide))
        case Reject():
            return Failed(Error(type="Reject", message=_said(error.reason, hide)), again=False)
        case Retry():
            cause = error.__cause__ or error.__context__
            told = (
                described(cause, hide) if cause is not None else Error(type="Retry", message="asked to be tried again")
            )
            return Failed(told, again=True, after=error.asked)
        case ChildFailed():
            # It has ended for good: trying again would find it as it is.
            return Failed(described(error, hide), again=False)
        case _:
            return Failed(described(error, hide), again=declaration.policy.allows(error))


def _stopped(running: Running, error: BaseException, hide: Hide) -> Outcome:
    match running.reason:
        case "timeout":
            return Failed(timed_out(running))
        case "cancel":
            return Cancelled("cancelled on request")
        case "shutdown" | "fence":
            return Released("the worker is stopping")
        case None:
            # Not stopped from here: the handler cancelled itself, or something it awaited was cancelled.
            return Failed(described(error, hide), again=True)


def timed_out(running: Running) -> Error:
    """The error of a job that ran past its timeout."""
    return Error(type="JobTimeout", message=f"ran longer than its timeout of {running.job.timeout}")


def described(error: BaseException, hide: Hide = redact) -> Error:
    """An exception as text without secrets; one that cannot even be printed is still told of."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException as broken:  # noqa: BLE001  # its __str__ is the user's code and may raise anything
        message = f"(its message cannot be read: __str__ raised {type(broken).__name__})"
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001  # the same: formatting calls __str__ again
        trace = "".join(traceback.format_tb(error.__traceback__))
    return Error(
        type=name,
        message=storable(hide(_bounded(message)), LONGEST_MESSAGE),
        traceback=storable(hide(_bounded(trace, tail=True)), LONGEST_TRACEBACK, tail=True),
    )


def _said(reason: object, hide: Hide) -> str:
    # A reason may be anything a handler had at hand, an exception for one.
    return storable(hide(_bounded(str(reason))), LONGEST_MESSAGE)


def _bounded(text: str, *, tail: bool = False) -> str:
    """So much of a text as is looked through for secrets: more than is kept, so that none is cut where that ends."""
    if len(text) <= _LOOKED_THROUGH:
        return text
    return text[-_LOOKED_THROUGH:] if tail else text[:_LOOKED_THROUGH]
