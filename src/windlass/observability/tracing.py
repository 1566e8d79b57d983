"""Tracing: spans of what is sent, run and stepped, by the API of OpenTelemetry; the SDK is the user's.

Names and attributes are those of the semantic conventions for messaging. `docs/decisions/0022` says which span is whose
child, and where links are in the place of that.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from time import time_ns
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core import events
from windlass.core.errors import SettingsError
from windlass.core.redaction import redact
from windlass.core.signals import Signal, Suspend
from windlass.core.spans import inside

try:
    from opentelemetry import context as here
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode
except ImportError as error:
    raise SettingsError(f'tracing needs the extra "tracing": pip install "windlass[tracing]" ({error})') from error

from windlass.observability.carried import baggage_alone, read, received, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.trace import Span, SpanContext, Tracer, TracerProvider

    from windlass.core.draft import Draft, Options
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.core.spans import Kind
    from windlass.core.transition import Transition

JOINED = timedelta(hours=1)
"""an attempt that began so soon after its job was created is in the trace of who created it; a later one only links"""
_REMEMBERED = 1000
"""of so many jobs this process knows their last attempt"""
_FLUSH_MS = 2000
_LONGEST = 500
_ID = "messaging.message.id"
_ROOT = Context()
_NOTHING = nullcontext[object]()


class Traceable(Protocol):
    """An application, as far as it is traced."""

    @property
    def registry(self) -> Registry: ...

    def listen(self, listener: Callable[[events.Event], Any]) -> Callable[[], None]: ...


def instrument(app: Traceable, tracer_provider: TracerProvider | None = None) -> Callable[[], None]:
    """Write spans of everything that this application enqueues and runs; call the result to stop.

    Without a provider it is the one of the process, also if that is set later. Called again, the later call counts.
    """
    before = app.registry.spans
    if isinstance(before, Tracing):
        before.stop()
    tracing = Tracing(tracer_provider)
    unlisten = app.listen(tracing)
    app.registry.spans = tracing

    def stop() -> None:
        unlisten()
        if app.registry.spans is tracing:
            app.registry.spans = None

    tracing.stop = stop
    return stop


class Tracing:
    """Writes the spans of one application: see `core.spans.Spans`. As a listener it hears how attempts have ended."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self.tracer: Tracer = trace.get_tracer("windlass", _version(), provider)
        self.stop: Callable[[], None] = lambda: None
        self._open: dict[tuple[str, int], _Running] = {}
        """by job and lease: attempts of which is not known yet what has become"""
        self.sends = 0
        """how many are written just now"""
        self._before: OrderedDict[str, SpanContext] = OrderedDict()
        """by job: its last attempt that this process knows of, where another follows"""

    def sending(self, drafts: Sequence[Draft], *, apart: bool = False) -> AbstractContextManager[Sequence[Draft]]:
        """A producer span around the insert of these; of what is not sampled only baggage is taken along."""
        parent = _ROOT if apart else here.get_current()
        queue = drafts[0].options.queue if len(drafts) == 1 else _shared([draft.options.queue for draft in drafts])
        name, attributes = _named("send", queue)
        span = self.tracer.start_span(name, parent, SpanKind.PRODUCER, attributes)
        if span.is_recording():
            return _Sending(self, span, parent, drafts)
        text = baggage_alone(parent)
        return nullcontext(drafts if text is None else _with_trace(drafts, text))

    def running(self, jobs: Sequence[Job]) -> AbstractContextManager[object]:
        """A consumer span around an attempt, or a call that does several jobs."""
        first, links = jobs[0], self._links(jobs)
        queue = first.queue if len(jobs) == 1 else _shared([job.queue for job in jobs])
        name, attributes = _named("process", queue)
        # Nothing of whoever started the worker: an attempt goes on where its job was sent, or begins a trace.
        parent = _origin(first) if len(jobs) == 1 else _ROOT
        span = self.tracer.start_span(name, parent, SpanKind.CONSUMER, attributes, links)
        if span.is_recording():
            return _Running(self, span, jobs)
        if first.trace is None and not span.get_span_context().is_valid:  # there is no SDK
            return _NOTHING
        return _Inside(_inside(span, jobs), self)

    def stepping(self, kind: Kind, name: str, key: str | None, *, remembered: bool) -> AbstractContextManager[object]:
        """A span around a durable step."""
        if not trace.get_current_span().is_recording():
            return _NOTHING
        attributes: dict[str, Any] = {"windlass.step.name": name, "windlass.step.remembered": remembered}
        if key is not None:
            attributes["windlass.step.key"] = key
        return _Stepping(self.tracer.start_span(f"{kind} {name}", attributes=attributes))

    def received(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """Go on with what the headers of a request name."""
        context = received(headers)
        return nullcontext() if context is None else _Inside(context, inside.get())

    def carried(self) -> str | None:
        """Where we are; of what is not sampled as well, so that the other process writes nothing of it either."""
        return written(here.get_current(), unsampled=True)

    def going_on(self, carried: str | None) -> AbstractContextManager[object]:
        """Go on with it in another process."""
        return _Inside(read(carried), self)

    def flush(self) -> None:
        """Have the SDK send what it holds, if it is one that can."""
        provider = self._provider or trace.get_tracer_provider()
        flush: Any = getattr(provider, "force_flush", None)
        if flush is not None:
            flush(_FLUSH_MS)

    @property
    def silent(self) -> bool:
        """Whether nothing is written just now of which the end of a job that goes well would be news."""
        return not self._open and not self.sends

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.JobEnded(job, transition):
                self._ended(job, transition)
            case events.ResultRefused(job, transition):
                self._ended(job, transition, refused=True)
            case events.JobRescued():
                self._rescued(event)
            case events.WorkerStopped(worker_id):
                for key, one in list(self._open.items()):
                    if one.worker_id == worker_id:
                        del self._open[key]
                        one.give_up()
            case events.JobFenced(job):
                run = self._open.get((job.id, job.lease_token))
                if run is not None:
                    run.span.add_event(event.name, {_ID: job.id})
            case _:
                _note(event)

    # Attempts.

    def begun(self, run: _Running) -> None:
        """An attempt has begun whose end will be told."""
        for job in run.jobs:
            self._open[job.id, job.lease_token] = run

    def _ended(self, job: Job, transition: Transition, *, refused: bool = False) -> None:
        run = self._open.pop((job.id, job.lease_token), None)
        if run is None:
            return
        run.told(job, transition, refused=refused)
        if not transition.to.finished:
            self._remember(job.id, run.span.get_span_context())

    def _rescued(self, event: events.JobRescued) -> None:
        """Who ran it has told nobody: a span of its own stands for what was lost."""
        job, now = event.job, time_ns()
        parent, links = _origin(job), self._links((job,))
        began = now if job.started_at is None else min(now, int(job.started_at.timestamp() * 1e9))
        name, attributes = _named("rescue", job.queue)
        attributes = {**attributes, **_of_job(job), "error.type": "LeaseLost"}
        span = self.tracer.start_span(name, parent, SpanKind.INTERNAL, attributes, links, start_time=began)
        if not span.is_recording():
            return
        span.add_event(event.name, {"windlass.job.status": event.to.value})
        span.set_status(Status(StatusCode.ERROR, "its lease ran out: the worker is presumed dead"))
        span.end(now)
        if not event.to.finished:
            self._remember(job.id, span.get_span_context())

    def _remember(self, job_id: str, attempt: SpanContext) -> None:
        self._before[job_id] = attempt
        self._before.move_to_end(job_id)
        if len(self._before) > _REMEMBERED:
            self._before.popitem(last=False)

    def _links(self, jobs: Sequence[Job]) -> list[Link]:
        links: list[Link] = []
        for job in jobs:
            if job.trace is not None:
                created = trace.get_current_span(read(job.trace)).get_span_context()
                if created.is_valid:
                    links.append(Link(created, {_ID: job.id, "windlass.link": "enqueue"}))
            before = self._before.pop(job.id, None) if self._before else None
            if before is not None:
                links.append(Link(before, {_ID: job.id, "windlass.link": "attempt"}))
        return links


class _Inside:
    """While inside, this context is the current one, and steps are written by these spans."""

    __slots__ = ("_context", "_spans", "_tokens")

    def __init__(self, context: Context, spans: Any) -> None:
        self._context, self._spans = context, spans
        self._tokens: tuple[Token[Context], Token[Any]] | None = None

    def __enter__(self) -> object:
        self._tokens = here.attach(self._context), inside.set(self._spans)
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        if self._tokens is not None:
            inside.reset(self._tokens[1])
            here.detach(self._tokens[0])


class _Running(_Inside):
    """An attempt: its span ends when it has ended, and is written when the store has said what became of it."""

    __slots__ = ("_ended_at", "_failed", "_left", "_tracing", "jobs", "span", "worker_id")

    def __init__(self, tracing: Tracing, span: Span, jobs: Sequence[Job]) -> None:
        super().__init__(_inside(span, jobs), tracing)
        self._tracing, self.span, self.jobs = tracing, span, jobs
        self.worker_id = jobs[0].worker_id
        self._left = len(jobs)
        self._failed = 0
        self._ended_at: int | None = None
        if len(jobs) == 1:
            span.set_attributes(_of_job(jobs[0]))
        else:
            span.set_attributes({"messaging.batch.message_count": len(jobs), "windlass.job.type": jobs[0].type})
        if self.worker_id is not None:
            span.set_attribute("messaging.client.id", self.worker_id)

    def __enter__(self) -> object:
        self._tracing.begun(self)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        self._ended_at = time_ns()
        super().__exit__(kind, error, trace_)

    def told(self, job: Job, transition: Transition, *, refused: bool) -> None:
        """What became of one of its jobs."""
        span, of = self.span, {} if len(self.jobs) == 1 else {_ID: job.id}
        failure = transition.error
        if failure is not None:
            # Words without secrets: they were taken out where the error was made to text.
            told = {"exception.type": failure.type, "exception.message": failure.message}
            if failure.traceback is not None:
                told["exception.stacktrace"] = failure.traceback
            span.add_event("exception", told | of, self._ended_at)
        if refused:
            span.add_event("job.refused", {"windlass.job.status": transition.to.value, **of})
            self._fail("LeaseLost", "the lease was no longer this worker's: its result was refused")
        elif transition.happened.value != "succeeded":
            span.add_event(f"job.{transition.happened.value}", _move(transition) | of)
        if failure is not None and not refused:
            self._fail(failure.type, failure.message)
        self._left -= 1
        if self._left == 0:
            span.end(self._ended_at)

    def give_up(self) -> None:
        """Nobody will tell what became of it."""
        if self._left > 0:
            self._left = 0
            self.span.add_event("job.untold")
            self.span.end(self._ended_at)

    def _fail(self, kind: str, message: str) -> None:
        self._failed += 1
        some = "" if len(self.jobs) == 1 else f"{self._failed} of {len(self.jobs)} jobs: "
        self.span.set_attribute("error.type", kind)
        self.span.set_status(Status(StatusCode.ERROR, f"{some}{kind}: {message}"[:_LONGEST]))


class _Sending:
    """A producer span around an insert; the drafts take its context along."""

    __slots__ = ("_context", "_drafts", "_span", "_token", "_tracing")

    def __init__(self, tracing: Tracing, span: Span, parent: Context, drafts: Sequence[Draft]) -> None:
        self._tracing, self._span, self._drafts = tracing, span, drafts
        of = _shared([draft.type for draft in drafts])
        if of is not None:
            span.set_attribute("windlass.job.type", of)
        if len(drafts) == 1:
            span.set_attributes(_of_draft(drafts[0]))
        else:
            span.set_attribute("messaging.batch.message_count", len(drafts))
        self._context = trace.set_span_in_context(span, parent)
        self._token: Token[Context] | None = None

    def __enter__(self) -> Sequence[Draft]:
        self._tracing.sends += 1
        self._token = here.attach(self._context)
        text = written(self._context)
        return self._drafts if text is None else _with_trace(self._drafts, text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        self._tracing.sends -= 1
        if self._token is not None:
            here.detach(self._token)
        if error is not None:
            self._span.set_attribute("error.type", type(error).__qualname__)
            self._span.set_status(Status(StatusCode.ERROR, redact(str(error))[:_LONGEST]))
        self._span.end()


class _Stepping:
    """A span around a step. Of an error it has the type alone: its words are with the attempt, without secrets."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> object:
        self._token = here.attach(trace.set_span_in_context(self._span))
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        if self._token is not None:
            here.detach(self._token)
        match error:
            case None:
                pass
            case Suspend():
                self._span.set_attribute("windlass.step.suspended", True)
            case Exception() if not isinstance(error, Signal):
                self._span.set_attribute("error.type", type(error).__qualname__)
                self._span.set_status(Status(StatusCode.ERROR))
            case _:
                self._span.add_event("job.left", {"windlass.signal": type(error).__qualname__})
        self._span.end()


def _version() -> str | None:
    try:
        return version("windlass")
    except PackageNotFoundError:  # run from its sources
        return None


def _note(event: events.Event) -> None:
    """What was done to jobs on behalf of whatever is traced here, as an event of that."""
    match event:
        case events.JobDeduplicated(id_) | events.JobReplaced(id_):
            told = {_ID: id_}
        case events.JobOperated(id_, action) | events.JobOperatedInTransaction(id_, action):
            told = {_ID: id_, "windlass.action": action}
        case events.JobSignalled(id_, signal):
            told = {_ID: id_, "windlass.signal": signal}
        case events.ScheduleFired(schedule) | events.ScheduleSkipped(schedule) | events.ScheduleMissed(schedule):
            told = {"windlass.schedule": schedule}
        case _:
            return
    trace.get_current_span().add_event(event.name, told)


def _origin(job: Job) -> Context:
    """What an attempt is a child of: what has sent its job, if that was not long ago."""
    if job.trace is None or (job.started_at or job.updated_at) - job.created_at > JOINED:
        return _ROOT
    return read(job.trace)


def _inside(span: Span, jobs: Sequence[Job]) -> Context:
    """Where a handler runs: in its span, with the baggage of its job; a batch has no baggage of its own."""
    text = jobs[0].trace if len(jobs) == 1 else None
    return trace.set_span_in_context(span, _ROOT if text is None else read(text))


def _with_trace(drafts: Sequence[Draft], text: str) -> list[Draft]:
    """Drafts that were asked for alike go on sharing their options: stores write such in one piece."""
    known: dict[int, Options] = {}
    made: list[Draft] = []
    for draft in drafts:
        options = known.get(id(draft.options))
        if options is None:
            options = known[id(draft.options)] = replace(draft.options, trace=text)
        made.append(draft._replace(options=options))
    return made


@lru_cache(1024)
def _named(operation: str, queue: str | None) -> tuple[str, dict[str, Any]]:
    """The name of a span, and the attributes that all such have: what samplers decide by."""
    told = {"messaging.system": "windlass", "messaging.operation.name": operation}
    if operation in ("send", "process"):
        told["messaging.operation.type"] = operation
    if queue is None:
        return operation, told
    return f"{operation} {queue}", {**told, "messaging.destination.name": queue}


def _of_draft(draft: Draft) -> dict[str, Any]:
    options = draft.options
    told = {_ID: draft.id}
    if options.correlation_id is not None:
        told["messaging.message.conversation_id"] = options.correlation_id
    if options.schedule is not None:
        told["windlass.schedule"] = options.schedule
    if options.replay_of is not None:
        told["windlass.job.replay_of"] = options.replay_of
    return told


def _of_job(job: Job) -> dict[str, Any]:
    told: dict[str, Any] = {_ID: job.id, "windlass.job.type": job.type, "windlass.job.attempt": job.attempts}
    if job.correlation_id is not None:
        told["messaging.message.conversation_id"] = job.correlation_id
    if job.crashes:
        told["windlass.job.crashes"] = job.crashes
    return told


def _move(transition: Transition) -> dict[str, Any]:
    told: dict[str, Any] = {"windlass.job.status": transition.to.value}
    if transition.delay is not None:
        told["windlass.job.delay_ms"] = transition.delay // timedelta(milliseconds=1)
    if transition.note is not None:
        told["windlass.job.note"] = transition.note[:_LONGEST]
    return told


def _shared(words: Iterable[str]) -> str | None:
    """The one word that all are; None where they differ."""
    found = {*words}
    return found.pop() if len(found) == 1 else None
