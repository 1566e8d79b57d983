"""Logs: what the code announces as `logging` records, one line each, as text or as JSON.

A line cannot be forged by what a job contains: text is stripped of control characters, JSON escapes them.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, assert_never

from windlass.core import events
from windlass.core.history import Happened
from windlass.core.redaction import redact
from windlass.core.status import Status
from windlass.core.wording import plural
from windlass.observability.plain import plain, short

if TYPE_CHECKING:
    from windlass.core.job import Job

Format: TypeAlias = Literal["text", "json"]
LOGGER = "windlass"
_FACTS = "windlass_facts"
_LONGEST = 500
_OF_JOBS = (
    events.JobEnqueued,
    events.JobEnqueuedInTransaction,
    events.JobReplaced,
    events.JobDeduplicated,
    events.JobOperated,
    events.JobSignalled,
    events.JobOperatedInTransaction,
    events.JobDiscarded,
    events.JobClaimed,
    events.JobStarted,
    events.JobEnded,
    events.ResultRefused,
    events.JobFenced,
    events.JobRescued,
    events.JobExpired,
    events.JobStuck,
)


@dataclass(frozen=True, slots=True)
class Line:
    """An event in words: how grave, what happened, and the facts a machine would want."""

    level: int
    event: str
    facts: dict[str, Any]
    text: str = ""


class Logs:
    """Writes each event to a logger, below whose level it costs next to nothing.

    What happens to single jobs goes to the logger's child `jobs`, all else to its child `worker`. An application has
    one of these on the logger `windlass` from the start; `app.listen(Logs(logger))` puts another in its place.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        above = logger or logging.getLogger(LOGGER)
        self._jobs, self._worker = above.getChild("jobs"), above.getChild("worker")

    @property
    def silent(self) -> bool:
        """Whether a job that goes well makes no line."""
        return not self._jobs.isEnabledFor(logging.INFO)

    def __call__(self, event: events.Event) -> None:
        logger = self._jobs if isinstance(event, _OF_JOBS) else self._worker
        if not logger.isEnabledFor(level_of(event)):
            return
        line = describe(event)
        # Made fit here: whose handler writes it, and how, is not known.
        text = plain(line.text)
        logger.log(
            line.level,
            "%s %s",
            line.event,
            text,
            extra={_FACTS: {"event": line.event, "name": event.name, **line.facts}},
        )


class TextFormatter(logging.Formatter):
    """`22:04:28.123 info  succeeded  send_receipt …`: for people."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        at = datetime.fromtimestamp(record.created, UTC)
        text = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} {record.levelname.lower():<7} {record.getMessage()}"
        if record.exc_info:
            text += f" | {redact(self.formatException(record.exc_info))}"
        return plain(text).rstrip()


class JsonFormatter(logging.Formatter):
    """One JSON object per line: for machines. Everything that is not plain ASCII is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        at = datetime.fromtimestamp(record.created, UTC)
        told: dict[str, Any] = {"at": at.isoformat(timespec="milliseconds"), "level": record.levelname.lower()}
        facts: dict[str, Any] | None = getattr(record, _FACTS, None)
        told.update({"event": "log", "message": record.getMessage()} if facts is None else facts)
        if record.exc_info:
            told["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(told, default=str)


def write_lines(stream: TextIO, form: Format = "text", level: int = logging.INFO) -> Logs:
    """Send the lines of windlass's own logger to a stream, and give the listener that feeds it."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logger = logging.getLogger(LOGGER)
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
    return Logs(logger)


def level_of(event: events.Event) -> int:
    """How grave an event is, without building its line."""
    match event:
        # As frequent as jobs are.
        case (
            events.JobEnqueued()
            | events.JobEnqueuedInTransaction()
            | events.JobReplaced()
            | events.JobDeduplicated()
            | events.JobClaimed()
            | events.JobsPromoted()
            | events.JobsUnblocked()
            | events.LoopAnswered()
            | events.StoreCalled()
        ):
            return logging.DEBUG
        case events.JobRescued():
            return logging.ERROR if event.to is Status.FAILED else logging.WARNING
        case events.JobEnded() if event.transition.happened is Happened.SUSPENDED:
            return logging.INFO
        case events.JobEnded():
            return _ENDED.get(event.transition.to, logging.INFO)
        case (
            events.JobFenced()
            | events.JobExpired()
            | events.ResultRefused()
            | events.JobStuck()
            | events.LoopBlocked()
            | events.StoreTroubled()
            | events.WorkerWarned()
        ):
            return logging.WARNING
        case _:
            return logging.INFO


_ENDED = {Status.FAILED: logging.ERROR, Status.RETRYING: logging.WARNING, Status.BLOCKED: logging.WARNING}


def describe(event: events.Event) -> Line:
    """The event in words and facts."""
    name, facts, text = _told(event)
    return Line(level_of(event), name, facts, text)


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
            return "claimed", _about(event.job), f"{_job(event.job)} lease {event.job.lease_token}"
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
            worker = event.job.worker_id
            facts = {**_about(event.job), "worker": worker, "status": event.to.value}
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
                _about(event.job),
                f"{_job(event.job)} attempt {event.job.attempts}/{event.job.max_attempts}",
            )
        case events.JobEnded():
            return _ended(event)
        case events.ResultRefused():
            return (
                "refused",
                _about(event.job),
                f"{_job(event.job)} late result, lease {event.job.lease_token} was lost",
            )
        case events.JobFenced():
            return "fenced", _about(event.job), f"{_job(event.job)} given up: its lease could not be extended in time"
        case events.JobStuck():
            facts = {**_about(event.job), "stuck": event.stuck}
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
            return "stopped", facts, f"{event.done} attempts ended, {event.released} of them handed back"
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
    facts = {**_about(job), "status": change.to.value, "duration_ms": _ms(event.seconds)}
    text = f"{_job(job)} {event.seconds:.3f} s"
    if change.error is not None:
        facts["error"] = {"type": change.error.type, "message": change.error.message}
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
    return {"job": event.id, "type": event.type, "queue": event.queue}


def _about(job: Job) -> dict[str, Any]:
    facts: dict[str, Any] = {"job": job.id, "type": job.type, "queue": job.queue, "attempt": job.attempts}
    if job.correlation_id is not None:
        facts["correlation"] = job.correlation_id
    return facts


def _job(job: Job) -> str:
    return f"{job.type} {job.id}"


def _suspects(types: tuple[str, ...]) -> str:
    return f"{', '.join(types)} may block it" if types else "something blocks it"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
