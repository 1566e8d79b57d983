"""Tracing: spans of what is sent, run and stepped, by the API of OpenTelemetry; the SDK is the user's.

Names and attributes are those of the semantic conventions for messaging. `docs/decisions/0022` says which span is whose
child, and where links are in the place of that.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core import events
from windlass.core.errors import SettingsError
from windlass.core.spans import inside

try:
    from opentelemetry import context as here
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode
except ImportError as error:
    raise SettingsError(f'tracing needs the extra "tracing": pip install "windlass[tracing]" ({error})') from error

from windlass.observability.carried import baggage_alone, read, received, written
from windlass.observability.spans import (
    JOB_ID,
    ROOT,
    Inside,
    Running,
    Sending,
    Stepping,
    inside_of,
    named,
    of_job,
    shared,
    with_trace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from opentelemetry.trace import SpanContext, Tracer, TracerProvider

    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.core.registry import Registry
    from windlass.core.spans import Kind
    from windlass.core.transition import Transition

JOINED = timedelta(hours=1)
"""an attempt that began so soon after its job was created is in the trace of its enqueue; a later one only links"""
_REMEMBERED = 1000
"""of so many jobs this process knows their last attempt"""
_FLUSH_MS = 2000
_MOMENT = 0.01
"""seconds until it is looked again whether an SDK was set: to look takes as long as all else that is done for a job"""
_WITHOUT_SDK = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)
_NOTHING = nullcontext[object](None)


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
        self._open: dict[tuple[str, int], Running] = {}
        """by job and lease: attempts of which is not known yet what has become"""
        self._has_sdk, self._looked_at = False, float("-inf")
        self.sends = 0
        """how many are written just now"""
        self._before: OrderedDict[str, SpanContext] = OrderedDict()
        """by job: its last attempt that this process knows of, where another follows"""

    def sending(self, drafts: Sequence[Draft], *, apart: bool = False) -> AbstractContextManager[Sequence[Draft]]:
        """A producer span around the insert of these; of what is not sampled only baggage is taken along."""
        parent = ROOT if apart else here.get_current()
        queue = drafts[0].options.queue if len(drafts) == 1 else shared([draft.options.queue for draft in drafts])
        name, attributes = named("send", queue)
        span = self.tracer.start_span(name, parent, SpanKind.PRODUCER, attributes)
        if span.is_recording():
            return Sending(self, span, parent, drafts)
        text = baggage_alone(parent)
        return nullcontext(drafts if text is None else with_trace(drafts, text))

    def idle(self, job: Job) -> bool:
        """Whether its attempt is in no trace, and there is no SDK to begin one; looked for every now and then."""
        if self._provider is not None or job.trace is not None:
            return False
        now = monotonic()
        if now - self._looked_at > _MOMENT:
            self._looked_at = now
            self._has_sdk = not isinstance(trace.get_tracer_provider(), _WITHOUT_SDK)
        return not self._has_sdk

    def running(self, jobs: Sequence[Job]) -> AbstractContextManager[object]:
        """A consumer span around an attempt, or a call that does several jobs."""
        first, links = jobs[0], self._links(jobs)
        queue = first.queue if len(jobs) == 1 else shared([job.queue for job in jobs])
        name, attributes = named("process", queue)
        # Not of the context in which the worker was started: an attempt continues its job's trace, or starts one.
        parent = _origin(first) if len(jobs) == 1 else ROOT
        span = self.tracer.start_span(name, parent, SpanKind.CONSUMER, attributes, links)
        if span.is_recording():
            return Running(self, span, jobs)
        if first.trace is None and not span.get_span_context().is_valid:  # there is no SDK
            return _NOTHING
        return Inside(inside_of(span, jobs), self)

    def stepping(self, kind: Kind, name: str, key: str | None, *, remembered: bool) -> AbstractContextManager[object]:
        """A span around a durable step."""
        if not trace.get_current_span().is_recording():
            return _NOTHING
        attributes: dict[str, Any] = {"windlass.step.name": name, "windlass.step.remembered": remembered}
        if key is not None:
            attributes["windlass.step.key"] = key
        return Stepping(self.tracer.start_span(f"{kind} {name}", attributes=attributes))

    def received(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """Go on with what the headers of a request name."""
        context = received(headers)
        return nullcontext() if context is None else Inside(context, inside.get())

    def carried(self) -> str | None:
        """Where we are; of what is not sampled as well, so that the other process writes nothing of it either."""
        return written(here.get_current(), unsampled=True)

    def going_on(self, carried: str | None) -> AbstractContextManager[object]:
        """Go on with it in another process."""
        return Inside(read(carried), self)

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
                    run.span.add_event(event.name, {JOB_ID: job.id})
            case _:
                _note(event)

    # Attempts.

    def begun(self, run: Running) -> None:
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
        """Its worker died without a word: a span of its own stands for the attempt that was lost."""
        job, now = event.job, time_ns()
        parent, links = _origin(job), self._links((job,))
        began = now if job.started_at is None else min(now, int(job.started_at.timestamp() * 1e9))
        name, attributes = named("rescue", job.queue)
        attributes = {**attributes, **of_job(job), "error.type": "LeaseLost"}
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
                    links.append(Link(created, {JOB_ID: job.id, "windlass.link": "enqueue"}))
            before = self._before.pop(job.id, None) if self._before else None
            if before is not None:
                links.append(Link(before, {JOB_ID: job.id, "windlass.link": "attempt"}))
        return links


def _version() -> str | None:
    try:
        return version("windlass")
    except PackageNotFoundError:  # run from its sources
        return None


def _note(event: events.Event) -> None:
    """What was done to jobs on behalf of whatever is traced here, as an event of that."""
    match event:
        case events.JobDeduplicated(id_) | events.JobReplaced(id_):
            told = {JOB_ID: id_}
        case events.JobOperated(id_, action) | events.JobOperatedInTransaction(id_, action):
            told = {JOB_ID: id_, "windlass.action": action}
        case events.JobSignalled(id_, signal):
            told = {JOB_ID: id_, "windlass.signal": signal}
        case events.ScheduleFired(schedule) | events.ScheduleSkipped(schedule) | events.ScheduleMissed(schedule):
            told = {"windlass.schedule": schedule}
        case _:
            return
    trace.get_current_span().add_event(event.name, told)


def _origin(job: Job) -> Context:
    """What an attempt is a child of: what has sent its job, if that was not long ago."""
    if job.trace is None or (job.started_at or job.updated_at) - job.created_at > JOINED:
        return ROOT
    return read(job.trace)
