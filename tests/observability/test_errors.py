"""Hooks of `app.on_error`: told of each failed attempt, and never in a job's way."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.observability.every_event import ERROR, JOB, ended
from tests.support.apps import app_at
from tests.support.until import until_sync
from tests.worker import handlers
from windlass import Failure, HandlerError, Retry, Snooze, Windlass
from windlass.core import events
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.observability import errors
from windlass.observability.errors import ErrorReports

ROOT = Path(__file__).parents[2]


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    return app_at(tmp_path / "jobs.db")


async def work(app: Windlass, *calls: tuple[str, dict[str, Any]]) -> None:
    async with app:
        for name, payload in calls:
            await app.enqueue(name, payload, user="ann", correlation="c1", tags=["eu"])
        await app.worker(drain=True).run()


async def test_each_failed_attempt_is_told_with_its_job(app: Windlass) -> None:
    told: list[Failure] = []
    last: list[Failure] = []
    app.on_error(told.append)
    app.on_error(final=True)(last.append)

    @app.job(retry=Retry(2, base=0.01, jitter=False))
    async def charge(order: int, api_key: str) -> None:
        raise LookupError(f"order {order} is gone, api_key={api_key}")

    @app.job(retry=1)
    def in_a_thread() -> None:
        raise KeyError("x")

    @app.job
    async def fine() -> None: ...

    @app.job
    async def later() -> None:
        raise Snooze(60)

    assert app.hub.silent  # nobody needs to hear of jobs that go well
    await work(
        app, ("charge", {"order": 7, "api_key": "hunter2hunter2"}), ("in_a_thread", {}), ("fine", {}), ("later", {})
    )
    until_sync(lambda: len(told) == 3 and len(last) == 2, "three failures to be told, two of them final")
    first, second = (one for one in told if one.type == "charge")
    assert isinstance(first.raised, LookupError)
    assert first.raised.__traceback__ is not None
    assert (first.error.message, first.error.type) == ("order 7 is gone, api_key=***", "LookupError")
    assert (first.attempt, first.max_attempts, first.final, second.attempt, second.final) == (1, 2, False, 2, True)
    assert (first.queue, first.user, first.correlation, first.tags, first.crashed) == (
        "default",
        "ann",
        "c1",
        ("eu",),
        False,
    )
    assert first.payload() == {"order": 7, "api_key": "***"}
    assert {one.type for one in last} == {"charge", "in_a_thread"}
    assert isinstance(next(one for one in told if one.type == "in_a_thread").raised, KeyError)


async def test_of_a_process_and_a_timeout_is_told_what_is_known(app: Windlass) -> None:
    told: list[Failure] = []
    app.on_error(told.append)
    app.registry.add(replace(handlers.never_again.declaration))

    @app.job(retry=1, timeout=0.05)
    async def slow() -> None:
        import asyncio

        await asyncio.Event().wait()

    await work(app, ("never_again", {}), ("slow", {}))
    until_sync(lambda: len(told) == 2, "both failures to be told")
    child, late = sorted(told, key=lambda one: one.type)
    assert (child.raised, child.error.type, child.error.message) == (None, "ValueError", "this will not get better")
    assert "never_again" in (child.error.traceback or "")
    assert (late.raised, late.error.type, late.final) == (None, "JobTimeout", True)


def test_crashes_and_rescues_are_told_without_an_exception() -> None:
    told: list[Failure] = []
    reports = ErrorReports(told.append)
    reports(ended(Status.RETRYING, Happened.CRASHED, error=ERROR, crashed=True))
    reports(events.JobRescued(JOB, Status.QUEUED))
    reports(events.JobRescued(JOB, Status.FAILED))
    reports(events.JobRescued(JOB, Status.CANCELLED))
    reports(events.JobStarted(JOB))
    assert reports.wait(5)
    reports.close()
    assert [(one.raised, one.crashed, one.final) for one in told] == [(None, True, False)] * 2 + [(None, True, True)]
    assert "w1" in told[-1].error.message


async def test_a_hook_that_raises_harms_no_job_and_is_logged_once(
    app: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    @app.on_error
    def broken(failure: Failure) -> None:
        raise RuntimeError(f"no {failure.id}\x1b")

    @app.job(retry=1)
    async def boom() -> None:
        raise ValueError("no good")

    await work(app, *[("boom", dict[str, Any]())] * 3)
    until_sync(lambda: any("RuntimeError" in one.getMessage() for one in caplog.records), "the trouble to be logged")
    troubles = [one.getMessage() for one in caplog.records if "RuntimeError" in one.getMessage()]
    assert len(troubles) == 1
    assert "\x1b" not in troubles[0]
    assert (await app.jobs.count(status="failed")).n == 3


def test_a_hook_that_hangs_is_said_to_once_and_failures_wait_in_bounds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "HANGS", 0.0)
    monkeypatch.setattr(errors, "MOST", 2)
    go, began = threading.Event(), threading.Event()
    told: list[str] = []

    def hook(failure: Failure) -> None:
        began.set()
        go.wait(20)
        told.append(failure.id)

    reports = ErrorReports(hook)
    reports(events.JobRescued(JOB._replace(id="0"), Status.QUEUED))
    assert began.wait(20)
    for n in range(1, 6):
        reports(events.JobRescued(JOB._replace(id=str(n)), Status.QUEUED))
    assert not reports.wait(0.01)
    go.set()
    assert reports.wait(20)
    reports.close()
    assert told == ["0", "4", "5"]
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert sorted(one.split(": ")[1][:12] for one in said) == ["2 failures w", "it has not r"]


def test_a_hook_is_a_plain_function(app: Windlass) -> None:
    async def hook(failure: Failure) -> None: ...

    with pytest.raises(HandlerError, match="is asynchronous"):
        app.on_error(hook)


class Receiver(BaseHTTPRequestHandler):
    """Takes in what a Sentry client sends."""

    envelopes: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.envelopes.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def sentry() -> Generator[tuple[str, list[bytes]]]:
    envelopes: list[bytes] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("One", (Receiver,), {"envelopes": envelopes}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://key@127.0.0.1:{server.server_port}/1", envelopes
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.timeout(60)
def test_the_example_tells_sentry_of_the_exception_and_the_job(tmp_path: Path, sentry: tuple[str, list[bytes]]) -> None:
    dsn, envelopes = sentry
    environment = {**os.environ, "SENTRY_DSN": dsn, "PYTHONPATH": str(ROOT / "src")}
    environment.pop("WINDLASS_URL", None)
    command = [sys.executable, str(ROOT / "examples" / "sentry.py")]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=50)
    # An envelope is lines of JSON: its header, and of each item a header and a body.
    lines = [json.loads(line) for one in envelopes for line in one.splitlines() if line.startswith(b"{")]
    [event] = [line for line in lines if "exception" in line]
    [raised] = event["exception"]["values"]
    assert (raised["type"], raised["value"]) == ("ConnectionError", "the bank does not answer for order 7")
    assert raised["stacktrace"]["frames"][-1]["function"] == "charge"
    assert "vars" not in raised["stacktrace"]["frames"][-1]
    assert (event["level"], event["tags"]["job.type"], event["user"]) == ("error", "charge", {"id": "ann"})
    assert event["contexts"]["job"]["attempt"] == "1 of 1"
