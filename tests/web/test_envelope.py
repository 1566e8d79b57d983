"""What comes in is bounded while it comes, and what goes out has its headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.web.conftest import Ask
from windlass import Windlass
from windlass.web.envelope import LARGEST_BODY, Envelope

JSON = {"content-type": "application/json"}


async def test_every_answer_has_an_id_and_may_not_be_kept(ask: Ask) -> None:
    async with ask() as client:
        first, second = await client.get("/queue"), await client.get("/nowhere")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    for answer in (first, second):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


async def test_a_body_that_is_too_large_is_not_read(ask: Ask, app: Windlass) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(2 * LARGEST_BODY // 65_536):
            yield b" " * 65_536

    async with ask() as client:
        told = await client.post("/queue/enqueue", content=b" " * (LARGEST_BODY + 1), headers=JSON)
        streamed = await client.post("/queue/enqueue", content=endless(), headers=JSON)
    assert (told.status_code, streamed.status_code) == (413, 413)
    assert (await app.jobs.count()).n == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        ({**JSON, "content-encoding": "gzip"}, 415),
        ({**JSON, "content-length": "-1"}, 400),
        ({**JSON, "content-length": "1e3"}, 400),
        ({**JSON, "content-length": "9" * 400}, 413),
    ],
    ids=str,
)
async def test_a_body_that_is_not_plain_json_is_refused(ask: Ask, headers: dict[str, str], status: int) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", content=b'{"type": "mail.send"}', headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["status"] == status


@pytest.mark.parametrize(
    "text",
    [b"{", b"", b'{"type": "a"} {"type": "b"}', b'\xff\xfe{"type"', b"[" * 100_000, b'{"type": NaN}', b"9" * 5_000],
    ids=["cut", "empty", "two", "utf-16", "deep", "nan", "digits"],
)
async def test_what_is_no_json_is_refused(ask: Ask, text: bytes) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", content=text, headers=JSON)
    assert answer.status_code in (400, 415, 422), answer.text


async def test_a_body_that_comes_too_slowly_is_not_waited_for() -> None:
    async def never(_scope: Any, receive: Any, _send: Any) -> None:
        await receive()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"9")],
    }
    await Envelope(never, slowest=0.01)(scope, receive, send)
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["status"] == 408


async def test_a_body_that_comes_in_drops_is_not_waited_for() -> None:
    async def reading(_scope: Any, receive: Any, _send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.03)  # each drop comes in time, and they never end
        return {"type": "http.request", "body": b" ", "more_body": True}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    async with asyncio.timeout(5):
        await Envelope(reading, slowest=0.1)(scope, receive, send)
    assert sent[0]["status"] == 408
