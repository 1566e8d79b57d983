"""Where a mistake is in what was sent, as the sender wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 200


def place_of_mistake(path: Iterable[int | str]) -> str:
    """`body.tags.0`. What pydantic adds where a value may be of several types, as `literal['high']`, was never sent."""
    return ".".join(str(part) for part in path if not (isinstance(part, str) and part.endswith("]")))[:_LONGEST]
