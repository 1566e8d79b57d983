"""Workers that are killed in the middle of an import: table and counts equal those of an undisturbed one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.apps.imports.conftest import KINDS, Database
from tests.apps.imports.workbooks import CUSTOMERS, customers, workbook
from tests.contract.places import open_place
from tests.control.conftest import address
from windlass import Status, Windlass
from windlass.apps.imports.imports import Imports, install
from windlass.apps.imports.order import Order, Summary
from windlass.apps.imports.settings import ImportsSettings

KILLS = int(os.environ.get("WINDLASS_TEST_KILLS", "3"))
"""so often a worker is killed; at length 50"""
ROWS = 100 * max(KILLS, 10)
SEED = 7


@asynccontextmanager
async def dying(url: str, namespace: str, folder: Path) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    words = ["-m", "tests.apps.imports.dying", url, namespace, str(folder)]
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    yield process
    if process.returncode is None:
        process.kill()
    await process.wait()


async def undisturbed(folder: Path, order: Order) -> tuple[Summary, list[dict[str, Any]]]:
    app = Windlass(f"sqlite:///{folder / 'other.db'}")
    imports = install(app, ImportsSettings(folder=folder, uploads=folder / "uploads", batch=20))
    async with app:
        handle = await imports.start("customers", order, owner="ann")
        async with app.worker():
            summary = await handle.result(timeout=60)
        rows = await Database("sqlite", imports.address).rows(imports.handler("customers"))
    app.close()
    return summary, rows


@pytest.mark.timeout(60 + 5 * KILLS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_import_whose_workers_are_killed_is_like_an_undisturbed_one(kind: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    rows: list[Any] = [(f"bad {n}", "x") if n % 50 == 0 else row for n, row in enumerate(customers(ROWS), 1)]
    rows += customers(30)  # come twice: one insert, one update
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *rows])
    order = Order(filename="a.xlsx", sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    expected, table = await undisturbed(tmp_path, order)
    async with open_place(kind, tmp_path) as place:
        url, namespace = address(place)
        app = Windlass(url, namespace=namespace)
        imports = Imports(app, ImportsSettings(folder=tmp_path, uploads=tmp_path / "uploads", crashes=1000))
        for handler in (type(one) for one in install(Windlass("sqlite:///:memory:")).handlers.values()):
            imports.add(handler)
        async with app:
            handle = await imports.start("customers", order, owner="ann")
            killed = 0
            while killed < KILLS and (await handle.job()).status is not Status.SUCCEEDED:
                async with dying(url, namespace, tmp_path) as process:
                    await asyncio.sleep(chance.uniform(0.0, 0.5))  # the moment of its death is the subject
                    process.kill()
                    killed += 1
            async with dying(url, namespace, tmp_path):
                summary = await handle.result(timeout=60)
            found = await Database(kind, url).rows(imports.handler("customers"))
        app.close()
    assert found == table
    if kind == "mongo":  # what it had changed of a batch that is written again is alike then: a part of `updated`
        expected = expected.model_copy(update={"unchanged": summary.unchanged})
    assert summary == expected
