"""The list of jobs, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.until import until
from tests.web.dashboard.browsing import IN_BROWSER, Look, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass

pytestmark = IN_BROWSER
EVIL = "<img src=x onerror=alert(1)>'\"&{{7*7}}"
MANY = 120
Seen: TypeAlias = tuple[Site, Look, Page]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncGenerator[Site]:
    """A site with jobs, shared by all tests here: each looks at its own queue, or changes nothing."""
    path = tmp_path_factory.mktemp("jobs") / "shop.db"
    async with site_of(Windlass(f"sqlite:///{path}?synchronous=OFF"), browser) as site:
        app = site.app
        await _enqueue_hostile(app)  # first: names that are suggested are read at most every 30 seconds
        for n in range(MANY):
            user = "ann" if n % 2 else "ben"
            await app.enqueue("mail.send", {"to": f"x{n}"}, queue="many", user=user, tags=("odd",) * (n % 2))
        yield site


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def alone(shop: Site) -> AsyncGenerator[None]:
    """No page is left open for the next test, and nothing has gone wrong in any."""
    yield
    wrong = [one for look in shop.looks for one in look.wrong]
    for look in shop.looks:
        await look.page.context.close()
    shop.looks.clear()
    assert wrong == []


async def seen(site: Site, path: str, role: str = "admin", **how: Any) -> Seen:
    look = await site.look(role, **how)
    return site, look, await look.go(path)


async def names(page: Page) -> list[str]:
    found: list[str] = await page.locator("[data-row]").evaluate_all("all => all.map(one => one.dataset.id)")
    return found


async def test_it_is_for_everybody(shop: Site) -> None:
    _, look, page = await seen(shop, "/jobs?q=queue:many")
    await page.locator("[data-pick]").nth(1).check()
    await page.locator("[data-peek]").first.click()
    await expect(page.locator("#peek .why")).to_be_visible()
    assert await look.axe() == []
    assert await page.locator("h1").count() == 1
    for width in (320, 400, 768, 1024, 1440):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await look.overflow() <= 0, f"the list is wider than {width}"
        await look.shot(f"jobs-{width}")
    await look.go("/jobs?q=queue:many+tag:odd+statsu:x")
    assert await look.axe() == []
    await look.go("/search")
    assert await look.axe() == []
    await page.set_viewport_size({"width": 320, "height": 800})
    assert await look.overflow() <= 0


async def test_without_a_script_all_is_there_to_be_read(shop: Site) -> None:
    _, look, page = await seen(shop, "/jobs?q=queue:many", script=False)
    assert await page.locator(".js-only:visible, #bulk:visible").count() == 0
    first = await names(page)
    assert len(first) == 50
    await page.get_by_role("link", name="Older →").click()
    second = await names(page)
    assert set(first).isdisjoint(second)
    await page.get_by_role("link", name="← Newer").click()
    assert await names(page) == first
    await page.get_by_role("link", name="Oldest first").click()
    assert (await names(page))[0] == min(await names(page))
    await page.get_by_label("Search jobs").fill("queue:many tag:odd user:ben")
    await page.get_by_role("button", name="Search", exact=True).click()
    assert "No job matches" in await look.text()
    await page.get_by_role("link", name="Remove user:ben").click()
    assert len(await names(page)) == 50
    assert "one by one, at most 5,000" in await look.text()
    await page.get_by_role("link", name="Count them").click()
    await page.get_by_role("link", name="queued", exact=True).click()
    assert parse_qs(urlsplit(page.url).query)["q"] == ["queue:many tag:odd status:queued"]
    await page.locator("summary", has_text="Columns").click()
    await page.get_by_label("User").check()
    await page.get_by_role("button", name="Show these").click()
    await expect(page.get_by_role("columnheader", name="User")).to_be_visible()
    await page.locator("[data-peek]").first.click()
    assert "Payload" in await look.text("#peek")
    await look.go("/search")
    await page.get_by_role("link", name="status:failed,retrying").click()
    assert "q=status%3Afailed%2Cretrying" in page.url


async def test_a_search_that_cannot_be_understood_says_why(shop: Site) -> None:
    _, look, page = await seen(shop, "/jobs?q=statsu:failed+queue:many")
    assert "did you mean status" in await look.text()
    assert await page.locator("[data-row]").count() == 0
    await page.get_by_role("link", name="Remove statsu:failed").click()
    assert len(await names(page)) == 50
    await look.go(f"/jobs?q={'x' * 2001}")
    assert "at most 2,000" in await look.text()


async def test_a_search_is_completed_while_it_is_typed(shop: Site) -> None:
    _, _, page = await seen(shop, "/queues")
    await page.keyboard.press("/")
    await page.keyboard.type("sta")
    option = page.get_by_role("option", name="status:")
    await expect(option).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#search")).to_have_attribute("aria-activedescendant", "suggested-1")
    await page.keyboard.press("Enter")
    await page.get_by_role("option", name="status:queued").click()
    await page.keyboard.type("user:b")
    await expect(page.get_by_role("option", name="user:ben")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await page.keyboard.type("en queue:many")
    await expect(page.locator("#search")).to_have_value("status:queued user:ben queue:many")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(50)
    await page.get_by_label("Search jobs").fill("statsu:x queue:many")
    await expect(page.locator("#suggestions-wrong")).to_contain_text("did you mean status")


async def test_selecting_and_an_order_for_all_that_match(shop: Site) -> None:
    for n in range(60):
        await shop.app.enqueue("mail.send", {"to": f"{n}"}, queue="orders", delay=3600)
    _, look, page = await seen(shop, "/jobs?q=queue:orders", "operator")
    boxes = page.locator("[data-pick]")
    await boxes.nth(2).click()
    await boxes.nth(5).click(modifiers=["Shift"])
    word = page.locator("#bulk-word")
    await expect(word).to_have_text("4 selected")
    await page.locator("#pick-page").check()
    await expect(word).to_have_text("50 selected")
    more = page.locator("#bulk-all")
    await expect(more).to_have_text("Select all matching (60)")
    await more.click()
    await expect(word).to_have_text("All 60 that match are selected")
    assert "where=queue%3Aorders" in str(await page.locator("[data-export=csv]").get_attribute("href"))
    await page.locator("[data-bulk=cancel]").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Cancel 60 jobs?")
    await dialog.get_by_role("button", name="Go back").click()
    assert (await shop.app.jobs.count(queue="orders", status="cancelled")).n == 0
    await page.locator("[data-bulk=cancel]").click()
    await dialog.get_by_role("button", name="Cancel them").click()
    order = page.locator(".operation").first
    await expect(order).to_contain_text("60 done", timeout=15_000)
    assert (await shop.app.jobs.count(queue="orders", status="cancelled")).n == 60
    assert re.search(r"/jobs/[0-9a-f-]{36}$", str(await order.get_by_role("link").get_attribute("href")))
    await expect(page.locator("#bulk")).to_be_hidden()
    await expect(page.locator("[data-row] .badge").first).to_have_text("cancelled")
    assert await look.axe() == []


async def test_an_order_by_keys_is_about_the_row_one_is_at(shop: Site) -> None:
    for n in range(3):
        await shop.app.enqueue("mail.send", {"to": f"{n}"}, queue="keys", delay=3600)
    _, _, page = await seen(shop, "/jobs?q=queue:keys", "operator")
    ids = await names(page)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Shift+D")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Delete 1 job?")
    await dialog.get_by_role("button", name="Delete them").click()
    await expect(page.locator("[data-row]")).to_have_count(2, timeout=15_000)
    assert await names(page) == [ids[0], ids[2]]
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.locator("#bulk-word")).to_have_text("1 selected")
    await page.keyboard.press("Escape")
    await expect(page.locator("#bulk")).to_be_hidden()


async def test_what_is_selected_is_exported(shop: Site) -> None:
    _, _, page = await seen(shop, "/jobs?q=queue:many", "reader")
    ids = await names(page)
    await page.locator("[data-pick]").nth(3).check()
    async with page.expect_download() as begun:
        await page.locator("[data-export=json]").click()
    path = await (await begun.value).path()
    assert [one["id"] for one in json.loads(path.read_text())] == [ids[3]]


async def test_each_sees_and_does_what_is_theirs(shop: Site) -> None:
    _, _, page = await seen(shop, "/jobs?q=queue:many", "reader")
    await page.locator("[data-pick]").first.check()
    await expect(page.locator("#bulk")).to_be_visible()
    assert await page.locator("[data-bulk], [data-act]").count() == 0
    told = await page.evaluate(
        """api => fetch(api + "queue/bulk", {method: "POST", headers: {"Content-Type": "application/json"},
        body: '{"action": "cancel", "everything": true}'}).then(answer => answer.status)""",
        f"{shop.prefix}/api/v1/",
    )
    assert told == 403
    theirs = (await shop.app.jobs.find(queue="many", user="ben", limit=1)).jobs[0].id
    _, look, page = await seen(shop, "/jobs?columns=user&q=queue:many", "user")
    assert set(await page.locator("[data-row] td.at-user").all_inner_texts()) == {"ann"}
    await expect(page.locator(".chips [aria-current] b")).to_have_text("60")
    await look.go(f"/jobs?peek={theirs}")
    assert "Not there any more" in await look.text("#peek")


async def test_a_job_is_looked_at_beside_the_list(shop: Site) -> None:
    _, look, page = await seen(shop, "/jobs?q=queue:many")
    ids = await names(page)
    pane = page.locator("#peek")
    await page.keyboard.press("j")
    await expect(pane).to_be_hidden()
    await page.keyboard.press("ArrowDown")
    await expect(pane).to_have_attribute("data-id", ids[1])
    await page.keyboard.press("j")
    await expect(pane).to_have_attribute("data-id", ids[2])
    assert "x117" in await look.text("#peek")
    await page.reload()
    await expect(pane).to_have_attribute("data-id", ids[2])
    await page.keyboard.press("Escape")
    await expect(pane).to_be_hidden()
    await page.locator("[data-row]").nth(4).locator(".at-wait").click()
    await expect(pane).to_have_attribute("data-id", ids[4])
    await page.keyboard.press("p")
    await expect(pane).to_be_hidden()
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/jobs/{ids[3]}")


async def test_rows_change_in_place_and_new_ones_wait(shop: Site) -> None:
    app = shop.app
    first = [await app.enqueue("mail.send", {"to": f"{n}"}, queue="live", delay=3600) for n in range(3)]
    _, _, page = await seen(shop, "/jobs?q=queue:live+status:scheduled")
    before = await names(page)
    await page.locator("[data-pick]").first.check()
    await app.jobs.cancel(first[1])
    row = page.locator(f"[data-id='{first[1].id}']")
    await expect(row.locator(".badge")).to_have_text("cancelled", timeout=10_000)
    await expect(row).to_contain_text("moved on")
    for n in range(2):
        await app.enqueue("mail.send", {"to": f"{n}"}, queue="live", delay=3600)
    new = page.locator("#new")
    await expect(new).to_have_text("2 new", timeout=10_000)
    assert await names(page) == before
    await expect(page.locator("[data-pick]").first).to_be_checked()
    await new.click()
    await expect(page.locator("[data-row]")).to_have_count(4)
    assert first[1].id not in await names(page)
    await until(lambda: shop.web.state.live.streams == 1, "the page to be live")
    await page.keyboard.press(".")
    await expect(page.locator("#live")).to_have_attribute("data-state", "paused")
    await until(lambda: shop.web.state.live.streams == 0, "the stream to end")


async def test_a_list_that_is_empty_fills_by_itself(shop: Site) -> None:
    _, look, page = await seen(shop, "/jobs?q=queue:late")
    assert "No job matches" in await look.text()
    await shop.app.enqueue("mail.send", {"to": "x"}, queue="late")
    await expect(page.locator("[data-row]")).to_have_count(1, timeout=10_000)


async def test_columns_and_searches_are_remembered(shop: Site) -> None:
    _, _, page = await seen(shop, "/jobs?q=queue:many")
    await page.locator("summary", has_text="Columns").click()
    await page.get_by_label("Tags").check()
    await expect(page.get_by_role("columnheader", name="Tags")).to_be_visible()
    await page.get_by_label("Waited").uncheck()
    await expect(page.get_by_role("columnheader", name="Waited")).to_have_count(0)
    await page.locator("summary", has_text="Views").click()
    await page.get_by_label("Save this search as").fill(EVIL)
    await page.keyboard.press("Enter")
    await page.goto(f"{shop.url}/jobs")
    await expect(page.get_by_role("columnheader", name="Tags")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Waited")).to_have_count(0)
    await page.locator("summary", has_text="Views").click()
    await page.locator("#own-views a", has_text=EVIL).click()
    await expect(page).to_have_url(re.compile("q=queue%3Amany$"))
    await page.locator("summary", has_text="Views").click()
    await page.locator("#own-views button").click()
    await expect(page.locator("#own-views")).to_be_hidden()


async def test_whatever_jobs_are_called_is_text(shop: Site) -> None:
    one = (await shop.app.jobs.find(user=EVIL)).jobs[0]
    everything = "id.queue.progress.created.due.finished.wait.ran.attempts.priority.detail.tags.user.entity"
    path = f"/jobs?q=status:failed&columns={everything}.correlation.schedule.worker&peek={one.id}"
    _, look, page = await seen(shop, path)
    told = await look.text()
    assert told.count(EVIL) >= 8
    assert "\\u202e" in told
    assert await page.locator("main img").count() == 0
    assert await look.axe() == []
    await page.set_viewport_size({"width": 320, "height": 800})
    assert await look.overflow() <= 0
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.keyboard.press("Escape")
    for word in ("queue", "user", "entity", "correlation", "tags"):
        await page.locator(f"[data-id='{one.id}'] .at-{word} a").first.click()
        await expect(page.locator(f"[data-id='{one.id}']")).to_be_visible()
        await page.go_back()
    await page.get_by_label("Search jobs").fill("tag:")
    await expect(page.get_by_role("option").filter(has_text="<img").first).to_be_visible()


async def _enqueue_hostile(app: Windlass) -> None:
    one = await app.enqueue(
        "fail",
        {"secret": f"{EVIL}\u202e\x1b[2J"},
        queue=EVIL,
        entity=(EVIL, EVIL),
        correlation=EVIL,
        user=EVIL,
        tags=(EVIL,),
        metadata={EVIL: EVIL},
    )
    async with app.worker(queues=[EVIL]):
        await until(lambda: _failed(app, one.id), "the job to fail")


async def _failed(app: Windlass, job_id: str) -> bool:
    return (await app.jobs.get(job_id)).status == "failed"


async def test_the_list_on_every_store(site_at: Site) -> None:
    app = site_at.app
    for n in range(55):
        await app.enqueue("mail.send", {"to": f"x{n}"}, queue="many", user="ann", tags=("odd",) * (n % 2), delay=3600)
    _, look, page = await seen(site_at, "/jobs?q=user:ann", "operator")
    await expect(page.locator(".chip-scheduled b")).to_have_text("55")
    assert len(await names(page)) == 50
    await page.keyboard.press("]")
    await expect(page.locator("[data-row]")).to_have_count(5)
    await page.get_by_label("Search jobs").fill("user:ann tag:odd payload.to:x1*")
    await page.get_by_label("Search jobs").press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(6)
    await page.locator("[data-row] .at-wait").first.click()
    await expect(page.locator("#peek .why")).to_be_visible()
    await page.locator("#pick-page").check()
    await page.locator("[data-bulk=cancel]").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel them").click()
    await expect(page.locator(".operation").first).to_contain_text("6 done", timeout=20_000)
    await expect(page.locator("[data-row] .badge").first).to_have_text("cancelled")
    assert (await app.jobs.count(status="cancelled")).n == 6
    assert await look.overflow() <= 0
