"""What every test may ask for: a store of each kind named by WINDLASS_TEST_STORES, on a place of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.contract.places import STORES, Place, open_place
from windlass.stores.contract import Store

# Stateful tests run a quarter of the examples (tests/contract/test_model.py), those on stores half of them.
settings.register_profile("dev", max_examples=100, stateful_step_count=30, deadline=None)
settings.register_profile("ci", max_examples=400, stateful_step_count=50, deadline=None, print_blob=True)
settings.register_profile("nightly", max_examples=4_000, stateful_step_count=60, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

USUAL = 20
"""seconds that a test may take, as pyproject.toml says"""


@pytest.hookimpl(trylast=True)  # after the order was made random
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take longest begins first, so that no process is left with it at the end.

    Tests that share a server stay in one process, one after the other: what counts is all that they may take together.
    """
    together = Counter[str]()
    for item in items:
        together[chain(item)] += limit(item)
    items.sort(key=lambda item: together[chain(item)], reverse=True)


def limit(item: pytest.Item) -> int:
    """The seconds that a test may take."""
    mark = item.get_closest_marker("timeout")
    return USUAL if mark is None else int(mark.args[0])


def chain(item: pytest.Item) -> str:
    """The tests that run in the same process as this one, by a name."""
    mark = item.get_closest_marker("xdist_group")
    return item.nodeid if mark is None else str(mark.args[0])


@pytest.fixture(params=STORES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """An empty place for one test; when it ends, nothing that was opened there may still run.

    Its tables are there, as after a store was opened, unless the test is marked with `new_place`.
    """
    threads, tasks = windlass_threads(), asyncio.all_tasks()
    async with open_place(request.param, tmp_path, new=is_new(request)) as place:
        yield place
    assert windlass_threads() <= threads, "a store left threads behind"
    left = {task for task in asyncio.all_tasks() - tasks - {asyncio.current_task()} if not task.done()}
    assert not left, "a store left tasks behind"


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    """An open store with nothing in it."""
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(store: Store) -> AsyncIterator[Store]:
    """Another open store on the same place: what another process would have."""
    other = store.sibling()
    await other.open()
    yield other
    await other.close()


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Say a figure on the screen, also when the test passes."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say


def is_new(request: pytest.FixtureRequest) -> bool:
    return "new_place" in request.keywords


def windlass_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("windlass")}
