"""Every Python and shell block of the documentation runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name_of, runner


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, entered, in which nothing is set from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("WINDLASS_URL", "WINDLASS_STORE", "WINDLASS_APP", "WINDLASS_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, folder: Path) -> None:
    with runner(folder) as blocks:
        blocks.run(page)


@pytest.mark.timeout(120)
def test_the_blocks_of_the_readme_run_and_its_first_job_greets(folder: Path) -> None:
    with runner(folder) as blocks:
        blocks.run(ROOT / "README.md")
    assert "Hello, Ada!" in blocks.printed
    assert "Hello, Grace!" in blocks.printed
