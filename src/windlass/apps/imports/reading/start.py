"""The child: `python -I start.py ASKED` reads the file at standard input and writes frames to standard output."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

# The package's own start loads the engine, for which a reader of files has no use: it takes a fifth of a second.
_ROOT = Path(__file__).resolve().parents[3]
for _name, _path in (
    ("windlass", _ROOT),
    ("windlass.apps", _ROOT / "apps"),
    ("windlass.apps.imports", _ROOT / "apps" / "imports"),
):
    if _name not in sys.modules:
        _stub = ModuleType(_name)
        _stub.__path__ = [str(_path)]
        sys.modules[_name] = _stub

from windlass.apps.imports.reading.frames import write  # noqa: E402  # after the stubs above
from windlass.apps.imports.reading.limits import Limits  # noqa: E402  # the same
from windlass.apps.imports.reading.refusal import FileRefused  # noqa: E402  # the same
from windlass.apps.imports.reading.sources import RowSource, open_source  # noqa: E402  # the same

IN_A_FRAME = 500
"""rows"""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Read as asked; whatever is wrong with the file is a frame that says so."""
    asked = json.loads(sys.argv[1])
    limits = Limits.of(asked["limits"])
    _follow_parent()
    limits.bind()
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a library that prints does not print into the frames
    with os.fdopen(0, "rb", closefd=False) as file:
        try:
            _read(file, out, asked, limits)
        except FileRefused as refusal:
            write(out, {"refused": str(refusal)})
        except MemoryError:
            write(out, {"refused": "it needs more memory than a file may: split it into several"})


def _read(file: BinaryIO, out: BinaryIO, asked: dict[str, Any], limits: Limits) -> None:
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
            names = [cell.strip() if isinstance(cell, str) else str(cell) for cell in cells]
            longest = max(map(len, names))
            if longest > limits.name:
                raise FileRefused(
                    f"a cell of its header (row {number}) has {longest:,} characters: {limits.name:,} may be"
                )
            return number, names
    raise FileRefused("it has no rows")


def _follow_parent() -> None:
    """End when the worker does, however it does."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):  # not on this system: the pipe that breaks ends it
        return


if __name__ == "__main__":
    main()
