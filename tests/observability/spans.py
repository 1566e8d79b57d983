"""Applications that are traced into memory."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import SpanContext

from tests.support.until import until


class Traces:
    """A provider that keeps what it is told."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("a test")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def all(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    async def some(self, name: str, n: int = 1) -> list[ReadableSpan]:
        return await until(lambda: self.all(name) if len(self.all(name)) >= n else None, f"{n} spans {name}") or []

    async def one(self, name: str) -> ReadableSpan:
        [span] = await self.some(name)
        return span


def place_of(span: ReadableSpan) -> SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


def trace_of(span: ReadableSpan) -> int:
    return place_of(span).trace_id


def number(span: ReadableSpan) -> int:
    return place_of(span).span_id


def is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    return span.parent is not None and (span.parent.trace_id, span.parent.span_id) == (trace_of(of), number(of))


def linked(span: ReadableSpan) -> list[int]:
    """The spans that it links to, by number."""
    return [link.context.span_id for link in span.links]


def happened(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]
