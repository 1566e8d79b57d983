from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.places import RedisPlace, redis
from windlass.stores.redis.store import RedisStore


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[RedisPlace]:
    async with redis(tmp_path) as place:
        assert isinstance(place, RedisPlace)
        yield place


@pytest.fixture
async def store(place: RedisPlace) -> AsyncIterator[RedisStore]:
    store = place.store()
    assert isinstance(store, RedisStore)
    await store.open()
    yield store
    await store.close()
