"""What all pages stand in, in a browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.until import until
from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass

pytestmark = IN_BROWSER
PAGES = ("/", "/queues")
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}\u202egnp"


async def test_a_key_lets_in_and_the_page_asked_for_is_shown(site: Site) -> None:
    key = await site.app.keys.create("a test", owner="*", scopes=["read"])
    look = await site.look(None)
    page = await look.go("/queues")
    assert "/dashboard/sign-in" in page.url
    assert await look.axe() == []
    await page.get_by_label("Key").fill("wl_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("unknown")
    await page.get_by_label("Key").fill(key.secret)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{site.url}/queues")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page).to_have_url(f"{site.url}/sign-in")


@pytest.mark.parametrize("path", PAGES)
async def test_pages_are_for_everybody(site: Site, path: str) -> None:
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    look = await site.look()
    page = await look.go(path)
    assert await look.axe() == []
    assert await page.locator("h1").count() == 1
    for width in (320, 375, 768, 1440):
        await page.set_viewport_size({"width": width, "height": 700})
        assert await look.overflow() <= 0, f"{path} is wider than {width}"
        await look.shot(f"{path.strip('/') or 'overview'}-{width}")


async def test_names_are_text_and_nothing_else(site: Site) -> None:
    await site.app.enqueue("mail.send", {"to": "ann"}, queue=HOSTILE.replace("\u202e", ""))
    look = await site.look()
    page = await look.go("/queues")
    assert "<img src=x onerror=alert(1)>" in await look.text()
    assert await page.locator("main img").count() == 0
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator("#ask-title")).to_contain_text("<img src=x")
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await expect(page.locator(".badge")).to_have_text("paused")
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator(".badge")).to_have_count(0)
    assert (await site.app.queues.list())[0].paused_at is None


async def test_what_is_asked_before_can_be_left(site: Site) -> None:
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    page = await (await site.look("operator")).go("/queues")
    pause = page.get_by_role("button", name="Pause", exact=True)
    await pause.click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await expect(pause).to_be_focused()
    assert (await site.app.queues.list())[0].paused_at is None


async def test_without_a_script_all_can_be_read(site: Site) -> None:
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    look = await site.look(script=False)
    page = await look.go("/")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Queues").click()
    assert "mail" in await look.text()
    assert await page.locator(".js-only:visible").count() == 0
    await page.get_by_role("button", name="Sign out").click()
    assert "/sign-in" in page.url


@pytest.mark.parametrize(("role", "queues", "buttons"), [("reader", 1, 0), ("operator", 1, 1), ("user", 0, 0)])
async def test_each_sees_what_is_theirs(site: Site, role: str, queues: int, buttons: int) -> None:
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail", user="ben")
    look = await site.look(role)
    page = await look.go("/")
    assert await page.locator(".rail a", has_text="Queues").count() == queues
    if queues:
        assert await page.locator(".tile-figure").first.inner_text() == "1"
    else:
        await expect(page.get_by_role("heading", name="You have no jobs yet")).to_be_visible()
    answer = await page.goto(f"{site.url}/queues")
    assert answer is not None
    assert answer.status == (200 if queues else 403)
    assert await page.locator("[data-act]").count() == buttons
    # What is not shown is refused, too.
    told = await page.evaluate(
        "path => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}}).then(a => a.status)",
        f"{site.prefix}/api/v1/queues/mail/pause",
    )
    assert told == (204 if buttons else 403)


async def test_what_happens_is_seen_without_loading_anew(site: Site) -> None:
    look = await site.look()
    page = await look.go("/queues")
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    row = page.locator("tr", has_text="mail")
    await expect(row.get_by_role("cell").first).to_have_text("1")
    button = row.get_by_role("button", name="Pause")
    await button.focus()
    await site.app.enqueue("mail.send", {"to": "ben"}, queue="mail")
    await expect(row.get_by_role("cell").first).to_have_text("2")
    await expect(button).to_be_focused()  # what has not changed was left as it was
    await page.keyboard.press(".")
    await expect(page.locator("#live")).to_have_attribute("data-state", "paused")
    await until(lambda: site.web.state.live.streams == 0, "the stream to end")
    await site.app.enqueue("mail.send", {"to": "cy"}, queue="mail")
    await page.keyboard.press(".")
    await expect(row.get_by_role("cell").first).to_have_text("3")


HIDE = """
hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""


async def test_a_hidden_tab_asks_nothing(site: Site) -> None:
    look = await site.look()
    await look.page.clock.install()
    page = await look.go("/queues")
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    await page.evaluate(HIDE, arg=True)
    await until(lambda: site.web.state.live.streams == 0, "the stream to end")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    await page.clock.run_for(120_000)
    assert asked == []
    assert await page.locator("tr", has_text="mail").count() == 0
    await page.evaluate(HIDE, arg=False)
    await expect(page.locator("tr", has_text="mail").get_by_role("cell").first).to_have_text("1")
    await until(lambda: site.web.state.live.streams == 1, "the stream to begin again")


async def test_where_streams_fail_the_page_asks_now_and_then(site: Site) -> None:
    look = await site.look()
    await look.page.clock.install()
    await look.page.route("**/api/v1/live**", lambda route: route.abort())
    page = await look.go("/queues")
    live = page.locator("#live")

    async def polls() -> bool:
        await page.clock.run_for(2_000)
        return await live.get_attribute("data-state") == "poll"

    await until(polls, "it to give the stream up")
    await expect(live).to_contain_text("Polling")
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    row = page.locator("tr", has_text="mail")

    async def shown() -> bool:
        await page.clock.run_for(2_000)
        return await row.count() == 1

    await until(shown, "the job to be seen without a stream")


async def test_who_may_no_longer_is_told_so(site: Site) -> None:
    look = await site.look()
    page = await look.go("/queues")
    await page.context.clear_cookies()
    await expect(page.get_by_role("alert")).to_contain_text("session is over", timeout=15_000)


async def test_keys_lead_everywhere(site: Site) -> None:
    for queue in ("a", "b"):
        await site.app.enqueue("mail.send", {"to": "ann"}, queue=queue)
    page = await (await site.look()).go("/")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Pause live updates")
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.keyboard.press("q")
    await expect(page).to_have_url(f"{site.url}/queues")
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")  # its scripts respond to keys
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator("[data-here] th")).to_have_text("b")
    await page.keyboard.press("k")
    await expect(page.locator("[data-here] th")).to_have_text("a")
    await page.keyboard.press("t")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.get_by_role("button", name="UTC").click()
    assert await page.locator("body").get_attribute("data-time") == "utc"


async def test_it_works_below_any_prefix(tmp_path: Path, browser: Browser) -> None:
    app = Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF")
    async with site_of(app, browser, prefix="/tools/jobs") as site:
        await app.enqueue("mail.send", {"to": "ann"}, queue="mail")
        look = await site.look(None)
        page = await look.go("/queues")
        key = await app.keys.create("a test", owner="*", scopes=["admin"])
        await page.get_by_label("Key").fill(key.secret)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page).to_have_url(f"{site.origin}/tools/jobs/dashboard/queues")
        await expect(page.locator("#live")).to_have_attribute("data-state", "live")
        await page.get_by_role("button", name="Pause", exact=True).click()
        await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        await expect(page.locator(".badge")).to_have_text("paused")
        links = await page.locator("a[href]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        assert [one for one in links if not re.match(r"/tools/jobs/dashboard/|#main", one)] == []


async def test_many_viewers_are_one_question(site: Site) -> None:
    import httpx

    key = await site.app.keys.create("a test", owner="*", scopes=["read"])
    headers = {"Authorization": f"Bearer {key.secret}", "X-Windlass-Regions": "1"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers) as client:
        answers = await asyncio.gather(*(client.get("/queues") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.headers["etag"] for answer in answers}) == 1
        same = await client.get("/queues", headers={"If-None-Match": answers[0].headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
