"""What is measured on SQLite, each against its floor."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import measures
from bench.raw_sqlite import RawSqlite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from bench.figures import Figure

RAW_BATCHES = (100, 250, 500)
"""sizes of the raw loop's batches; the first is the one compared with, the others are told beside it"""
SYNCHRONOUS = "FULL"


class SqliteGround:
    """Files in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, name: str) -> str:
        """A file of its own, as durable as the default."""
        return f"sqlite:///{self.folder / name}.db?synchronous={SYNCHRONOUS}"

    async def raw_insert(self, name: str, n: int, batch: int) -> float:
        """Insert n rows with sqlite3 alone."""
        raw = RawSqlite(str(self.folder / f"{name}.db"), SYNCHRONOUS)
        rate = raw.insert(n, batch)
        raw.close()
        return rate

    async def raw_run(self, name: str, n: int, batch: int) -> float:
        """Insert n rows, then claim and complete them with sqlite3 alone."""
        raw = RawSqlite(str(self.folder / f"{name}.db"), SYNCHRONOUS)
        raw.insert(n, measures.BATCH)
        rate = raw.run(batch)
        raw.close()
        return rate


async def measure_sqlite(*, quick: bool, only: Sequence[str]) -> AsyncGenerator[Figure, None]:
    """Every measurement in order, or only those named."""
    jobs = 10_000 if quick else 60_000
    producers = 2_000 if quick else 20_000
    todo: dict[str, Callable[[SqliteGround], Awaitable[list[Figure]]]] = {
        "bulk": partial(measures.bulk, n=jobs, least=0.5),
        "single": partial(measures.single, n=producers, least=8),
        "run": partial(measures.run, n=jobs, raw_batches=RAW_BATCHES, least=15_000, least_ratio=0.25),
        "pickup": partial(measures.pickup, n=100 if quick else 400, most=10),
        "crowd": partial(measures.crowd, n=40 if quick else 100, most=1.2),
        "rivals": partial(measures.rivals, n=4_000 if quick else 20_000, least=None),
        "steps": partial(measures.steps, n=100 if quick else 400, most=1.2),
        "idle": partial(measures.idle, seconds=5 if quick else 15, most_cpu=2, most_memory=45),
        "backlog": partial(measures.backlog, n=100_000 if quick else 1_000_000, least=0.6),
        "import": lambda _: measures.importing(),
    }
    for name, measure in todo.items():
        if not only or name in only:
            with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
                for figure in await measure(SqliteGround(Path(folder))):
                    yield figure
