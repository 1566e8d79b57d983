"""The child that reads a spreadsheet: what it is asked, and the rows that come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from windlass.apps.limited.child import LimitedChild

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType
    from typing import BinaryIO

    from windlass.apps.imports.reading.limits import Limits

_READER = "windlass.apps.imports.reading.serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a file is, before its first row."""

    kind: str
    header_row: int
    header: list[str]
    sheets: list[str]
    sheet: str | None
    rows: int | None
    """the number of the last row, where it is known"""
    encoding: str | None
    separator: str | None
    epoch_1904: bool


class Child:
    """One reading of one file. `async with` ends the process, whatever state it is in."""

    def __init__(
        self, file: BinaryIO, name: str, *, sheet: str | None, limits: Limits, after: int = 0, most: int = -1
    ) -> None:
        asked = {"name": name, "sheet": sheet, "after": after, "most": most, "limits": limits.as_dict()}
        self._child = LimitedChild(_READER, asked, limits.bounds, file=file)

    async def __aenter__(self) -> Self:
        await self._child.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._child.__aexit__(kind, error, trace)

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    async def opened(self) -> Opened:
        """What the file is; FileRefused says why it is not read."""
        frame = await self._child.frame()
        shape = frame["shape"]
        return Opened(
            kind=shape["kind"],
            header_row=frame["headerRow"],
            header=frame["header"],
            sheets=shape["sheets"],
            sheet=shape["sheet"],
            rows=shape["rows"],
            encoding=shape["encoding"],
            separator=shape["separator"],
            epoch_1904=shape["epoch1904"],
        )

    async def batches(self, size: int) -> AsyncGenerator[list[list[Any]], None]:
        """The rows, each after its own number in the sheet, so many at a time."""
        rows: list[list[Any]] = []
        while True:
            frame = await self._child.frame()
            if "rows" not in frame:
                break
            rows += frame["rows"]
            while len(rows) >= size:
                yield rows[:size]
                rows = rows[size:]
        if rows:
            yield rows
