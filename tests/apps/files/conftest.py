"""Files on every store, as an application of its own has them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.places import Place
from tests.control.conftest import address
from tests.web.conftest import ask
from windlass import Windlass
from windlass.apps.files.files import Files, install
from windlass.apps.files.names import Name, name_of
from windlass.apps.files.records.places import records_at
from windlass.apps.files.records.records import Records
from windlass.apps.files.settings import FilesSettings

__all__ = ["ask"]
NAME = name_of(None, "shop", "example.js")


def files_at(url: str, namespace: str, folder: Path, **settings: Any) -> Files:
    """Files on a store; blobs and what is on disk are below the folder."""
    usual: dict[str, Any] = {
        "blobs": str(folder / "blobs"),
        "root": folder / "disk",
        "backoff": 0.01,
        "lock_timeout": 0.1,
    }
    return install(Windlass(url, namespace=namespace), FilesSettings(**{**usual, **settings}))


async def work(files: Files, **words: Any) -> None:
    """Do all that waits."""
    await files.app.worker(drain=True, **words).run()


async def written(files: Files, content: bytes, name: Name = NAME, **asked: Any) -> Any:
    """Write, wait for it, and give the result."""
    handle = await files.write(name, content, **asked)
    await work(files)
    return await handle.result(timeout=5)


@pytest.fixture
async def files(place: Place, tmp_path: Path) -> AsyncGenerator[Files]:
    """Files on an empty store of each kind."""
    url, namespace = address(place)
    files = files_at(url, namespace, tmp_path)
    async with files.app:
        yield files
    files.app.close()


@pytest.fixture
async def one(tmp_path: Path) -> AsyncGenerator[Files]:
    """Files on an SQLite file, for what no store is asked about."""
    files = files_at(f"sqlite:///{tmp_path}/jobs.db?synchronous=OFF", "windlass", tmp_path)
    async with files.app:
        yield files
    files.app.close()


@pytest.fixture
async def records(place: Place) -> AsyncGenerator[Records]:
    """Records on an empty store of each kind."""
    made = records_at(*address(place))
    await made.prepare()
    yield made
    await made.close()
