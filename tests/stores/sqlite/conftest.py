"""What the tests of the SQLite store share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from tests.support.apps import nothing_left
from windlass.stores.sqlite.engine import Engine
from windlass.stores.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def engine_of(store: SqliteStore) -> Engine:
    """The engine room, for tests of what happens there."""
    return cast("Engine", vars(store)["_engine"])


@pytest.fixture
async def file(path: Path) -> AsyncIterator[SqliteStore]:
    """An open store on a file."""
    async with nothing_left():
        store = SqliteStore(path)
        await store.open()
        yield store
        await store.close()
