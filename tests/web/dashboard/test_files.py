"""Pages of files: projects, the files of one, a file with its versions; restored and sent from there; two users."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass
from windlass.apps.files.files import Files, files_of, install
from windlass.apps.files.names import name_of
from windlass.apps.files.settings import FilesSettings

pytestmark = IN_BROWSER
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}} %2F?#.js"
"""what a file may be called, as no / and no : are in it"""


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    app = Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF")
    install(app, FilesSettings(blobs=str(tmp_path / "blobs"), root=tmp_path / "disk"))
    async with site_of(app, browser) as site:
        yield site


def files_at(site: Site) -> Files:
    files = files_of(site.app)
    assert files is not None
    return files


async def fill(site: Site) -> None:
    """A file of two versions and others of two owners, and one write that waits."""
    files = files_at(site)
    name = name_of(None, "shop", HOSTILE)
    for content in (b"first", b"second " * 3000):
        await files.write(name, content, path="js/example.js")
    await files.write(name_of("ann", "site", "ann.txt"), b"ann's", user="ann")
    await files.write(name_of("bob", "site", "bob.txt"), b"bob's", user="bob")
    await site.app.worker(drain=True).run()
    await files.write(name, b"third")


async def test_a_file_is_found_by_its_project_restored_and_written(site: Site, tmp_path: Path) -> None:
    look = await site.look(width=1280)
    page = await look.go("/files")
    await expect(page.locator("main")).to_contain_text("No files yet")
    assert await look.axe() == []
    await fill(site)
    await look.go("/files")
    assert await look.axe() == []
    await page.get_by_role("link", name="shop", exact=True).first.click()
    await expect(page.locator(".tile", has_text="Waiting")).to_contain_text("1")
    assert await look.axe() == []
    await page.locator("tbody a.strong").first.click()
    await expect(page.locator("h1")).to_have_text(HOSTILE)
    await expect(page.locator("main")).to_contain_text("number 3")
    assert await look.axe() == []
    async with page.expect_download() as downloading:
        await page.locator("a[download]").last.click()
    assert Path(await (await downloading.value).path()).read_bytes() == b"first"
    (tmp_path / "new.js").write_bytes(b"dropped")
    async with site.app.worker():
        await page.set_input_files(".drop input[type=file]", tmp_path / "new.js")
        await expect(page.locator("main")).to_contain_text("7 B")
        await page.get_by_role("button", name="Restore").last.click()
        await page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        await expect(page.locator("th", has_text="current")).to_contain_text("5")
    assert await files_at(site).read(name_of(None, "shop", HOSTILE)) == b"first"


async def test_pages_fit_every_width(site: Site) -> None:
    await fill(site)
    paths = {"/files": "Files", "/files/shop": "shop", "/files/site/ann.txt?owner=ann": "ann.txt"}
    for width in (320, 390, 1440):
        look = await site.look(width=width)
        for path, title in paths.items():
            page = await look.go(path)
            await expect(page.locator("h1")).to_have_text(title)
            assert await look.overflow() <= 0, (width, path)


async def test_users_see_their_own_projects_alone(site: Site) -> None:
    await fill(site)
    look = await site.look("user")
    page = await look.go("/files")
    await expect(page.locator("main")).to_contain_text("site")
    await expect(page.locator("main")).not_to_contain_text("shop")
    await page.get_by_role("link", name="site", exact=True).click()
    await expect(page.locator("main")).to_contain_text("ann.txt")
    await expect(page.locator("main")).not_to_contain_text("bob.txt")
    await look.go("/files/site/bob.txt")
    await expect(page.locator("body")).to_contain_text("There is nothing here")
    await look.go("/files/site/ann.txt")
    await expect(page.locator("main")).to_contain_text("current")
    assert await page.locator(".drop").count() == 0  # it may not enqueue
    assert await page.get_by_role("button", name="Restore").count() == 0
