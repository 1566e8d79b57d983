"""The gate: other hosts' names, and other sites' pages, do not get through."""

from __future__ import annotations

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.web.conftest import Ask
from windlass import SettingsError, Windlass
from windlass.web.access.gate import Gate
from windlass.web.access.hosts import ADDRESSES, LOOPBACK, Hosts
from windlass.web.access.origins import Origins

HERE = Hosts.of([LOOPBACK])


OWN = (
    *("localhost", "LOCALHOST.", "localhost:8000", "127.0.0.1", "127.0.0.1:1", "127.8.9.1:80"),
    *("[::1]", "[::1]:8000", "[0:0:0:0:0:0:0:1]:65535"),
)
OTHERS = (
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "10.0.0.1", "::1"),
    *("[::2]", "[127.0.0.1]", "127.1", "2130706433", "localhost:99999", "localhost:", "localhost:8a", "localhost:-1"),
    *("", None, " localhost", "localhost\x00", "localhost,evil.example", "localhost/", "lóc", "localhost:٨", "[::1"),
)


@pytest.mark.parametrize("host", OWN)
def test_this_machines_own_names(host: str) -> None:
    assert HERE.include(host)


@pytest.mark.parametrize("host", OTHERS)
def test_what_is_not_this_machine(host: str | None) -> None:
    assert not HERE.include(host)


def test_names_that_are_set() -> None:
    hosts = Hosts.of(["jobs.example.com", "*.shop.example", "[2001:db8::1]:8000"])
    for good in ("jobs.example.com", "JOBS.example.com.:8443", "a.shop.example", "a.b.shop.example"):
        assert hosts.include(good), good
    for bad in ("example.com", "shop.example", "ashop.example", "x.jobs.example.com", "[2001:db8::1]", "127.0.0.1"):
        assert not hosts.include(bad), bad
    assert hosts.include("[2001:DB8:0::1]:8000")
    assert Hosts.of([ADDRESSES]).include("10.0.0.7:8000")
    assert not Hosts.of([ADDRESSES]).include("evil.example")
    assert Hosts.of(["*"]).include("anything at all")
    for wrong in ("http://x", "x:y", "a b", "*.*.x", ""):
        with pytest.raises(SettingsError, match="expected host names"):
            Hosts.of([wrong])


async def test_another_hosts_name_is_turned_away_before_anybody_is_asked(app: Windlass) -> None:
    web = app.asgi(hosts=["jobs.example.com"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://evil.example") as client:
        refused = await client.delete("/api/v1/queue/x")
        assert (refused.status_code, refused.json()["type"]) == (421, "urn:windlass:problem:other-host")
        assert refused.headers["x-request-id"] == refused.json()["requestId"]
        assert (await client.get("/healthz", headers={"Host": "jobs.example.com:80"})).status_code == 200


FORGED: list[dict[str, str]] = [
    {"Cookie": "a=b"},
    {"Cookie": "a=b", "Sec-Fetch-Site": "cross-site"},
    {"Cookie": "a=b", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},  # credentials may also be a proxy's, or a certificate's
    {"Cookie": "a=b", "Sec-Fetch-Site": "cross-site", "Origin": "http://windlass"},
    {"Cookie": "a=b", "Origin": "http://evil.example"},
    {"Cookie": "a=b", "Origin": "http://windlass.evil.example"},
    {"Cookie": "a=b", "Origin": "http://windlass:81"},
    {"Cookie": "a=b", "Origin": "null"},
    {"Cookie": "a=b", "Origin": "file://"},
    {"Cookie": "a=b", "Origin": "http://[::1"},
    {"Origin": "http://evil.example", "Authorization": "Basic YTpi"},  # which browsers send by themselves, too
]
GENUINE: list[dict[str, str]] = [
    {},  # a program
    {"Cookie": "a=b", "Sec-Fetch-Site": "same-origin"},
    {"Cookie": "a=b", "Sec-Fetch-Site": "none"},
    {"Cookie": "a=b", "Origin": "http://windlass"},
    {"Cookie": "a=b", "Origin": "http://windlass:80"},
    {"Cookie": "a=b", "Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site"},
    {"Cookie": "a=b", "Origin": "http://evil.example", "Authorization": "Bearer wl_x_y"},
]


async def test_another_sites_page_changes_nothing(app: Windlass) -> None:
    web = app.asgi(origins=["https://friend.example"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://windlass") as client:
        for headers in FORGED:
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                refused = await client.request(method, "/api/v1/queue/x", headers=headers)
                assert refused.status_code == 403, headers
                assert refused.json()["type"] == "urn:windlass:problem:other-site"
            assert (await client.get("/api/v1/queue", headers=headers)).status_code == 401  # nothing is changed by it


async def test_own_pages_friends_and_programs_may(app: Windlass) -> None:
    web = app.asgi(origins=["https://friend.example"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://windlass") as client:
        for headers in GENUINE:
            assert (await client.delete("/api/v1/queue/x", headers=headers)).status_code == 401, headers


async def test_an_upgrade_goes_through_the_same_gate() -> None:
    async def opened(headers: dict[str, str]) -> bool:
        through: list[Message] = []

        async def site(_scope: Scope, _receive: Receive, send: Send) -> None:
            await send({"type": "websocket.accept"})

        async def send(message: Message) -> None:
            through.append(message)

        async def receive() -> Message:
            return {"type": "websocket.connect"}

        pairs = [(name.lower().encode(), value.encode()) for name, value in ({"Host": "windlass"} | headers).items()]
        await Gate(site, Hosts.of(["windlass"]))({"type": "websocket", "headers": pairs}, receive, send)
        [only] = through
        return bool(only["type"] == "websocket.accept")

    for headers in (*FORGED, {"Host": "evil.example"}):
        assert not await opened(headers), headers
    assert await opened({"Cookie": "a=b", "Origin": "http://windlass"})
    assert await opened({"Authorization": "Bearer wl_x_y"})


async def test_other_sites_read_nothing_unless_they_are_named(app: Windlass, ask: Ask) -> None:
    page = {"Origin": "https://shop.example"}
    asked = {**page, "Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "authorization"}

    async def told(*origins: str) -> tuple[httpx.Headers, httpx.Headers]:
        transport = httpx.ASGITransport(app.asgi(origins=origins))
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1") as client:
            return (await client.options("/queue/x", headers=asked)).headers, (
                await client.get("/queue", headers=page)
            ).headers

    for headers in (*await told(), *await told("https://other.example")):
        assert "access-control-allow-origin" not in headers
    before, answer = await told("https://shop.example")
    assert before["access-control-allow-origin"] == answer["access-control-allow-origin"] == "https://shop.example"
    assert before["access-control-allow-credentials"] == "true"
    assert "authorization" in before["access-control-allow-headers"].lower()
    for headers in await told("*", "https://shop.example"):
        assert headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize("text", ["shop.example", "https://shop.example/", "https://a@shop.example", "null", "ftp://x"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected origins"):
        Origins.of([text])
