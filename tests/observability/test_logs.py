from __future__ import annotations

import inspect
import io
import json
import logging
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.observability.every_event import ALL, ERROR, JOB, ended
from tests.support.until import until_sync
from windlass.core import events
from windlass.core.history import Happened
from windlass.core.job import Error
from windlass.core.status import Status
from windlass.observability.context import ATTRIBUTES
from windlass.observability.floods import Floods, LeftOut
from windlass.observability.forms import Format, write_lines
from windlass.observability.lines import TRACE, Line, describe, level_of
from windlass.observability.logs import LOGGER

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def _own_logger() -> Generator[None]:
    yield
    logger = logging.getLogger(LOGGER)
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


def written(form: Format, *told: events.Event, level: int = TRACE, **more: bool) -> list[str]:
    stream = io.StringIO()
    listener = write_lines(stream, form, level, **more)
    for one in told:
        listener(one)
    return stream.getvalue().splitlines()


def test_the_examples_here_are_every_event() -> None:
    assert {type(one) for one in ALL} == set(get_args(events.Event))


@pytest.mark.parametrize("event", ALL, ids=lambda event: type(event).__name__)
def test_each_event_is_one_line_in_either_form(event: events.Event) -> None:
    [text, *below] = written("text", event)
    [line] = written("json", event)
    told = json.loads(line)
    assert describe(event).word in text
    assert all(one.startswith("  | ") for one in below)
    assert told["event"] == describe(event).event
    assert told["level"] == logging.getLevelName(level_of(event)).lower()


@pytest.mark.parametrize("event", [one for one in ALL if hasattr(one, "job")], ids=lambda event: type(event).__name__)
def test_each_line_of_an_attempt_has_all_of_its_job(event: events.Event) -> None:
    [told] = map(json.loads, written("json", event))
    expected = {"job": "j1", "type": "send", "queue": "mail", "attempt": 1}
    expected |= {"worker": "w1", "correlation": "c1", "user": "ann", "trace_id": "4b" * 16}
    assert expected.items() <= told.items()
    assert "queue=mail attempt=1 worker=w1 correlation=c1 user=ann" in written("text", event)[0]


def test_the_usual_level_leaves_out_what_comes_as_often_as_jobs_do() -> None:
    told = {json.loads(line)["event"] for line in written("json", *ALL, level=logging.INFO)}
    assert not told & {"job.enqueued", "job.started", "job.succeeded", "job.snoozed", "jobs.promoted", "store.called"}
    assert told >= {"job.failed", "job.retrying", "job.rescued", "job.operated", "worker.started"}
    debug = {json.loads(line)["event"] for line in written("json", *ALL, level=logging.DEBUG)}
    assert {describe(one).event for one in ALL} - debug == {"store.called", "worker.answered"}


def test_a_job_that_was_lost_too_often_is_an_error() -> None:
    assert level_of(events.JobRescued(JOB, Status.QUEUED)) == logging.WARNING
    assert level_of(events.JobRescued(JOB, Status.FAILED)) == logging.ERROR
    assert level_of(ended(Status.FAILED, Happened.CRASHED, error=ERROR)) == logging.ERROR


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
    again, gone = (one for one in ALL if isinstance(one, events.JobEnded) and one.transition.happened in _BAD)
    first, second = (json.loads(line) for line in written("json", again, gone))
    assert (first["level"], first["again_in_ms"], first["error"]["type"]) == ("warning", 2000, "ValueError")
    assert (second["level"], second["event"], second["error"]["traceback"]) == ("error", "job.failed", "Traceback: …")
    text, trace = written("text", again)
    assert "ValueError: no good (again in 2.0 s)" in text
    assert trace == "  | Traceback: …"


_BAD = (Happened.RETRYING, Happened.FAILED)
HOSTILE = "x\n00:00:00 info forged\r\x1b[2J\u202e\u2028end"


@pytest.mark.parametrize("form", ["text", "json"])
def test_content_cannot_forge_a_line(form: Format) -> None:
    job = JOB._replace(type=HOSTILE, queue=HOSTILE, correlation_id=HOSTILE, user_id=HOSTILE, worker_id=HOSTILE)
    error = Error(type=HOSTILE, message=HOSTILE, traceback=f"Traceback\n{HOSTILE}")
    failed = _of(job, error)
    lines = written(form, failed, events.JobStarted(job), events.JobOperated("j1", "retry", HOSTILE, HOSTILE))
    assert len([line for line in lines if not line.startswith("  | ")]) == 3
    assert not any(one in line for one in "\x1b\r\u202e\u2028" for line in lines)
    assert not any(line.startswith("00:00:00 info forged") for line in lines)


def _of(job: Any, error: Error) -> events.JobEnded:
    return events.JobEnded(job, ended(Status.FAILED, Happened.FAILED, error=error).transition, 0.5)


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_password_or_token_is_written(form: Format) -> None:
    secret = "hunter2hunter2"
    stream = io.StringIO()
    listener = write_lines(stream, form, logging.DEBUG)
    said = f"cannot reach postgres://ann:{secret}@db/x, token={secret}"
    error = Error(type="E", message=said, traceback=f"Traceback\n  {said}")
    for event in (_of(JOB, error), events.StoreTroubled("claim", said), events.JobOperated("j1", "retry", "ann", said)):
        listener(event)
    logger = logging.getLogger("windlass.of_a_handler")
    try:
        raise ValueError(said)
    except ValueError:
        logger.exception("asked %s", said, extra={"api_key": secret, "address": {"password": secret}, "n": 1})
    assert secret not in stream.getvalue()
    assert "***" in stream.getvalue()
    if form == "json":
        last = json.loads(stream.getvalue().splitlines()[-1])
        assert last["extra"] == {"api_key": "***", "address": {"password": "***"}, "n": 1}


def test_other_records_of_the_logger_are_lines_too() -> None:
    stream = io.StringIO()
    write_lines(stream, "json")
    try:
        raise ValueError("inside")
    except ValueError:
        logging.getLogger("windlass.sub").exception("went %s", "wrong")
    told = json.loads(stream.getvalue())
    assert (told["event"], told["message"], told["logger"]) == ("log", "went wrong", "windlass.sub")
    assert "ValueError: inside" in told["traceback"]


def test_colors_are_the_terminals_own_and_only_where_asked_for() -> None:
    failed = next(one for one in ALL if describe(one).event == "job.failed")
    assert "\x1b[31merror failed    \x1b[0m" in written("text", failed, color=True)[0]
    assert "\x1b" not in "".join(written("text", failed))


def test_the_process_is_in_the_line_of_one_of_several() -> None:
    assert " process=" in written("text", events.JobStarted(JOB), process=True)[0]
    assert "process" in json.loads(written("json", events.JobStarted(JOB))[0])


def test_of_a_flood_a_few_lines_are_written_and_then_their_number() -> None:
    gone = [_of(JOB._replace(id=f"j{n}"), ERROR) for n in range(500)]
    other = _of(JOB._replace(type="bill"), ERROR)
    lines = [json.loads(one) for one in written("json", *gone, other, events.WorkerStopped("w1", 501, 0))]
    assert [one["event"] for one in lines] == [*["job.failed"] * 21, "worker.stopped", "log.left_out"]
    assert (lines[-1]["like"], lines[-1]["type"], lines[-1]["n"]) == ("job.failed", "send", 480)


def test_what_was_left_out_is_told_even_if_nothing_else_comes() -> None:
    told: list[LeftOut] = []
    floods = Floods(told.append, most=1, window=0.5)  # long beside three calls, also on a busy machine
    line = Line(logging.WARNING, "job.failed", "failed", {})
    assert [floods.admit(line) for _ in range(3)] == [True, False, False]
    until_sync(lambda: told == [LeftOut(line, 2)], "the timer to tell of what was left out")
    assert floods.admit(line)


def test_the_page_of_logs_names_every_event_with_its_level_and_fields() -> None:
    table = re.findall(
        r"^\| `([a-z_.]+)` \| `([^`]+)` \| ([A-Z, ]+) \| (.*?) \| .+ \|$", (DOCS / "logs.md").read_text(), re.MULTILINE
    )
    assert table
    documented = {
        name: (word, frozenset(levels.split(", ")), frozenset(re.findall(r"`(\w+)`", fields)) | _of_a_job(fields))
        for name, word, levels, fields in table
    }
    told: dict[str, tuple[str, set[str], set[str]]] = {}
    for event in ALL:
        line = describe(event)
        _, levels, fields = told.setdefault(line.event, (line.word, set(), set()))
        levels.add("TRACE" if line.level == TRACE else logging.getLevelName(line.level))
        fields.update(line.facts)
    found = {name: (word, frozenset(levels), frozenset(fields)) for name, (word, levels, fields) in told.items()}
    others = {"log.left_out", "supervisor.told", "http.request", "hook.troubled", "log"}
    assert documented.keys() - others == found.keys()
    for name, row in found.items():
        assert documented[name] == row, name
    assert documented.keys() >= others


def _of_a_job(fields: str) -> frozenset[str]:
    return frozenset(ATTRIBUTES) if "the job's" in fields else frozenset()


def test_the_page_of_events_names_every_event_with_its_fields() -> None:
    table = re.findall(
        r"^\| `(\w+)` \| `([a-z_.]+)` \| (.*?) \| .+ \|$", (DOCS / "events.md").read_text(), re.MULTILINE
    )
    documented = {kind: (name, frozenset(re.findall(r"`(\w+)`", fields))) for kind, name, fields in table}
    kinds: tuple[type[events.Event], ...] = get_args(events.Event)
    for kind in kinds:
        own = frozenset(inspect.signature(kind).parameters)
        own |= {name for name, value in vars(kind).items() if isinstance(value, property)}
        assert documented.pop(kind.__name__) == (kind.name, own), kind
    assert documented == {}
