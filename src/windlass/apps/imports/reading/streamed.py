"""Large workbooks, read row by row: slower, in memory that does not grow with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from openpyxl import load_workbook  # type: ignore[import-untyped]  # it has no types

from windlass.apps.imports.reading.sources import Shape
from windlass.apps.imports.reading.workbook import marked
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.apps.imports.reading.found import Scan
    from windlass.apps.imports.reading.limits import Limits


class Streamed:
    """A sheet that is read while its rows are asked for."""

    def __init__(self, file: BinaryIO, sheet: str, found: Scan, part: str, limits: Limits) -> None:
        try:
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            self._sheet = book[sheet]
        except Exception as error:  # noqa: BLE001  # the reader's own errors are many, and all mean the same here
            raise FileRefused(f"it cannot be read: {str(error)[:100]}") from None
        self._found, self._part = found, part
        self._faults = found.faults.get(part, {})
        if found.columns[part] > limits.columns:
            raise FileRefused(f"the sheet has {found.columns[part]:,} columns: {limits.columns:,} may be")
        self.shape = Shape(
            kind="xlsx", sheets=list(book.sheetnames), sheet=sheet, rows=found.rows[part], epoch_1904=found.epoch_1904
        )

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Each row that has anything in it."""
        self._sheet.reset_dimensions()
        for number, values in enumerate(self._sheet.iter_rows(values_only=True), 1):
            cells = ["" if value is None else value for value in values]
            if any(cell != "" for cell in cells):
                yield number, marked(cells, number, self._faults)

    def merged(self, row: int) -> bool:
        """Whether cells of this row are merged."""
        return self._found.is_merged(self._part, row)
