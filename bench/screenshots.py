"""`script/screenshots`: the pictures in docs/images, of `windlass demo --serve` in a real Chromium."""

from __future__ import annotations

import argparse
import asyncio
import base64
import re
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright

from tests.web.dashboard.browsing import launch
from windlass.cli.demo_sheet import make

FOLDER = Path(__file__).parents[1] / "docs" / "images"
LIMIT = 3 * 2**20
"""bytes of all pictures together"""
PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "failed-jobs": "/jobs?q=status:failed",
    "job": "/jobs/{failed}",
    "flow": "/jobs/{flow}",
    "queues": "/queues",
    "schedules": "/schedules",
    "schedule": "/schedules/one?name=recount",
    "new-schedule": "/schedules/edit?rule=cron&cron=30+2+*+*+*&tz=Europe/Berlin&name=nightly&type=close_day",
    "workers": "/workers",
    "failures": "/failures",
    "types": "/types",
    "type": "/types/one?type=build_report",
    "audit": "/audit",
    "health": "/health",
    "imports": "/imports",
    "import-file": "/imports/files/{file}",
    "import": "/imports/{import}",
}
WIDE, HIGH = 1280, 840
TALL = {"job": 1500, "flow": 1500, "import-file": 1180}
"""of pages whose middle tells most"""
_QUALITY = 82
# Of the API, asked by the page itself: a failed job with several attempts, one that gathers its parts, an import.
_FIND = """
async (base) => {
  const ask = async (path) => (await (await fetch(`${base}/api/v1/${path}`)).json()).items;
  const failed = await ask("queue?status=failed&limit=100");
  const tried = failed.find((job) => job.attempts > 2) ?? failed[0];
  const orders = await ask("queue?type=fulfil_order&limit=20");
  const order = orders.find((job) => job.status === "succeeded") ?? orders[0];
  const imported = (await ask("imports?limit=20")).find((one) => one.result);
  return { failed: tried?.id, flow: order?.id, import: imported?.id };
}
"""


async def main(wanted: list[str], seconds: float, hours: float) -> int:
    """Take them, and say how large they are."""
    async with demo(hours) as link, async_playwright() as playwright:
        browser = await launch(playwright)
        state = await signed_in(browser, link)
        await asyncio.sleep(seconds)  # so that what is shown is at work
        for theme in ("light", "dark"):
            await pictures(browser, state, link.partition("/dashboard")[0], theme, wanted)
        await browser.close()
    size = sum(one.stat().st_size for one in FOLDER.glob("dashboard-*.webp"))
    print(f"{size / 1024:,.0f} KiB of at most {LIMIT / 1024:,.0f}")
    return 0 if size <= LIMIT else 1


@asynccontextmanager
async def demo(hours: float) -> AsyncGenerator[str]:
    """The shop while inside: the link that lets in."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", "demo", "--serve", "--port", "0", "--hours", str(hours)),
        stdout=asyncio.subprocess.PIPE,
    )
    if process.stdout is None:
        raise RuntimeError("no output")
    try:
        async for line in process.stdout:
            found = re.search(rb"http://\S+token=\S+", line)
            if found is not None:
                yield found[0].decode()
                break
        else:
            raise RuntimeError("the demo ended before it gave its link")
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()


async def signed_in(browser: Browser, link: str) -> Any:
    """What a browser keeps that has used the link."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(link)
    state = await context.storage_state()
    await context.close()
    return state


async def pictures(browser: Browser, state: Any, origin: str, theme: str, wanted: list[str]) -> None:
    """One of each page in one theme."""
    context = await browser.new_context(
        storage_state=state,
        viewport={"width": WIDE, "height": HIGH},
        color_scheme=cast("Any", theme),
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = await context.new_page()
    await page.goto(f"{origin}/dashboard/")
    found = await page.evaluate(_FIND, origin)
    found["file"] = await sent(page, origin)
    for name, path in PAGES.items():
        if wanted and name not in wanted:
            continue
        await page.set_viewport_size({"width": WIDE, "height": TALL.get(name, HIGH)})
        answer = await page.goto(f"{origin}/dashboard{path.format(**found)}")
        if answer is None or answer.status != 200:
            print(f"{name}: {path} is not there", file=sys.stderr)
            continue
        live = page.locator('#live[data-state="live"], #live[hidden]')
        with suppress(Error):  # a page may ask by itself, without a stream
            await live.wait_for(state="attached", timeout=5_000)
        await asyncio.sleep(0.5)
        await picture(context, page, FOLDER / f"dashboard-{name}-{theme}.webp")
    await context.close()


async def sent(page: Page, origin: str) -> str:
    """A spreadsheet that was dropped: what it is known by."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "customers-2026.xlsx"
        await asyncio.to_thread(make, path, 400)
        await page.goto(f"{origin}/dashboard/imports")
        await page.set_input_files(".drop input[type=file]", path)
        await page.wait_for_url("**/imports/files/*")
    return page.url.rpartition("/")[2].partition("?")[0]


async def picture(context: BrowserContext, page: Page, path: Path) -> None:
    """As WebP, which Playwright itself does not write."""
    session = await context.new_cdp_session(page)
    send = cast("Callable[..., Awaitable[dict[str, Any]]]", getattr(session, "send"))  # noqa: B009  # it has no types
    told = await send("Page.captureScreenshot", {"format": "webp", "quality": _QUALITY})
    await asyncio.to_thread(path.write_bytes, base64.b64decode(told["data"]))
    await session.detach()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="script/screenshots", description=__doc__)
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(PAGES)}; all if none is named")
    parser.add_argument("--after", type=float, default=90, help="seconds for which the shop is at work before")
    parser.add_argument("--hours", type=float, default=6, help="of the shop's past")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.pages, given.after, given.hours)))
