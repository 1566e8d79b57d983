"""Handlers that remember, at the top level of a module, where a job's own process can find them.

Each is written twice, for the loop and for a thread or process; what they do outside is a line in a file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.worker.handlers import QUICK
from windlass import Ctx, Windlass

jobs = Windlass("sqlite://")


def did(file: str, what: str) -> str:
    with Path(file).open("a") as lines:
        lines.write(f"{what}\n")
    return what.upper()


async def did_later(file: str, what: str) -> str:
    return did(file, what)


@jobs.job(retry=QUICK)
async def onboard(ctx: Ctx, file: str) -> list[Any]:
    first = await ctx.step("first", did_later, file, "first")
    if ctx.attempt == 1:
        await ctx.save(10)
        raise RuntimeError("once")
    second = await ctx.step("second", did, file, "second")
    approved = await ctx.wait("approved", 60)
    sizes = await ctx.gather("sizes", [square.bind(n) for n in (1, 2, 3)])
    return [first, second, ctx.saved, approved, sizes]


@jobs.job(retry=QUICK)
def onboard_now(ctx: Ctx, file: str) -> list[Any]:
    first = ctx.step_now("first", did, file, "first")
    if ctx.attempt == 1:
        ctx.save_now(10)
        raise RuntimeError("once")
    second = ctx.step_now("second", did, file, "second")
    approved = ctx.wait_now("approved", 60)
    sizes = ctx.gather_now("sizes", [square.bind(n) for n in (1, 2, 3)])
    return [first, second, ctx.saved, approved, sizes]


@jobs.job
async def square(n: int) -> int:
    return n * n


@jobs.job(process=True)
async def onboard_in_process(ctx: Ctx, file: str) -> list[Any]:
    """Asynchronous, in a process of its own."""
    first = await ctx.step("first", did_later, file, "first")
    second = await ctx.step("second", did, file, "second")
    return [first, second, await ctx.wait("approved")]


@jobs.job(retry=QUICK)
def go_on_until_told(ctx: Ctx, file: str) -> str:
    """Saves, and saves again, until a safe point ends it; the second time it is done at once."""
    if ctx.saved is not None:
        return f"went on from {'somewhere' if ctx.saved else 'the start'}"
    n = 0
    while True:
        n += 1
        ctx.save_now(n)
        Path(file).touch()
        time.sleep(0.005)  # its work


@jobs.job(retry=QUICK)
async def go_on_until_told_later(ctx: Ctx, file: str) -> str:
    """The same in the loop."""
    if ctx.saved is not None:
        return f"went on from {'somewhere' if ctx.saved else 'the start'}"
    n = 0
    while True:
        n += 1
        await ctx.save(n)
        Path(file).touch()


@jobs.job(retry=QUICK)
def swallow(ctx: Ctx) -> str:
    try:
        ctx.wait_now("approved")
    except:  # noqa: E722  # the mistake
        return "went on"
    return "not reached"


@jobs.job(retry=QUICK)
async def swallow_later(ctx: Ctx) -> str:
    try:
        await ctx.wait("approved")
    except BaseException:  # noqa: BLE001  # the mistake
        raise ValueError("something else") from None
    return "not reached"


@jobs.job(retry=QUICK)
def too_much(ctx: Ctx, n: int) -> None:
    ctx.step_now("big", lambda: "x" * n)


@jobs.job(retry=QUICK)
def in_transaction(ctx: Ctx) -> None:
    ctx.save_now(1, tx=object())
