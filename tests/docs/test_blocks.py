"""Every Python and shell block of the documentation runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of, runner


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("WINDLASS_URL", "WINDLASS_STORE", "WINDLASS_APP", "WINDLASS_FILE"):
        monkeypatch.delenv(name, raising=False)
    with runner(tmp_path) as blocks:
        blocks.run(page)
