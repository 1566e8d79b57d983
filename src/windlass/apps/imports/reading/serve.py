"""In the child: read the file as asked, and tell its header and rows in frames."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from windlass.apps.imports.reading.limits import Limits
from windlass.apps.imports.reading.sources import RowSource, open_source
from windlass.apps.imports.reading.tagging import write
from windlass.apps.limited.refused import FileRefused

IN_A_FRAME = 500
"""rows"""


def serve(file: BinaryIO, out: BinaryIO, asked: dict[str, Any]) -> None:
    """Header first, then rows, then how many they were; FileRefused says what is wrong with the file."""
    limits = Limits.of(asked["limits"])
    source = open_source(file, asked["name"], asked["sheet"], limits)
    rows = source.rows()
    header = _header(source, rows, limits)
    shape = source.shape
    told = {
        "kind": shape.kind,
        "sheets": shape.sheets,
        "sheet": shape.sheet,
        "rows": shape.rows,
        "encoding": shape.encoding,
        "separator": shape.separator,
        "epoch1904": shape.epoch_1904,
    }
    write(out, {"shape": told, "headerRow": header[0], "header": header[1]})
    after, most = asked["after"], asked["most"]
    batch: list[list[Any]] = []
    sent = 0
    for number, cells in rows:
        if number <= after or cells.count("") == len(cells):
            continue
        batch.append([number, *cells])
        sent += 1
        if len(batch) == IN_A_FRAME:
            write(out, {"rows": batch})
            batch = []
        if sent == most:
            break
    if batch:
        write(out, {"rows": batch})
    write(out, {"end": sent})


def _header(source: RowSource, rows: Any, limits: Limits) -> tuple[int, list[str]]:
    """The first row that has anything in it."""
    for number, cells in rows:
        if any(cell != "" for cell in cells):
            if source.merged(number):
                raise FileRefused(f"cells of its header (row {number}) are merged: give each column a name of its own")
            names = [_name(cell) for cell in cells]
            longest = max(map(len, names))
            if longest > limits.name:
                raise FileRefused(
                    f"a cell of its header (row {number}) has {longest:,} characters: {limits.name:,} may be"
                )
            if sum(map(len, names)) > limits.names:
                raise FileRefused(
                    f"the names of its columns (row {number}) have more than {limits.names:,} characters together"
                )
            return number, names
    raise FileRefused("it has no rows")


def _name(cell: Any) -> str:
    """A column's name: a year that is a number has no fraction."""
    if isinstance(cell, dict):
        return str(next(iter(cast("dict[str, Any]", cell).values())))
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
