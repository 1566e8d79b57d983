"""Frames: what the child tells its parent, each as JSON after its length. What comes is data and never code."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, BinaryIO, TypeAlias

LENGTH = 4
LARGEST = 64 * 1024 * 1024
"""bytes of one frame"""
Frame: TypeAlias = dict[str, Any]


def write(stream: BinaryIO, frame: Frame) -> None:
    """Write one."""
    data = json.dumps(frame, ensure_ascii=False, separators=(",", ":"), default=_tagged).encode("utf-8", "replace")
    stream.write(len(data).to_bytes(LENGTH, "big") + data)
    stream.flush()


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
