"""The pages that say how it stands: overview, failures, queues, audit and health, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.drafts import draft, want
from tests.support.until import until
from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass
from windlass.client.gauges import Gauges, Standing, gauges_text
from windlass.client.rolling import SAMPLED
from windlass.client.stepping import MINUTE, begin_of
from windlass.core.job import Error
from windlass.core.outcome import Failed
from windlass.core.transition import WORKER_DIED, decide

pytestmark = IN_BROWSER
PATHS = ("/", "/?table=run", "/failures", "/failures/{group}", "/queues", "/queues/mail", "/audit", "/health")
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}\u202egnp"


async def fill(app: Windlass, failed: int = 3) -> None:
    """A store in which something of everything has happened."""
    for n in range(failed):
        await app.enqueue("fail", {"secret": f"order {n}"}, user="ann")
    await app.enqueue_many(("mail.send", {"to": f"{n}@example.org"}) for n in range(12))
    await app.worker(drain=True).run()
    now = await app.store.now()
    for n in range(1, 40):
        gauges = Gauges(1, {"mail": Standing(n, 2, 1, 0, 900), "default": Standing(3, 0, 0, 0, 9)}, 2, 20, n % 20)
        await app.store.series.put(SAMPLED.series(MINUTE), begin_of(now - n * MINUTE, MINUTE), gauges_text(gauges))
    await app.enqueue("mail.send", {"to": "waits"}, queue="mail")
    await app.enqueue("mail.send", {"to": "later"}, queue="mail", delay=3600)
    await app.audit.record("key:mia", "queue.pause", "queue:mail", origin="10.0.4.17", details={"requestId": "r-81"})


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def filled(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncGenerator[Site]:
    """One site for all tests that only look."""
    path = tmp_path_factory.mktemp("overview") / "site.db"
    async with site_of(Windlass(f"sqlite:///{path}?synchronous=OFF"), browser) as site:
        await fill(site.app)
        yield site


async def group_of(app: Windlass) -> str:
    return (await app.dead_letters.groups()).groups[0].fingerprint


async def tile(page: Page, word: str) -> str:
    return await page.locator(".tile", has=page.get_by_text(word, exact=True)).locator(".tile-figure").inner_text()


@pytest.mark.parametrize("path", PATHS)
async def test_pages_are_for_everybody(filled: Site, path: str) -> None:
    look = await filled.look()
    page = await look.go(path.format(group=await group_of(filled.app)))
    assert await look.axe() == []
    assert await page.locator("h1").count() == 1
    for width in (320, 400, 1024, 1440):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await look.overflow() <= 0, f"{path} is wider than {width}"
        wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1 && !one.closest('.chart')).length"
        cut = await page.locator(".table-room").evaluate_all(wide) if width > 760 else 0  # below, rows are cards
        assert cut == 0, f"a table of {path} is cut off at {width}"
        await look.shot(f"{re.sub(r'[^a-z]+', '-', path).strip('-') or 'overview'}-{width}")


async def test_the_overview_says_how_it_stands_and_every_figure_leads_to_its_list(filled: Site) -> None:
    page = await (await filled.look()).go("/")
    assert [await tile(page, word) for word in ("Waiting", "Scheduled", "Failed")] == ["1", "1", "3"]
    assert await tile(page, "Error rate") == "20 %"
    await expect(page.locator(".finding").first).to_contain_text("No worker is running")
    links = await page.locator("a.tile").evaluate_all("all => all.map(one => decodeURIComponent(one.search))")
    assert "?q=status:queued" in links
    assert len(links) == 10
    assert await page.locator("[data-chart]").count() == 5
    legend = page.locator("#finished .legend")
    await expect(legend).to_contain_text("succeeded 12")
    assert "status:failed" in (await legend.get_by_role("link", name="failed").get_attribute("href") or "").replace(
        "%3A", ":"
    )
    row = page.locator(".failures tbody tr")
    await expect(row).to_contain_text("ValueError")
    await expect(row.get_by_role("cell").first).to_have_text("3")
    # Through an hour and a month it stays the same page.
    await page.get_by_role("navigation", name="How far back").get_by_role("link", name="30 d").click()
    assert await tile(page, "Error rate") == "20 %"
    assert await page.locator(".segments [aria-current]").inner_text() == "30 d"


async def test_a_chart_is_read_with_arrow_keys(filled: Site) -> None:
    page = await (await filled.look()).go("/")
    slider = page.get_by_role("slider", name="Finished per minute")
    await slider.focus()
    await page.keyboard.press("End")
    told = await slider.get_attribute("aria-valuetext") or ""
    assert re.match(r"\d\d:\d\d – \d\d:\d\d: succeeded \d+, failed \d+", told)
    others = page.get_by_role("slider", name="Workers and slots")
    assert re.search(r"slots (20|–)", await others.get_attribute("aria-valuetext") or "")
    now = int(await slider.get_attribute("aria-valuenow") or 0)
    for _ in range(3):
        await page.keyboard.press("ArrowLeft")
    assert int(await slider.get_attribute("aria-valuenow") or 0) == now - 3
    assert "slots 20" in (await others.get_attribute("aria-valuetext") or "")
    await page.keyboard.press("Escape")
    await expect(page.locator("#finished .legend")).to_contain_text("succeeded 12")
    # With Shift a stretch is chosen, and Enter zooms in.
    await page.keyboard.press("End")
    for _ in range(9):
        await page.keyboard.press("Shift+ArrowLeft")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"from=.+until="))
    await expect(page.get_by_role("link", name="Back to now")).to_be_visible()
    await expect(page.locator("#finished .legend")).to_contain_text("succeeded 12")
    assert await page.locator("#finished").get_attribute("data-n") in ("10", "11", "12")
    await page.get_by_role("link", name="Back to now").click()
    await expect(page.get_by_role("heading", name="Over time")).to_be_visible()


async def test_a_chart_is_read_with_the_mouse_and_leads_to_the_jobs(filled: Site) -> None:
    page = await (await filled.look()).go("/")
    scan = page.locator("#finished .scan")
    await scan.scroll_into_view_if_needed()
    box = await scan.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    await expect(page.locator("#run .scan-when")).to_be_visible()
    await page.mouse.move(box["x"] - 40, box["y"] - 40)
    await expect(page.locator("#run .scan-when")).to_be_hidden()
    await page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 20, steps=3)
    await page.mouse.up()
    await page.wait_for_url(re.compile(r"from=.+until="))
    await page.locator("#run .scan").click(position={"x": 100, "y": 100})
    await page.wait_for_url(re.compile(r"/jobs\?q="))
    wanted = await page.evaluate("new URL(location).searchParams.get('q')")
    assert re.fullmatch(r"ran>=\d+ms ran<\d+ms finished>=\S+Z finished<\S+Z", wanted)


async def test_an_empty_store_says_what_to_do_next_and_comes_alive(site: Site) -> None:
    page = await (await site.look()).go("/")
    await expect(page.get_by_role("heading", name="Nothing has been enqueued yet")).to_be_visible()
    assert await page.locator(".steps li").count() == 3
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    await site.app.enqueue("mail.send", {"to": "ann"}, queue="mail")
    await expect(page.locator(".tile", has_text="Waiting").first).to_contain_text("1")
    await expect(page.locator("[data-chart]").first).to_be_visible()
    # Who reads a chart goes on reading while it changes.
    slider = page.get_by_role("slider", name="Backlog by queue")
    await slider.focus()
    await page.keyboard.press("End")
    await site.app.enqueue("mail.send", {"to": "ben"}, queue="mail")
    await expect(page.locator(".tile", has_text="Waiting").first).to_contain_text("2")
    await expect(slider).to_be_focused()
    assert re.match(r"\d\d:\d\d – ", await slider.get_attribute("aria-valuetext") or "")
    await expect(page.locator("#backlog .scan-when")).to_have_count(1)


async def test_one_users_key_sees_figures_of_own_jobs_alone(filled: Site) -> None:
    page = await (await filled.look("user")).go("/")
    assert [await tile(page, word) for word in ("Waiting", "Failed")] == ["0", "3"]
    assert await page.locator(".tile").count() == 9
    assert await page.locator("[data-chart]").evaluate_all("all => all.map(one => one.id)") == [
        "finished",
        "wait",
        "run",
    ]
    assert "No worker" not in await page.locator("main").inner_text()
    assert await page.locator(".rail a", has_text="Queues").count() == 0
    await expect(page.get_by_role("button", name="Replay group")).to_be_visible()
    for path in ("/queues/mail", "/audit", "/health"):
        answer = await page.goto(f"{filled.url}{path}")
        assert answer is not None
        assert answer.status == 403


@pytest.mark.parametrize("role", ["reader", "operator"])
async def test_each_role_has_its_buttons(filled: Site, role: str) -> None:
    page = await (await filled.look(role)).go("/queues/mail")
    buttons = 3 if role == "operator" else 0
    assert await page.locator("main button:visible").count() == buttons
    await page.goto(f"{filled.url}/failures/{await group_of(filled.app)}")
    assert await page.locator("main button:visible").count() == buttons - (1 if buttons else 0)
    answer = await page.goto(f"{filled.url}/audit")
    assert answer is not None
    assert answer.status == 403


async def test_without_a_script_all_can_be_read(filled: Site) -> None:
    look = await filled.look(script=False)
    for path in PATHS:
        page = await look.go(path.format(group=await group_of(filled.app)))
        assert await page.locator("h1").count() == 1
        assert await page.locator(".js-only:visible").count() == 0
    page = await look.go("/?since=3h")
    await page.get_by_role("link", name="Finished per minute: as a table").click()
    rows = page.locator("#finished tbody tr")
    assert await rows.count() in (181, 182)
    await look.go("/audit")
    await page.get_by_label("Did what").fill("queue.resume")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()


async def test_a_group_is_rehearsed_replayed_and_discarded(site_at: Site) -> None:
    """The main path, on each store."""
    app, site = site_at.app, site_at
    await fill(app, failed=4)
    look = await site.look("operator")
    page = await look.go("/")
    assert await tile(page, "Failed") == "4"
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Failures").click()
    await expect(page.locator(".failures tbody tr")).to_contain_text("ValueError")
    [first, *_] = (await app.jobs.find(status="failed")).jobs
    await app.dead_letters.replay(first.id)
    await page.get_by_role("button", name="Replay group").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("4 failed jobs match")
    await expect(dialog).to_contain_text("1 were replayed before: left out")
    await dialog.get_by_label("Jobs a second").fill("50")
    await dialog.get_by_role("button", name="Replay", exact=True).click()
    await expect(page.locator(".operation")).to_contain_text("3 done, 1 left as they are", timeout=20_000)
    assert (await app.jobs.count(type="fail")).n == 8
    await page.get_by_role("link", name="ValueError").first.click()
    await expect(page.get_by_role("heading", name="ValueError")).to_be_visible()
    await page.get_by_role("button", name="Discard").click()
    await dialog.get_by_label("Why").fill("they were tests")
    await dialog.get_by_role("button", name="Discard them").click()
    await expect(page.get_by_role("heading", name="Nothing of this kind is left")).to_be_visible(timeout=20_000)
    assert (await app.jobs.count(status="failed")).n == 0
    discarded = next(one for one in (await app.audit.list()).entries if one.action == "bulk.delete")
    assert json.loads(discarded.details_json or "{}")["reason"] == "they were tests"
    # And a queue.
    await page.goto(f"{site.url}/queues/mail")
    assert await tile(page, "Waiting") == "1"
    await page.keyboard.press("P")
    await dialog.get_by_role("button", name="Pause").click()
    await expect(page.locator(".badge")).to_have_text("paused")
    await expect(page.locator(".group-head")).to_contain_text("by session:")
    await page.get_by_role("button", name="Limit depth").click()
    await dialog.get_by_label("Waiting jobs at most").fill("2")
    await dialog.get_by_role("button", name="Set it").click()
    await expect(page.locator(".tile").first).to_contain_text("at most 2 may wait")
    await page.get_by_role("button", name="Cancel all waiting").click()
    await expect(dialog).to_contain_text("2 jobs")
    await dialog.get_by_role("button", name="Cancel 2").click()
    await expect(page.locator(".operation").last).to_contain_text("2 done", timeout=20_000)
    assert (await app.jobs.count(queue="mail", status=["queued", "scheduled"])).n == 0


async def test_an_order_under_way_stays_in_sight_on_other_pages(site: Site) -> None:
    look = await site.look()
    page = await look.go("/queues")
    handle = await site.app.enqueue("mail.send", {"to": "x"}, delay=3600)
    await page.evaluate(
        "id => sessionStorage.setItem('windlass_operations', JSON.stringify([{id, word: 'Replay of <b>x</b>'}]))",
        handle.id,
    )
    await look.go("/failures")
    await expect(page.locator(".operation")).to_contain_text("Replay of <b>x</b>")
    await page.locator(".operation").get_by_role("button", name="Stop").click()
    await expect(page.locator(".operation")).to_contain_text("cancelled")
    await page.locator(".operation").get_by_role("button", name="Close").click()
    await look.go("/failures")
    assert await page.locator(".operation").count() == 0


async def test_the_trail_is_filtered_paged_and_saved(site: Site) -> None:
    for n in range(60):
        details = {"before": {"maxDepth": n}, "after": {"maxDepth": n + 1}, "requestId": f"r{n}"}
        await site.app.audit.record(
            "key:mia", "queue.limit", f"queue:{HOSTILE[:28]}", origin="10.0.4.17", details=details
        )
    await site.app.audit.record("key:ben", "queue.pause", "queue:mail")
    look = await site.look()
    page = await look.go("/audit")
    assert await page.locator("tbody tr").count() == 50
    await expect(page.locator("tbody tr").nth(1)).to_contain_text("maxDepth 59 → 60")
    await expect(page.locator("tbody tr").nth(1)).to_contain_text("r59")
    assert await page.locator("main img").count() == 0
    await page.keyboard.press("]")
    await expect(page.locator("tbody tr")).to_have_count(11)
    await page.get_by_role("link", name="key:mia").first.click()
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_label("Who").fill("key:ben")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    async with page.expect_download() as saving:
        await page.get_by_role("link", name="Save as a file").click()
    path = await (await saving.value).path()
    assert [json.loads(line)["object"] for line in path.read_text().splitlines()] == ["queue:mail"]  # tests may block


async def test_health_says_what_is_wrong_and_what_to_do(site: Site) -> None:
    await site.app.enqueue("nobody.knows", {"to": "x"})
    page = await (await site.look()).go("/health")
    row = page.locator(".checks li", has_text="types have workers")
    await expect(row.locator(".badge")).to_have_text("WARN")
    await expect(row).to_contain_text("deploy their handlers, or cancel these jobs")
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    async with site.app.worker(queues={"mail": 1}):
        await until(lambda: _alive(site.app), "the worker to be seen")
        await page.goto(f"{site.url}/failures")
        await expect(page.locator(".finding")).to_contain_text("No worker handles nobody.knows: 1 waiting.")
        await page.goto(f"{site.url}/")
        await expect(page.locator(".findings")).to_contain_text("No worker consumes the queue default")
        await expect(page.locator(".findings")).to_contain_text("No worker handles nobody.knows")


async def test_what_killed_its_workers_and_what_nobody_can_read_is_named(site: Site) -> None:
    await site.app.store.jobs.insert([draft("crash"), draft("mail.send", '{"nobody":1}', queue="mail")])
    [job] = await site.app.store.jobs.claim(want(types={"crash"}))
    await site.app.store.jobs.apply([decide(job, Failed(Error(type=WORKER_DIED, message="killed"), again=False))])
    await site.app.worker(drain=True, queues={"mail": 1}).run()
    page = await (await site.look()).go("/failures")
    await expect(page.locator(".finding")).to_contain_text("1 of mail.send are parked")
    row = page.locator(".failures tbody tr")
    await expect(row.locator(".badge")).to_have_text("crashed out")
    await row.get_by_role("link", name=WORKER_DIED).click()
    await expect(page.locator(".banner.tone-warn")).to_contain_text("killed their worker")


async def _alive(app: Windlass) -> bool:
    return any(one.alive for one in await app.workers.list())


async def test_hostile_names_are_text_everywhere(site: Site) -> None:
    name = HOSTILE.replace("\u202e", "")
    for queue in (name, "a/b?c#d%20e"):
        await site.app.enqueue("mail.send", {"to": "ann"}, queue=queue)
    await site.app.enqueue("fail", {"secret": HOSTILE})
    await site.app.worker(drain=True, queues={"default": 1}).run()
    look = await site.look()
    page = look.page
    for path in ("/", "/failures", f"/failures/{await group_of(site.app)}", "/queues", "/health"):
        await look.go(path)
        assert await page.locator("main img").count() == 0
    await look.go("/queues")
    for queue in (name, "a/b?c#d%20e"):
        await page.get_by_role("link", name=queue, exact=True).click()
        await expect(page.locator("h1")).to_have_text(queue)
        await page.go_back()


async def test_what_is_asked_wrongly_is_told(filled: Site) -> None:
    look = await filled.look()
    for path, status in (
        ("/?since=2h", 422),
        ("/?from=2026-03-01T09:00Z&until=yesterday", 422),
        ("/?from=2026-03-01T09:00Z&until=2026-03-01T09:00:10Z", 422),
        ("/?from=2020-03-01T09:00Z&until=2026-03-01T09:00:10Z", 422),
        ("/audit?since=now", 422),
        ("/failures/nothing", 404),
        ("/queues/nothing", 404),
    ):
        answer = await look.page.goto(f"{filled.url}{path}")
        assert answer is not None
        assert answer.status == status, path
    page = await look.go("/failures/0123456789ab")
    await expect(page.get_by_role("heading", name="Nothing of this kind is left")).to_be_visible()
