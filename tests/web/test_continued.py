"""What a request enqueues goes on with the trace that it names, where that is trusted."""

from __future__ import annotations

import asyncio
from contextvars import Context
from pathlib import Path

import httpx
import pytest
from opentelemetry import baggage
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from tests.observability.spans import Traces, is_child, trace_of
from windlass import Windlass
from windlass.observability.tracing import instrument

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


class Asked:
    """What became of one request."""

    def __init__(self, traces: Traces, baggage_of_job: dict[str, object]) -> None:
        [self.sent] = traces.all("send default")
        [self.ran] = traces.all("process default")
        assert is_child(self.ran, self.sent)
        self.goes_on = f"{trace_of(self.sent):032x}" == TRACE
        if self.goes_on:
            assert self.sent.parent is not None
            assert f"{self.sent.parent.span_id:016x}" == SPAN
        else:
            assert self.sent.parent is None
        self.baggage = baggage_of_job


async def asked(tmp_path: Path, *headers: tuple[str, str]) -> Asked:
    """Asked where nothing is traced around: a test before may have left its span in this thread."""
    return await asyncio.create_task(_asked(tmp_path, *headers), context=Context())


async def _asked(tmp_path: Path, *headers: tuple[str, str]) -> Asked:
    traces, seen = Traces(ParentBased(ALWAYS_ON)), list[dict[str, object]]()
    app = Windlass(f"sqlite:///{tmp_path / 'web.db'}")
    instrument(app, traces.provider)

    @app.job
    async def work() -> None:
        seen.append(dict(baggage.get_all()))

    async with app:
        key = await app.keys.create("a test", owner="ann", scopes=("enqueue",))
        given = [("Authorization", f"Bearer {key.secret}"), *headers]
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1") as client:
            answer = await client.post("/queue/enqueue", json={"type": "work"}, headers=given)
            assert answer.status_code == 201
        await app.worker(drain=True).run()
    app.close()
    return Asked(traces, *seen)


async def test_a_request_is_not_trusted_with_a_trace_unless_that_is_set(tmp_path: Path) -> None:
    found = await asked(tmp_path, ("traceparent", PARENT), ("baggage", "tenant=acme"))
    assert (found.goes_on, found.baggage) == (False, {})


async def test_a_request_that_is_trusted_is_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_HTTP_TRACEPARENT", "on")
    found = await asked(
        tmp_path, ("traceparent", PARENT), ("tracestate", "vendor=1 2"), ("baggage", "tenant=acme"), ("baggage", "b=2")
    )
    assert (found.goes_on, found.baggage) == (True, {"tenant": "acme", "b": "2"})
    assert found.ran.get_span_context().trace_state == {"vendor": "1 2"}  # type: ignore[union-attr]  # it has one


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("traceparent", PARENT), ("traceparent", PARENT)),
        (("traceparent", PARENT.upper()),),
        (("traceparent", f"00-{TRACE}-{'0' * 16}-01"),),
        (("traceparent", PARENT + "-" + "a" * 2000),),
        (("traceparent", "ff" + PARENT[2:]),),
        (("baggage", "x" * 5000 + "=1"),),
        (("baggage", "no pair at all"),),
        (("traceparent", "\xff"), ("baggage", "tenant=\xff")),
    ],
)
async def test_headers_that_are_no_trace_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: tuple[tuple[str, str], ...]
) -> None:
    monkeypatch.setenv("WINDLASS_HTTP_TRACEPARENT", "on")
    encoded = [(name, value.encode("latin-1")) for name, value in headers]
    found = await asked(tmp_path, *encoded)  # type: ignore[arg-type]  # httpx takes bytes as well
    assert (found.goes_on, found.baggage) == (False, {})


async def test_a_trace_state_that_is_too_long_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_HTTP_TRACEPARENT", "on")
    found = await asked(tmp_path, ("traceparent", PARENT), ("tracestate", f"a={'x' * 600}"))
    assert found.goes_on
    assert not found.ran.get_span_context().trace_state  # type: ignore[union-attr]  # the same
