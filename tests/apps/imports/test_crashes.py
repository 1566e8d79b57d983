"""Workers that are killed in the middle of an import: table and counts equal those of an undisturbed one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.apps.imports.conftest import KINDS, Database
from tests.apps.imports.workbooks import CUSTOMERS, customers, workbook
from tests.contract.places import open_place
from tests.control.conftest import address
from windlass import Windlass
from windlass.apps.imports.imports import Imports, install
from windlass.apps.imports.order import Order, Summary
from windlass.apps.imports.settings import ImportsSettings

KILLS = int(os.environ.get("WINDLASS_TEST_KILLS", "3"))
"""so often a worker is killed; at length 50"""
ROWS = 1000 * max(KILLS, 5)
SEED = 7


class Mortal:
    """Workers that are started one after another, and die."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def start(self, batches: int, seconds: float) -> None:
        """One that is killed so long after it has begun to write so many batches; with 0 it lives."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{batches} {seconds}\n".encode())
        await self._process.stdin.drain()

    async def dead(self) -> None:
        assert self._process.stdout is not None
        assert await self._process.stdout.readline() == b"dead\n"


@asynccontextmanager
async def mortal(url: str, namespace: str, folder: Path) -> AsyncGenerator[Mortal, None]:
    words = ["-m", "tests.apps.imports.dying", url, namespace, str(folder)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=pipe, stdout=pipe, start_new_session=True
    )
    try:
        yield Mortal(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
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


@pytest.mark.timeout(60 + 10 * KILLS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_import_whose_workers_are_killed_is_like_an_undisturbed_one(
    kind: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
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
            async with mortal(url, namespace, tmp_path) as workers:
                ended = asyncio.ensure_future(handle.wait())
                while killed < KILLS:
                    # In the middle of a batch: before its rows, between them and the ledger, behind both.
                    await workers.start(chance.randint(1, 5), chance.uniform(0.0, 0.02))
                    died = asyncio.ensure_future(workers.dead())
                    await asyncio.wait({died, ended}, return_when=asyncio.FIRST_COMPLETED)
                    assert not ended.done(), f"the file is too short for {KILLS} kills: {killed}"
                    killed += 1
                await workers.start(0, 0)
                await ended
                summary = await handle.result()
            tell(f"{kind}: {killed} workers killed on the way through {summary.total_rows:,} rows")
            found = await Database(kind, url).rows(imports.handler("customers"))
        app.close()
    assert found == table
    if kind == "mongo":  # what it had changed of a batch that is written again is alike then: a part of `updated`
        expected = expected.model_copy(update={"unchanged": summary.unchanged})
    assert summary == expected
