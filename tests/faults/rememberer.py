"""The application of M30: a job that remembers steps, saves a cursor, waits for signals, gathers, and dies on the way.

It kills its own worker at the points that its payload names, at each of them once. Whatever it does is a line in a
file outside the store; a line that stands above another was written before it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

from tests.faults.broken import broken_at
from windlass import Ctx, JobFunction, Retry, Windlass
from windlass.chaos.place import Place

STEPS, ROWS, PARTS = 2, 3, 3
POINTS = (
    *(f"{when} step {n}" for n in range(STEPS) for when in ("before", "in", "after")),
    *(f"after row {n}" for n in range(1, ROWS + 1)),
    *("before the wait", "before the children", "after the children"),
)
"""where it may die: between every two things that it remembers"""
PATIENCE = 0.4
"""seconds that it waits for the signal that may come too late"""
_SOON = Retry(50, base=0.05, cap=0.2)


@cache
def _file() -> int:
    return os.open(Place.told().folder / "lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def tell(what: str, name: str, **more: Any) -> None:
    """One line, in one write."""
    os.write(_file(), f"{json.dumps({'what': what, 'name': name, **more})}\n".encode())


def die(name: str, point: str, deaths: list[str]) -> None:
    """Take the worker with it, if this is such a point and it has not died there before."""
    if point in deaths:
        grave = Path(Place.told().folder / f"died {name} {point}")
        try:
            grave.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


async def _step(name: str, n: int, deaths: list[str]) -> int:
    die(name, f"before step {n}", deaths)
    tell("effect", name, of=n)
    die(name, f"in step {n}", deaths)
    return n * n


async def _order(part: JobFunction[..., Any], ctx: Ctx, name: str, deaths: list[str]) -> list[Any]:
    tell("begun", name, token=ctx.token, saved=ctx.saved or 0)
    steps = list[int]()
    for n in range(STEPS):
        steps.append(await ctx.step("square", _step, name, n, deaths, key=str(n)))
        tell("remembered", name, of=n)
        die(name, f"after step {n}", deaths)
    for row in range((ctx.saved or 0) + 1, ROWS + 1):
        await ctx.save(row)
        tell("saved", name, of=row)
        die(name, f"after row {row}", deaths)
    die(name, "before the wait", deaths)
    told = [await ctx.wait("go", 60), await ctx.wait("maybe", PATIENCE)]
    die(name, "before the children", deaths)
    parts = await ctx.gather("parts", [part.bind(name, n) for n in range(PARTS)])
    die(name, "after the children", deaths)
    return [steps, ctx.saved, told, parts]


async def _part(name: str, n: int) -> str:
    tell("part", name, of=n)
    await asyncio.sleep(0.02)  # its work
    return f"{name} {n}"


def application(place: Place) -> Windlass:
    """The application at a place; on a broken store where one is asked for."""
    made = Windlass(place.url, namespace=place.namespace, store=broken_at(place) if place.control else None)
    part = made.job(name="part", retry=_SOON, max_crashes=100)(_part)

    async def order(ctx: Ctx, name: str, deaths: list[str]) -> list[Any]:
        return await _order(part, ctx, name, deaths)

    made.job(name="order", retry=_SOON, max_crashes=100)(order)
    return made


app = application(Place.told())
