"""What the tests of the worker share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps import Heard, app_at, nothing_left
from windlass import Windlass


@pytest.fixture(autouse=True)
async def _clean() -> AsyncIterator[None]:
    async with nothing_left():
        yield


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Windlass]:
    app = app_at(tmp_path / "jobs.db")
    async with app:
        yield app
    app.close()


@pytest.fixture
def heard(app: Windlass) -> Heard:
    return Heard(app)
