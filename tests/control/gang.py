"""The jobs of the races, under a limit, a rate and in flows. As a module with CREW_URL it is a worker's application."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

from windlass import Limit, Rate, Windlass

PER = timedelta(milliseconds=500)
FOLDER = Path(os.environ.get("CREW_FOLDER", "."))


class Gang:
    """Handlers that write what they do into the ledger."""

    def __init__(self, app: Windlass) -> None:
        @app.job(limit=Limit("berth:{quay}", 2))
        async def unload(quay: str, n: int) -> int:
            write("begin", os.getpid(), quay, n)
            while (FOLDER / "hold").exists():
                await asyncio.sleep(0.01)  # a file cannot be waited for otherwise
            await asyncio.sleep(0.02)  # the job's work
            write("end", os.getpid(), quay, n)
            return n

        @app.job(rate=Rate(5, per=PER))
        async def flash(n: int) -> int:
            return n

        @app.job
        async def add(numbers: list[int]) -> int:
            write("added", os.getpid(), len(numbers))
            return sum(numbers)

        self.unload, self.flash, self.add = unload, flash, add


def write(*words: object) -> None:
    """One line in one write, so that processes do not mix theirs."""
    with (FOLDER / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{' '.join(map(str, words))} {time.monotonic()}\n")


if "CREW_URL" in os.environ:
    app = Windlass(os.environ["CREW_URL"], namespace=os.environ["CREW_NAMESPACE"])
    Gang(app)
