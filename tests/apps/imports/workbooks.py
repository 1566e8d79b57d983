"""Workbooks for tests, made as they are needed."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter  # type: ignore[import-untyped]  # it has no types

CUSTOMERS = ("Email", "Name", "Phone", "Company")
PAYABLES = ("Invoice Number", "Vendor", "Amount", "Due Date", "Status")


def workbook(
    path: Path,
    rows: Sequence[Sequence[Any]],
    *,
    sheet: str = "Sheet1",
    top: int = 0,
    left: int = 0,
    options: Mapping[str, Any] | None = None,
    more: Sequence[str] = (),
) -> Path:
    """A workbook with these rows, the header among them, from a row and a column on."""
    opened: Any = xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd", **(options or {})})
    with opened as book:
        made = book.add_worksheet(sheet)
        for index, row in enumerate(rows):
            for column, cell in enumerate(row):
                write(made, top + index, left + column, cell)
        for name in more:
            book.add_worksheet(name)
    return path


def write(sheet: Any, row: int, column: int, cell: Any) -> None:
    if isinstance(cell, dt.datetime | dt.date):
        sheet.write_datetime(row, column, cell)
    elif isinstance(cell, Formula):
        sheet.write_formula(row, column, cell.text, None, cell.value)
    elif isinstance(cell, str):
        sheet.write_string(row, column, cell)
    elif cell is not None:
        sheet.write(row, column, cell)


class Formula:
    """A formula, with the value that was calculated for it."""

    def __init__(self, text: str, value: Any) -> None:
        self.text, self.value = text, value


def customers(n: int, first: int = 1) -> list[tuple[Any, ...]]:
    """Customers that are all good."""
    return [
        (f"c{i}@example.org", f"Customer {i}", f"+49 30 {i:06}", f"Company {i % 7}") for i in range(first, first + n)
    ]


def payables(n: int) -> list[tuple[Any, ...]]:
    """Invoices that are all good."""
    due = dt.date(2026, 1, 1)
    return [
        (f"INV-{i:06}", f"Vendor {i % 97}", i * 1.25, due + dt.timedelta(days=i % 365), "open") for i in range(1, n + 1)
    ]


def repacked(path: Path, change: Mapping[str, bytes | None], more: Mapping[str, bytes] | None = None) -> Path:
    """The same workbook with parts replaced, taken away, or put in."""
    kept = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(kept) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = change.get(entry.filename, old.read(entry))
            if content is not None:
                new.writestr(entry.filename, content)
        for name, content in (more or {}).items():
            new.writestr(name, content)
    return path


def part(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as book:
        return book.read(name)


ROW = "<table:table-row {}>{}</table:table-row>"
CELL = '<table:table-cell office:value-type="string" {}><text:p>{}</text:p></table:table-cell>'


def opendocument(path: Path, rows: str) -> Path:
    """An ODS file with one sheet, `S`, of these rows."""
    kinds = ("office", "table", "text")
    names = "".join(f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in kinds)
    names += ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
    body = f'<office:spreadsheet><table:table table:name="S">{rows}</table:table></office:spreadsheet>'
    content = f"<office:document-content{names}><office:body>{body}</office:body></office:document-content>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("content.xml", '<?xml version="1.0"?>' + content)
        book.writestr("META-INF/manifest.xml", "<manifest/>")
    return path
