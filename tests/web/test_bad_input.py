"""Bad input: whatever is written wherever it fits, the answer is a clean one, and what is taken comes back exactly."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.web.conftest import Ask

STRINGS = {
    "empty": "",
    "one": "x",
    "64 KiB": "x" * 65_536,
    "nul": "a\x00b",
    "surrogate": "a\ud800b",
    "bom": "\ufeffa",
    "rtl": "a\u202etxt.exe",
    "zero width": "a\u200b\u200db",
    "zalgo": "a" + "\u0301" * 200,
    "nfc": "\u00e9",
    "nfd": "e\u0301",
    "emoji": "👩‍👩‍👧‍👦",
    "img": "<img src=x onerror=alert(1)>",
    "svg": '"><svg/onload=alert(1)>',
    "attribute": "'onmouseover='alert(1)",
    "javascript": "javascript:alert(1)",
    "script": "</script><script>",
    "template": "{{7*7}} ${7*7} <%= 7*7 %>",
    "formula": "=cmd|' /C calc'!A0",
    "escape": "\x1b[2J\x1b]0;pwn\x07",
    "header": "a\r\nSet-Cookie: a=b",
    "format": "%s%n",
    "up": "../../etc/passwd",
    "encoded": "..%2f%2e%2e/",
    "windows": "..\\C:\\con",
    "file": "file:///etc/passwd",
    "sql": "'; DROP TABLE jobs;--",
    "like": "%' OR '1'='1",
    "proto": "__proto__",
    "none": "None",
    "nan": "NaN",
}
NUMBERS = [
    *["0", "-0", "-1", "2147483648", "9007199254740993", "9223372036854775808", "18446744073709551616"],
    *["1" + "0" * 400, "1e308", "1e400", "1e-400", "NaN", "Infinity", "9" * 5_000, "1.0", '"1"', "true"],
]
STRUCTURES = {
    "twice": '{"type": "any", "type": "mail.send"}',
    "depth 65": '{"type": "any", "payload": {"a": ' + "[" * 65 + "]" * 65 + "}}",
    "depth 10000": '{"type": "any", "payload": {"a": ' + "[" * 10_000 + "]" * 10_000 + "}}",
    "many keys": '{"type": "any", "payload": {' + ", ".join(f'"k{n}": 1' for n in range(50_000)) + "}}",
    "odd keys": '{"type": "any", "payload": {"": 1, "$gt": 1, "a.b": 2, "a\\u0000b": 3}}',
    "long key": '{"type": "any", "payload": {"' + "k" * 10_240 + '": 1}}',
    "operator": '{"type": {"$gt": ""}}',
    "where": '{"type": "any", "uniqueKey": {"$where": "sleep(5000)"}}',
    "regex": '{"type": "any", "userId": {"$regex": "(a+)+$"}}',
    "array": "[]",
    "scalar": "1",
    "trailing": '{"type": "any"} x',
    "comment": '{"type": "any" /* */}',
    "single quotes": "{'type': 'any'}",
}
TIMES = [
    *["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"],
    *["2038-01-19T03:14:08Z", "2026-06-30T23:59:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+25:00"],
    *["2026-W01-1", "2026-03-29T02:30:00+01:00", "now", "1767225600", "-1", ""],
]
QUERIES = [
    *[
        "limit=0",
        "limit=-1",
        "limit=1000000000",
        "limit=1&limit=2",
        "limit=1e3",
        "cursor=x",
        "cursor=AAAA",
        "sort=id",
    ],
    *["sort=id", "status=odd", "status=failed&status=", "type[$ne]="],
    *["oldestFirst=maybe", "tag=" + "&tag=".join("x" * 100)],
    *[
        "&".join(f"a{n}=1" for n in range(1000)),
        "status=%00",
        "type=%ff",
        "createdSince=0001-01-01T00:00:00%2B14:00",
    ],
]
CRONS = ["* * * * * *", "*/0 * * * *", "0 0 31 2 *", "0 0 1--100000000 * *", "@reboot", "x" * 102_400, ""]
PLACES = ("queue", "uniqueKey", "entityName", "correlationId", "userId", "tags", "metadata", "payload", "type")


def clean(answer: httpx.Response) -> None:
    """Answered, not broken: JSON that no browser takes for anything else, and nothing of it in the headers."""
    assert answer.status_code < 500, (answer.status_code, answer.text[:500])
    if answer.content:
        assert answer.headers["content-type"] in ("application/json", "application/problem+json")
        answer.json()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.content) < 10_000


def body(place: str, text: str) -> bytes:
    """An enqueue with this text there, as JSON that may hold what UTF-8 cannot."""
    value: Any = {"tags": [text], "metadata": {"m": text}, "payload": {"p": text}}.get(place, text)
    asked = {"type": "any", **({"entityId": "1"} if place == "entityName" else {}), place: value}
    return json.dumps(asked).encode()


async def post(client: httpx.AsyncClient, path: str, content: bytes) -> httpx.Response:
    return await client.post(path, content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("name", STRINGS)
async def test_any_text_anywhere_is_taken_exactly_or_refused(ask: Ask, name: str) -> None:
    text = STRINGS[name]
    async with ask("*", ("admin",)) as client:
        for place in PLACES:
            answer = await post(client, "/queue/enqueue", body(place, text))
            clean(answer)
            assert answer.status_code in (201, 409, 422, 400), (place, answer.text[:300])
            if answer.status_code == 201:
                job = (await client.get(answer.headers["location"].removeprefix("/api/v1"))).json()
                found = {"tags": [text], "metadata": {"m": text}, "payload": {"p": text}}.get(place, text)
                assert job[place] == found, place
        clean(
            await post(
                client, "/queue/01a1eef7-f35e-7000-8009-6eb526efee66/signal", json.dumps({"name": text}).encode()
            )
        )


@pytest.mark.parametrize("name", STRINGS)
async def test_any_text_in_a_question_is_answered(ask: Ask, name: str) -> None:
    text = STRINGS[name].encode("utf-8", "surrogatepass")[:8_000]
    quoted = "".join(f"%{byte:02x}" for byte in text)
    async with ask("*", ("admin",)) as client:
        for word in ("type", "queue", "userId", "cursor", "tag", "fingerprint", "uniqueKey", "status", "createdSince"):
            clean(await client.get(f"/queue?{word}={quoted}"))
        for path in ("queue", "schedules", "types", "keys"):
            clean(await client.get(f"/{path}/{quoted}"))
        clean(
            await client.post(
                "/queue/enqueue", json={"type": "any"}, headers=[(b"Idempotency-Key", quoted.encode()[:300])]
            )
        )


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:24])
async def test_any_number_is_taken_exactly_or_refused(ask: Ask, number: str) -> None:
    async with ask("*", ("admin",)) as client:
        for place in ("priority", "delay", "timeout", "maxAttempts"):
            clean(await post(client, "/queue/enqueue", f'{{"type": "any", "{place}": {number}}}'.encode()))
        answer = await post(client, "/queue/enqueue", f'{{"type": "any", "payload": {{"n": {number}}}}}'.encode())
        clean(answer)
        if answer.status_code == 201:
            assert json.loads(answer.text)["payload"]["n"] == json.loads(number)


@pytest.mark.parametrize("name", STRUCTURES)
async def test_any_structure_is_taken_or_refused(ask: Ask, name: str) -> None:
    async with ask("*", ("admin",)) as client:
        clean(await post(client, "/queue/enqueue", STRUCTURES[name].encode()))


@pytest.mark.parametrize("instant", TIMES)
async def test_any_time_is_taken_or_refused(ask: Ask, instant: str) -> None:
    async with ask("*", ("admin",)) as client:
        clean(await post(client, "/queue/enqueue", json.dumps({"type": "any", "runAt": instant}).encode()))
        clean(await client.get("/queue", params={"createdSince": instant}))


@pytest.mark.parametrize("query", QUERIES, ids=lambda text: text[:24])
async def test_any_query_is_answered_or_refused(ask: Ask, query: str) -> None:
    async with ask("*", ("admin",)) as client:
        for path in ("/queue", "/queue/dead-letter", "/audit", "/queue/stats"):
            clean(await client.get(f"{path}?{query}"))


@pytest.mark.parametrize("rule", CRONS, ids=lambda text: text[:24])
async def test_any_cron_rule_is_taken_or_refused(ask: Ask, rule: str) -> None:
    async with ask("*", ("admin",)) as client:
        clean(await client.put("/schedules/any", json={"type": "fail", "cron": rule}))
        clean(await client.put("/schedules/any", json={"type": "fail", "cron": "0 8 * * *", "tz": rule[:60] or "x"}))
