"""A client that is closed while the driver connects leaves that socket to the collector, which warns of it."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import is_new
from tests.contract.places import MongoPlace, mongo


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(autouse=True)
def sockets() -> Iterator[None]:
    """Collect here, where the warning is let pass, and not in whichever test comes next."""
    yield
    gc.collect()


@pytest.fixture
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MongoPlace]:
    async with mongo(tmp_path, new=is_new(request)) as place:
        yield place
