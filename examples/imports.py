"""A spreadsheet with mistakes in it: what is good is in the table at once, the rest comes back as a sheet to correct.

Needs windlass[imports]. Over HTTP and in the dashboard it is the same, with `install(app)` alone.
"""

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar

import openpyxl
import xlsxwriter
from pydantic import Field

from windlass import Windlass
from windlass.apps.imports.handler import ImportHandler, ImportRow
from windlass.apps.imports.imports import Imports, install
from windlass.apps.imports.order import Order, Summary
from windlass.apps.imports.settings import ImportsSettings
from windlass.apps.imports.sheet import workbook

ORDERS = (
    ("Order #", "Total", "Placed on", "Pieces"),
    ("A-001", "1,299.50 €", date(2026, 3, 1), 2),
    ("A-002", "12.00", "2026-03-02", 1),
    ("A-003", "twelve", "2026-03-02", 1),
    ("A-004", "80.25", "3/4/2026", 0),
)


class OrderRow(ImportRow):
    order_no: str
    total: Decimal
    placed_on: date
    pieces: Annotated[int, Field(ge=1)]


class Orders(ImportHandler):
    import_type = "orders"
    row = OrderRow
    key = ("order_no",)
    aliases: ClassVar = {"order_no": ("order #",)}


def make(path: Path) -> None:
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(ORDERS):
            sheet.write_row(number, 0, row)


def correct(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    sheet = book.active
    print("to correct:", ", ".join(f"{row[0]}" for row in sheet.iter_rows(min_row=2, values_only=True)))
    sheet["B2"], sheet["C3"], sheet["D3"] = 12, date(2026, 4, 3), 4
    book.save(path)


def order_of(path: Path) -> Order:
    return Order(filename=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


async def bring_in(imports: Imports, path: Path) -> tuple[str, Summary]:
    handle = await imports.start("orders", order_of(path), owner=None)
    summary = await handle.result(timeout=30)
    print(f"{path.name}: {summary.inserted} inserted, {summary.failed} refused")
    for error in summary.errors:
        print(f"  row {error.row}: {error.reason} ({error.value})")
    return handle.id, summary


async def main(folder: Path) -> None:
    app = Windlass(f"sqlite:///{folder / 'shop.db'}")
    imports = install(app, ImportsSettings(folder=folder, uploads=folder / "uploads"), shipped=False)
    imports.add(Orders)
    make(folder / "orders.xlsx")
    async with app, app.worker():
        job, summary = await bring_in(imports, folder / "orders.xlsx")
        corrections = folder / "corrections.xlsx"
        corrections.write_bytes(await workbook(imports.target, job, summary.header))
        correct(corrections)
        await bring_in(imports, corrections)
    with closing(sqlite3.connect(folder / "shop.db")) as db:
        for row in db.execute("SELECT order_no, total, placed_on FROM orders ORDER BY order_no"):
            print(*row)


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
