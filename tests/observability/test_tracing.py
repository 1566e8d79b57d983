"""Spans of what is sent, run and stepped, and how they hang together: on every store, with an exporter in memory."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from tests.contract.places import Place
from tests.observability.spans import Traces, happened, is_child, linked, number, trace_of
from tests.support.apps import app_at, until_status, working
from tests.support.until import until
from windlass import Batched, Cancel, Ctx, DuplicateJob, Retry, Snooze, Status, Windlass, every
from windlass.core.draft import Draft, Options
from windlass.observability.tracing import Tracing, instrument

QUICK = Retry(3, base=0.001)


@pytest.fixture
def traces() -> Traces:
    return Traces()


@pytest.fixture
async def anywhere(place: Place, traces: Traces) -> AsyncIterator[Windlass]:
    """On every store."""
    app = Windlass(store=place.store())
    instrument(app, traces.provider)
    async with app:
        yield app
    app.close()


@pytest.fixture
async def app(tmp_path: Path, traces: Traces) -> AsyncIterator[Windlass]:
    app = app_at(tmp_path / "jobs.db")
    instrument(app, traces.provider)
    async with app:
        yield app
    app.close()


async def drain(app: Windlass) -> None:
    await app.worker(drain=True, poll=0.05).run()


async def test_an_enqueue_and_its_runs_are_one_trace_that_children_go_on_with(
    anywhere: Windlass, traces: Traces
) -> None:
    app, seen = anywhere, list[object]()

    @app.job(queue="post", retry=QUICK)
    async def send(to: str) -> None:
        seen.append(baggage.get_baggage("tenant"))
        if len(seen) == 1:
            raise ValueError("password=hunter2")
        await keep.enqueue()

    @app.job
    def keep() -> None:
        seen.append(baggage.get_baggage("tenant"))

    with traces.tracer.start_as_current_span("request") as request:
        token = context.attach(baggage.set_baggage("tenant", "acme & sons"))
        handle = await send.enqueue("ada")
        context.detach(token)
    async with working(app):
        await traces.one("process default")
        await traces.some("process post", 2)

    sent, kept = await traces.one("send post"), await traces.one("process default")
    failed, again = await traces.some("process post", 2)
    assert seen == ["acme & sons"] * 3
    assert sent.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id
    assert (sent.kind, failed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert is_child(failed, sent)
    assert is_child(again, sent)
    assert linked(failed) == [number(sent)]
    assert linked(again) == [number(sent), number(failed)]
    assert is_child(await traces.one("send default"), again)
    assert trace_of(kept) == trace_of(sent)
    assert dict(sent.attributes or {}) == {
        "messaging.system": "windlass",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "post",
        "messaging.message.id": handle.id,
        "windlass.job.type": "send",
    }
    told = dict(again.attributes or {})
    assert told.pop("messaging.client.id")
    assert told == {
        "messaging.system": "windlass",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "post",
        "messaging.message.id": handle.id,
        "windlass.job.type": "send",
        "windlass.job.attempt": 2,
    }
    assert (failed.status.status_code, again.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert happened(failed) == ["exception", "job.retrying"]
    assert (failed.attributes or {})["error.type"] == "ValueError"
    assert "hunter2" not in failed.to_json()
    job = await handle.job()
    assert job.trace is not None
    assert job.trace.startswith("00-" + trace.format_trace_id(trace_of(sent)))
    assert job.trace.endswith(" tenant=acme+%26+sons")


async def test_every_way_to_send_is_one_span_of_all_that_it_sends(
    app: Windlass, traces: Traces, tmp_path: Path
) -> None:
    @app.job
    async def one(value: int = 0) -> int:
        return value

    @app.job(queue="other")
    async def more(values: list[int]) -> None: ...

    await app.enqueue_many([one.bind(n) for n in range(3)])
    await app.group([one.bind(1), one.bind(2)]).then(more).enqueue()
    await app.enqueue_each([("one", {"value": 7})])
    await asyncio.to_thread(one.enqueue_sync, 4)
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        await one.enqueue(value=5)
        with connection, app.within(connection):
            one.enqueue_sync(5)
    sizes = [(span.name, (span.attributes or {}).get("messaging.batch.message_count")) for span in traces.spans]
    assert sizes == [("send default", 3), ("send", 3), *[("send default", None)] * 4]
    jobs = [job async for job in app.jobs.each()]
    roots = Counter(job.trace for job in jobs)
    assert sorted(roots.values()) == [1, 1, 1, 1, 3, 3]
    assert None not in roots


def test_what_is_sent_alike_shares_its_options_and_errors_are_told_without_secrets(traces: Traces) -> None:
    options = Options()
    drafts = [Draft(id_, "work", "{}", options) for id_ in "ab"]
    with pytest.raises(OSError), Tracing(traces.provider).sending(drafts) as sent:
        assert sent[0].options is sent[1].options
        assert sent[0].options.trace is not None
        raise OSError("cannot reach postgres://ada:hunter2@db")
    [span] = traces.spans
    assert span.status.description == "cannot reach postgres://***@db"
    assert (span.attributes or {})["error.type"] == "OSError"


async def test_a_tick_of_a_schedule_begins_a_trace_of_its_own(app: Windlass, traces: Traces) -> None:
    @app.job(schedule=every(1))
    async def tick() -> None: ...

    with traces.tracer.start_as_current_span("who started the worker") as starter:
        async with working(app):
            await traces.some("process default")
    sent = traces.all("send default")[0]
    assert sent.parent is None
    assert trace_of(sent) != starter.get_span_context().trace_id
    assert "schedule.fired" in happened(sent)
    assert is_child(traces.all("process default")[0], sent)


async def test_a_replay_is_sent_by_who_asked_for_it(app: Windlass, traces: Traces) -> None:
    @app.job(retry=1)
    async def fail() -> None:
        raise ValueError

    handle = await fail.enqueue()
    await drain(app)
    await app.jobs.replay(handle.id)
    await app.dead_letters.replay_all(type="fail")
    again = [(span.attributes or {}).get("windlass.job.replay_of") for span in traces.all("send default")]
    assert again == [None, handle.id, handle.id]


async def test_steps_are_spans_and_what_is_remembered_shows_as_that(anywhere: Windlass, traces: Traces) -> None:
    app, calls = anywhere, list[int]()

    def charge(amount: int) -> int:
        calls.append(amount)
        return amount

    @app.job
    async def child(n: int) -> int:
        return n

    @app.job(retry=QUICK)
    async def order(ctx: Ctx) -> None:
        await ctx.step("charge", charge, 5, key="a")
        if ctx.attempt == 1:
            raise ValueError
        await ctx.gather("parts", [child.bind(1), child.bind(2)])
        await ctx.wait("approval")

    handle = await order.enqueue()
    async with working(app):
        await until_status(handle, Status.BLOCKED)
        await until(lambda: len(traces.all("wait approval")) == 1, "it to wait")
        await app.jobs.signal(handle.id, "approval", True)
        await until_status(handle, Status.SUCCEEDED)
        await traces.some("process default", 6)

    def told(name: str) -> list[tuple[object, object]]:
        found = [span.attributes or {} for span in traces.all(name)]
        return [(one["windlass.step.remembered"], one.get("windlass.step.suspended")) for one in found]

    assert calls == [5]
    assert told("step charge") == [(False, None), (True, None), (True, None), (True, None)]
    assert told("gather parts") == [(False, True), (True, None), (True, None)]
    assert told("wait approval") == [(False, True), (True, None)]
    attempts = {number(span) for span in traces.all("process default")}
    assert all(span.parent is not None and span.parent.span_id in attempts for span in traces.all("step charge"))
    [children] = [
        span for span in traces.all("send default") if "messaging.batch.message_count" in (span.attributes or {})
    ]
    assert is_child(children, traces.all("gather parts")[0])
    assert len({trace_of(span) for span in traces.spans}) == 1
    assert (traces.all("step charge")[0].attributes or {})["windlass.step.key"] == "a"


async def test_the_thread_of_a_handler_is_inside_its_attempt(app: Windlass, traces: Traces) -> None:
    @app.job
    def work(ctx: Ctx) -> None:
        with traces.tracer.start_as_current_span("inside"):
            ctx.step_now("count", lambda: 1)

    await work.enqueue()
    await drain(app)
    inside = await traces.one("inside")
    assert is_child(inside, await traces.one("process default"))
    assert is_child(await traces.one("step count"), inside)


async def test_a_signal_of_a_handler_is_an_event_and_no_error(app: Windlass, traces: Traces) -> None:
    @app.job(queue="snoozes")
    async def later(ctx: Ctx) -> None:
        if len(traces.all("process snoozes")) == 0:
            raise Snooze(0.01, "too early")

    @app.job(queue="cancels")
    async def stop() -> None:
        raise Cancel("no need")

    await later.enqueue()
    await stop.enqueue()
    async with working(app):
        first, again = await traces.some("process snoozes", 2)
    assert happened(first) == ["job.snoozed"]
    assert dict(first.events[0].attributes or {}) == {
        "windlass.job.status": "scheduled",
        "windlass.job.delay_ms": 10,
        "windlass.job.note": "too early",
    }
    assert happened(again) == []
    assert happened(await traces.one("process cancels")) == ["job.cancelled"]
    assert {span.status.status_code for span in traces.spans} == {StatusCode.UNSET}


async def test_a_batch_is_one_span_that_links_to_all_who_sent_its_jobs(app: Windlass, traces: Traces) -> None:
    @app.job(batch=3)
    async def index(jobs: list[Batched[int, None]]) -> None:
        jobs[0].fail(ValueError("no"))

    handles = [await index.using(max_attempts=1).enqueue(n) for n in range(3)]
    async with working(app):
        await until_status(handles[0], Status.FAILED)
        span = await traces.one("process default")
    assert span.parent is None
    assert sorted(linked(span)) == sorted(number(sent) for sent in traces.all("send default"))
    assert (span.attributes or {})["messaging.batch.message_count"] == 3
    assert happened(span) == ["exception", "job.failed"]
    assert span.status.description == "1 of 3 jobs: ValueError: no"


async def test_a_run_long_after_its_enqueue_links_to_it_from_a_trace_of_its_own(
    app: Windlass, traces: Traces, tmp_path: Path
) -> None:
    @app.job
    async def work() -> None: ...

    await work.enqueue()
    day = 24 * 60 * 60 * 1000
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("UPDATE windlass_jobs SET created_at = created_at - ?", (2 * day,))
    await drain(app)
    sent, ran = await traces.one("send default"), await traces.one("process default")
    assert ran.parent is None
    assert trace_of(ran) != trace_of(sent)
    assert linked(ran) == [number(sent)]


@pytest.mark.parametrize(
    "trace_text", [None, "", "-", "00-0-0-01", "00-" + "f" * 5000, "x\n00", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
)
async def test_what_came_without_a_context_or_with_nonsense_begins_a_trace(
    app: Windlass, traces: Traces, tmp_path: Path, trace_text: str | None
) -> None:
    @app.job
    async def work() -> None: ...

    other = app_at(tmp_path / "jobs.db")  # as another program does, which is not traced
    async with other:
        handle = await other.enqueue("work")
    assert (await handle.job()).trace is None
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("UPDATE windlass_jobs SET trace = ?", (trace_text,))
    await drain(app)
    span = await traces.one("process default")
    assert (span.parent, list(span.links)) == (None, [])


async def test_nothing_is_stored_where_nothing_is_sampled_or_traced(tmp_path: Path) -> None:
    traces = Traces(ALWAYS_OFF)
    app = app_at(tmp_path / "jobs.db")
    stop = instrument(app, traces.provider)

    @app.job
    async def work(ctx: Ctx) -> None:
        await ctx.step("one", lambda: 1)
        await child.enqueue()

    @app.job
    async def child() -> None: ...

    async with app:
        await work.enqueue()
        await drain(app)
        stop()
        assert (app.registry.spans, app.hub.silent) == (None, True)
        await work.enqueue()
        await drain(app)
        assert {job.trace async for job in app.jobs.each()} == {None}
    assert traces.spans == ()


async def test_baggage_goes_along_though_nothing_is_sampled_and_never_beyond_its_bound(tmp_path: Path) -> None:
    app, seen = app_at(tmp_path / "jobs.db"), list[dict[str, object]]()
    instrument(app, Traces(ALWAYS_OFF).provider)

    @app.job
    async def work() -> None:
        seen.append(dict(baggage.get_all()))

    async with app:
        token = context.attach(
            baggage.set_baggage("tenant", "acme", baggage.set_baggage("long", "x" * 2000, Context()))
        )
        await work.enqueue()
        context.detach(token)
        token = context.attach(
            baggage.set_baggage("long", "x" * 2000, baggage.set_baggage("tenant", "acme", Context()))
        )
        handle = await work.enqueue()
        context.detach(token)
        await drain(app)
        assert (await handle.job()).trace == "- tenant=acme"
    assert seen == [{}, {"tenant": "acme"}]


async def test_a_refused_enqueue_is_an_error_of_its_span_and_a_duplicate_an_event(
    app: Windlass, traces: Traces
) -> None:
    @app.job(unique="one")
    async def work() -> None: ...

    first = await work.enqueue()
    await work.enqueue()
    with pytest.raises(DuplicateJob):
        await work.using(on_conflict="raise").enqueue()
    _, same, refused = traces.all("send default")
    assert happened(same) == ["job.deduplicated"]
    assert (same.events[0].attributes or {})["messaging.message.id"] == first.id
    assert (refused.attributes or {})["error.type"] == "DuplicateJob"
    assert refused.status.status_code is StatusCode.ERROR


async def test_a_late_result_is_told_as_refused(app: Windlass, traces: Traces, tmp_path: Path) -> None:
    began = asyncio.Event()

    @app.job
    async def work() -> None:
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
            connection.execute("UPDATE windlass_jobs SET lease_token = lease_token + 1")
        began.set()

    await work.enqueue()
    async with working(app):
        span = await traces.one("process default")
    assert happened(span) == ["job.refused"]
    assert (span.attributes or {})["error.type"] == "LeaseLost"


async def test_tracing_can_be_set_and_needs_its_extra(tmp_path: Path) -> None:
    text = """
import sys
if sys.argv[1] == "without":
    sys.modules["opentelemetry"] = None
from windlass import SettingsError, Windlass
try:
    app = Windlass()
except SettingsError as error:
    print(error)
else:
    print(app.registry.spans is not None, any(name.startswith("opentelemetry") for name in sys.modules))
"""

    def said(how: str, setting: str) -> str:
        environment = {**os.environ, "WINDLASS_TRACING": setting}
        done = subprocess.run(
            [sys.executable, "-c", text, how], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert said("with", "off") == "False False\n"
    assert said("with", "on") == "True True\n"
    assert said("without", "on").startswith('tracing needs the extra "tracing": pip install "windlass[tracing]"')
