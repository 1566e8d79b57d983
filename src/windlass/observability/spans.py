"""The spans themselves: around a send, an attempt, a step; their names, attributes and events."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from time import time_ns
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as here
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Status, StatusCode

from windlass.core.redaction import redact
from windlass.core.signals import Signal, Suspend
from windlass.core.spans import inside
from windlass.observability.carried import read, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.trace import Span

    from windlass.core.draft import Draft, Options
    from windlass.core.job import Job
    from windlass.core.transition import Transition

ROOT = Context()
JOB_ID = "messaging.message.id"
_LONGEST = 500


class Keeps(Protocol):
    """What has to learn of the spans that are open."""

    sends: int

    def begun(self, run: Running) -> None:
        """An attempt has begun whose end will be told."""
        ...


class Inside:
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


class Running(Inside):
    """An attempt: its span ends when it has ended, and is written when the store has said what became of it."""

    __slots__ = ("_ended_at", "_failed", "_left", "_tracing", "jobs", "span", "worker_id")

    def __init__(self, tracing: Keeps, span: Span, jobs: Sequence[Job]) -> None:
        super().__init__(inside_of(span, jobs), tracing)
        self._tracing, self.span, self.jobs = tracing, span, jobs
        self.worker_id = jobs[0].worker_id
        self._left = len(jobs)
        self._failed = 0
        self._ended_at: int | None = None
        if len(jobs) == 1:
            span.set_attributes(of_job(jobs[0]))
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
        span, of = self.span, {} if len(self.jobs) == 1 else {JOB_ID: job.id}
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
        """Its end will not be announced."""
        if self._left > 0:
            self._left = 0
            self.span.add_event("job.untold")
            self.span.end(self._ended_at)

    def _fail(self, kind: str, message: str) -> None:
        self._failed += 1
        some = "" if len(self.jobs) == 1 else f"{self._failed} of {len(self.jobs)} jobs: "
        self.span.set_attribute("error.type", kind)
        self.span.set_status(Status(StatusCode.ERROR, f"{some}{kind}: {message}"[:_LONGEST]))


class Sending:
    """A producer span around an insert; the drafts take its context along."""

    __slots__ = ("_context", "_drafts", "_span", "_token", "_tracing")

    def __init__(self, tracing: Keeps, span: Span, parent: Context, drafts: Sequence[Draft]) -> None:
        self._tracing, self._span, self._drafts = tracing, span, drafts
        of = shared([draft.type for draft in drafts])
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
        return self._drafts if text is None else with_trace(self._drafts, text)

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


class Stepping:
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


def inside_of(span: Span, jobs: Sequence[Job]) -> Context:
    """Where a handler runs: in its span, with the baggage of its job; a batch has no baggage of its own."""
    text = jobs[0].trace if len(jobs) == 1 else None
    return trace.set_span_in_context(span, ROOT if text is None else read(text))


def with_trace(drafts: Sequence[Draft], text: str) -> list[Draft]:
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
def named(operation: str, queue: str | None) -> tuple[str, dict[str, Any]]:
    """The name of a span, and the attributes that all such have: what samplers decide by."""
    told = {"messaging.system": "windlass", "messaging.operation.name": operation}
    if operation in ("send", "process"):
        told["messaging.operation.type"] = operation
    if queue is None:
        return operation, told
    return f"{operation} {queue}", {**told, "messaging.destination.name": queue}


def _of_draft(draft: Draft) -> dict[str, Any]:
    options = draft.options
    told = {JOB_ID: draft.id}
    if options.correlation_id is not None:
        told["messaging.message.conversation_id"] = options.correlation_id
    if options.schedule is not None:
        told["windlass.schedule"] = options.schedule
    if options.replay_of is not None:
        told["windlass.job.replay_of"] = options.replay_of
    return told


def of_job(job: Job) -> dict[str, Any]:
    told: dict[str, Any] = {JOB_ID: job.id, "windlass.job.type": job.type, "windlass.job.attempt": job.attempts}
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


def shared(words: Iterable[str]) -> str | None:
    """The one word that all are; None where they differ."""
    found = {*words}
    return found.pop() if len(found) == 1 else None
