from __future__ import annotations

import time

import pytest

from windlass.core.redaction import is_called_secret, redact, redact_url, why_not, without


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("cannot reach postgresql://ann:canary@db:5432/shop?x=1", "cannot reach postgresql://***@db:5432/shop?x=1"),
        ("mongodb://ann:ca/na#ry@h1:1,h2:2/db", "mongodb://***@h1:1,h2:2/db"),
        ("redis://:ca@nary@localhost/0", "redis://***@localhost/0"),
        ("amqp://canary@localhost", "amqp://***@localhost"),
        ("GET https://host:8080/x?mail=a@b.c", "GET https://host:8080/x?mail=a@b.c"),
        ("GET /x?page=2&token=canary&n=1", "GET /x?page=2&token=***&n=1"),
        ("host=db user=ann password=canary dbname=shop", "host=db user=ann password=*** dbname=shop"),
        ("password='ca na\\'ry' sslmode=on", "password=*** sslmode=on"),
        ('{"api_key": "ca\\"nary", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("{'X-Api-Key': b'canary'}", "{'X-Api-Key': ***}"),
        ("SMTP_PASSWORD: canary\nnext", "SMTP_PASSWORD: ***\nnext"),
        ("Authorization: Bearer canary, gone", "Authorization: ***, gone"),
        ("{'authorization': 'Basic Y2FuYXJ5', 'n': 1}", "{'authorization': ***, 'n': 1}"),
        ("sent with Bearer canary-canary", "sent with Bearer ***"),
        ("Set-Cookie: sid=canary; Path=/", "Set-Cookie: ***; Path=/"),
        ("SENTRY_DSN=canary", "SENTRY_DSN=***"),
        ("KeyError: 'password'", "KeyError: 'password'"),
        ("unexpected token: '}'", "unexpected token: '}'"),
        ("password = {...}", "password = {...}"),
        ("no such file", "no such file"),
        ("nothing", "nothing"),
    ],
)
def test_what_looks_like_a_secret_is_redacted_and_nothing_else(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "token" * 20_000,
        "token: '" * 12_000,
        "a://b:" * 16_000,
        'password="' + "\\" * 100_000,
        " " * 100_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    redact(text + ":")
    assert time.perf_counter() - began < 2


def test_an_address_is_shown_without_user_and_password() -> None:
    assert redact_url("postgresql://ann:canary@db/shop") == "postgresql://db/shop"
    assert redact_url("ann:canary@db") == "db"


def test_why_an_address_is_refused_does_not_quote_its_password() -> None:
    told = why_not("postgresql://ann:canary/x@db/shop", ValueError("invalid literal for int() with base 10: 'canary'"))
    assert "%2F" in told
    assert "canary" not in told
    assert why_not("redis://:canary@db:x", ValueError("port 'x' beside canary")) == "port 'x' beside ***"


def test_known_secrets_are_taken_out_in_every_form_they_are_written_in() -> None:
    secret = "ca\"na'ry\nü"
    text = f"{secret} {secret!r} {[secret]} {secret.encode('unicode_escape').decode()}"
    assert "ry" not in without(text, [secret])


def test_the_longest_is_taken_out_first_and_the_shortest_are_left() -> None:
    assert without("canary-one canary 12", ["canary", "canary-one", "12"]) == "*** *** 12"


def test_what_pydantic_quotes_is_left_out_also_where_it_is_cut() -> None:
    text = "1 validation error [type=int, input_value='cana...nary', input_type=str]"
    assert without(text, ["canary"]) == "1 validation error [type=int, input_value=***, input_type=str]"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("password", True), ("api_key", True), ("SMTP_PASSWORD", True), ("monkey", False), ("customer", False)],
)
def test_a_name_tells_of_a_secret(name: str, secret: bool) -> None:
    assert is_called_secret(name) is secret
