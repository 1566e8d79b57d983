"""What goes over the wire comes back digit for digit, and what cannot is refused and told where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.conftest import Ask
from windlass import Windlass

JSON = {"content-type": "application/json"}
LARGE = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, -1]


def enqueue(payload: str, more: str = "") -> bytes:
    return f'{{"type": "echo", "payload": {{"value": {payload}}}{more}}}'.encode()


@pytest.fixture(autouse=True)
def echo(app: Windlass) -> None:
    @app.job
    async def echo(value: Any) -> Any:
        return value


async def test_whole_numbers_keep_all_their_digits(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        made = await client.post(
            "/queue/enqueue", content=enqueue(json.dumps(LARGE), ', "metadata": {"n": 9007199254740993}'), headers=JSON
        )
        await app.worker(drain=True).run()
        done = await client.get(f"/queue/{made.json()['id']}")
        listed = await client.get("/queue")
    for answer in (made, done, listed):
        for number in LARGE:
            assert str(number) in answer.text
        assert "9007199254740993" in answer.text
        assert "e+" not in answer.text
    assert done.json()["result"] == LARGE
    assert [type(one) for one in done.json()["result"]] == [int] * len(LARGE)


async def test_text_and_fractions_come_back_as_they_were(app: Windlass, ask: Ask) -> None:
    values: list[Any] = ["ä€𝄞\u2028", 0.1, 1.0, 1e300, -0.0, True, None, {"": [], "b": {}, "a": '\t"\\'}]
    async with ask() as client:
        made = (await client.post("/queue/enqueue", json={"type": "echo", "payload": {"value": values}})).json()
        await app.worker(drain=True).run()
        done = (await client.get(f"/queue/{made['id']}")).json()
    assert json.dumps(done["result"], sort_keys=True) == json.dumps(values, sort_keys=True)
    assert [type(one) for one in done["result"]] == [type(one) for one in values]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (enqueue(str(2**63)), 422, "64 bits"),
        (enqueue(str(-(2**63) - 1)), 422, "64 bits"),
        (enqueue("NaN"), 422, "NaN"),
        (enqueue("-Infinity"), 422, "-Infinity"),
        (enqueue("1e400"), 422, "value"),
        (enqueue('"\\ud800"'), 422, "the body: payload.value"),
        (enqueue('"a\\u0000b"'), 422, "the body: payload.value"),
        (enqueue('{"\\udfff": 1}'), 422, "the body: payload.value"),
        (enqueue("1", ', "entityName": "a\\u0000"'), 422, "the body: entityName"),
        (enqueue("1", ', "userId": "\\ud83d"'), 422, "the body: userId"),
        (enqueue('{"a": 1, "b": 2, "a": 3}'), 422, "'a' is given twice"),
        (enqueue("1", ', "type": "other"'), 422, "'type' is given twice"),
        (enqueue('"\xff"').decode().encode("latin-1"), 400, "UTF-8"),
        (b"\xef\xbb\xbf" + enqueue("1"), 400, "JSON"),
        (enqueue("1" * 5_000), 422, "digits"),
        (enqueue("[" * 90_000 + "]" * 90_000), 422, "values"),
        (enqueue("[" * 70 + "]" * 70), 422, "70 levels"),
        (enqueue("[" * 66 + "]" * 66), 422, "64 levels"),
        (enqueue('"a\nb"'), 400, "JSON"),
        (enqueue("1") + enqueue("1"), 400, "JSON"),
        (enqueue("01"), 400, "JSON"),
    ],
    ids=lambda given: str(given)[:60],
)
async def test_what_would_not_come_back_is_refused(
    app: Windlass, ask: Ask, body: bytes, status: int, said: str
) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["detail"]
    assert (await app.jobs.count()).n == 0


async def test_a_character_of_two_halves_is_one(app: Windlass, ask: Ask) -> None:
    async with ask() as client:
        answer = await client.post("/queue/enqueue", content=enqueue('"\\ud834\\udd1e \\u00e4"'), headers=JSON)
    assert answer.json()["payload"] == {"value": "𝄞 ä"}


async def test_who_may_not_is_told_that_first(ask: Ask) -> None:
    async with ask(None) as nobody:
        answer = await nobody.post("/queue/enqueue", content=b"{", headers=JSON)
    assert answer.status_code == 401


async def test_instants_have_milliseconds_and_their_zone(ask: Ask) -> None:
    async with ask() as client:
        asked = {"type": "echo", "payload": {"value": 1}, "runAt": "2199-12-31T23:59:59.123999+05:30"}
        job = (await client.post("/queue/enqueue", json=asked)).json()
    assert job["runAt"] == "2199-12-31T18:29:59.123Z"
    assert all(len(job[name]) == 24 for name in ("createdAt", "updatedAt", "runAt"))
