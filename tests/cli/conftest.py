from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.support import SHOP, Shop
from windlass import Windlass


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Generator[Shop]:
    """An empty store, and beside it the module `shop` with some handlers."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    for name in ("WINDLASS_URL", "WINDLASS_STORE", "WINDLASS_APP", "WINDLASS_NAMESPACE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    made = Shop(tmp_path, capsys)

    async def open_it(_: Windlass) -> None: ...

    made.ask(open_it)
    yield made
    made.end()
