"""Downloads: the rows that were refused as a sheet to be corrected and sent again, and all errors as a list."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from typing import TYPE_CHECKING, Any, cast

import xlsxwriter  # type: ignore[import-untyped]  # it has no types

from windlass.apps.imports.cells import shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from windlass.apps.imports.targets.target import Refused, Target

REASONS = "Reasons"
_AT_ONCE = 1_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = ("row", "column", "field", "value", "code", "reason")


async def refused_rows(target: Target, job: str) -> AsyncIterator[Refused]:
    """All of them, in order."""
    after = 0
    while rows := await target.refused(job, after, _AT_ONCE):
        for row in rows:
            yield row
        after = rows[-1]["row"]


async def workbook(target: Target, job: str, header: Sequence[str]) -> bytes:
    """The refused rows as they were, with a column that says why: to be corrected and sent again by itself."""
    made = io.BytesIO()
    # Text stays text: nothing in it is taken for a formula, a number or a link.
    options = {
        "in_memory": True,
        "constant_memory": False,
        "strings_to_formulas": False,
        "strings_to_numbers": False,
        "strings_to_urls": False,
    }
    opened: Any = xlsxwriter.Workbook(made, options)
    with opened as book:
        sheet = book.add_worksheet("Corrections")
        bold, wrong = book.add_format({"bold": True}), book.add_format({"bg_color": "#FDE2E1"})
        day, instant = (
            book.add_format({"num_format": "yyyy-mm-dd"}),
            book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        )
        width = len(header)
        for column, name in enumerate(header):
            sheet.write_string(0, column, name, bold)
        sheet.write_string(0, width, REASONS, bold)
        index = 0
        async for row in refused_rows(target, job):
            index += 1
            bad = {error["column"] for error in row["errors"]}
            for column, cell in enumerate(row["cells"][:width]):
                _write(sheet, index, column, cell, wrong if header[column] in bad else None, day, instant)
            sheet.write_string(
                index, width, f"Row {row['row']}: " + "; ".join(error["reason"] for error in row["errors"])
            )
        sheet.freeze_panes(1, 0)
        sheet.autofit(max_width=480)
    return made.getvalue()


def _write(sheet: Any, row: int, column: int, cell: Any, style: Any, day: Any, instant: Any) -> None:
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell, style)
    elif isinstance(cell, (int, float)):
        sheet.write_number(row, column, cell, style)
    elif isinstance(cell, dict):
        (tag, value), *_ = cast("dict[str, Any]", cell).items()
        if tag == "d":
            sheet.write_datetime(row, column, dt.date.fromisoformat(value), day)
        elif tag == "t":
            sheet.write_datetime(row, column, dt.datetime.fromisoformat(value), instant)
        else:
            sheet.write_string(row, column, shown(cast("Any", cell)) or "", style)
    elif cell not in (None, ""):
        sheet.write_string(row, column, str(cell)[:32_000], style)


async def csv_lines(target: Target, job: str) -> AsyncIterator[bytes]:
    """All errors, a line each."""
    yield _line(_COLUMNS)
    async for row in refused_rows(target, job):
        yield b"".join(_line([_inert(error[name]) for name in _COLUMNS]) for error in row["errors"])


async def json_lines(target: Target, job: str) -> AsyncIterator[bytes]:
    """All errors, an object a line."""
    async for row in refused_rows(target, job):
        yield b"".join(json.dumps(error, ensure_ascii=False).encode() + b"\n" for error in row["errors"])


def _line(cells: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def _inert(cell: Any) -> Any:
    """A spreadsheet takes text that begins so for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
