from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import is_new
from tests.contract.places import PostgresPlace, postgres
from windlass.stores.postgres.store import PostgresStore


@pytest.fixture
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PostgresPlace]:
    async with postgres(tmp_path, new=is_new(request)) as place:
        yield place


@pytest.fixture
async def store(place: PostgresPlace) -> AsyncIterator[PostgresStore]:
    store = place.store()
    assert isinstance(store, PostgresStore)
    await store.open()
    yield store
    await store.close()
