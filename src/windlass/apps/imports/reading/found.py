"""What the scan of a workbook has found, and the bounds that it is held to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from windlass.apps.imports.reading.limits import Limits

_MOST_FAULTS = 100_000
_MOST_MERGED = 100_000


@dataclass(slots=True)
class Scan:
    """What a workbook really holds, by part: of an ODS file a sheet is a part by its own name."""

    rows: dict[str, int] = field(default_factory=dict[str, int])
    """the last row"""
    columns: dict[str, int] = field(default_factory=dict[str, int])
    faults: dict[str, dict[tuple[int, int], str]] = field(default_factory=dict[str, dict[tuple[int, int], str]])
    """cells that hold an error, or a formula that was never calculated: by row and column from 1"""
    merged: dict[str, set[tuple[int, int]]] = field(default_factory=dict[str, set[tuple[int, int]]])
    """the first and the last row of cells that are merged"""
    parts: dict[str, str] = field(default_factory=dict[str, str])
    """which part a sheet is"""
    is_xlsx: bool = True
    epoch_1904: bool = False

    def note_merged(self, part: str, top: int, bottom: int) -> None:
        """Cells of these rows are merged."""
        ranges = self.merged.setdefault(part, set())
        if len(ranges) < _MOST_MERGED:
            ranges.add((top, bottom))

    def is_merged(self, part: str, row: int) -> bool:
        """Whether cells of this row are merged."""
        return any(top <= row <= bottom for top, bottom in self.merged.get(part, ()))


def check_reach(found: Scan, part: str, row: int, column: int, limits: Limits) -> None:
    """Note how far a sheet reaches; FileRefused where more cells would lie within than may."""
    rows = found.rows[part] = max(row, found.rows.get(part, 0))
    columns = found.columns[part] = max(column, found.columns.get(part, 0))
    if rows * max(columns, 1) > limits.cells:
        raise FileRefused(
            f"a sheet reaches to row {rows:,} and column {columns:,}: {limits.cells:,} cells may lie between, also"
            " empty ones"
        )


def note_fault(found: Scan, part: str, at: tuple[int, int], text: str) -> None:
    """Note a cell that holds no value; FileRefused where they are too many."""
    faults = found.faults.setdefault(part, {})
    faults[at] = text
    if len(faults) > _MOST_FAULTS:
        raise FileRefused(f"more than {_MOST_FAULTS:,} cells hold an error or a formula that was not calculated")
