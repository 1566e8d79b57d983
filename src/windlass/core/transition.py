"""The decision: from a job and the outcome of its attempt to the change a store applies.

A transition holds durations, not instants: the store stamps instants by its own clock, and applies the transition only
if the job is still processing under the same lease token. Its words are such as every store can keep.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, assert_never

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.history import Happened
from windlass.core.job import Error, storable
from windlass.core.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Gathering,
    Lost,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    Unfit,
    Waiting,
)
from windlass.core.retry import DEFAULT_POLICY, Retry
from windlass.core.status import Status

if TYPE_CHECKING:
    from windlass.core.job import Job

LONGEST_TYPE = 200
LONGEST_MESSAGE = 4_000
LONGEST_TRACEBACK = 32_000
_NOW = timedelta(0)


class Transition(NamedTuple):
    """One decided change of a processing job."""

    id: str
    token: int
    to: Status
    happened: Happened
    delay: timedelta | None = None
    """until it is due; of a job that becomes blocked by a signal, until its time is up"""
    give_back: bool = False
    """the attempt is not counted"""
    crashed: bool = False
    result_json: str | None = None
    error: Error | None = None
    note: str | None = None
    blocked_by: str | None = None
    """what a job that becomes blocked waits for, as `BlockedBy.text` writes it"""


def decide(job: Job, outcome: Outcome, policy: Retry = DEFAULT_POLICY, spread: float = 0.0) -> Transition:
    """Say what becomes of the job; `spread` in [0, 1) is the chance that jitter is made of."""
    match outcome:
        case Succeeded(result_json):
            # Most jobs end so: without the way through `_move`, and the whole of its names.
            return Transition(job.id, job.lease_token, Status.SUCCEEDED, Happened.SUCCEEDED, result_json=result_json)
        case Failed():
            return _failed(job, outcome, policy, spread)
        case Snoozed(for_, reason):
            return _move(job, Status.SCHEDULED, Happened.SNOOZED, delay=for_, give_back=True, note=reason)
        case Cancelled(reason):
            return _move(job, Status.CANCELLED, Happened.CANCELLED, note=reason)
        case Released(reason):
            return _move(job, Status.QUEUED, Happened.RELEASED, give_back=True, note=reason)
        case Unfit(error):
            return _unfit(job, error)
        case Waiting(signal, timeout):
            line = BlockedBy(Kind.SIGNAL, signal).text
            return _suspended(job, line, f"waits for the signal {signal}", timeout)
        case Gathering(name):
            return _suspended(job, BlockedBy(Kind.FLOW, job.id).text, f"waits for what it gathers as {name}")
        case Crashed(detail):
            return _crashed(job, Happened.CRASHED, detail, policy, spread)
        case Lost(confirmed):
            return _lost(job, confirmed=confirmed)
    assert_never(outcome)


def honour_cancel(transition: Transition) -> Transition:
    """The transition to apply instead when the job was asked to cancel: it must not run another time."""
    if transition.to.finished:
        return transition
    return transition._replace(
        to=Status.CANCELLED, happened=Happened.CANCELLED, delay=None, note="cancelled on request", blocked_by=None
    )


def go_on(transition: Transition) -> Transition:
    """The transition to apply instead when the signal that a job would wait for is there already."""
    return transition._replace(to=Status.QUEUED, delay=None, note=f"{transition.note}, which is there", blocked_by=None)


def _suspended(job: Job, line: str, note: str, timeout: timedelta | None = None) -> Transition:
    return _move(job, Status.BLOCKED, Happened.SUSPENDED, delay=timeout, give_back=True, note=note, blocked_by=line)


def _unfit(job: Job, error: Error) -> Transition:
    line = BlockedBy(Kind.PAYLOAD, job.type).text
    note = f"{line}: {error.message}"
    return _move(job, Status.BLOCKED, Happened.BLOCKED, give_back=True, error=error, note=note, blocked_by=line)


def _failed(job: Job, outcome: Failed, policy: Retry, spread: float) -> Transition:
    told = f"{outcome.error.type}: {outcome.error.message}"
    if not outcome.again or job.attempts >= job.max_attempts:
        return _move(job, Status.FAILED, Happened.FAILED, error=outcome.error, note=told)
    if outcome.after is not None:
        return _move(job, Status.RETRYING, Happened.RETRYING, delay=outcome.after, error=outcome.error, note=told)
    seconds, fault = policy.wait_after(job.attempts, spread)
    delay, note = timedelta(seconds=seconds), _with_fault(told, fault)
    return _move(job, Status.RETRYING, Happened.RETRYING, delay=delay, error=outcome.error, note=note)


WORKER_DIED = "WorkerDied"
"""the type of the error of a job whose worker, or whose own process, died or is presumed to have"""
UNCOUNTED = "not counted as a crash"
"""in the note of a lost lease that was never confirmed"""
ACQUITTED = "its worker lives, so its crash is not counted"
"""in the note of a late end that takes a crash back"""


def needs_proof(job: Job) -> bool:
    """Whether its lease is to be confirmed before its handler begins.

    So for a job that one crash would fail, and for one that was lost before: if it kills its worker at once, that must
    count, or it would do so for ever.
    """
    lost_before = job.error is not None and job.error.type == WORKER_DIED
    return lost_before or job.crashes >= job.max_crashes - 1


def _lost(job: Job, *, confirmed: bool) -> Transition:
    expired = f"lease {job.lease_token} expired, worker {job.worker_id} is presumed dead"
    if confirmed:
        return _crashed(job, Happened.LOST, expired)
    told = f"{expired} ({UNCOUNTED}: the worker never confirmed that it had the job)"
    error = Error(type=WORKER_DIED, message=told)
    return _move(job, Status.QUEUED, Happened.LOST, give_back=True, error=error, note=told)


def _crashed(
    job: Job, happened: Happened, detail: str, policy: Retry = DEFAULT_POLICY, spread: float = 0.0
) -> Transition:
    crashes = job.crashes + 1
    counted = f"{detail} (crash {crashes} of {job.max_crashes})"
    error = Error(type=WORKER_DIED, message=counted)
    if crashes >= job.max_crashes:
        return _move(job, Status.FAILED, Happened.FAILED, crashed=True, give_back=True, error=error, note=counted)
    # A lost job goes straight back: its lease has been its delay. A process that died under the worker's eyes
    # would come back at once, so it waits like any other failure.
    if happened is Happened.LOST:
        return _move(job, Status.QUEUED, happened, crashed=True, give_back=True, error=error, note=counted)
    seconds, fault = policy.wait_after(crashes, spread)
    delay, note = timedelta(seconds=seconds), _with_fault(counted, fault)
    return _move(job, Status.RETRYING, happened, delay=delay, crashed=True, give_back=True, error=error, note=note)


def _with_fault(note: str, fault: str | None) -> str:
    # In front: a long note is cut at its end.
    return note if fault is None else f"{fault}; {note}"


class Refusal(NamedTuple):
    """What is recorded of a late transition."""

    note: str
    acquits: bool
    """the loss of its lease was counted as a crash, and is not any more: its worker lives"""


def refuse(late: Transition, token: int, charged: int | None) -> Refusal:
    """What a late transition leaves in its job, whose token is another by now.

    `charged` is the token of the lease whose loss was last counted as a crash, if it is still counted.
    """
    note = f"late {late.to.value} of lease {late.token}, the lease is {token} now: not applied"
    acquits = charged == late.token
    return Refusal(f"{note}; {ACQUITTED}" if acquits else note, acquits)


def _kept(error: Error) -> Error:
    return Error(
        type=storable(error.type, LONGEST_TYPE),
        message=storable(error.message, LONGEST_MESSAGE),
        traceback=None if error.traceback is None else storable(error.traceback, LONGEST_TRACEBACK, tail=True),
    )


def _move(
    job: Job,
    to: Status,
    happened: Happened,
    *,
    delay: timedelta | None = None,
    result_json: str | None = None,
    error: Error | None = None,
    crashed: bool = False,
    give_back: bool = False,
    note: str | None = None,
    blocked_by: str | None = None,
) -> Transition:
    return Transition(
        id=job.id,
        token=job.lease_token,
        to=to,
        happened=happened,
        delay=None if delay is None else max(delay, _NOW),
        result_json=result_json,
        error=None if error is None else _kept(error),
        crashed=crashed,
        give_back=give_back,
        note=None if note is None else storable(note),
        blocked_by=blocked_by,
    )
