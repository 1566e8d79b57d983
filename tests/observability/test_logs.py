from __future__ import annotations

import io
import json
import logging
from collections.abc import Generator
from datetime import timedelta
from typing import get_args

import pytest

from tests.observability.every_event import ALL, JOB, ended
from windlass.core import events
from windlass.core.history import Happened
from windlass.core.job import Error
from windlass.core.status import Status
from windlass.observability.logs import LOGGER, Format, describe, level_of, write_lines


@pytest.fixture(autouse=True)
def _own_logger() -> Generator[None]:
    yield
    logger = logging.getLogger(LOGGER)
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


def written(form: Format, *told: events.Event, level: int = logging.DEBUG) -> list[str]:
    stream = io.StringIO()
    listener = write_lines(stream, form, level)
    for one in told:
        listener(one)
    return stream.getvalue().splitlines()


def test_the_examples_here_are_every_event() -> None:
    assert {type(one) for one in ALL} == set(get_args(events.Event))


@pytest.mark.parametrize("event", ALL, ids=lambda event: type(event).__name__)
def test_each_event_is_one_line_in_either_form(event: events.Event) -> None:
    [text] = written("text", event)
    [line] = written("json", event)
    told = json.loads(line)
    assert describe(event).event in text
    assert told["event"] == describe(event).event
    assert told["level"] == logging.getLevelName(level_of(event)).lower()


def test_the_default_level_leaves_out_what_comes_too_often() -> None:
    lines = written("json", *ALL, level=logging.INFO)
    told = [json.loads(line)["event"] for line in lines]
    assert "enqueued" not in told
    assert "promoted" not in told
    assert "started" in told
    assert "lost" in told


def test_a_job_that_was_lost_too_often_is_an_error() -> None:
    assert level_of(events.JobRescued(JOB, Status.QUEUED)) == logging.WARNING
    assert level_of(events.JobRescued(JOB, Status.FAILED)) == logging.ERROR


def test_an_order_is_told_with_who_gave_it_and_why() -> None:
    orders = (
        events.JobOperated("j1", "cancel", "ann", "too late", requested=True),
        events.JobOperated("j1", "retry", "ann"),
        events.JobOperated("j1", "replay", "ann", replay_id="j2"),
    )
    assert [describe(one).text for one in orders] == [
        "cancel j1 (asked: it is running) by ann: too late",
        "retry j1 by ann",
        "replay j1 as j2 by ann",
    ]
    assert [describe(one).facts.get("requested") for one in orders] == [True, None, None]


def test_failures_stand_out_and_carry_their_error() -> None:
    error = Error(type="ValueError", message="no good")
    again = ended(Status.RETRYING, Happened.RETRYING, error=error, delay=timedelta(seconds=2))
    gone = ended(Status.FAILED, Happened.FAILED, error=error)
    first, second = (json.loads(line) for line in written("json", again, gone))
    assert (first["level"], first["again_in_ms"], first["error"]["type"]) == ("warning", 2000, "ValueError")
    assert (second["level"], second["event"], second["correlation"]) == ("error", "failed", "c1")
    assert "ValueError: no good (again in 2.0 s)" in written("text", again)[0]


@pytest.mark.parametrize("form", ["text", "json"])
def test_content_cannot_forge_a_line(form: Format) -> None:
    error = Error(type="E", message="x\n00:00:00 info forged\r\x1b[2J\u202e\u2028end")
    lines = written(form, ended(Status.FAILED, Happened.FAILED, error=error))
    assert len(lines) == 1
    assert not any(one in lines[0] for one in "\x1b\r\u202e\u2028")


def test_other_records_of_the_logger_are_lines_too() -> None:
    stream = io.StringIO()
    write_lines(stream, "json")
    try:
        raise ValueError("inside")
    except ValueError:
        logging.getLogger("windlass.sub").exception("went %s", "wrong")
    told = json.loads(stream.getvalue())
    assert (told["event"], told["message"]) == ("log", "went wrong")
    assert "ValueError: inside" in told["traceback"]
