"""Pages of resumes: one is sent, watched, read and tailored, its score explained; users see their own alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.apps.resumes.documents import DESCRIPTION, docx, pdf
from tests.apps.resumes.test_routes import here
from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass
from windlass.apps.resumes.resumes import Resumes, Sent, install
from windlass.apps.resumes.settings import ResumesSettings
from windlass.web.access.keys import COOKIE

pytestmark = IN_BROWSER
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}"


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    app = Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF")
    resumes = install(app, ResumesSettings(files=str(tmp_path / "files")))
    resumes.read = here
    async with site_of(app, browser) as site:
        yield site


def resumes_in(site: Site) -> Resumes:
    from windlass.apps.resumes.resumes import resumes_of

    found = resumes_of(site.app)
    assert found is not None
    return found


async def test_a_resume_is_sent_read_and_tailored_and_its_score_explained(site: Site, tmp_path: Path) -> None:
    look = await site.look(width=1280)
    page = await look.go("/resumes")
    await expect(page.locator("main")).to_contain_text("No resume was sent yet")
    assert await look.axe() == []
    path = tmp_path / "ada.pdf"
    path.write_bytes(pdf())
    await page.set_input_files("form[data-drop] input[type=file]", path)
    await page.locator("tr[data-key] a").click()
    await expect(page.locator(".resume-parts")).to_contain_text("ada.quillfeather@example.org")
    await expect(page.locator(".resume-parts")).to_contain_text("Zorblatt")
    assert await look.axe() == []
    await page.fill("textarea[name=jobDescription]", DESCRIPTION)
    await page.fill("input[name=companyName]", "Northwind")
    async with page.expect_response("**/resumes/generate") as asked:
        await page.click("#tailor button")
    told = await (await asked.value).json()
    await expect(page.locator("#tailored")).to_be_visible()
    await expect(page.locator(".tailored-total")).to_contain_text(f"{told['atsScore']['total']:.0f} of 100")
    await expect(page.locator("#tailored")).to_contain_text("not made for ranking or rejecting applicants")
    await expect(page.locator("#tailored-parts tr")).to_have_count(len(told["atsScore"]["parts"]))
    await expect(page.locator("#tailored-matched")).to_contain_text("Python")
    await expect(page.locator("#tailored-missing")).to_contain_text("Rust")
    assert await look.axe() == []
    async with page.expect_download() as begun:
        await page.click("#tailored-file")
    got = await begun.value
    assert got.suggested_filename == told["fileName"]
    assert Path(await got.path()).read_bytes().startswith(b"%PDF-")
    one = page.url.removeprefix(site.url)
    for width in (320, 390, 1440):
        narrow = await site.look(width=width)
        for where in ("/resumes", one):
            await narrow.go(where)
            assert await narrow.overflow() <= 0, (width, where)
    await page.click("button[data-act^=DELETE]")
    await page.click("#ask-yes")
    await page.wait_for_url("**/dashboard/resumes")
    await expect(page.locator("main")).to_contain_text("No resume was sent yet")
    assert look.wrong == []


async def test_one_that_is_processed_is_watched_until_it_is_there(site: Site) -> None:
    gate, resumes = asyncio.Event(), resumes_in(site)

    async def slowly(data: bytes, media_type: str) -> object:
        await gate.wait()
        return await here(data, media_type)

    resumes.read = slowly  # type: ignore[assignment]  # it gives what `here` does
    [seen] = await resumes.submit("ann", Sent(name=f"{HOSTILE}.txt", media_type="text/plain", data=docx()))
    look = await site.look("user")
    async with site.app.worker():
        page = await look.go(f"/resumes/{seen.record.id}")
        await expect(page.locator("[data-live=resume]")).to_contain_text("reading the document")
        assert await look.axe() == []
        gate.set()
        await expect(page.locator(".resume-parts")).to_contain_text("Ada Quillfeather")
    await expect(page.locator("h1")).to_contain_text(HOSTILE)
    assert look.wrong == []


async def test_one_that_was_refused_says_why(site: Site, tmp_path: Path) -> None:
    resumes = resumes_in(site)
    [seen] = await resumes.submit("ann", Sent(name="a.pdf", media_type="application/pdf", data=b"%PDF-1.7 nothing"))
    await site.app.worker(drain=True).run()
    look = await site.look("user")
    page = await look.go(f"/resumes/{seen.record.id}")
    await expect(page.locator("main")).to_contain_text("it is a broken PDF")
    assert await page.locator("#tailor").count() == 0
    await look.go("/resumes")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 nothing")
    sender = await site.look()
    page = await sender.go("/resumes")
    await page.set_input_files("form[data-drop] input[type=file]", tmp_path / "b.pdf")
    await expect(page.locator(".drop-told")).to_contain_text("cannot be processed")


@pytest.mark.parametrize("script", [True, False])
async def test_users_see_their_own_alone_and_readers_only_look(site: Site, script: bool) -> None:
    resumes = resumes_in(site)
    seen = await resumes.at_once("ann", Sent(name="a.txt", media_type="text/plain", data=b"Ada\nada@example.org\n"))
    mine = await site.look("user", script=script)
    page = await mine.go(f"/resumes/{seen.record.id}")
    await expect(page.locator(".resume-parts")).to_contain_text("ada@example.org")
    other = await site.app.keys.create("bob", owner="bob", scopes=["read"], kind="session", lasts=600)
    theirs = await site.look("reader", script=script)
    page = await theirs.go("/resumes")
    await expect(page.locator("main")).to_contain_text("a.txt")
    assert await page.locator("form[data-drop]").count() == 0
    await page.context.add_cookies([{"name": COOKIE, "value": other.secret, "url": site.origin, "httpOnly": True}])
    await theirs.go("/resumes")
    await expect(page.locator("main")).to_contain_text("No resume was sent yet")
    answer = await page.goto(f"{site.url}/resumes/{seen.record.id}")
    assert answer is not None
    assert answer.status == 404
