"""ODS, looked through before it is read: how far its sheets reach, which cells hold errors, and what is merged.

The reader gives an error, or a formula that was never calculated, as an empty cell: where they are is found here.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any
from xml.parsers import expat

from windlass.apps.imports.reading.found import Scan, check_reach, note_fault
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from windlass.apps.imports.reading.limits import Limits

_PIECE = 256 * 1024
_MOST_ROWS = 1_048_576
_ROOT = "urn:oasis:names:tc:opendocument:xmlns:"
_TABLE, _OFFICE, _TEXT = f"{_ROOT}table:1.0 ", f"{_ROOT}office:1.0 ", f"{_ROOT}text:1.0 "
_SPREADSHEET, _SHEET, _ROW = f"{_OFFICE}spreadsheet", f"{_TABLE}table", f"{_TABLE}table-row"
_CELLS = (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")
_VALUE = (f"{_OFFICE}value-type", "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 value-type")
_ERROR = re.compile(r"#[A-Z0-9/!?]{2,12}|Err:[0-9]{3}")
_LONGEST = 20


def look_through(part: IO[bytes], found: Scan, limits: Limits) -> None:
    """Look through the part `content.xml`; FileRefused says what is wrong with it."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    sheets = _Sheets(found, limits)
    parser.StartElementHandler, parser.EndElementHandler = sheets.start, sheets.end
    parser.CharacterDataHandler = sheets.text
    try:
        while piece := part.read(_PIECE):
            parser.Parse(piece, False)  # its parameter has no name
        parser.Parse(b"", True)  # the same
    except expat.ExpatError as error:
        raise FileRefused(f"it is damaged: content.xml: {str(error)[:80]}") from None


class _Sheets:
    """Where the parser is: sheet, row and column, as the sheet shows them."""

    def __init__(self, found: Scan, limits: Limits) -> None:
        self._found, self._limits = found, limits
        self._name, self._depth = "", 0
        self._row = self._column = self._rows = self._columns = 0
        self._said: list[str] | None = None
        """of a cell with a formula: its text"""
        self._known = False
        """whether that cell says of what kind its value is"""

    def start(self, name: str, marks: dict[str, str]) -> None:
        if name in _CELLS:
            if self._depth == 1:
                self._cell(marks)
        elif name == _ROW:
            if self._depth == 1:
                self._row += self._rows
                self._rows = _repeated(marks, "number-rows-repeated")
                self._column = self._columns = 0
        elif name == _SHEET:
            self._depth += 1
            if self._depth == 1:
                self._name = marks.get(f"{_TABLE}name", "")
                self._found.parts[self._name] = self._name
                self._row = self._rows = 0

    def end(self, name: str) -> None:
        if name == _SHEET:
            self._depth -= 1
        elif name in _CELLS and self._depth == 1 and self._said is not None:
            text = "".join(self._said).strip()
            self._said = None
            if not self._known:
                self._fault("a formula that was not calculated")
            elif _ERROR.fullmatch(text):
                self._fault(text)

    def text(self, text: str) -> None:
        if self._said is not None and sum(map(len, self._said)) < _LONGEST:
            self._said.append(text)

    def _cell(self, marks: dict[str, str]) -> None:
        self._column += self._columns
        self._columns = _repeated(marks, "number-columns-repeated")
        self._known = any(one in marks for one in _VALUE)
        computed = f"{_TABLE}formula" in marks
        if _repeated(marks, "number-columns-spanned") > 1 or _repeated(marks, "number-rows-spanned") > 1:
            top = self._row + 1
            self._found.note_merged(self._name, top, top + _repeated(marks, "number-rows-spanned") - 1)
        if not self._known and not computed:
            return  # empty, however often
        row, column = self._row + self._rows, self._column + self._columns
        if row > _MOST_ROWS:
            raise FileRefused(f"a sheet reaches to row {row:,}: {_MOST_ROWS:,} may be")
        check_reach(self._found, self._name, row, column, self._limits)
        if computed or "error" in marks.get(_VALUE[1], ""):
            self._said = []

    def _fault(self, text: str) -> None:
        for row in range(self._row + 1, self._row + self._rows + 1):
            for column in range(self._column + 1, self._column + self._columns + 1):
                note_fault(self._found, self._name, (row, column), text)


def _repeated(marks: dict[str, Any], name: str) -> int:
    given = str(marks.get(_TABLE + name, "1"))
    return int(given) if given.isdigit() and len(given) < 12 else 1
