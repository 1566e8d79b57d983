"""Cells that JSON has no form for, each under one letter that says what it is."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, BinaryIO

from windlass.apps.limited import frames

if TYPE_CHECKING:
    from windlass.apps.limited.frames import Frame


def write(stream: BinaryIO, frame: Frame) -> None:
    """Write a frame of cells."""
    frames.write(stream, frame, _tagged)


def _tagged(cell: object) -> dict[str, str | float]:
    """A cell that JSON has no form for, under one letter that says what it is."""
    if isinstance(cell, dt.datetime):
        return {"t": cell.isoformat()}
    if isinstance(cell, dt.date):
        return {"d": cell.isoformat()}
    if isinstance(cell, dt.time):
        return {"h": cell.isoformat()}
    if isinstance(cell, dt.timedelta):
        return {"s": cell.total_seconds()}
    return {"x": type(cell).__name__}
