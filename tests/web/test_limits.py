"""Nobody asks more than may be asked, guessing is slow, and no owner fills the queues alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from windlass import Windlass
from windlass.settings import load
from windlass.web.buckets import FREE, LONGEST, Buckets, Guesses
from windlass.web.limits import Limits

MAIL = {"type": "mail.send", "payload": {"to": "ada"}}


@asynccontextmanager
async def client_of(
    app: Windlass, limits: Limits, *, owner: str = "ann", address: str = "203.0.113.7", **key: Any
) -> AsyncGenerator[httpx.AsyncClient, None]:
    made = await app.keys.create("a test", owner=owner, scopes=("enqueue", "read"), **key)
    async with another(app.asgi(limits=limits), address, made.secret) as client:
        yield client


def another(web: Any, address: str, secret: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(web, raise_app_exceptions=False, client=(address, 1))
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers)


def test_a_bucket_fills_again_at_its_rate_and_holds_two_seconds_worth() -> None:
    buckets = Buckets(5)
    assert [buckets.take("a", 0.0) for _ in range(10)] == [0.0] * 10
    assert buckets.take("a", 0.0) == pytest.approx(0.2)
    assert buckets.take("b", 0.0) == 0.0, "another's"
    assert buckets.take("a", 0.2) == 0.0
    assert buckets.take("a", 0.3) == pytest.approx(0.1)
    assert [bool(buckets.take("a", 1_000.0)) for _ in range(11)] == [*[False] * 10, True]
    assert not any(Buckets(0).take("a", 0.0) for _ in range(100))


def test_the_more_one_guesses_the_longer_one_waits_and_it_is_forgotten_with_time() -> None:
    guesses = Guesses()
    for _ in range(FREE):
        guesses.note("a", 0.0)
        assert guesses.wait("a", 0.0) == 0.0
    waits: list[float] = []
    for _ in range(9):
        guesses.note("a", 0.0)
        waits.append(guesses.wait("a", 0.0))
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST, LONGEST, LONGEST]
    assert (guesses.wait("b", 0.0), guesses.wait("a", LONGEST)) == (0.0, 0.0)
    guesses.note("a", 3_600.0)
    assert guesses.wait("a", 3_600.0) == 0.0


def test_however_many_come_little_is_remembered() -> None:
    buckets, guesses = Buckets(1, most=100), Guesses(most=100)
    for n in range(1_000):
        buckets.take(str(n), 0.0)
        guesses.note(str(n), 0.0)
    assert (len(buckets), len(guesses)) == (100, 100)


async def test_a_key_that_asks_too_often_is_told_when_to_come_again(app: Windlass) -> None:
    async with client_of(app, Limits(rate=0.1)) as client:
        first, second = await client.get("/queue"), await client.get("/queue")
    assert (first.status_code, second.status_code) == (200, 429)
    assert second.json()["type"] == "urn:windlass:problem:too-many-requests"
    assert 1 <= int(second.headers["retry-after"]) <= 10


async def test_an_address_has_a_bucket_whatever_keys_it_shows(app: Windlass) -> None:
    web = app.asgi(limits=Limits(address_rate=0.1))
    secrets = [(await app.keys.create("a test", owner="ann", scopes=("read",))).secret for _ in range(2)]
    came = [
        ("203.0.113.7", 0, 200),
        ("203.0.113.7", 1, 429),
        ("203.0.113.8", 0, 200),
        ("2001:db8::1", 0, 200),
        ("2001:db8::2", 0, 429),  # of the same network
        ("2001:db8:1::1", 0, 200),
        *[("127.0.0.1", 0, 200)] * 3,  # a proxy on this machine speaks for many
    ]
    for address, key, status in came:
        async with another(web, address, secrets[key]) as client:
            assert (await client.get("/queue")).status_code == status, address


async def test_the_address_is_what_a_trusted_proxy_says(app: Windlass) -> None:
    web = app.asgi(limits=Limits(address_rate=0.1), proxies=["10.0.0.0/8"])
    secret = (await app.keys.create("a test", owner="ann", scopes=("read",))).secret
    async with another(web, "10.0.0.1", secret) as client:
        said = ["203.0.113.1", "203.0.113.2", "198.51.100.9, 203.0.113.1"]
        answers = [await client.get("/queue", headers={"x-forwarded-for": one}) for one in said]
    assert [answer.status_code for answer in answers] == [200, 200, 429]


async def test_guessing_keys_is_slowed_down_for_the_address_alone(app: Windlass) -> None:
    web = app.asgi()
    good = (await app.keys.create("a test", owner="ann", scopes=("read",))).secret
    async with another(web, "203.0.113.7", "wl_no_such_key") as guesser:
        tried = [(await guesser.get("/queue")).status_code for _ in range(FREE + 2)]
        told = await guesser.get("/queue")
        nothing = await guesser.get("/healthz", headers={"Authorization": ""})
    assert tried == [*[401] * (FREE + 1), 429]
    assert int(told.headers["retry-after"]) >= 1
    assert nothing.status_code != 429
    async with another(web, "203.0.113.8", good) as other:
        assert (await other.get("/queue")).status_code == 200


async def test_no_more_jobs_of_an_owner_wait_than_the_quota(app: Windlass) -> None:
    async with client_of(app, Limits(quota=3)) as client:
        made = [await client.post("/queue/enqueue", json=MAIL) for _ in range(2)]
        many = await client.post("/queue/enqueue/many", json={"jobs": [MAIL] * 2})
        third, fourth = [await client.post("/queue/enqueue", json={**MAIL, "delay": 60}) for _ in range(2)]
        assert [one.status_code for one in (*made, many, third, fourth)] == [201, 201, 429, 201, 429]
        problem = fourth.json()
        assert (problem["type"], problem["quota"], problem["waiting"]) == (
            *("urn:windlass:problem:quota-exceeded", "3", "3"),
        )
        assert "retry-after" in fourth.headers
        assert (await app.jobs.count()).n == 3
        await app.jobs.cancel(made[0].json()["id"], actor="ann")
        assert (await client.post("/queue/enqueue", json=MAIL)).status_code == 201, "what has ended does not wait"
    async with client_of(app, Limits(quota=3), owner="bob") as other:
        assert (await other.post("/queue/enqueue", json=MAIL)).status_code == 201


async def test_a_key_may_have_a_quota_of_its_own(app: Windlass) -> None:
    async with client_of(app, Limits(quota=3), attributes={"quota": 1}) as client:
        answers = [(await client.post("/queue/enqueue", json=MAIL)).status_code for _ in range(2)]
    assert answers == [201, 429]
    async with client_of(app, Limits(quota=1), owner="bob", attributes={"quota": 0}) as client:
        answers = [(await client.post("/queue/enqueue", json=MAIL)).status_code for _ in range(2)]
    assert answers == [201, 201]


def test_limits_can_be_set(app: Windlass) -> None:
    names = {"WINDLASS_HTTP_RATE": "0", "WINDLASS_HTTP_ADDRESS_RATE": "7", "WINDLASS_HTTP_QUOTA": "9"}
    assert Limits.of(load(names)) == Limits(rate=0, address_rate=7, quota=9)
    assert Limits.of(load({})) == Limits()
