"""Looking into a file before it is imported: its sheets, its header, its first rows, and what fits which type."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from windlass.apps.imports.cells import shown
from windlass.apps.imports.child import Child
from windlass.apps.imports.mapping import guess

if TYPE_CHECKING:
    from typing import BinaryIO

    from windlass.apps.imports.imports import Imports

_ROWS = 10
_AT_ONCE = asyncio.Semaphore(2)
"""files that one process looks into at the same time"""


class Guess(BaseModel):
    """How a file fits a type."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    type: str
    mapping: dict[str, str]
    missing: list[str]
    unused: list[str]


class Look(BaseModel):
    """What a file is."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    filename: str
    kind: str
    sheets: list[str]
    sheet_name: str | None
    rows: int | None
    """the number of the last row, where it is known"""
    encoding: str | None
    separator: str | None
    header_row: int
    header: list[str]
    first: list[list[Any]]
    """the first rows, each after its number, as text"""
    guesses: list[Guess]
    """the type that fits best first"""


async def look(imports: Imports, file: BinaryIO, filename: str, sheet: str | None = None) -> Look:
    """Look into a file; FileRefused says why it cannot be read."""
    async with _AT_ONCE, Child(file, filename, sheet=sheet, limits=imports.settings.limits, most=_ROWS) as child:
        opened = await child.opened()
        rows = [row async for batch in child.batches(_ROWS) for row in batch]
    guesses = [_guess(imports, type_, opened.header) for type_ in imports.handlers]
    said = imports.looked_up(filename)
    guesses.sort(key=lambda one: (said is None or one.type != said.type, len(one.missing), -len(one.mapping)))
    return Look(
        filename=filename,
        kind=opened.kind,
        sheets=opened.sheets,
        sheet_name=opened.sheet,
        rows=opened.rows,
        encoding=opened.encoding,
        separator=opened.separator,
        header_row=opened.header_row,
        header=opened.header,
        first=[[row[0], *(shown(cell) for cell in row[1:])] for row in rows],
        guesses=guesses,
    )


def _guess(imports: Imports, type_: str, header: list[str]) -> Guess:
    mapped = guess(imports.handlers[type_], header)
    missing = [field.label for field in mapped.missing]
    return Guess(type=type_, mapping=mapped.as_given(), missing=missing, unused=list(mapped.unused))
