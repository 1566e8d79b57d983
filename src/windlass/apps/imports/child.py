"""The child that reads a file: started with limits, followed frame by frame, killed rather than trusted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import from_json

from windlass.apps.imports.reading.frames import LARGEST, LENGTH
from windlass.apps.imports.reading.refusal import FileRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType
    from typing import BinaryIO

    from windlass.apps.imports.reading.limits import Limits

_START = Path(__file__).parent / "reading" / "start.py"
_PIPE = 4 * 1024 * 1024
_SLOWEST = 120.0
"""seconds until the next frame"""


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
        self._file = file
        self._asked = json.dumps(
            {"name": name, "sheet": sheet, "after": after, "most": most, "limits": limits.as_dict()}
        )
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(_START),
            self._asked,
            stdin=self._file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # what a parser says of a hostile file is for nobody
            limit=_PIPE,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None  # noqa: S101  # entered
        return self._process.pid

    async def opened(self) -> Opened:
        """What the file is; FileRefused says why it is not read."""
        frame = await self._frame()
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
            frame = await self._frame()
            if "rows" not in frame:
                break
            rows += frame["rows"]
            while len(rows) >= size:
                yield rows[:size]
                rows = rows[size:]
        if rows:
            yield rows

    async def _frame(self) -> dict[str, Any]:
        process = self._process
        assert process is not None  # noqa: S101  # entered
        assert process.stdout is not None  # noqa: S101  # asked for
        try:
            async with asyncio.timeout(_SLOWEST):
                length = int.from_bytes(await process.stdout.readexactly(LENGTH), "big")
                if length > LARGEST:
                    raise FileRefused("a row of it is too large")
                frame: dict[str, Any] = from_json(await process.stdout.readexactly(length))
        except asyncio.IncompleteReadError:
            raise FileRefused(_why(await process.wait())) from None
        except TimeoutError:
            raise FileRefused(f"its next rows could not be read within {_SLOWEST:g} seconds") from None
        if "refused" in frame:
            raise FileRefused(frame["refused"])
        return frame


def _why(code: int) -> str:
    """What became of a child that said nothing more."""
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return "reading it took more time than a file may have: split it into several"
    if code < 0:
        return "reading it needs more memory than a file may have, or breaks the reader: split it, or save it anew"
    return "it breaks the reader: open it in a spreadsheet and save it anew"
