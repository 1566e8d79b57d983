from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from windlass.stores.contract import Store


@pytest.fixture
async def crowd(store: Store) -> AsyncIterator[list[Store]]:
    """Five open stores on one place, each with connections and threads of its own."""
    stores = [store, *[store.sibling() for _ in range(4)]]
    for one in stores[1:]:
        await one.open()
    yield stores
    for one in stores[1:]:
        await one.close()
