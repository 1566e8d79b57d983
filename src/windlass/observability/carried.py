"""Where a job came from, as the text that stands beside its payload: W3C traceparent, baggage and tracestate.

They are separated by a space, in this order, `-` for what is not there: only a tracestate may have spaces in it. The
form is the same whatever propagators a process has for its other calls. What is read may come from any program: it is
bounded, and what is malformed counts as nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from opentelemetry.baggage import get_all
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from windlass.core.draft import LONGEST_TRACE

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARENT, _BAGGAGE, _STATE = "traceparent", "baggage", "tracestate"
_ORDER = (_PARENT, _BAGGAGE, _STATE)
_NONE = "-"
_LONGEST_STATE = 512
"""characters of a tracestate, as the W3C has it"""
_TRACES, _BAGGAGES = TraceContextTextMapPropagator(), W3CBaggagePropagator()


def written(context: Context, *, unsampled: bool = False) -> str | None:
    """The text of a context; None where there is nothing to be told.

    A parent that is not sampled is told of only where that is asked for. Baggage that is too much is left out from its
    end on, entry by entry, and a tracestate as a whole, as both may be.
    """
    found: dict[str, str] = {}
    here = get_current_span(context).get_span_context()
    if here.is_valid and (unsampled or here.trace_flags.sampled):
        _TRACES.inject(found, context)
    if get_all(context):
        _BAGGAGES.inject(found, context)
    if not found:
        return None
    parent, state = found.get(_PARENT, _NONE), found.get(_STATE, "")
    if len(state) > _LONGEST_STATE or not _is_plain(state):
        state = ""
    room = LONGEST_TRACE - len(parent) - len(state) - 2
    baggage = _as_much_as_fits(found.get(_BAGGAGE, ""), room)
    if parent == _NONE and not baggage:
        return None
    if not baggage and not state:
        return parent
    return " ".join([parent, baggage or _NONE, *([state] if state else [])])


def baggage_alone(context: Context) -> str | None:
    """The text of its baggage; None where there is none."""
    if not get_all(context):
        return None
    return written(set_span_in_context(INVALID_SPAN, context))


def read(text: str | None) -> Context:
    """The context that a text tells of; an empty one of what is no such text."""
    if text is None or len(text) > LONGEST_TRACE or not _is_plain(text):
        return Context()
    parts = zip_longest(_ORDER, text.split(" ", 2), fillvalue=_NONE)
    return _extracted({name: part for name, part in parts if part != _NONE})


def received(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """The context that headers of a request tell of; None where they tell of none. What is told twice is one list."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key in _ORDER:
            text = value.decode("latin-1")
            found[key] = f"{found[key]},{text}" if key in found else text
    kept = {key: text for key, text in found.items() if len(text) <= LONGEST_TRACE and _is_plain(text)}
    context = _extracted(kept)
    return context if len(context) > 0 else None


def _extracted(carrier: dict[str, str]) -> Context:
    return _BAGGAGES.extract(carrier, _TRACES.extract(carrier, Context()))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _as_much_as_fits(baggage: str, room: int) -> str:
    if len(baggage) <= room:
        return baggage
    return baggage[: baggage.rfind(",", 0, room + 1)] if "," in baggage[: room + 1] else ""
