"""One run of an import, in a process of its own: `python -m bench.imported WAY URL FILE BATCH` prints its seconds."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from bench import raw_imports
from windlass import Windlass
from windlass.apps.imports.cells import Reading
from windlass.apps.imports.checking import Checker
from windlass.apps.imports.child import Child
from windlass.apps.imports.handler import ImportHandler, ImportRow
from windlass.apps.imports.imports import install
from windlass.apps.imports.mapping import guess
from windlass.apps.imports.order import Order
from windlass.apps.imports.settings import ImportsSettings
from windlass.apps.imports.shipped import Email

Price = Annotated[Decimal, Field(max_digits=18, decimal_places=4)]
Quantity = Annotated[int, Field(ge=1)]


class Bare(BaseModel):
    """A row of the bare chain: the same columns and checks."""

    order_no: str
    customer: str
    email: Email
    city: str
    quantity: Quantity
    price: Price
    placed_on: date
    note: str | None = None


class OrderRow(ImportRow):
    """The same for windlass."""

    order_no: str
    customer: str
    email: Email
    city: str
    quantity: Quantity
    price: Price
    placed_on: date
    note: str | None = None


class Orders(ImportHandler):
    """Eight columns."""

    import_type = "orders"
    row = OrderRow
    key = ("order_no",)


async def windlass(url: str, file: Path, batch: int) -> float:
    """As a job, from its enqueue to its end."""
    settings = ImportsSettings(folder=file.parent, uploads=file.parent / "uploads", batch=batch)
    app = Windlass(url)
    imports = install(app, settings, shipped=False)
    imports.add(Orders)
    async with app, app.worker(queues={"imports": 1}):
        began = time.perf_counter()
        handle = await imports.start("orders", Order(filename=file.name, sha256="0" * 64), owner=None)
        summary = await handle.result(timeout=600)
        took = time.perf_counter() - began
    if summary.failed or summary.inserted != summary.total_rows or not summary.total_rows:
        raise RuntimeError(f"it was not to be like this: {summary}")
    return took


async def read(_: str, file: Path, batch: int) -> float:
    """Read and check, and write nothing."""
    began, handler = time.perf_counter(), Orders()
    with file.open("rb") as opened:
        async with Child(opened, file.name, sheet=None, limits=ImportsSettings().limits) as child:
            told = await child.opened()
            checker = Checker(handler, guess(handler, told.header), Reading(told.epoch_1904))
            async for rows in child.batches(batch):
                if checker.check(rows).errors:
                    raise RuntimeError("a row was refused")
    return time.perf_counter() - began


WAYS = {"windlass": windlass, "read": read, "bare": raw_imports.run}

if __name__ == "__main__":
    _way, _url, _file, _batch = sys.argv[1:]
    print(asyncio.run(WAYS[_way](_url, Path(_file), int(_batch))))
