"""A browser that prints pages, for a whole run of samples."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

from tests.web.dashboard.browsing import ARGUMENTS, PROGRAMS


@contextmanager
def printer() -> Generator[Callable[[str], bytes]]:
    """A function from a page of HTML to its PDF."""
    with sync_playwright() as playwright:
        found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        try:
            page = browser.new_page()

            def printed(html: str) -> bytes:
                page.set_content(html)
                return page.pdf(prefer_css_page_size=True)

            yield printed
        finally:
            browser.close()
