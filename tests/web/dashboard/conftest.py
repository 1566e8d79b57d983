"""The dashboard on a real server, in one browser for all tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.contract.places import STORES, open_place
from tests.web.conftest import declare
from tests.web.dashboard.browsing import Site, launch, serving
from windlass import Windlass

BROWSERS = 2
"""a single one would be at work until long after all other tests have ended"""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file share a browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(f"browser{crc32(item.path.name.encode()) % BROWSERS}"))


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncGenerator[Browser]:
    expect.set_options(timeout=20_000)  # a busy machine is late, and a page that is wrong stays so
    async with async_playwright() as playwright:
        found = await launch(playwright)
        yield found
        await found.close()


@asynccontextmanager
async def site_of(app: Windlass, browser: Browser, **how: Any) -> AsyncGenerator[Site]:
    """The application of the web tests, served."""
    declare(app)
    async with app, serving(app, browser, **how) as site:
        yield site
    app.close()


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    """On SQLite."""
    async with site_of(Windlass(f"sqlite:///{tmp_path / 'site.db'}?synchronous=OFF"), browser) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session", params=STORES)
async def site_at(request: pytest.FixtureRequest, tmp_path: Path, browser: Browser) -> AsyncGenerator[Site]:
    """On each store."""
    async with (
        open_place(request.param, tmp_path, new=False) as place,
        site_of(Windlass(store=place.store()), browser) as site,
    ):
        yield site
