"""What the tests of the SQLite store share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps import nothing_left
from windlass.stores.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def file(path: Path) -> AsyncIterator[SqliteStore]:
    """An open store on a file."""
    async with nothing_left():
        store = SqliteStore(path)
        await store.open()
        yield store
        await store.close()
