"""Row sources: what any kind of file gives, and which one reads which."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from windlass.apps.imports.reading.scanning import OLE, ZIP
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.apps.imports.reading.limits import Limits


@dataclass(slots=True, kw_only=True)
class Shape:
    """What a file is, as far as its reader knows before the first row."""

    kind: str
    """xlsx, ods or csv"""
    sheets: list[str] = field(default_factory=list[str])
    sheet: str | None = None
    rows: int | None = None
    """the last row's number, if it is known"""
    encoding: str | None = None
    separator: str | None = None
    epoch_1904: bool = False


class RowSource(Protocol):
    """The rows of one sheet."""

    shape: Shape

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Each row with its own number in the sheet, from 1; every cell at its own place, from the first column on."""
        ...

    def merged(self, row: int) -> bool:
        """Whether cells of this row are merged."""
        ...


def open_source(file: BinaryIO, name: str, sheet: str | None, limits: Limits) -> RowSource:
    """The source for this file: by its content, and by its name where that says nothing."""
    start = file.read(8)
    file.seek(0)
    suffix = name.rpartition(".")[2].lower()
    if start.startswith((ZIP, OLE)) or suffix in ("xlsx", "ods"):
        from windlass.apps.imports.reading.workbook import open_workbook

        return open_workbook(file, sheet, limits)
    if suffix not in ("csv", "tsv", "txt"):
        raise FileRefused("it is of no kind that can be read: send .xlsx, .ods or .csv")
    from windlass.apps.imports.reading.delimited import Delimited

    return Delimited(file, limits)
