"""Two users: what one is told with the other's jobs there, and without them, is the same, whatever is asked.

The questions are made of the OpenAPI document, so that a new route is asked, too: of the other's job, of every filter
with the other's words, with the bodies that it takes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.web.conftest import EVERYTHING, declare
from windlass import Windlass

WORDS = {"correlationId": "c", "entityName": "order", "entityId": "1", "userId": "bob", "uniqueKey": "bob/x"}
MAIL = {"type": "mail.send", "payload": {"to": "x"}}
BODIES: dict[str, list[Any]] = {
    "enqueue_job": [MAIL, {**MAIL, "uniqueKey": "x"}, {**MAIL, "uniqueKey": "bob/x"}, {**MAIL, "userId": "bob"}],
    "enqueue_many": [{"jobs": [MAIL, {**MAIL, "uniqueKey": "x"}, {**MAIL, "userId": "bob"}]}],
    "order_jobs": [
        {"action": action, "filter": words, "dryRun": True}
        for action in ("retry", "cancel", "delete", "replay")
        for words in ({"type": "fail"}, {"correlationId": "c"}, {"userId": "bob"}, {"uniqueKey": "bob/x"})
    ],
    "replay_dead_letters": [{"type": "fail", "dryRun": True}, {"queue": "default", "dryRun": True}],
    "signal_job": [{"name": "s"}],
}
"""what routes are asked with; those that are not here take a body of nothing, or none"""
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|\"(?:requestId|fingerprint)\":\"\w+\"|\"(?:nextCursor|previousCursor)\":\"\w+\"|\"(?:waitMs|durationMs|ms|seconds)\":[\d.]+"
    r"|\"(?:averageRunMs|averageWaitMs|avgDurationMs|waitP\d\dMs|waitMostMs)\":[\d.]+|\"series\":\[[^]]*\]"
    r"|\"(?:p\d\dMs|averageMs|leastMs|mostMs|perMinute|fromMs|toMs)\":[\d.]+|\"n\":\[[^]]*\]"  # its minutes go on
)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def questions(document: dict[str, Any], theirs: list[str]) -> list[tuple[str, str, dict[str, str], Any]]:
    """Everything that can be asked, of these jobs and of all."""
    found: list[tuple[str, str, dict[str, str], Any]] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "text/event-stream" in str(operation["responses"].get("200")):
                continue  # tests/web/live asks streams
            places = {path.replace("{job_id}", one) for one in theirs} if "{job_id}" in path else {path}
            named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
            queries: list[dict[str, str]] = [{}, *({name: WORDS[name]} for name in named if name in WORDS)]
            queries += [{name: one} for one in theirs for name in named if name == "parentId"]
            nothing: list[Any] = [None] if method == "get" else [{}]
            bodies = BODIES.get(operation["operationId"], nothing)
            for place in sorted(places):
                place_ = re.sub(r"\{\w+\}", "mail", place)
                found += [(method, place_, query, body) for query in queries for body in bodies]
    return found


@asynccontextmanager
async def asked(path: Path, *, unscoped: bool = False) -> AsyncGenerator[tuple[Windlass, FastAPI, str, str]]:
    """An application with the keys of two users."""
    app = Windlass(f"sqlite:///{path}?synchronous=OFF")
    declare(app)
    async with app:
        web = app.asgi()
        if unscoped:

            @web.get("/api/v1/leak", tags=["jobs"])
            async def leak() -> dict[str, int]:
                return {"n": (await app.jobs.count()).n}

        ann, bob = [(await app.keys.create("a test", owner=one, scopes=EVERYTHING)).secret for one in ("ann", "bob")]
        yield app, web, ann, bob
    app.close()


def client(web: FastAPI, key: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(web, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://windlass", headers=headers)


async def made(one: httpx.AsyncClient) -> list[str]:
    """A user's jobs: one that waits, one that has failed."""
    more = {"uniqueKey": "x", "correlationId": "c", "entityName": "order", "entityId": "1"}
    answers = [await one.post("/api/v1/queue/enqueue", json=body) for body in ({**MAIL, **more}, {"type": "fail"})]
    assert [answer.status_code for answer in answers] == [201, 201]
    return [answer.json()["id"] for answer in answers]


def _with_its_points(answer: httpx.Response) -> str:
    """Its text; of a series over time only the points at which something ended, whichever minute that was; of a list
    as CSV no waits and run times.
    """
    if answer.headers.get("content-type", "").startswith("text/csv"):
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        return json.dumps([{name: row[name] for name in row if name not in ("waitMs", "durationMs")} for row in rows])
    if not answer.text.startswith('{"at":'):  # only charts do
        return answer.text
    body = answer.json()
    body["points"] = [one for one in body["points"] if one["run"]["n"] or one["other"]]
    return json.dumps(body, separators=(",", ":"))


def neutral(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, str]:
    """An answer without what differs between any two: ids by the order in which they were met, no times."""
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"id {len(ids)}"), _with_its_points(answer))
    return answer.status_code, _CHANGING.sub("…", text)


async def told(folder: Path, *, unscoped: bool = False) -> tuple[list[str], list[Any], list[Any]]:
    """What was asked, and what ann is told beside bob's jobs and without them."""
    answers: list[list[Any]] = []
    asked_for: list[Any] = []
    theirs: list[str] = []
    for beside in (True, False):
        async with (
            asked(folder / f"{beside}.db", unscoped=unscoped) as (app, web, ann, bob),
            client(web, ann) as us,
            client(web, bob) as them,
        ):
            await made(us)
            theirs = await made(them) if beside else theirs
            await app.worker(drain=True, exclude=["mail.send"]).run()
            asked_for = questions(web.openapi(), theirs)
            ids = dict.fromkeys(theirs, "theirs")
            given = [await us.request(method, path, params=query, json=body) for method, path, query, body in asked_for]
            answers.append([neutral(one, ids) for one in given])
    return [f"{method} {path} {query} {body}" for method, path, query, body in asked_for], answers[0], answers[1]


@pytest.mark.timeout(60)
async def test_the_jobs_of_others_change_no_answer_of_any_route(tmp_path: Path) -> None:
    asked_for, beside, alone = await told(tmp_path)
    assert len(asked_for) > 60
    assert [(one, a, b) for one, a, b in zip(asked_for, beside, alone, strict=True) if a != b] == []
    assert any(status == 200 and '"userId":"ann"' in text for status, text in beside)
    assert all(status < 500 for status, _ in beside)


@pytest.mark.timeout(60)
async def test_a_route_that_asks_for_the_jobs_of_all_is_caught(tmp_path: Path) -> None:
    asked_for, beside, alone = await told(tmp_path, unscoped=True)
    caught = [one for one, a, b in zip(asked_for, beside, alone, strict=True) if a != b]
    assert [one.split()[1] for one in caught] == ["/api/v1/leak"]
