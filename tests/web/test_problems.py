"""Every error has its answer, and no answer tells what is not the client's business."""

from __future__ import annotations

import inspect
import logging
import re

import pytest

from tests.web.conftest import Ask
from windlass import StoreUnavailable, Windlass, WindlassError
from windlass.core import errors
from windlass.web.failing import Failures
from windlass.web.problems import KINDS, problem_of


def every_error() -> list[type[WindlassError]]:
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, WindlassError)]


def test_every_error_has_its_own_line() -> None:
    assert set(every_error()) == set(KINDS)


def test_kinds_are_named_and_worded_alike() -> None:
    for kind in KINDS.values():
        assert re.fullmatch(r"urn:windlass:problem:[a-z-]+", kind.type)
        assert 400 <= kind.status < 600
        assert kind.title[0].isupper()
        assert kind.told or kind.status != 422 or kind.slug == "value-refused"


def test_what_a_store_said_is_not_told() -> None:
    kind, members, headers = problem_of(StoreUnavailable("postgresql://admin:hunter2@db refused"), "r1")
    assert (kind.status, headers) == (503, {"Retry-After": "5"})
    assert "hunter2" not in str(members)
    assert members["requestId"] == "r1"


async def test_an_unforeseen_error_is_told_by_its_request_id_alone(
    app: Windlass, ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr(type(app.jobs), "find", broken)
    async with ask() as client:
        answer = await client.get("/queue")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "hunter2" not in answer.text
    assert answer.json()["requestId"] in caplog.text
    assert "hunter2" in caplog.text


def test_of_a_store_that_does_not_answer_there_is_a_line_each_and_a_traceback_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    failures = Failures(lambda: now)

    def told(error: Exception, level: int = logging.INFO) -> str:
        caplog.clear()
        with caplog.at_level(level, "windlass.web"):
            try:
                raise error
            except Exception as raised:  # noqa: BLE001  # for its traceback
                failures.tell(raised, "r1", "GET", "/queue")
        return caplog.messages[0]

    away = StoreUnavailable("mongodb://admin:hunter2@db\ndid not answer")
    assert "Traceback" in told(away)
    now = 59.9
    line = told(away)
    assert line.startswith("request r1: GET /queue failed: StoreUnavailable: ")
    assert "\n" not in line
    assert "hunter2" not in line
    assert "Traceback" in told(away, logging.DEBUG)
    assert "Traceback" in told(RuntimeError("a mistake of ours has one each"))
    now = 60.1
    assert "Traceback" in told(away)


async def test_what_is_not_there_and_not_done_are_problems_as_well(ask: Ask) -> None:
    async with ask() as client:
        nowhere, method = await client.get("/nowhere"), await client.put("/queue")
    assert (nowhere.status_code, nowhere.json()["type"]) == (404, "urn:windlass:problem:not-found")
    assert (method.status_code, method.json()["type"]) == (405, "urn:windlass:problem:method-not-allowed")
    assert "GET" in method.headers["allow"]
