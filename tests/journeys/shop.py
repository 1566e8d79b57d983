"""The application of the journeys: its jobs leave marks in a folder outside windlass, the second witness."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from windlass import Batched, Ctx, Windlass

MARKS = Path(os.environ["JOURNEY_MARKS"])
app = Windlass(os.environ["JOURNEY_URL"])


def mark(text: str) -> None:
    """Add a line to the ledger; one write, so that processes do not mix their lines."""
    with (MARKS / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{text}\n")


@app.job()
async def hold(ctx: Ctx, name: str) -> int:
    """Begin, wait for this process to be let go, and say which process did it."""
    mark(f"begin {name} {os.getpid()} {ctx.token}")
    while not (MARKS / f"go-{os.getpid()}").exists() and not (MARKS / "go-all").exists():
        await asyncio.sleep(0.01)  # a file cannot be waited for otherwise
    mark(f"end {name} {os.getpid()} {ctx.token}")
    return os.getpid()


@app.job()
async def stubborn(name: str) -> None:
    """Begin and never end, whoever asks."""
    mark(f"begin {name} {os.getpid()} 0")
    while True:
        try:
            await asyncio.sleep(3600)  # for ever, to a test
        except asyncio.CancelledError:
            mark(f"refused {name} {os.getpid()} 0")


@app.job(batch=50)
async def rows(jobs: list[Batched[str, None]]) -> None:
    """Leave a mark for each; the row `poison` kills its process before that."""
    mark(f"call {len(jobs)} {os.getpid()} 0")
    if any(job.data == "poison" for job in jobs):
        os.kill(os.getpid(), signal.SIGKILL)
    for job in jobs:
        mark(f"end {job.data} {os.getpid()} 0")


@app.job()
async def quick(name: str) -> str:
    """Leave one mark."""
    mark(f"end {name} {os.getpid()} 0")
    return name
