"""`script/screenshots`: the pictures in docs/images, of `windlass demo --serve` in a real Chromium."""

from __future__ import annotations

import argparse
import asyncio
import base64
import re
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright

from tests.web.dashboard.browsing import launch

FOLDER = Path(__file__).parents[1] / "docs" / "images"
LIMIT = 3 * 2**20
"""bytes of all pictures together"""
PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "failed-jobs": "/jobs?q=status:failed",
    "job": "{failed}",
    "flow": "{flow}",
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
}
WIDE, HIGH = 1280, 840
_QUALITY = 82
# Of the API, asked by the page itself: a failed job with several attempts, and one that waits for its parts.
_FIND = """
async (base) => {
  const ask = async (query) => (await (await fetch(`${base}/api/v1/queue?${query}`)).json()).items;
  const failed = await ask("status=failed&limit=100");
  const tried = failed.find((job) => job.attempts > 2) ?? failed[0];
  const waiting = (await ask("type=fulfil_order&limit=20"))[0];
  return [tried?.id, waiting?.id];
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
    failed, flow = await page.evaluate(_FIND, origin)
    for name, path in PAGES.items():
        if wanted and name not in wanted:
            continue
        answer = await page.goto(f"{origin}/dashboard{path.format(failed=f'/jobs/{failed}', flow=f'/jobs/{flow}')}")
        if answer is None or answer.status != 200:
            print(f"{name}: {path} is not there", file=sys.stderr)
            continue
        live = page.locator('#live[data-state="live"], #live[hidden]')
        with suppress(Error):  # a page may ask by itself, without a stream
            await live.wait_for(state="attached", timeout=5_000)
        await asyncio.sleep(0.5)
        await picture(context, page, FOLDER / f"dashboard-{name}-{theme}.webp")
    await context.close()


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
