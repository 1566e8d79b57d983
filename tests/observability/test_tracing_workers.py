"""Real workers that send their spans by OTLP: a handler's own process, a retry, and a worker that is killed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from opentelemetry import baggage, context

from tests.observability.otlp import Receiver, receiving, told
from tests.observability.spans import Traces, place_of
from tests.support.apps import app_at, until_status
from tests.support.template import Copy, started
from tests.support.until import until
from windlass import Status
from windlass.observability.tracing import instrument

ROOT = Path(__file__).parents[2]
QUICK = ("--lease", "900ms", "--heartbeat", "200ms", "--poll", "100ms")


@contextmanager
def worker(folder: Path, receiver: Receiver, delay: int = 100) -> Generator[Copy, None, None]:
    environment = {
        "SHOP_URL": f"sqlite:///{folder / 'jobs.db'}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": str(delay),
        "WINDLASS_RESCUE_MS": "200",
    }
    process = started("worker", "tests.observability.traced_shop:app", *QUICK, environment=environment, folder=folder)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@pytest.mark.timeout(90)
async def test_what_workers_send_is_one_trace_through_processes_retries_and_a_kill(tmp_path: Path) -> None:
    traces = Traces()
    app = app_at(tmp_path / "jobs.db")
    instrument(app, traces.provider)
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        first = stack.enter_context(worker(tmp_path, receiver))
        async with app:
            with traces.tracer.start_as_current_span("request"):
                token = context.attach(baggage.set_baggage("tenant", "acme"))
                apart = await app.enqueue("apart", queue="apart")
                context.detach(token)
                held = await app.enqueue("hold", {"folder": str(tmp_path)}, queue="held")
            done = await until_status(apart, Status.SUCCEEDED, within=30)
            await until((tmp_path / f"begun-{first.pid}").exists, "the first worker to hold it", 30)
            await until(lambda: len(receiver.all("process apart")) == 2, "its spans to be sent", 30)
            first.kill()
            second = stack.enter_context(worker(tmp_path, receiver))
            await until((tmp_path / f"begun-{second.pid}").exists, "the second worker to hold it", 30)
            (tmp_path / "go").touch()
            await until_status(held, Status.SUCCEEDED, within=30)
            await until(lambda: receiver.all("process held"), "its span to be sent", 30)

    request = await traces.one("request")
    assert {span.trace_id for span in receiver.spans} == {place_of(request).trace_id.to_bytes(16)}
    assert receiver.services == {"shop"}
    sent_apart = place_of(await traces.one("send apart")).span_id.to_bytes(8)
    sent_held = place_of(await traces.one("send held")).span_id.to_bytes(8)

    assert done.result == "acme"
    failed, again = receiver.all("process apart")
    assert [failed.parent_span_id, again.parent_span_id] == [sent_apart] * 2
    assert [link.span_id for link in again.links] == [sent_apart, failed.span_id]
    assert (failed.status.code, told(failed)["error.type"]) == (2, "ValueError")
    assert [event.name for event in failed.events] == ["exception", "job.retrying"]
    assert b"hunter2" not in b"".join(span.SerializeToString() for span in receiver.spans)

    [lost] = receiver.all("rescue held")
    [rescued] = receiver.all("process held")
    assert [lost.parent_span_id, rescued.parent_span_id] == [sent_held] * 2
    assert [link.span_id for link in rescued.links] == [sent_held, lost.span_id]
    assert (lost.status.code, told(lost)["error.type"], lost.events[0].name) == (2, "LeaseLost", "job.rescued")
    assert told(rescued)["windlass.job.crashes"] == 1


@pytest.mark.timeout(60)
async def test_spans_of_a_handlers_own_process_are_sent_before_it_ends(tmp_path: Path) -> None:
    with receiving() as receiver:
        with worker(tmp_path, receiver, delay=60_000):
            app = app_at(tmp_path / "jobs.db")
            async with app:
                apart = await app.enqueue("apart", queue="apart")
                await until_status(apart, Status.SUCCEEDED, within=30)
        attempts = {span.span_id for span in receiver.all("process apart")}
        inside = receiver.all("inside")
        assert len(inside) == len(attempts) == 2
        assert {span.parent_span_id for span in inside} == attempts
        steps = sorted(
            (span.parent_span_id, told(span)["windlass.step.remembered"]) for span in receiver.all("step count")
        )
        assert sorted(step[0] for step in steps) == sorted(span.span_id for span in inside)
        assert sorted(step[1] for step in steps) == [False, True]
