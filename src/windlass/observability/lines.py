"""What each event says in a log: how grave it is, its name, the facts a machine would want, and words for people."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, cast

from windlass.core import events
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.wording import plural
from windlass.observability.context import about
from windlass.observability.plain import short

if TYPE_CHECKING:
    from windlass.core.job import Job

TRACE = 5
"""the level of what comes even where no job does; below `logging.DEBUG`"""
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Line:
    """An event in a log."""

    level: int
    event: str
    """its stable name, such as `job.failed`"""
    word: str
    """the same in short, as it begins a line for people"""
    facts: dict[str, Any]
    text: str = ""

    @property
    def kind(self) -> tuple[object, ...]:
        """What it is like: of many that are alike, a log needs a few."""
        error: object = self.facts.get("error")
        what = cast("dict[str, object]", error)["type"] if isinstance(error, dict) else error
        return (self.event, self.facts.get("type"), what)


_LEVELS: dict[type[events.Event], int] = {
    # Beside every call and four times a second: figures, and no news.
    events.LoopAnswered: TRACE,
    events.StoreCalled: TRACE,
    # As frequent as jobs are.
    events.JobEnqueued: logging.DEBUG,
    events.JobEnqueuedInTransaction: logging.DEBUG,
    events.JobReplaced: logging.DEBUG,
    events.JobDeduplicated: logging.DEBUG,
    events.JobClaimed: logging.DEBUG,
    events.JobStarted: logging.DEBUG,
    events.JobsPromoted: logging.DEBUG,
    events.JobsUnblocked: logging.DEBUG,
    events.JobsAged: logging.DEBUG,
    events.ScheduleMissed: logging.WARNING,
    events.JobFenced: logging.WARNING,
    events.JobExpired: logging.WARNING,
    events.ResultRefused: logging.WARNING,
    events.JobStuck: logging.WARNING,
    events.LoopBlocked: logging.WARNING,
    events.StoreTroubled: logging.WARNING,
    events.WorkerWarned: logging.WARNING,
}
"""what is told in every case alike; INFO is what is not named"""
_BY_END: dict[Status, int] = {
    Status.FAILED: logging.ERROR,
    Status.RETRYING: logging.WARNING,
    Status.BLOCKED: logging.WARNING,
    Status.SUCCEEDED: logging.DEBUG,
}
_BY_HOW: dict[Happened, int] = {
    Happened.SUSPENDED: logging.DEBUG,
    Happened.SNOOZED: logging.DEBUG,
    Happened.CRASHED: logging.WARNING,
}


def level_of(event: events.Event) -> int:
    """How grave an event is, without building its line."""
    match event:
        case events.JobEnded():
            change = event.transition
            if change.to is Status.FAILED:
                return logging.ERROR
            return _BY_HOW.get(change.happened) or _BY_END.get(change.to, logging.INFO)
        case events.JobRescued():
            return logging.ERROR if event.to is Status.FAILED else logging.WARNING
        case _:
            return _LEVELS.get(type(event), logging.INFO)


def name_of(event: events.Event) -> str:
    """The name of its line: its own, and of an end how that was, such as `job.failed`."""
    return f"job.{event.transition.happened.value}" if isinstance(event, events.JobEnded) else event.name


def describe(event: events.Event) -> Line:
    """The event in words and facts."""
    word, facts, text = _told(event)
    return Line(level_of(event), name_of(event), word, facts, text)


def _told(event: events.Event) -> tuple[str, dict[str, Any], str]:
    match event:
        case events.JobEnqueued():
            return "enqueued", _of(event), f"{event.type} {event.id}"
        case events.JobEnqueuedInTransaction():
            facts = {**_of(event), "replaced": event.replaced}
            return "enqueued-in-transaction", facts, f"{event.type} {event.id}, if its transaction commits"
        case events.JobReplaced():
            return "replaced", _of(event), f"{event.type} {event.id} took over payload, priority and time"
        case events.JobDeduplicated():
            facts = {**_of(event), "key": event.key}
            return "deduplicated", facts, f"{event.type} {event.id} was there already, with key {event.key}"
        case events.JobClaimed():
            return "claimed", about(event.job), f"{_job(event.job)} lease {event.job.lease_token}"
        case events.JobOperated():
            return _operated(event)
        case events.JobSignalled():
            facts = {"job": event.id, "signal": event.signal, "actor": event.actor, "freed": event.freed}
            then = "it goes on" if event.freed else "kept until it asks for it"
            return "signalled", facts, f"{event.id} {event.signal} by {short(event.actor, _LONGEST)}: {then}"
        case events.JobOperatedInTransaction():
            facts = {"job": event.id, "action": event.action, "actor": event.actor, "reason": event.reason}
            text = f"{event.action} {event.id} by {short(event.actor, _LONGEST)}, if the transaction commits"
            return "operated-in-transaction", facts, text
        case events.JobRescued():
            facts = {**about(event.job), "status": event.to.value}
            worker = event.job.worker_id
            return "lost", facts, f"{_job(event.job)} is {event.to.value}: the lease of worker {worker} ran out"
        case events.JobExpired():
            return "expired", {"job": event.id}, f"{event.id} cancelled: no worker had taken it in time"
        case events.JobDiscarded():
            facts = {"job": event.id, "type": event.type, "actor": event.actor, "reason": event.reason}
            why = "" if event.reason is None else f": {short(event.reason, _LONGEST)}"
            return "discarded", facts, f"{event.type} {event.id} by {short(event.actor, _LONGEST)}{why}"
        case events.JobStarted():
            return (
                "started",
                about(event.job),
                f"{_job(event.job)} attempt {event.job.attempts}/{event.job.max_attempts}",
            )
        case events.JobEnded():
            return _ended(event)
        case events.ResultRefused():
            return (
                "refused",
                about(event.job),
                f"{_job(event.job)} late result, lease {event.job.lease_token} was lost",
            )
        case events.JobFenced():
            return "fenced", about(event.job), f"{_job(event.job)} given up: its lease could not be extended in time"
        case events.JobStuck():
            facts = {**about(event.job), "stuck": event.stuck}
            return "stuck", facts, f"{_job(event.job)} is past its timeout in a thread that cannot be stopped"
        case events.LoopBlocked():
            facts = {"seconds": round(event.seconds, 3), "types": list(event.types)}
            return "blocked-loop", facts, f"the event loop stood still {event.seconds:.1f} s: {_suspects(event.types)}"
        case _:
            return _of_the_worker(event)


_Remaining: TypeAlias = (
    events.WorkerStarted
    | events.WorkerWarned
    | events.WorkerStopping
    | events.WorkerStopped
    | events.JobsPromoted
    | events.JobsUnblocked
    | events.JobsAged
    | events.JobsPruned
    | events.ScheduleFired
    | events.ScheduleSkipped
    | events.ScheduleMissed
    | events.LoopAnswered
    | events.StoreCalled
    | events.StoreTroubled
    | events.StoreRecovered
)


def _of_the_worker(event: _Remaining) -> tuple[str, dict[str, Any], str]:
    match event:
        case events.WorkerStarted():
            facts: dict[str, Any] = {
                "worker": event.worker_id,
                "store": event.store,
                "queues": list(event.queues),
                "types": list(event.types),
                "concurrency": event.concurrency,
            }
            return "ready", facts, f"{event.worker_id} claims with {event.concurrency} slots"
        case events.WorkerWarned():
            facts = {"worker": event.worker_id, "about": event.about, "text": event.text}
            return "warning", facts, event.text
        case events.WorkerStopping():
            facts = {"worker": event.worker_id, "running": event.running, "grace_ms": _ms(event.grace.total_seconds())}
            return "stopping", facts, f"{event.running} running, {event.grace.total_seconds():g} s grace"
        case events.WorkerStopped():
            facts = {"worker": event.worker_id, "done": event.done, "released": event.released}
            return "stopped", facts, f"{plural(event.done, 'attempt')} ended, {event.released} handed back"
        case events.JobsPromoted() | events.JobsUnblocked() | events.JobsAged() | events.JobsPruned():
            return event.name.removeprefix("jobs."), {"count": event.count}, plural(event.count, "job")
        case events.ScheduleFired() | events.ScheduleSkipped() | events.ScheduleMissed():
            return _ticked(event)
        case events.LoopAnswered():
            return "loop-answered", {"seconds": round(event.seconds, 6)}, f"after {event.seconds:.6f} s"
        case events.StoreCalled():
            facts = {"doing": event.doing, "seconds": round(event.seconds, 6), "went_well": event.went_well}
            how = "took" if event.went_well else "failed after"
            return "store-called", facts, f"{event.doing} {how} {event.seconds:.6f} s"
        case events.StoreTroubled():
            return "store-trouble", {"doing": event.doing, "error": event.error}, f"cannot {event.doing}: {event.error}"
        case events.StoreRecovered():
            facts = {"doing": event.doing, "seconds": round(event.seconds, 3)}
            return "store-recovered", facts, f"can {event.doing} again after {event.seconds:.1f} s"
    assert_never(event)


def _ticked(
    event: events.ScheduleFired | events.ScheduleSkipped | events.ScheduleMissed,
) -> tuple[str, dict[str, Any], str]:
    tick = event.tick.isoformat()
    facts: dict[str, Any] = {"schedule": event.schedule, "tick": tick}
    match event:
        case events.ScheduleFired():
            return "tick", {**facts, "job": event.job_id}, f"{event.schedule} {tick} {event.job_id}"
        case events.ScheduleSkipped():
            return "skipped", facts, f"{event.schedule} {tick}: its last job is still live"
        case events.ScheduleMissed():
            text = f"{event.schedule} {plural(event.ticks, 'tick')} from {tick}"
            return "missed", {**facts, "ticks": event.ticks}, text
    assert_never(event)


def _operated(event: events.JobOperated) -> tuple[str, dict[str, Any], str]:
    facts: dict[str, Any] = {"job": event.id, "action": event.action, "actor": event.actor, "reason": event.reason}
    facts |= {"requested": event.requested} if event.action == "cancel" else {}
    facts |= {"replay": event.replay_id} if event.replay_id is not None else {}
    asked = " (asked: it is running)" if event.requested else ""
    made = "" if event.replay_id is None else f" as {event.replay_id}"
    why = "" if event.reason is None else f": {short(event.reason, _LONGEST)}"
    return "operated", facts, f"{event.action} {event.id}{made}{asked} by {short(event.actor, _LONGEST)}{why}"


def _ended(event: events.JobEnded) -> tuple[str, dict[str, Any], str]:
    job, change = event.job, event.transition
    facts = {**about(job), "status": change.to.value, "duration_ms": _ms(event.seconds)}
    text = f"{_job(job)} {event.seconds:.3f} s"
    if change.error is not None:
        facts["error"] = {"type": change.error.type, "message": change.error.message}
        if change.error.traceback is not None:
            facts["error"]["traceback"] = change.error.traceback
        text += f" {short(f'{change.error.type}: {change.error.message}', _LONGEST)}"
    elif change.note:
        text += f" {short(change.note, _LONGEST)}"
    if change.note:
        facts["note"] = change.note
    if change.happened is Happened.SUSPENDED:
        facts |= {} if change.delay is None else {"waits_at_most_ms": _ms(change.delay.total_seconds())}
    elif change.delay is not None:
        facts["again_in_ms"] = _ms(change.delay.total_seconds())
        text += f" (again in {change.delay.total_seconds():.1f} s)"
    return change.happened.value, facts, text


def _of(
    event: events.JobEnqueued | events.JobEnqueuedInTransaction | events.JobReplaced | events.JobDeduplicated,
) -> dict[str, Any]:
    facts: dict[str, Any] = {"job": event.id, "type": event.type, "queue": event.queue}
    if event.correlation_id is not None:
        facts["correlation"] = event.correlation_id
    if event.user_id is not None:
        facts["user"] = event.user_id
    return facts


def _job(job: Job) -> str:
    return f"{job.type} {job.id}"


def _suspects(types: tuple[str, ...]) -> str:
    return f"{', '.join(types)} may block it" if types else "something blocks it"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
