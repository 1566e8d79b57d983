"""Downloads: the rows that were refused as a sheet to be corrected and sent again, and all errors as a list."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from typing import TYPE_CHECKING, Any, cast

import xlsxwriter  # type: ignore[import-untyped]  # it has no types

from windlass.apps.imports.cells import shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from windlass.apps.imports.targets.target import Refused, Target

REASONS = "Reasons"
_AT_ONCE = 1_000
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*%?")
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
        style, bold = _Styles(book), book.add_format({"bold": True})
        width = len(header)
        for column, name in enumerate(header):
            sheet.write_string(0, column, name, bold)
        sheet.write_string(0, width, REASONS, bold)
        index = 0
        async for row in refused_rows(target, job):
            index += 1
            bad = {error["column"] for error in row["errors"]}
            for column, cell in enumerate(row["cells"][:width]):
                _write(sheet, index, column, cell, style, wrong=header[column] in bad)
            sheet.write_string(
                index, width, f"Row {row['row']}: " + "; ".join(error["reason"] for error in row["errors"])
            )
        sheet.freeze_panes(1, 0)
        sheet.autofit(max_width=480)
    return made.getvalue()


class _Styles:
    """How cells look, by what they hold; those that are wrong are marked."""

    def __init__(self, book: Any) -> None:
        kinds: dict[str, dict[str, Any]] = {
            "plain": {},
            "day": {"num_format": "yyyy-mm-dd"},
            "instant": {"num_format": "yyyy-mm-dd hh:mm:ss"},
            # As if typed behind an apostrophe: it stays text when the cell is edited.
            "text": {"quote_prefix": True},
        }
        marks: dict[bool, dict[str, Any]] = {False: {}, True: {"bg_color": "#FDE2E1"}}
        self._made = {(k, w): book.add_format({**how, **mark}) for k, how in kinds.items() for w, mark in marks.items()}

    def of(self, kind: str, *, wrong: bool) -> Any:
        return self._made[kind, wrong]


def _write(sheet: Any, row: int, column: int, cell: Any, style: _Styles, *, wrong: bool) -> None:
    plain = style.of("plain", wrong=wrong)
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell, plain)
    elif isinstance(cell, (int, float)):
        sheet.write_number(row, column, cell, plain)
    elif isinstance(cell, dict):
        (tag, value), *_ = cast("dict[str, Any]", cell).items()
        if tag == "d":
            sheet.write_datetime(row, column, dt.date.fromisoformat(value), style.of("day", wrong=wrong))
        elif tag == "t":
            sheet.write_datetime(row, column, dt.datetime.fromisoformat(value), style.of("instant", wrong=wrong))
        else:
            sheet.write_string(row, column, shown(cast("Any", cell)) or "", plain)
    elif cell not in (None, ""):
        text = str(cell)[:32_000]
        kind = "text" if text.startswith(_FORMULA) else "plain"
        sheet.write_string(row, column, text, style.of(kind, wrong=wrong))
    elif wrong:
        sheet.write_blank(row, column, None, plain)


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
    harmless = not isinstance(cell, str) or not cell.startswith(_FORMULA) or _NUMBER.fullmatch(cell)
    return cell if harmless else f"'{cell}"
