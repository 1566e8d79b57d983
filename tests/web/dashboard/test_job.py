"""The job's page in a browser: jobs of every kind, told, operated, live, and safe from what they hold."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.contract.places import STORES, open_place
from tests.support.apps import until_status
from tests.support.drafts import draft
from tests.web.dashboard.browsing import IN_BROWSER, Site, serving
from tests.web.dashboard.kinds import BIG, Kinds, all_kinds
from windlass import Handle, Status, Windlass
from windlass.client.vault import new_key
from windlass.core.history import HISTORY_LIMIT

pytestmark = IN_BROWSER


@dataclass
class Scene:
    """A site with jobs of every kind."""

    site: Site
    kinds: Kinds

    async def open(self, kind: str, role: str = "admin", **how: Any) -> Page:
        """The page of one of them."""
        return await (await self.site.look(role, **how)).go(f"/jobs/{self.kinds[kind]}")

    async def made(self, type_: str, payload: dict[str, Any], status: Status, **asked: Any) -> Handle[Any]:
        """One more job, once it stands so."""
        handle = await self.site.app.enqueue(type_, payload, **asked)
        await until_status(handle, status)
        return handle


@asynccontextmanager
async def scene_of(app: Windlass, browser: Browser) -> AsyncGenerator[Scene]:
    async with all_kinds(app) as kinds, serving(app, browser) as site:
        yield Scene(site, kinds)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> AsyncGenerator[Scene]:
    """On SQLite, for all tests of this file: each changes only jobs that it has made itself."""
    path = tmp_path_factory.mktemp("kinds") / "site.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDLASS_SECRET_KEYS", new_key())
        async with scene_of(Windlass(f"sqlite:///{path}?synchronous=OFF"), browser) as scene:
            yield scene


@pytest_asyncio.fixture(loop_scope="session")
async def scene(served: Scene) -> AsyncGenerator[Scene]:
    """The same, whose pages are closed when a test ends: what is live would go on asking."""
    yield served
    looks, served.site.looks = served.site.looks, []
    for look in looks:
        await look.page.context.close()
    assert [one for look in looks for one in look.wrong] == [], "a page broke its own rules"


async def confirm(page: Page, button: str, yes: str) -> str:
    """Press a button and say yes; gives the consequence that was told before."""
    await page.get_by_role("group", name="What you can do").get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    told = await dialog.inner_text()
    await dialog.get_by_role("button", name=yes, exact=True).click()
    return told


@pytest.mark.timeout(120)
async def test_each_kind_is_for_everybody(scene: Scene) -> None:
    look = await scene.site.look()
    for kind in ("failed", "running", "gathering", "hostile", "secret"):
        await look.go(f"/jobs/{scene.kinds[kind]}")
        assert await look.axe() == [], kind
    for kind in scene.kinds.ids:
        page = await look.go(f"/jobs/{scene.kinds[kind]}")
        for width in (320, 1440):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await look.overflow() <= 0, f"{kind} is wider than {width}"
            await look.shot(f"job-{kind}-{width}")
        assert await page.locator("h1").count() == 1


async def test_a_failure_is_told_from_its_sentence_to_its_last_frame(scene: Scene) -> None:
    page = await scene.open("failed")
    await expect(page.locator(".job-title .badge")).to_have_text("failed")
    await expect(page.locator(".why-text")).to_contain_text("TimeoutError: smtp.example.org")
    assert "fingerprint" in str(await page.get_by_role("link", name="Jobs with the same error").get_attribute("href"))
    await expect(page.locator(".attempt")).to_have_count(3)
    await expect(page.locator(".attempt").first).to_contain_text("Attempt 3")
    library = page.locator(".library").first
    await expect(library.locator("pre")).to_be_hidden()
    await library.locator("summary").click()
    await expect(library.locator("pre")).to_contain_text("windlass")
    await expect(page.locator(".traceback .own").last).to_contain_text("in _connect")
    words = [one.split("\n")[0] for one in await page.locator(".move-words").all_inner_texts()]
    assert words[0] == "Enqueued"
    assert [one.split(" after")[0] for one in words if "ailed" in one] == ["Failed", "Failed", "Failed for good"]
    table = page.locator(".job-strip table")
    await page.locator(".job-strip summary").click()
    assert await table.locator("tbody tr").count() == 8


async def test_a_rescue_and_a_late_result_are_told(scene: Scene) -> None:
    page = await scene.open("rescued")
    told = await page.locator(".moves").inner_text()
    assert "worker web-1 presumed dead; handed back (crash 1 of 3)" in told
    assert "A late result of lease 3 was refused: not applied" in told
    assert "rescuer" in told
    await expect(page.locator(".attempt", has_text="lost")).to_have_count(2)
    label = await page.locator(".strip").get_attribute("aria-label")
    assert "ran and was lost" in str(label)


@pytest.mark.parametrize(
    ("kind", "sentence", "leads_to"),
    [("limited", "At most 1 of 'account:acme'", "holder"), ("last", "It waits for job", "flow")],
)
async def test_the_sentence_leads_to_what_is_in_the_way(scene: Scene, kind: str, sentence: str, leads_to: str) -> None:
    page = await scene.open(kind)
    await expect(page.locator(".why-text")).to_contain_text(sentence)
    await page.locator(".why-text a").first.click()
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{scene.kinds[leads_to]}")


async def test_a_flow_is_drawn_and_listed(scene: Scene) -> None:
    page = await scene.open("flow")
    assert await page.locator(".graph .node").count() == 3
    assert await page.locator(".graph [tabindex='0'], .graph a:not([tabindex])").count() == 0
    names = await page.locator(".kin h3").all_inner_texts()
    assert names == ["Waited for", "Then"]
    await page.locator(".kin", has_text="Then").get_by_role("link").focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{scene.kinds['last']}")
    page = await scene.open("gathering")
    await expect(page.locator(".kin h3")).to_have_text("Gathers 2 of 3 ended")
    assert await page.locator(".graph .node").count() == 4


async def test_where_it_comes_from_is_told(scene: Scene) -> None:
    page = await scene.open("tick")
    await expect(page.locator(".move-words").first).to_contain_text("by the schedule report.nightly")
    page = await scene.open("rejected")
    await page.locator(".kin", has_text="Replayed as").get_by_role("link").click()
    await expect(page.locator(".move-words").first).to_contain_text("to do the work of job")
    await page.locator(".kin", has_text="Replay of").get_by_role("link").click()
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{scene.kinds['rejected']}")


async def test_progress_has_a_rate_and_what_is_kept_is_shown(scene: Scene) -> None:
    page = await scene.open("running")
    told = await page.locator(".job-progress").inner_text()
    assert "52 %" in told
    assert "520 of 1,000" in told
    assert "/s" in told
    assert "left" in told
    page = await scene.open("signal")
    assert [await page.locator(".kept-name").nth(n).inner_text() for n in range(2)] == ["account", "saved"]
    assert str(BIG) in await page.locator(".kept").inner_text()


async def test_digits_are_exact_and_secrets_are_not_there(scene: Scene) -> None:
    page = await scene.open("succeeded")
    assert f"order: {BIG}" in await page.locator("[data-live=payload]").inner_text()
    async with page.expect_download() as begun:
        await page.get_by_role("link", name="Download the payload as JSON").click()
    file = await begun.value
    assert file.suggested_filename == f"job-{scene.kinds['succeeded']}-payload.json"
    assert f'"order":{BIG}' in Path(await file.path()).read_text()
    page = await scene.open("secret", "reader")
    told = await page.content()
    assert "tok-secret" not in told
    assert "hunter2" not in told
    hidden = await page.locator("[data-live=payload] li:has(> .json-hidden)").all_inner_texts()
    assert sorted(hidden) == [
        "password: *** not shown because of its name",
        "token: *** a secret: its handler alone is given it",
    ]


async def test_whatever_a_job_holds_is_text(scene: Scene) -> None:
    page = await scene.open("hostile")
    told = await page.locator("main").inner_text()
    assert told.count("<img src=x onerror=alert(1)>") > 5
    assert await page.locator("main img, main script").count() == 0
    assert "\u202e" not in told
    assert "\x1b" not in told
    assert "49" not in await page.locator(".job-head").inner_text()  # {{7*7}}
    await confirm(page, "Delete", "Go back")


async def test_a_signal_is_sent_with_every_digit_and_the_end_is_seen(scene: Scene) -> None:
    handle = await scene.made("user.onboard", {"user": 8}, Status.BLOCKED)
    page = await (await scene.site.look("operator")).go(f"/jobs/{handle.id}")
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    await page.get_by_role("button", name="Send the signal approved").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill(f'{{"by": {BIG}}}')
    await page.get_by_role("button", name="Send it").click()
    await expect(page.locator(".job-title .badge")).to_have_text("succeeded")
    await expect(page.locator("[data-live=result]")).to_contain_text(str(BIG))
    assert "The signal approved came: queued" in await page.locator(".moves").inner_text()


async def test_each_deed_says_what_comes_of_it(scene: Scene) -> None:
    app = scene.site.app
    handle = await scene.made("mail.receipt", {"order": 5}, Status.SCHEDULED, delay=3600)
    page = await (await scene.site.look("operator")).go(f"/jobs/{handle.id}")
    told = await confirm(page, "Cancel", "Cancel it")
    assert "does not run" in told
    await expect(page.locator(".job-title .badge")).to_have_text("cancelled")
    told = await confirm(page, "Retry now", "Queue it")
    assert "with fresh attempts" in told
    await expect(page.locator(".job-title .badge")).to_have_text("succeeded")
    told = await confirm(page, "Duplicate", "Enqueue it")
    assert "this one stays as it is" in told
    await page.wait_for_url(lambda url: handle.id not in url)
    again = page.url.rpartition("/")[2]
    assert (await app.jobs.get(again)).replay_of == handle.id
    await expect(page.locator(".job-title .badge")).to_have_text("succeeded")
    told = await confirm(page, "Delete", "Delete it")
    assert "cannot be undone" in told
    await page.wait_for_url("**/dashboard/jobs")
    assert await app.jobs.several([again]) == [None]


async def test_a_waiting_job_is_enqueued_once_more(scene: Scene) -> None:
    handle = await scene.made("mail.receipt", {"order": BIG}, Status.SCHEDULED, delay=3600, tags=["twice"])
    page = await (await scene.site.look()).go(f"/jobs/{handle.id}")
    await confirm(page, "Duplicate", "Enqueue it")
    await page.wait_for_url(lambda url: handle.id not in url)
    made = await scene.site.app.jobs.get(page.url.rpartition("/")[2])
    assert (made.payload, made.tags) == ({"order": BIG}, ("twice",))


async def test_administrators_retry_with_another_payload(scene: Scene) -> None:
    handle = await scene.made("mail.receipt", {"order": BIG}, Status.SUCCEEDED)
    page = await (await scene.site.look()).go(f"/jobs/{handle.id}")
    await page.get_by_role("button", name="Retry with another payload").click()
    field = page.get_by_role("dialog").get_by_role("textbox")
    text = await field.input_value()
    assert str(BIG) in text
    await field.fill(text[:-1])
    await page.get_by_role("button", name="Enqueue it").click()
    await expect(page.locator(".toast")).to_contain_text("not JSON")
    await expect(field).to_have_value(text[:-1])  # what was typed is not lost
    await field.fill(text.replace(str(BIG), str(BIG + 2)))
    await page.get_by_role("button", name="Enqueue it").click()
    await page.wait_for_url(lambda url: handle.id not in url)
    assert (await scene.site.app.jobs.get(page.url.rpartition("/")[2])).payload["order"] == BIG + 2


async def test_who_holds_its_unique_key_is_told_with_a_link(scene: Scene) -> None:
    first = await scene.made("rejected", {"order": 1}, Status.FAILED, unique="only-one")
    holder = await scene.made("rejected", {"order": 1}, Status.SCHEDULED, unique="only-one", delay=3600)
    page = await (await scene.site.look("operator")).go(f"/jobs/{first.id}")
    await confirm(page, "Retry now", "Queue it")
    await page.locator(".toast").get_by_role("link", name="See that job").click()
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{holder.id}")


async def test_each_sees_their_own_and_what_they_may_do(scene: Scene) -> None:
    async def deeds(page: Page) -> list[str]:
        return await page.locator(".deeds button").all_inner_texts()

    assert await deeds(await scene.open("failed", "reader")) == []
    assert await deeds(await scene.open("failed", "operator")) == ["Retry now", "Duplicate", "Copy link", "Delete"]
    assert "Retry with another payload" in await deeds(await scene.open("failed", "admin"))
    page = await scene.open("failed", "user")
    assert await deeds(page) == ["Retry now", "Duplicate", "Copy link", "Delete"]
    told = await page.locator("main").inner_text()
    worker = (await scene.site.app.jobs.get(scene.kinds["failed"])).worker_id
    assert "TimeoutError" in told
    assert str(worker) not in await page.content()
    assert await page.locator(".traceback").count() == 0
    for kind in ("holder", "hostile"):
        look = await scene.site.look("user")
        answer = await look.page.goto(f"{scene.site.url}/jobs/{scene.kinds[kind]}")
        assert answer is not None
        assert answer.status == 404
    for path in ("/jobs/nowhere", "/jobs/01a1eef7-f35e-7000-8009-6eb526efee66"):
        answer = await page.goto(f"{scene.site.url}{path}")
        assert answer is not None
        assert answer.status == 404
    # What is not shown is refused, too.
    page = await scene.open("failed", "reader")
    ask = "path => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}}).then(a => a.status)"
    for deed in ("retry", "cancel", "replay"):
        assert await page.evaluate(ask, f"/api/v1/queue/{scene.kinds['failed']}/{deed}") == 403


async def test_without_a_script_all_can_be_read(scene: Scene) -> None:
    page = await scene.open("failed", script=False)
    assert await page.locator(".js-only:visible").count() == 0
    told = await page.locator("main").inner_text()
    for wanted in ("Timeline", "Failed for good", "smtp.example.org", "Similar jobs", "order:"):
        assert wanted in told
    await page.locator(".library summary").first.click()
    await expect(page.locator(".library pre").first).to_be_visible()


async def test_keys_lead_through_the_list_it_was_opened_from(scene: Scene) -> None:
    made = [(await scene.made("mail.receipt", {"order": n}, Status.SUCCEEDED, tags=["walk"])).id for n in range(3)]
    page = await (await scene.site.look("reader")).go(f"/jobs/{made[1]}?q=tag:walk")
    await page.keyboard.press("]")
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{made[0]}?q=tag%3Awalk")
    assert await page.locator("a[rel=next]").count() == 0
    await page.keyboard.press("[")
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{made[1]}?q=tag%3Awalk")
    await page.keyboard.press("[")
    await expect(page).to_have_url(f"{scene.site.url}/jobs/{made[2]}?q=tag%3Awalk")
    assert await page.locator("a[rel=prev]").count() == 0
    page = await (await scene.site.look("reader")).go(f"/jobs/{made[1]}")
    assert await page.locator("a[rel=next]").count() == 0
    await page.goto(f"{scene.site.url}/jobs/{made[1]}", referer=f"{scene.site.url}/jobs?q=tag:walk&after=x")
    assert await page.locator("a[rel=next]").count() == 1
    page = await (await scene.site.look("reader")).go(f"/jobs/{made[1]}?q=nonsense:x")
    assert await page.locator("h1").inner_text() == "mail.receipt"
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.keyboard.press("y")
    await expect(page.locator(".toast")).to_contain_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == made[1]


async def test_a_large_job_stays_a_page(scene: Scene) -> None:
    app, store = scene.site.app, scene.site.app.client.store
    payload = {"rows": [{"n": n, "text": "x" * 40} for n in range(3_350)], "long": "y" * 40_000}
    assert 240_000 < len(json.dumps(payload)) < 262_144
    parent = draft("unhandled.elsewhere", json.dumps(payload), queue="elsewhere")
    await store.jobs.insert([parent])
    for _ in range(HISTORY_LIMIT // 2 + 5):
        await app.jobs.cancel(parent.id)
        await app.jobs.retry(parent.id)
    waits = draft("unhandled.elsewhere", queue="elsewhere", awaits="end")
    before = [draft("unhandled.elsewhere", queue="elsewhere", next_id=waits.id) for _ in range(500)]
    await store.jobs.insert([waits, *before])
    key = await app.keys.create("a test", owner="*", scopes=["admin"])
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with httpx.AsyncClient(headers=headers, base_url=scene.site.url, timeout=30) as client:
        texts: list[str] = []
        for id_ in (parent.id, waits.id):
            began = time.process_time()  # of this process, which serves: others may be busy, too
            answer = await client.get(f"/jobs/{id_}")
            took = time.process_time() - began
            assert answer.status_code == 200
            assert took < 2, f"{took:.2f} s"
            assert len(answer.content) < 600_000
            texts.append(answer.text)
        assert "Show all 500" in texts[1]
        regions = await client.get(f"/jobs/{parent.id}", headers={"X-Windlass-Regions": "own"})
        assert "earlier entries were dropped" in regions.text
        assert "xxxxxxxxxx" not in regions.text  # a payload that cannot change is not sent again
    look = await scene.site.look()
    page = await look.go(f"/jobs/{parent.id}")
    await page.locator(".earlier summary", has_text="earlier moves").click()
    await expect(page.locator(".move").first).to_be_visible()
    assert await page.locator(".move").count() == HISTORY_LIMIT


@pytest.mark.timeout(120)
@pytest.mark.parametrize("store", [store for store in STORES if store != "sqlite"])
async def test_the_main_path_on_the_other_stores(
    store: str, tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_SECRET_KEYS", new_key())
    async with (
        open_place(store, tmp_path, new=False) as place,
        scene_of(Windlass(store=place.store()), browser) as scene,
    ):
        page = await scene.open("rescued")
        await expect(page.locator(".moves")).to_contain_text("A late result of lease 3 was refused: not applied")
        page = await scene.open("limited")
        await expect(page.locator(".why-text a")).to_have_attribute("href", f"/dashboard/jobs/{scene.kinds['holder']}")
        page = await scene.open("rejected")
        await expect(page.locator(".kin h3")).to_have_text("Replayed as")
        page = await scene.open("flow")
        assert await page.locator(".graph .node").count() == 3
        page = await scene.open("signal")
        await page.get_by_role("button", name="Send the signal approved").click()
        await page.get_by_role("button", name="Send it").click()
        await expect(page.locator(".job-title .badge")).to_have_text("succeeded")
        await confirm(page, "Run again", "Queue it")
        await expect(page.locator(".moves")).to_contain_text("Queued again, with fresh attempts")
