"""Frames: what parent and child tell each other, each after its length. What comes is data and never code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 4
LARGEST = 64 * 1024 * 1024
"""bytes of one frame"""
Frame: TypeAlias = dict[str, Any]


def write(stream: BinaryIO, frame: Frame, default: Callable[[Any], Any] | None = None) -> None:
    """Write one as JSON; `default` gives a form to what JSON has none for."""
    data = json.dumps(frame, ensure_ascii=False, separators=(",", ":"), default=default).encode("utf-8", "replace")
    stream.write(framed(data))
    stream.flush()


def framed(data: bytes) -> bytes:
    """Bytes after their length."""
    return len(data).to_bytes(LENGTH, "big") + data


def read(stream: BinaryIO) -> bytes | None:
    """The bytes of the next one; None where the stream has ended."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    length = int.from_bytes(head, "big")
    data = stream.read(length)
    return data if len(data) == length else None
