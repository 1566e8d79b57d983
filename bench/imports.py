"""`script/bench --imports`: 100,000 rows of 8 columns from a workbook into a table, against a bare chain beside it.

Each run is a process of its own, whose memory is watched together with that of its child; both ways take turns.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import xlsxwriter  # type: ignore[import-untyped]  # it has no types

from bench.figures import Figure, median
from bench.mongo import MongoGround
from bench.postgres import PostgresGround
from bench.sqlite import SqliteGround
from tests.support.servers import start_mongo, start_postgres

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bench.measures import Ground

BATCHES = (100, 1000)
_ROOT = Path(__file__).parents[1]
_ROUNDS = 3
_MIB = 1024 * 1024
_CITIES = ("Berlin", "Łódź", "São Paulo", "New York", "Kyoto", "Nairobi")


async def measure_imports(store: str, *, quick: bool = False, only: Sequence[str] = ()) -> AsyncGenerator[Figure, None]:
    """Every figure of a store; `only` some of them: `read`, `100`, `1000`."""
    rows = 20_000 if quick else 100_000
    rounds = 1 if quick else _ROUNDS
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
        file = Path(folder) / "orders.xlsx"
        make(file, rows)
        if not only or "read" in only:
            ran = [await _run("read", "", file, 1000) for _ in range(rounds)]
            rate = median([rows / one.seconds for one in ran])
            yield Figure(name="read and validated", value=rate, unit="rows/s", least=0.6 * 80_000)
        wanted = [batch for batch in BATCHES if not only or str(batch) in only]
        if not wanted:
            return
        match store:
            case "postgres":
                with start_postgres() as server:
                    async for figure in _against(PostgresGround(server.url, Path(folder)), file, rows, rounds, wanted):
                        yield figure
            case "mongo":
                with start_mongo() as server:
                    async for figure in _against(MongoGround(server.url, Path(folder)), file, rows, rounds, wanted):
                        yield figure
            case "sqlite":
                async for figure in _against(SqliteGround(Path(folder)), file, rows, rounds, wanted):
                    yield figure
            case _:
                raise SystemExit("imports are measured on sqlite, postgres and mongo: Redis keeps no rows")


def make(file: Path, rows: int) -> None:
    """A workbook of good rows, with its texts in a part of their own, as spreadsheets write them."""
    day = dt.datetime(2026, 1, 1)  # noqa: DTZ001  # a sheet has no zone
    opened: Any = xlsxwriter.Workbook(str(file), {"default_date_format": "yyyy-mm-dd"})
    with opened as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Order No", "Customer", "Email", "City", "Quantity", "Price", "Placed on", "Note"])
        for n in range(1, rows + 1):
            words = (f"ORD-{n:07}", f"Customer {n % 5000}", f"c{n % 5000}@example.org", _CITIES[n % len(_CITIES)])
            sheet.write_row(n, 0, (*words, 1 + n % 9, n % 9_973 + 0.25))
            sheet.write_datetime(n, 6, day + dt.timedelta(days=n % 365))
            if n % 3 == 0:
                sheet.write_string(n, 7, f"leave it with the neighbour at number {n % 100}")


class _Ran(NamedTuple):
    seconds: float
    memory: float
    """the most of it and its child together, in MiB"""


async def _against(
    ground: Ground, file: Path, rows: int, rounds: int, batches: Sequence[int]
) -> AsyncGenerator[Figure, None]:
    for batch in batches:
        found: dict[str, list[_Ran]] = {"windlass": [], "bare": []}
        for number in range(rounds):
            # The order is turned round each time, so that nobody always runs on a machine that is warm already.
            for way in list(found) if number % 2 else reversed(found):
                found[way].append(await _run(way, ground.url(f"{way}{batch}n{number}"), file, batch))
        shares = [bare.seconds / ours.seconds for ours, bare in zip(found["windlass"], found["bare"], strict=True)]
        told = {f"{way} rows/s": median([rows / one.seconds for one in ran]) for way, ran in found.items()}
        yield Figure(name=f"batches of {batch:,} / bare", value=median(shares), unit="", least=0.6, told=told)
        memory = {way: max(one.memory for one in ran) for way, ran in found.items()}
        told = {"bare": memory["bare"]}
        yield Figure(name=f"memory, batches of {batch:,}", value=memory["windlass"], unit="MiB", most=200, told=told)


async def _run(way: str, url: str, file: Path, batch: int) -> _Ran:
    """How one process did, with all that it started."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.imported", way, url, str(file), str(batch)),
        cwd=_ROOT,
        env={**os.environ, "WINDLASS_FILE": os.devnull},
        stdout=asyncio.subprocess.PIPE,
    )
    watching = asyncio.create_task(_watched(process.pid))
    told, _ = await process.communicate()
    most = await watching
    if process.returncode:
        raise RuntimeError(f"the run of {way} failed with {process.returncode}")
    return _Ran(float(told), most / _MIB)


async def _watched(pid: int) -> int:
    """The most bytes that a process and its children held at once."""
    most, root = 0, psutil.Process(pid)
    while True:
        try:
            if root.status() == psutil.STATUS_ZOMBIE:
                return most
            most = max(most, sum(_held(one) for one in (root, *root.children(recursive=True))))
        except psutil.NoSuchProcess:
            return most
        await asyncio.sleep(0.05)  # memory is looked at by the clock


def _held(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0
