"""Pages of imports: a file is dropped, tried and imported; what was refused is shown; users see their own alone."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it has no types
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.apps.imports.conftest import Database
from tests.apps.imports.test_importing import imports_of
from tests.apps.imports.workbooks import PAYABLES, Formula, payables, workbook
from tests.web.dashboard.browsing import IN_BROWSER, Site
from tests.web.dashboard.conftest import site_of
from windlass import Windlass
from windlass.apps.imports.shipped import AccountsPayable

pytestmark = IN_BROWSER
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}"


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    app = Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF")
    imports_of(app, tmp_path)
    async with site_of(app, browser) as site:
        yield site


def book(path: Path, *more: tuple[Any, ...]) -> Path:
    rows = [("Invoice #", "Supplier", *PAYABLES[2:], HOSTILE), *payables(12), *more]
    return workbook(path, rows, sheet="AP Data", more=["Notes"])


async def send(page: Page, path: Path) -> None:
    await page.set_input_files(".drop input[type=file]", path)
    await page.wait_for_url("**/imports/files/*")


async def test_a_file_is_dropped_tried_and_imported(site: Site, tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", (HOSTILE, "", "abc", "3/4/2026"), ("I2", "V", Formula("=1/0", "#DIV/0!"), 46024))
    look = await site.look(width=1280)
    await site.app.enqueue("mail.send", {"to": "x"}, tags=("import",))  # not an import, whatever it is tagged with
    page = await look.go("/imports")
    await expect(page.locator("main")).to_contain_text("No imports yet")
    assert await look.axe() == []
    await send(page, path)
    assert await page.locator("select[name=invoiceNumber]").input_value() == "Invoice #"
    await expect(page.locator("main")).to_contain_text("Unused: " + HOSTILE)
    assert await look.axe() == []
    async with site.app.worker():
        await page.click("button[name=try]")
        await page.wait_for_url(re.compile("/imports/[0-9a-f]{8}-"))
        await expect(page.locator("main")).to_contain_text("would be inserted")
        await expect(page.locator(".refused")).to_contain_text("amount: holds the error #DIV/0!")
        await expect(page.locator(".bad-cell").first).to_be_visible()
        await expect(page.locator("main")).to_contain_text("Preview")
        assert await look.axe() == []
        await page.click("[data-import]")
        await expect(page.locator(".tile", has_text="Updated")).to_contain_text("unchanged")
    await look.go("/imports")
    row = page.locator("tr[data-key]").first
    await expect(row).to_contain_text("a.xlsx")
    await expect(row).to_contain_text("2 refused")
    assert await look.axe() == []
    job = await row.get_attribute("data-key")
    for width in (320, 1440):
        narrow = await site.look(width=width)
        for path_ in ("/imports", f"/imports/{job}"):
            await narrow.go(path_)
            assert await narrow.overflow() <= 0, (width, path_)


async def test_the_refused_rows_are_downloaded_corrected_and_sent_alone(site: Site, tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", ("I1", "V", "abc", "2026-01-02"), ("I2", "", 5, "2026-01-02"))
    look = await site.look(width=1280)
    page = await look.go("/imports")
    await send(page, path)
    async with site.app.worker():
        await page.click("button[name=import]")
        await expect(page.locator(".refused")).to_contain_text("vendor: is required")
        async with page.expect_download() as downloading:
            await page.click("text=Refused rows (.xlsx)")
        sheet = tmp_path / (await downloading.value).suggested_filename
        await (await downloading.value).save_as(sheet)
        opened: Any = openpyxl.load_workbook(sheet)
        cells = opened.active
        assert [row[0].value for row in cells.iter_rows(min_row=2)] == ["I1", "I2"]
        assert cells["G2"].value == "Row 14: amount: is not a number"
        cells["C2"], cells["B3"] = 12.5, "Vendor"
        opened.save(sheet)
        async with page.expect_download() as downloading:
            await page.click("text=All errors (.csv)")
        assert "14,Amount,amount,abc,not-a-number" in (await (await downloading.value).path()).read_text()

        await look.go("/imports")
        await send(page, sheet)
        # The columns are those of before; the reasons are no field.
        await expect(page.locator("main")).to_contain_text("Reasons")
        await page.click("button[name=import]")
        await expect(page.locator(".tile", has_text="New")).to_contain_text("2")
        await expect(page.locator(".tile", has_text="Refused")).to_contain_text("0")
    rows = await Database("sqlite", f"sqlite:///{tmp_path / 'site.db'}").rows(AccountsPayable())
    assert {row["invoiceNumber"]: row["vendor"] for row in rows} | {"I1": "V", "I2": "Vendor"} == {
        row["invoiceNumber"]: row["vendor"] for row in rows
    }
    assert len(rows) == 14


async def test_what_cannot_be_imported_is_told_where_it_was_dropped(site: Site, tmp_path: Path) -> None:
    look = await site.look()
    page = await look.go("/imports")
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04 not a workbook")
    await page.set_input_files(".drop input[type=file]", tmp_path / "b.xlsx")
    await expect(page.locator(".drop-told")).to_contain_text("damaged")
    lacking = workbook(tmp_path / "c.xlsx", [("Invoice #", "Other"), ("1", "2")])
    await send(page, lacking)
    await page.select_option("select[name=type]", "ap")
    await page.wait_for_url("**type=ap**")
    await page.click("button[name=import]")
    await expect(page.locator("#import-told")).to_contain_text("Choose a column for vendor")


@pytest.mark.parametrize("script", [True, False])
async def test_users_see_their_own_alone_and_readers_only_look(site: Site, tmp_path: Path, script: bool) -> None:
    from tests.apps.imports.test_importing import started
    from windlass.apps.imports.imports import imports_of as known

    imports = known(site.app)
    assert imports is not None
    handle = await started(imports, "ap", book(tmp_path / "a.xlsx", ("x", "", "y")))
    await site.app.worker(drain=True).run()
    mine = await site.look("user", script=script)
    page = await mine.go(f"/imports/{handle.id}")
    await expect(page.locator(".refused")).to_contain_text("vendor: is required")
    other = await imports.app.keys.create("bob", owner="bob", scopes=["read"], kind="session", lasts=600)
    theirs = await site.look("reader", script=script)
    page = await theirs.go("/imports")
    await expect(page.locator("main")).to_contain_text("a.xlsx")
    assert await page.locator(".drop").count() == 0
    from windlass.web.access.keys import COOKIE

    await page.context.add_cookies([{"name": COOKIE, "value": other.secret, "url": site.origin, "httpOnly": True}])
    await theirs.go("/imports")
    await expect(page.locator("main")).to_contain_text("No imports yet")
    answer = await page.goto(f"{site.url}/imports/{handle.id}")
    assert answer is not None
    assert answer.status == 404
