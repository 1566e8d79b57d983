"""What the tests of the client share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps import app_at, nothing_left
from windlass import Windlass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def app(path: Path) -> AsyncIterator[Windlass]:
    async with nothing_left():
        app = app_at(path)
        async with app:
            yield app
        app.close()
