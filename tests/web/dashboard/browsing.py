"""A real browser on a real server: the site under test, and a page of it as somebody sees it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]  # it has no py.typed
from fastapi import FastAPI
from playwright.async_api import Browser, ConsoleMessage, Error, Page, Playwright
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.support.until import until
from windlass import Windlass
from windlass.web.access.keys import COOKIE
from windlass.web.live.pace import Pace

IN_BROWSER = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]
"""`pytestmark` of files with browser tests: one browser and one event loop for all of them in this process"""
ROLES = {
    "admin": ("*", ["admin"]),
    "operator": ("*", ["read", "operate"]),
    "reader": ("*", ["read"]),
    "user": ("ann", ["read", "operate"]),
}
"""owner and scopes"""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WATCH = """
addEventListener("securitypolicyviolation", (it) => console.error(`CSP ${it.violatedDirective} ${it.blockedURI}`));
"""
SHOTS = os.environ.get("WINDLASS_TEST_SHOTS")
"""a folder for pictures, where somebody wants to see them"""
_LOOKED_AT: dict[str, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]},  # what colours decide
}
QUICK = Pace(gap=0.02, view_gap=0.05, floor=0.1)


async def launch(playwright: Playwright) -> Browser:
    """The browser of this machine, or the one that Playwright brought."""
    found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    try:
        return await playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
    except Error as error:
        raise RuntimeError(
            f"the dashboard's tests need a Chromium: {found or 'none of ' + ', '.join(PROGRAMS)} does not start;"
            " script/setup gets one"
        ) from error


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Any:
        yield


@dataclass
class Site:
    """A served application with its dashboard."""

    app: Windlass
    web: FastAPI
    origin: str
    prefix: str
    browser: Browser
    looks: list[Look] = field(default_factory=list["Look"])

    @property
    def url(self) -> str:
        """Where the dashboard is, without a slash at the end."""
        return f"{self.origin}{self.prefix}/dashboard"

    async def look(
        self, role: str | None = "admin", *, width: int = 1280, script: bool = True, theme: str = "light", **more: Any
    ) -> Look:
        """A page of a new browser, signed in as somebody with this role."""
        context = await self.browser.new_context(
            viewport={"width": width, "height": 800},
            java_script_enabled=script,
            color_scheme=cast("Any", theme),
            reduced_motion="reduce",
            **more,
        )
        if role is not None:
            owner, scopes = ROLES[role]
            made = await self.app.keys.create("a test", owner=owner, scopes=scopes, kind="session", lasts=600)
            await context.add_cookies([{"name": COOKIE, "value": made.secret, "url": self.origin, "httpOnly": True}])
        if script:
            await context.add_init_script(WATCH)
        page = await context.new_page()
        look = Look(self, page)
        self.looks.append(look)
        return look


class Look:
    """One page, and everything that went wrong in it."""

    def __init__(self, site: Site, page: Page) -> None:
        self.site, self.page = site, page
        self.wrong: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))

    def _said(self, message: ConsoleMessage) -> None:
        # That a request was refused is what some tests want; what a page did wrong itself is another kind of error.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.wrong.append(message.text)

    async def go(self, path: str = "/") -> Page:
        """Open a page of the dashboard."""
        await self.page.goto(f"{self.site.url}{path}")
        return self.page

    async def text(self, of: str = "main") -> str:
        """What can be read there."""
        return await self.page.locator(of).inner_text()

    async def axe(self) -> list[str]:
        """What is wrong for who cannot see the page well, in both themes."""
        found: list[str] = []
        for theme, options in _LOOKED_AT.items():
            await self.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
            results: dict[str, Any] = (await cast("Any", Axe()).run(self.page, options=options)).response
            found += [
                f"{theme} {one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
                for one in results["violations"]
                for node in one["nodes"]
            ]
        await self.page.evaluate("document.documentElement.dataset.theme = 'system'")
        return found

    async def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(await self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    async def shot(self, name: str) -> None:
        """A picture, where somebody wants to see it."""
        if SHOTS is not None:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)  # tests may block
            await self.page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


@asynccontextmanager
async def serving(app: Windlass, browser: Browser, prefix: str = "", **how: Any) -> AsyncGenerator[Site]:
    """Serve it while inside, below a prefix if there is one; at the end nothing may have gone wrong in any page."""
    options: dict[str, Any] = {"live": QUICK, **how}
    web = app.asgi(**options)
    around: Any = Starlette(routes=[Mount(prefix, web)]) if prefix else web
    server = _Quiet(uvicorn.Config(around, log_level="error", lifespan="off", timeout_graceful_shutdown=5))
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    await until(lambda: server.started, "the server to start")
    site = Site(app, web, f"http://127.0.0.1:{listening.getsockname()[1]}", prefix, browser)
    try:
        yield site
    finally:
        for look in site.looks:
            await look.page.context.close()
        server.should_exit = True
        web.state.closing.set()
        await task
        listening.close()
    wrong = [one for look in site.looks for one in look.wrong]
    assert wrong == [], "a page broke its own rules"
