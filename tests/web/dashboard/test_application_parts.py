"""What pages of applications are made of: files that are sent with their progress, forms that ask the API."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass
from windlass.web import Page, Rail, Room, Visit

pytestmark = IN_BROWSER
HOSTILE = "<img src=x onerror=alert(1)>'\"&.txt"
TEMPLATE = """{% extends "frame/page.html" %}{% block main %}<h1>Shop</h1>
{% call ui.drop("shop/files", "Drop files here", "Up to 2 kB", go="jobs/{job}", multiple=true, most=2000) %}
{{ ui.select("lang", "Language", [("de", "German"), "en"], "en") }}{{ ui.check("copy", "Copy") }}{% endcall %}
<section class="card">{{ ui.card_head("One", "a note") }}
{{ ui.facts([("Rows", "12")]) }}{{ ui.progress(0.4, "row 4") }}</section>
<form data-send="POST queue/enqueue" data-go="jobs/{id}" class="stack card pad">{{ ui.field("type", "Type") }}
{{ ui.field("payload.to", "To") }}{{ ui.field("priority", "Priority", type="number") }}
{{ ui.form_told() }}<button class="button primary">Enqueue</button></form>{% endblock %}"""


async def _nothing(visit: Visit) -> dict[str, object]:
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    app = Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF")
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "shop.html").write_text(TEMPLATE)
    for n, name in enumerate(("shop", "depot", "garage")):
        rail = Rail(word=name, icon="M3 3h14", order=100 + n)
        page = Page(path=f"/{name}", title=name, template="shop.html", show=_nothing, rail=rail)
        app.add_pages(partial(Room, name=name, folder=folder, pages=(page,)))
    async with site_of(app, browser) as site:
        yield site


async def test_files_are_sent_one_after_the_other_with_their_progress(site: Site, tmp_path: Path) -> None:
    look = await site.look()
    page = await look.go("/shop")
    sent: list[str] = []

    async def answer(route: Route) -> None:
        body = (route.request.post_data_buffer or b"").decode(errors="replace")
        sent.append(body)
        if 'filename="b.txt"' in body:
            await route.fulfill(status=422, json={"errors": [{"at": "file", "message": HOSTILE}]})
        else:
            await route.fulfill(status=201, json={"job": "a/b"})

    await page.route("**/api/v1/shop/files", answer)
    for name, text in ((HOSTILE.replace("/", ""), "good"), ("b.txt", "bad"), ("c.txt", "c" * 2001), ("d.txt", "good")):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / HOSTILE, *(tmp_path / f"{letter}.txt" for letter in "bcd")]
    await page.select_option("select[name=lang]", "de")
    await page.set_input_files(".drop input[type=file]", paths)
    lines = page.locator(".drop-line")
    await expect(lines).to_have_count(4)
    await expect(lines.nth(3)).to_contain_text("Sent")
    assert await lines.nth(0).get_by_role("link", name=HOSTILE).get_attribute("href") == "/dashboard/jobs/a%2Fb"
    await expect(lines.nth(1)).to_contain_text(f"file: {HOSTILE}")
    await expect(lines.nth(2)).to_contain_text("at most 2 kB")
    assert len(sent) == 3, "what is too large is not sent"
    assert all('name="lang"\r\n\r\nde' in one for one in sent)
    assert await page.locator("main img").count() == 0
    assert await look.axe() == []
    await page.set_viewport_size({"width": 320, "height": 800})
    assert await look.overflow() <= 0


async def test_a_form_asks_the_api_and_says_what_was_refused_beside_it(site: Site) -> None:
    look = await site.look()
    page = await look.go("/shop")
    assert await page.locator(".rail .apart").count() == 1
    await page.get_by_label("Type").fill("mail.send")
    await page.get_by_label("Priority").fill("3000000000")
    await page.get_by_label("To", exact=True).fill("ann")
    await page.get_by_role("button", name="Enqueue").click()
    await expect(page.locator(".form-told")).to_contain_text("priority")
    await expect(page.get_by_label("Priority")).to_have_attribute("aria-invalid", "true")
    assert await look.axe() == []
    await page.get_by_label("Priority").fill("7")
    await page.get_by_role("button", name="Enqueue").click()
    await page.wait_for_url("**/jobs/*-*")
    (job,) = (await site.app.jobs.find()).jobs
    assert (job.type, job.priority, job.payload_json) == ("mail.send", 7, '{"to":"ann"}')
