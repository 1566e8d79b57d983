"""The demo's own application: small handlers, each showing one thing that windlass does."""

from __future__ import annotations

import asyncio
import os

from windlass import Ctx, Limit, Reject, Retry, Windlass

app = Windlass("sqlite:///:memory:")  # the demo moves it to a file before anything opens it


@app.job
async def greet(name: str) -> str:
    """As quick as a job can be."""
    return f"hello {name}"


@app.job(retry=Retry(5, base=0.2))
async def flaky(ctx: Ctx) -> str:
    """Fails twice, then works."""
    if ctx.attempt < 3:
        raise ConnectionError(f"the other side hung up (attempt {ctx.attempt})")
    return f"worked at attempt {ctx.attempt}"


@app.job(unique="recount:{facility}")
async def recount(facility: str) -> str:
    """At most one live job for each facility."""
    await asyncio.sleep(0.2)
    return f"{facility} recounted"


@app.job(limit=Limit("account:{account}", 1))
async def charge(account: str, cents: int) -> int:  # noqa: ARG001  # the limit's key is made of it
    """One at a time for each account."""
    await asyncio.sleep(0.3)
    return cents


@app.job(process=True)
def heavy(n: int) -> dict[str, int]:
    """Computes in a process of its own, which could be killed."""
    return {"sum": sum(i * i for i in range(n)), "pid": os.getpid()}


@app.job
async def bulk(ctx: Ctx, rows: int) -> int:
    """Says how far it is."""
    for row in range(1, rows + 1):
        await asyncio.sleep(0.01)
        ctx.progress(row, rows, f"row {row}")
    return rows


@app.job
async def hopeless(order: int) -> None:
    """Cannot be helped by trying again."""
    raise Reject(f"order {order} has no address")


@app.job
async def endless() -> None:
    """Runs until it is cancelled."""
    await asyncio.Event().wait()


@app.job
async def report() -> str:
    """What the schedule runs."""
    return "reported"
