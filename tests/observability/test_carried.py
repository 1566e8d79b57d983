"""The text of a context beside a payload: what is written is read again, and nothing that is read does harm."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)

from windlass.core.draft import LONGEST_TRACE, Options
from windlass.observability.carried import read, received, written

WORDS = some.text(some.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=300)
STATES = some.text("abc =;:|- xyz", max_size=300).map(lambda text: text.strip(" ="))


@given(
    some.integers(1, 2**128 - 1),
    some.integers(1, 2**64 - 1),
    some.dictionaries(WORDS.map(str.strip).filter(bool), WORDS.map(str.strip), max_size=5),
    STATES,
)
def test_a_context_is_read_as_it_was_written_as_far_as_it_fits(
    trace: int, span: int, bags: dict[str, str], state: str
) -> None:
    states = TraceState([("vendor", state)]) if "=" not in state and state else TraceState()
    context = set_span_in_context(NonRecordingSpan(SpanContext(trace, span, False, TraceFlags(1), states)), Context())
    for name, value in bags.items():
        context = baggage.set_baggage(name, value, context)
    text = written(context)
    assert text is not None
    assert Options(trace=text).trace == text  # what a job can have
    again = read(text)
    found = get_current_span(again).get_span_context()
    assert (found.trace_id, found.span_id, found.trace_flags, found.is_remote) == (trace, span, 1, True)
    assert dict(found.trace_state) == dict(states)
    kept = baggage.get_all(again)
    assert kept.items() <= bags.items()
    if len(written(set_baggage_only(bags)) or "") < LONGEST_TRACE - 600:
        assert kept == bags


def set_baggage_only(bags: dict[str, str]) -> Context:
    context = Context()
    for name, value in bags.items():
        context = baggage.set_baggage(name, value, context)
    return context


@given(some.text(max_size=2000) | some.text("0123456789abcdef- =,;%", max_size=200).map(lambda text: f"00-{text}"))
def test_any_text_is_read(text: str) -> None:
    read(text)
    received([(b"traceparent", text.encode()), (b"Baggage", text.encode()), (b"tracestate", text.encode())])


def test_what_is_not_sampled_is_written_for_a_process_alone() -> None:
    context = set_span_in_context(NonRecordingSpan(SpanContext(1, 2, False, TraceFlags(0))), Context())
    assert written(context) is None
    assert written(context, unsampled=True) == f"00-{1:032x}-{2:016x}-00"
    assert written(Context(), unsampled=True) is None
