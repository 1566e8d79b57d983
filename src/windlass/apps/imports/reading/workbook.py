"""Workbooks: XLSX and ODS, read in one piece, or row by row where they are large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError

from windlass.apps.imports.reading.found import Scan
from windlass.apps.imports.reading.scanning import scan
from windlass.apps.imports.reading.sources import Shape
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from windlass.apps.imports.reading.limits import Limits
    from windlass.apps.imports.reading.sources import RowSource


def open_workbook(file: BinaryIO, wanted: str | None, limits: Limits) -> RowSource:
    """The rows of the sheet that is wanted; of the first one if none is named."""
    found = scan(file, limits)
    part = found.parts.get(wanted or next(iter(found.parts), ""), "")
    rows, columns = found.rows.get(part, 0), found.columns.get(part, 0)
    if found.is_xlsx and rows * columns > limits.at_once:
        from windlass.apps.imports.reading.streamed import Streamed

        return Streamed(file, _chosen(list(found.parts), wanted), found, part, limits)
    return Workbook(file, wanted, found, limits)


def _chosen(sheets: Sequence[str], wanted: str | None) -> str:
    if not sheets:
        raise FileRefused("it has no sheet")
    if wanted is None:
        return sheets[0]
    if wanted not in sheets:
        raise FileRefused(
            f"it has no sheet {wanted[:60]!r}: it has {', '.join(repr(name[:60]) for name in sheets[:10])}"
        )
    return wanted


class Workbook:
    """One that is read in one piece."""

    def __init__(self, file: BinaryIO, wanted: str | None, found: Scan, limits: Limits) -> None:
        try:
            book = CalamineWorkbook.from_filelike(file)
            name = _chosen(book.sheet_names, wanted)
            self._sheet: CalamineSheet = book.get_sheet_by_name(name)
        except PasswordError:
            raise FileRefused("it is encrypted: save it without a password") from None
        except (CalamineError, ValueError, OSError) as error:
            told = str(error)[:100]
            if "Cannot detect" in told:  # what it says of any that it cannot open
                told = "it is damaged, or written by a program that does it in another way: open it and save it anew"
            raise FileRefused(f"it cannot be read: {told}") from None
        kind = "xlsx" if found.is_xlsx else "ods"
        end = self._sheet.end
        self.shape = Shape(
            kind=kind, sheets=book.sheet_names, sheet=name, rows=end[0] + 1 if end else 0, epoch_1904=found.epoch_1904
        )
        if end is not None and (end[0] + 1) * (end[1] + 1) > limits.cells:
            raise FileRefused(f"the sheet has more than {limits.cells:,} cells")
        if end is not None and end[1] >= limits.columns:
            raise FileRefused(f"the sheet has {end[1] + 1:,} columns: {limits.columns:,} may be")
        self._found, self._part = found, found.parts.get(name, "")
        self._faults = found.faults.get(self._part, {})

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Each row, from the first that has anything in it."""
        start = self._sheet.start
        if start is None:
            return
        before: list[Any] = [""] * start[1]
        rows, faults = self._sheet.to_python(skip_empty_area=True), self._faults
        for number, row in enumerate(rows, start[0] + 1):
            cells = before + row if before else row
            yield number, marked(cells, number, faults) if faults else cells

    def merged(self, row: int) -> bool:
        """Whether cells of this row are merged."""
        return self._found.is_merged(self._part, row)


def marked(cells: list[Any], row: int, faults: Mapping[tuple[int, int], str]) -> list[Any]:
    """The cells of a row; those that hold an error say which."""
    if faults:
        for column in range(len(cells)):
            fault = faults.get((row, column + 1))
            if fault is not None:
                cells[column] = {"e": fault}
    return cells
