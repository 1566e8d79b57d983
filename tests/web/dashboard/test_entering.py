"""Coming in and going out, as a browser does it, asked without one."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import httpx
import pytest
from fastapi import FastAPI

from windlass import KeyKind, Windlass
from windlass.web.access.keys import COOKIE
from windlass.web.dashboard.dashboard import Dashboard

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def web(app: Windlass) -> FastAPI:
    return app.asgi()


@pytest.fixture
async def browser(web: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    transport = httpx.ASGITransport(web, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass") as client:
        yield client


async def sign_in(browser: httpx.AsyncClient, secret: str, to: str = "") -> httpx.Response:
    return await browser.post(f"/dashboard/sign-in{to}", data={"key": secret}, headers=SAME)


async def test_who_is_nobody_is_led_to_the_sign_in_and_back(app: Windlass, browser: httpx.AsyncClient) -> None:
    for path in ("/", "/dashboard"):
        assert (await browser.get(path)).headers["location"] == "/dashboard/"
    led = await browser.get("/dashboard/queues?sort=name")
    assert (led.status_code, led.headers["location"]) == (303, "/dashboard/sign-in?next=%2Fqueues%3Fsort%3Dname")
    page = (await browser.get(led.headers["location"])).text
    action = re.findall(r'action="([^"]+)"', page)[0]
    key = await app.keys.create("a test", owner="*", scopes=["read"])
    came = await browser.post(action, data={"key": key.secret}, headers=SAME)
    assert (came.status_code, came.headers["location"]) == (303, "/dashboard/queues?sort=name")
    cookie = came.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie  # it came by http
    assert key.secret not in cookie
    assert (await browser.get("/dashboard/queues")).status_code == 200


async def test_what_is_asked_for_next_leads_nowhere_else(app: Windlass, browser: httpx.AsyncClient) -> None:
    key = await app.keys.create("a test", owner="*", scopes=["read"])
    for evil in ("https://evil.example", "//evil.example", "/\\evil.example", "/%0d%0aset-cookie:a=b", "javascript:x"):
        came = await sign_in(browser, key.secret, f"?next={evil}")
        assert came.headers["location"].startswith("/dashboard/")


async def test_a_key_that_is_not_good_is_refused_and_guessing_costs(app: Windlass, web: FastAPI) -> None:
    transport = httpx.ASGITransport(web, raise_app_exceptions=False, client=("192.0.2.7", 1))
    session = await app.keys.create("no key", owner="*", scopes=["read"], kind="session")
    gone = await app.keys.create("gone", owner="*", scopes=["read"])
    await app.keys.revoke(gone.key.id)
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass") as browser:
        for secret in ("", "nonsense", session.secret, gone.secret):
            answer = await sign_in(browser, secret)
            assert (answer.status_code, COOKIE in answer.headers.get("set-cookie", "")) == (401, False)
        answers = [await sign_in(browser, "nonsense") for _ in range(9)]
        assert (answers[-1].status_code, "retry-after" in answers[-1].headers) == (429, True)
        assert "text/html" in answers[-1].headers["content-type"]


async def test_a_session_may_what_its_key_may_and_ends_with_it(app: Windlass, browser: httpx.AsyncClient) -> None:
    key = await app.keys.create(
        "a test", owner="ann", scopes=["read"], types=["mail.*"], attributes={"team": 1}, lasts=60
    )
    await sign_in(browser, key.secret)
    [session] = [one for one in await app.keys.list() if one.kind is KeyKind.SESSION]
    assert (session.owner, session.scopes, session.grants) == ("ann", key.key.scopes, key.key.grants)
    assert session.expires_at is not None
    assert key.key.expires_at is not None
    assert session.expires_at <= key.key.expires_at
    await app.keys.revoke(key.key.id)
    assert await app.keys.find(browser.cookies[COOKIE]) is None


async def test_another_session_takes_the_place_of_the_first_and_leaving_ends_it(
    app: Windlass, browser: httpx.AsyncClient
) -> None:
    key = await app.keys.create("a test", owner="*", scopes=["read"])
    await sign_in(browser, key.secret)
    first = browser.cookies[COOKIE]
    await sign_in(browser, key.secret)
    second = browser.cookies[COOKIE]
    assert first != second
    assert await app.keys.find(first) is None
    left = await browser.post("/dashboard/sign-out", headers=SAME)
    assert (left.status_code, left.headers["location"]) == (303, "/dashboard/sign-in")
    assert COOKIE not in browser.cookies
    assert await app.keys.find(second) is None
    actions = [entry.action for entry in (await app.audit.list()).entries]
    assert actions == ["session.end", "session.begin", "session.begin"]


async def test_a_link_lets_in_once(app: Windlass, web: FastAPI, browser: httpx.AsyncClient) -> None:
    dashboard: Dashboard = web.state.dashboard
    link = dashboard.links.make()
    came = await browser.get(link)
    assert (came.status_code, came.headers["location"]) == (303, "/dashboard/")
    assert came.headers["referrer-policy"] == "no-referrer"
    assert (await browser.get("/dashboard/")).status_code == 200
    browser.cookies.clear()
    for old in (link, link[:-1], "/dashboard/open"):
        again = await browser.get(old)
        assert (again.status_code, COOKIE in browser.cookies) == (401, False)


async def test_a_link_is_good_for_a_while_only(app: Windlass) -> None:
    from windlass.web.dashboard.entering import Links

    late = Links(lasts=0)
    assert not late.use(late.make().partition("token=")[2])


@pytest.mark.parametrize("site", ["cross-site", "same-site", None])
async def test_other_sites_pages_neither_sign_in_nor_out(
    app: Windlass, browser: httpx.AsyncClient, site: str | None
) -> None:
    key = await app.keys.create("a test", owner="*", scopes=["read"])
    forged = {"Origin": "https://evil.example"} | ({} if site is None else {"Sec-Fetch-Site": site})
    answer = await browser.post("/dashboard/sign-in", data={"key": key.secret}, headers=forged)
    assert (answer.status_code, COOKIE in browser.cookies) == (403, False)
    await sign_in(browser, key.secret)
    assert (await browser.post("/dashboard/sign-out", headers=forged)).status_code == 403
    assert (await browser.get("/dashboard/")).status_code == 200


async def test_it_can_be_left_away(app: Windlass) -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app.asgi(dashboard=False)), base_url="http://windlass"
    ) as client:
        assert [(await client.get(path)).status_code for path in ("/", "/dashboard/", "/dashboard/sign-in")] == [
            404
        ] * 3


async def test_where_the_sign_in_is_somebody_elses_there_is_none(app: Windlass) -> None:
    async def nobody(request: object, app: object) -> None:
        return None

    web = app.asgi(authenticate=nobody)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://windlass") as client:
        assert (await client.get("/dashboard/")).status_code == 401
        assert (await client.get("/dashboard/sign-in")).status_code == 401
