"""The parent's end of a child: started with limits, followed frame by frame, killed rather than trusted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic_core import from_json

from windlass.apps.limited.frames import LARGEST, LENGTH, framed
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import BinaryIO

    from windlass.apps.limited.bounds import Bounds
    from windlass.apps.limited.frames import Frame

_START = Path(__file__).parent / "start.py"
_PIPE = 4 * 1024 * 1024
SLOWEST = 120.0
"""seconds until the next frame"""


class LimitedChild:
    """One process that runs `serve(file, out, asked)` of a module of ours. `async with` ends it, whatever it is doing.

    `file` is its standard input; without one, `send` gives it frames. Any death of it, by a signal or of its own, is a
    FileRefused with a reason: what it read will kill the next one, too. Its stderr goes nowhere.
    """

    def __init__(self, module: str, asked: Mapping[str, Any], bounds: Bounds, *, file: BinaryIO | None = None) -> None:
        self._module, self._file = module, file
        self._given = json.dumps({"asked": dict(asked), "bounds": bounds.as_dict()})
        self._process: asyncio.subprocess.Process | None = None
        self._handle: int | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(_START), self._module, self._given),
            stdin=asyncio.subprocess.PIPE if self._file is None else self._file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # what a parser says of a hostile file is for nobody
            limit=_PIPE,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )
        with contextlib.suppress(OSError, AttributeError):  # it has ended already, or not on this system
            self._handle = os.pidfd_open(self._process.pid)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._kill(process)
            await process.wait()

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        if self._handle is None:
            process.kill()
            return
        # `process.kill` would reap a child that has just ended, and asyncio then warns that it does not know it.
        handle, self._handle = self._handle, None
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None  # noqa: S101  # entered
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked more, as far as is known."""
        return self._process is not None and self._process.returncode is None

    async def send(self, data: bytes) -> None:
        """Give it a frame, which `frames.read` reads; that it is dead is told by the `frame` that follows."""
        assert self._process is not None  # noqa: S101  # entered
        assert self._process.stdin is not None  # noqa: S101  # no file was given
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(framed(data))
            await self._process.stdin.drain()

    async def frame(self, within: float = SLOWEST) -> Frame:
        """What it tells next; FileRefused says why there is nothing."""
        process = self._process
        assert process is not None  # noqa: S101  # entered
        assert process.stdout is not None  # noqa: S101  # asked for
        try:
            async with asyncio.timeout(within):
                length = int.from_bytes(await process.stdout.readexactly(LENGTH), "big")
                if length > LARGEST:
                    raise FileRefused("a piece of it is too large")
                frame: Frame = from_json(await process.stdout.readexactly(length))
        except asyncio.IncompleteReadError:
            raise FileRefused(_why(await process.wait())) from None
        except TimeoutError:
            raise FileRefused(f"it could not be read within {within:g} seconds") from None
        if "refused" in frame:
            raise FileRefused(frame["refused"])
        return frame


def _why(code: int) -> str:
    """What became of a child that said nothing more."""
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return "reading it took more time than a file may have: split it into several"
    if code < 0:
        return "reading it needs more memory than a file may have, or breaks the reader: split it, or save it anew"
    return "it breaks the reader: open it in the program that made it and save it anew"
