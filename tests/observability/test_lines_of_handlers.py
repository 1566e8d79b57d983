"""What handlers log, with loggers of their own, carries their job: in coroutines, threads and processes."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.observability import logging_handlers
from tests.support.apps import app_at
from windlass import JobContext, JsonFormatter


@pytest.fixture
def stream() -> Generator[io.StringIO]:
    """What the root logger writes, with a formatter and a filter of ours."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(JobContext())
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(one) for one in stream.getvalue().splitlines()]


@pytest.mark.parametrize("kind", ["coroutine", "thread", "process"])
async def test_lines_carry_their_job(kind: str, tmp_path: Path, stream: io.StringIO) -> None:
    app = app_at(tmp_path / "jobs.db")
    app.registry.add(logging_handlers.app.registry.get(kind))
    async with app:
        handle = await app.enqueue(kind, user="ann", correlation="c1")
        await app.worker(drain=True).run()
        assert (await handle.job()).status == "succeeded"
    told = lines(stream)
    logging.getLogger("shop").warning("nobody's")
    assert "job" not in lines(stream)[-1]
    [said, failed, structured, *more] = [one for one in told if one["logger"].startswith("shop")]
    for one in (said, failed, structured):
        assert (one["job"], one["type"], one["queue"], one["attempt"]) == (handle.id, kind, "default", 1)
        assert (one["user"], one["correlation"]) == ("ann", "c1")
        assert one["worker"]
        assert (one["process"] == os.getpid()) == (kind != "process")
    assert (said["message"], said["extra"]) == (f"from a {kind}", {"kind": kind, "token": "***"})
    assert "ValueError: inside" in failed["traceback"]
    assert (structured["message"], structured["extra"]) == ("structured", {"kind": kind})
    assert [one["job"] for one in more] == ([] if kind == "thread" else [handle.id])


async def test_structlog_has_the_job_with_nothing_set_up(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    found: list[dict[str, Any]] = []

    @app.job
    async def look() -> None:
        found.append(structlog.contextvars.get_contextvars())

    async with app:
        handle = await look.using(user="ann").enqueue()
        await app.worker(drain=True).run()
    [bound] = found
    assert (bound["job_id"], bound["job_type"], bound["job_user"]) == (handle.id, "look", "ann")
    assert "job_correlation" not in bound or bound["job_correlation"]
    assert structlog.contextvars.get_contextvars() == {}


def test_any_formatter_may_have_the_job_and_outside_of_jobs_it_is_empty() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobContext())
    handler.setFormatter(logging.Formatter("%(message)s [%(job_type)s %(job_id)s]"))
    logger = logging.getLogger("formatted")
    logger.addHandler(handler)
    logger.propagate = False
    logger.warning("hello")
    assert stream.getvalue() == "hello [ ]\n"
