"""What is too deep, too wide or too long is refused before anything is made of it, and soon."""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from tests.web.conftest import Ask
from windlass import Windlass
from windlass.web.envelope import LARGEST_BODY, LARGEST_HEADERS, LONGEST_ADDRESS, MOST_HEADERS
from windlass.web.measuring import DEEPEST, LONGEST_NUMBER, MOST_VALUES, measure
from windlass.web.problems import Refused

JSON = {"content-type": "application/json"}


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (nested(DEEPEST + 1), "70 levels"),
        (b'{"a":' * (DEEPEST + 1), "70 levels"),
        (nested(200_000), "values"),
        (b"[" + b"1," * (MOST_VALUES + 1) + b"1]", "50,000 values"),
        (b"{" + b",".join(b'"%d":1' % n for n in range(MOST_VALUES + 2)) + b"}", "50,000 values"),
        (b'{"a":' + b"9" * (LONGEST_NUMBER + 1) + b"}", "1,000 digits"),
        (b"[-0." + b"0" * LONGEST_NUMBER + b"01]", "1,000 digits"),
    ],
    ids=["arrays", "objects", "brackets", "elements", "members", "digits", "fraction"],
)
def test_more_than_may_be_is_refused(body: bytes, told: str) -> None:
    with pytest.raises(Refused, match=told):
        measure(body)


@pytest.mark.parametrize(
    "body",
    [
        nested(DEEPEST),
        b"[" + b"1," * (MOST_VALUES - 2) + b"1]",
        json.dumps({"text": '[{,\\"' * 100_000}).encode(),
        json.dumps("9" * 5_000).encode(),
        b"9" * LONGEST_NUMBER,
        b"",
        b'"',
        b'"\\',
    ],
    ids=["depth", "elements", "text", "digits in text", "digits", "nothing", "quote", "escape"],
)
def test_as_much_as_may_be_is_not_and_what_a_text_has_in_it_does_not_count(body: bytes) -> None:
    measure(body)


@pytest.mark.parametrize("piece", [b'"', b'\\"', b'"\\', b'"a', b"[]", b"\\", b'"\\"'])
def test_no_body_takes_long_to_measure(piece: bytes) -> None:
    body = (b'"' + piece * LARGEST_BODY)[:LARGEST_BODY]
    began = time.process_time()
    with contextlib.suppress(Refused):
        measure(body)
    assert time.process_time() - began < 2, "a mebibyte takes milliseconds"


async def test_a_body_of_a_number_of_thousands_of_digits_is_invalid(ask: Ask, app: Windlass) -> None:
    body = b'{"type": "mail.send", "payload": {"to": "a", "copies": ' + b"9" * 5_000 + b"}}"
    async with ask() as client:
        answer = await client.post("/queue/enqueue", content=body, headers=JSON)
    assert answer.status_code == 422, answer.text
    assert "digits" in answer.json()["detail"]
    assert (await app.jobs.count()).n == 0


async def test_headers_and_addresses_have_a_size(ask: Ask) -> None:
    many = {f"x-{n}": "1" for n in range(MOST_HEADERS)}
    async with ask() as client:
        answers = [
            await client.get("/queue", headers=many),
            await client.get("/queue", headers={"x-large": "a" * LARGEST_HEADERS}),
            await client.get("/queue", params={"type": "a" * LONGEST_ADDRESS}),
            await client.get("/queue", headers={f"x-{n}": "1" for n in range(MOST_HEADERS // 2)}),
        ]
    assert [answer.status_code for answer in answers] == [431, 431, 414, 200]
    assert [answer.json()["status"] for answer in answers[:3]] == [431, 431, 414]
